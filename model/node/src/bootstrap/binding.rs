//! Checks that a signed identity is meant for this request: the binding headers must be signed and have the expected values.

use super::date::check_date;
use super::signature::signed_headers;
use super::untrusted_text::untrusted_excerpt;
use super::{AUTHORITY_HEADER, BODY_HEADER, Binding, CLUSTER_HEADER, Refusal, SignedIdentity};
use std::collections::BTreeSet;
use time::OffsetDateTime;

/// The values that an identity must be bound to.
#[derive(Clone, Copy, Debug)]
pub struct ExpectedBinding<'a> {
    /// Request body as received.
    pub body: &'a [u8],
    /// Name of the cluster.
    pub cluster: &'a str,
    /// sha256 (hex) of each accepted trust bundle.
    pub authorities: &'a BTreeSet<String>,
    /// Host of this region's STS endpoint, with the port unless it is the default.
    pub sts_host: &'a str,
    pub now: OffsetDateTime,
}

/// Checks everything about a signed identity that does not need STS.
pub fn check_binding(
    identity: &SignedIdentity,
    expected: &ExpectedBinding<'_>,
) -> Result<(), Refusal> {
    let signed = signed_headers(header_value(identity, "authorization")?)?;
    let covered = |name: &'static str| {
        if signed.contains(name) {
            header_value(identity, name)
        } else {
            Err(Refusal::Unsigned { header: name })
        }
    };
    if covered(BODY_HEADER)? != Binding::for_request(expected.body, "", "").body {
        return Err(Refusal::OtherBody);
    }
    let cluster = covered(CLUSTER_HEADER)?;
    if cluster != expected.cluster {
        return Err(Refusal::OtherCluster {
            bound: untrusted_excerpt(cluster),
            own: expected.cluster.to_owned(),
        });
    }
    if !expected.authorities.contains(covered(AUTHORITY_HEADER)?) {
        return Err(Refusal::OtherAuthority);
    }
    let host = covered("host")?;
    if host != expected.sts_host {
        return Err(Refusal::OtherHost {
            bound: untrusted_excerpt(host),
            own: expected.sts_host.to_owned(),
        });
    }
    check_date(covered("x-amz-date")?, expected.now)
}

fn header_value<'a>(identity: &'a SignedIdentity, name: &'static str) -> Result<&'a str, Refusal> {
    let value = identity.headers.get(name).map(String::as_str);
    value.ok_or_else(|| Refusal::Identity {
        why: format!("has no {name}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use time::macros::datetime;

    const NOW: OffsetDateTime = datetime!(2030-01-01 12:00 UTC);

    fn signed_identity_of(body: &[u8], cluster: &str, trusted: &str) -> SignedIdentity {
        let mut headers: std::collections::BTreeMap<String, String> =
            Binding::for_request(body, cluster, trusted)
                .headers()
                .into_iter()
                .collect();
        headers.insert("host".into(), "sts.eu-west-1.amazonaws.com".into());
        headers.insert("x-amz-date".into(), "20300101T120000Z".into());
        let names: Vec<String> = headers.keys().cloned().collect();
        let authorization = format!(
            "AWS4-HMAC-SHA256 Credential=A/20300101/eu-west-1/sts/aws4_request, SignedHeaders={}, Signature=0",
            names.join(";")
        );
        headers.insert("authorization".into(), authorization);
        SignedIdentity { headers }
    }

    fn check_against_sample(identity: &SignedIdentity) -> Result<(), Refusal> {
        let authorities = [Binding::for_request(b"", "", "authority").authority].into();
        check_binding(
            identity,
            &ExpectedBinding {
                body: b"body",
                cluster: "a.example.com",
                authorities: &authorities,
                sts_host: "sts.eu-west-1.amazonaws.com",
                now: NOW,
            },
        )
    }

    #[test]
    fn an_identity_is_good_for_one_body_one_cluster_and_one_authority() {
        let good = signed_identity_of(b"body", "a.example.com", "authority");
        assert_eq!(check_against_sample(&good), Ok(()));
        let other = signed_identity_of(b"another", "a.example.com", "authority");
        assert_eq!(check_against_sample(&other), Err(Refusal::OtherBody));
        let other = signed_identity_of(b"body", "b.example.com", "authority");
        assert!(matches!(
            check_against_sample(&other),
            Err(Refusal::OtherCluster { .. })
        ));
        let other = signed_identity_of(b"body", "a.example.com", "another");
        assert_eq!(check_against_sample(&other), Err(Refusal::OtherAuthority));
    }

    #[test]
    fn every_header_that_binds_must_be_there_and_under_the_signature() {
        let good = signed_identity_of(b"body", "a.example.com", "authority");
        for name in [
            "host",
            "x-amz-date",
            AUTHORITY_HEADER,
            BODY_HEADER,
            CLUSTER_HEADER,
        ] {
            let mut unsigned = good.clone();
            let authorization = unsigned.headers.get_mut("authorization").unwrap();
            *authorization = authorization.replace(name, "accept");
            assert_eq!(
                check_against_sample(&unsigned),
                Err(Refusal::Unsigned { header: name })
            );
            let mut missing = good.clone();
            missing.headers.remove(name);
            assert!(matches!(
                check_against_sample(&missing),
                Err(Refusal::Identity { .. })
            ));
        }
    }

    #[test]
    fn another_sts_is_not_asked() {
        let mut elsewhere = signed_identity_of(b"body", "a.example.com", "authority");
        let host = "sts.us-east-1.amazonaws.com";
        elsewhere.headers.insert("host".into(), host.into());
        assert!(matches!(
            check_against_sample(&elsewhere),
            Err(Refusal::OtherHost { .. })
        ));
    }
}
