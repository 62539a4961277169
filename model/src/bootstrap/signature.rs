//! What an `authorization` header of signature version 4 says it covers. Whether it is right, STS says.

use super::Refusal;
use std::collections::BTreeSet;

/// The names in `SignedHeaders`.
pub(super) fn signed_headers(authorization: &str) -> Result<BTreeSet<&str>, Refusal> {
    let wrong = || Refusal::Identity {
        why: "has no authorization of signature version 4".to_owned(),
    };
    let parts = authorization
        .strip_prefix("AWS4-HMAC-SHA256 ")
        .ok_or_else(wrong)?;
    let mut named = parts
        .split(',')
        .filter_map(|part| part.trim().strip_prefix("SignedHeaders="));
    // A second list could be the one that STS believes.
    let (Some(names), None) = (named.next(), named.next()) else {
        return Err(wrong());
    };
    Ok(names.split(';').collect())
}

#[cfg(test)]
mod tests {
    use super::signed_headers;

    #[test]
    fn the_signed_headers_are_those_of_the_one_list() {
        let one = "AWS4-HMAC-SHA256 Credential=A/20300101/r/sts/aws4_request, SignedHeaders=host;x-amz-date, Signature=0";
        let names: Vec<&str> = signed_headers(one).unwrap().into_iter().collect();
        assert_eq!(names, ["host", "x-amz-date"]);
        let two = format!("{one}, SignedHeaders=host;x-amz-date;x-kctl-cluster");
        for wrong in [two.as_str(), "AWS4-HMAC-SHA256 Signature=0", "Basic a", ""] {
            assert!(signed_headers(wrong).is_err(), "{wrong}");
        }
    }
}
