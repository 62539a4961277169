//! sha256 and hexadecimal text, as the state store, NodeConfig and the agents write them.

use sha2::{Digest, Sha256};

/// Bytes as lower-case hexadecimal digits.
pub fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// sha256, in lower-case hexadecimal digits.
pub fn sha256_hex(bytes: impl AsRef<[u8]>) -> String {
    to_hex(&Sha256::digest(bytes))
}

/// True for a sha256 as this module writes it: safe as a file name, and equal text for equal digests.
pub fn is_sha256(text: &str) -> bool {
    let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    text.len() == 64 && text.bytes().all(is_digit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sha256_is_64_lower_case_digits() {
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(sha256_hex(""), empty);
        assert!(is_sha256(empty));
        for other in [
            &empty[1..],
            &empty.to_ascii_uppercase(),
            &empty.replace('e', "/"),
        ] {
            assert!(!is_sha256(other), "{other}");
        }
    }
}
