//! Whether a signed identity was meant for this request: what binds it must be under the signature, and be ours.

use super::date::check_date;
use super::echo::echo;
use super::signature::signed_headers;
use super::{AUTHORITY_HEADER, BODY_HEADER, Binding, CLUSTER_HEADER, Refusal, SignedIdentity};
use std::collections::BTreeSet;
use time::OffsetDateTime;

/// What an identity has to be bound to.
#[derive(Clone, Copy, Debug)]
pub struct Expected<'a> {
    /// The body as received.
    pub body: &'a [u8],
    /// The cluster's name.
    pub cluster: &'a str,
    /// sha256 (hex) of each bundle of authorities that a caller may trust.
    pub authorities: &'a BTreeSet<String>,
    /// The host, with its port if it is not the usual one, of our region's STS.
    pub sts_host: &'a str,
    /// Our clock.
    pub now: OffsetDateTime,
}

/// Checks everything about a signed identity that can be told without asking STS.
pub fn check_binding(identity: &SignedIdentity, expected: &Expected<'_>) -> Result<(), Refusal> {
    let signed = signed_headers(value(identity, "authorization")?)?;
    let covered = |name: &'static str| {
        if signed.contains(name) {
            value(identity, name)
        } else {
            Err(Refusal::Unsigned { header: name })
        }
    };
    if covered(BODY_HEADER)? != Binding::of(expected.body, "", "").body {
        return Err(Refusal::OtherBody);
    }
    let cluster = covered(CLUSTER_HEADER)?;
    if cluster != expected.cluster {
        return Err(Refusal::OtherCluster {
            bound: echo(cluster),
            own: expected.cluster.to_owned(),
        });
    }
    if !expected.authorities.contains(covered(AUTHORITY_HEADER)?) {
        return Err(Refusal::OtherAuthority);
    }
    let host = covered("host")?;
    if host != expected.sts_host {
        return Err(Refusal::OtherHost {
            bound: echo(host),
            own: expected.sts_host.to_owned(),
        });
    }
    check_date(covered("x-amz-date")?, expected.now)
}

fn value<'a>(identity: &'a SignedIdentity, name: &'static str) -> Result<&'a str, Refusal> {
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

    fn identity(body: &[u8], cluster: &str, trusted: &str) -> SignedIdentity {
        let mut headers: std::collections::BTreeMap<String, String> =
            Binding::of(body, cluster, trusted)
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

    fn check(identity: &SignedIdentity) -> Result<(), Refusal> {
        let authorities = [Binding::of(b"", "", "authority").authority].into();
        check_binding(
            identity,
            &Expected {
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
        let good = identity(b"body", "a.example.com", "authority");
        assert_eq!(check(&good), Ok(()));
        let other = identity(b"another", "a.example.com", "authority");
        assert_eq!(check(&other), Err(Refusal::OtherBody));
        let other = identity(b"body", "b.example.com", "authority");
        assert!(matches!(check(&other), Err(Refusal::OtherCluster { .. })));
        let other = identity(b"body", "a.example.com", "another");
        assert_eq!(check(&other), Err(Refusal::OtherAuthority));
    }

    #[test]
    fn every_header_that_binds_must_be_there_and_under_the_signature() {
        let good = identity(b"body", "a.example.com", "authority");
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
            assert_eq!(check(&unsigned), Err(Refusal::Unsigned { header: name }));
            let mut missing = good.clone();
            missing.headers.remove(name);
            assert!(matches!(check(&missing), Err(Refusal::Identity { .. })));
        }
    }

    #[test]
    fn another_sts_is_not_asked() {
        let mut elsewhere = identity(b"body", "a.example.com", "authority");
        let host = "sts.us-east-1.amazonaws.com";
        elsewhere.headers.insert("host".into(), host.into());
        assert!(matches!(check(&elsewhere), Err(Refusal::OtherHost { .. })));
    }
}
