//! Parses the identity header: base64 of JSON with the headers of one signed call and no others.

use super::{
    AUTHORITY_HEADER, BODY_HEADER, CLUSTER_HEADER, IDENTITY_HEADER, Refusal, SignedIdentity,
};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// Limit of the identity header, bytes. The session token takes most of it.
pub const HEADER_LIMIT: usize = 16 * 1024;

/// Headers that are forwarded to STS. Any other header could change the meaning of the call or its transport.
const KNOWN: &[&str] = &[
    "authorization",
    "content-type",
    "host",
    "x-amz-date",
    "x-amz-security-token",
    AUTHORITY_HEADER,
    BODY_HEADER,
    CLUSTER_HEADER,
];

/// Parses the header's value; `None` is a missing header.
pub fn parse_identity(header: Option<&str>) -> Result<SignedIdentity, Refusal> {
    let wrong = |why: String| Refusal::Identity { why };
    let header = header.ok_or_else(|| wrong(format!("{IDENTITY_HEADER} is missing")))?;
    if header.len() > HEADER_LIMIT {
        return Err(wrong(format!("has more than {HEADER_LIMIT} bytes")));
    }
    let json = STANDARD.decode(header);
    let json = json.map_err(|_| wrong("is not base64".to_owned()))?;
    // The parser's error would quote the header, and with it a signature.
    let identity: SignedIdentity =
        serde_json::from_slice(&json).map_err(|_| wrong("is not a signed identity".to_owned()))?;
    let unknown = identity
        .headers
        .keys()
        .find(|name| !KNOWN.contains(&name.as_str()));
    if unknown.is_some() {
        return Err(wrong("has an unexpected signed header".to_owned()));
    }
    let plain = |value: &String| value.bytes().all(|byte| (b' '..=b'~').contains(&byte));
    if !identity.headers.values().all(plain) {
        return Err(wrong(
            "has characters that are not allowed in headers".to_owned(),
        ));
    }
    Ok(identity)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encode_header(json: &str) -> String {
        STANDARD.encode(json)
    }

    #[test]
    fn only_the_headers_of_a_signed_identity_pass() {
        let good = encode_header(r#"{"headers":{"host":"sts","x-kctl-cluster":"a"}}"#);
        assert_eq!(parse_identity(Some(&good)).unwrap().headers.len(), 2);
        let refused = [
            r#"{"headers":{"transfer-encoding":"chunked"}}"#,
            r#"{"headers":{"Host":"sts"}}"#,
            r#"{"headers":{"host":"sts\r\nx-amz-date: now"}}"#,
            r#"{"headers":{},"url":"https://elsewhere"}"#,
            "{",
        ];
        for json in refused {
            let refusal = parse_identity(Some(&encode_header(json))).unwrap_err();
            assert!(matches!(refusal, Refusal::Identity { .. }), "{json}");
        }
        let long = encode_header(&"a".repeat(HEADER_LIMIT));
        for value in [None, Some("no base64"), Some(&long)] {
            assert!(parse_identity(value).is_err());
        }
    }
}
