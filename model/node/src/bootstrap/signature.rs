//! Parses the list of signed headers in an `authorization` header of signature version 4. STS verifies the signature.

use super::Refusal;
use std::collections::BTreeSet;

/// The names in `SignedHeaders`. Accepts only the format that AWS documents and its SDKs write, so that STS cannot read a
/// different list:
/// <https://docs.aws.amazon.com/AmazonS3/latest/API/sigv4-auth-using-authorization-header.html>.
pub(super) fn signed_headers(authorization: &str) -> Result<BTreeSet<&str>, Refusal> {
    let wrong = || Refusal::Identity {
        why: "has no valid authorization of signature version 4".to_owned(),
    };
    let parts = authorization.strip_prefix("AWS4-HMAC-SHA256 ");
    let parts: Vec<&str> = parts.ok_or_else(wrong)?.split(", ").collect();
    let [credential, headers, signature] = parts.as_slice() else {
        return Err(wrong());
    };
    let scope = |byte: u8| byte.is_ascii_alphanumeric() || b"/-_".contains(&byte);
    let name =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b";-".contains(&byte);
    let hex = |byte: u8| byte.is_ascii_hexdigit();
    let _ = part_value(credential, "Credential=", scope).ok_or_else(wrong)?;
    let _ = part_value(signature, "Signature=", hex).ok_or_else(wrong)?;
    let names = part_value(headers, "SignedHeaders=", name).ok_or_else(wrong)?;
    Ok(names.split(';').collect())
}

/// The value after the prefix `name`, if it consists of allowed characters.
fn part_value<'a>(part: &'a str, name: &str, known: impl Fn(u8) -> bool) -> Option<&'a str> {
    let value = part.strip_prefix(name)?;
    (!value.is_empty() && value.bytes().all(known)).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::signed_headers;

    const CREDENTIAL: &str = "Credential=A/20300101/r/sts/aws4_request";
    const HEADERS: &str = "SignedHeaders=host;x-amz-date";

    #[test]
    fn the_signed_headers_are_those_of_the_one_list() {
        let one = format!("AWS4-HMAC-SHA256 {CREDENTIAL}, {HEADERS}, Signature=0");
        let names: Vec<&str> = signed_headers(&one).unwrap().into_iter().collect();
        assert_eq!(names, ["host", "x-amz-date"]);
    }

    #[test]
    fn every_other_form_is_refused() {
        let other = "SignedHeaders=host;x-amz-date;x-kctl-cluster";
        for parts in [
            format!("{CREDENTIAL}, {HEADERS}, Signature=0, {other}"),
            format!("{CREDENTIAL} {other}, {HEADERS}, Signature=0"),
            format!("{CREDENTIAL}, {HEADERS} {other}, Signature=0"),
            format!("{CREDENTIAL}, {HEADERS}, Signature=0 {other}"),
            format!("{CREDENTIAL},{other}, {HEADERS}, Signature=0"),
            format!("{CREDENTIAL}\t{other}, {HEADERS}, Signature=0"),
            format!("{HEADERS}, {CREDENTIAL}, Signature=0"),
            format!("{CREDENTIAL},  {HEADERS}, Signature=0"),
            format!("{CREDENTIAL}, {HEADERS}, Signature="),
            format!("{CREDENTIAL}, SignedHeaders=, Signature=0"),
            format!("{CREDENTIAL}, SignedHeaders=Host, Signature=0"),
            format!("{CREDENTIAL}, Signature=0"),
            "Signature=0".to_owned(),
        ] {
            let authorization = format!("AWS4-HMAC-SHA256 {parts}");
            assert!(signed_headers(&authorization).is_err(), "{authorization}");
        }
        for none in ["Basic a", "", "AWS4-HMAC-SHA256"] {
            assert!(signed_headers(none).is_err(), "{none}");
        }
    }
}
