//! Which certificates an instance may have, and which keys it asks them for.

use super::subject::is_subject;
use super::{Certificate, Refusal};
use crate::pki::{LEAF_VALIDITY, Leaf, SigningRequest, Usage};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use time::Duration;

/// sha256 (hex) of the public key (its DER SubjectPublicKeyInfo) of each certificate that is asked for.
pub type Keys = BTreeMap<Certificate, String>;

/// A signing request that may be answered: it is what is signed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// The request.
    pub request: SigningRequest,
    /// sha256 (hex) of its public key.
    pub key: String,
}

impl Certificate {
    /// Its name in requests.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Kubelet => "kubelet",
            Self::KubeProxy => "kube-proxy",
        }
    }
}

/// What the certificate says when an instance gets it. A kubelet's is valid for `signing`, as those are that it gets by itself
/// afterwards; kube-proxy renews none, so its life is another's matter.
pub fn leaf(certificate: Certificate, instance: &str, signing: Duration) -> Leaf {
    let (common_name, organization, validity) = match certificate {
        Certificate::Kubelet => (
            format!("system:node:{instance}"),
            Some("system:nodes".to_owned()),
            signing,
        ),
        Certificate::KubeProxy => ("system:kube-proxy".to_owned(), None, LEAF_VALIDITY),
    };
    Leaf {
        common_name,
        organization,
        usage: Usage::Client,
        names: Vec::new(),
        validity,
    }
}

/// Checks that every request (PEM) is signed by the key it is for, and asks for what the instance may have.
pub fn asked(
    requests: &BTreeMap<Certificate, String>,
    instance: &str,
) -> Result<BTreeMap<Certificate, Asked>, Refusal> {
    let one = |(certificate, pem): (&Certificate, &String)| {
        let wanted = leaf(*certificate, instance, Duration::ZERO);
        Ok((*certificate, check(*certificate, pem, &wanted)?))
    };
    requests.iter().map(one).collect()
}

/// The keys of what is asked for: what is recorded.
pub fn keys(asked: &BTreeMap<Certificate, Asked>) -> Keys {
    let key = |(certificate, asked): (&Certificate, &Asked)| (*certificate, asked.key.clone());
    asked.iter().map(key).collect()
}

fn check(certificate: Certificate, pem: &str, wanted: &Leaf) -> Result<Asked, Refusal> {
    let unusable = |why| Refusal::CertificateRequest {
        certificate: certificate.name(),
        why,
    };
    let request = SigningRequest::read(pem.as_bytes()).map_err(unusable)?;
    let parsed = request.parsed().map_err(unusable)?;
    let own = is_subject(&parsed, &wanted.common_name, wanted.organization.as_deref());
    let mut extensions = parsed.requested_extensions().into_iter().flatten();
    if !own || extensions.next().is_some() {
        return Err(Refusal::OtherName {
            wanted: wanted.common_name.clone(),
        });
    }
    let key = Sha256::digest(parsed.certification_request_info.subject_pki.raw);
    Ok(Asked {
        key: format!("{key:x}"),
        request: request.clone(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pki::{SystemKeys, request, request_for};
    use time::OffsetDateTime;

    fn requests(pem: &str) -> BTreeMap<Certificate, String> {
        [(Certificate::Kubelet, pem.to_owned())].into()
    }

    #[test]
    fn an_instance_gets_certificates_in_its_own_name_only() {
        let mut keys = SystemKeys::at(OffsetDateTime::UNIX_EPOCH);
        let own = leaf(Certificate::Kubelet, "i-1", Duration::DAY);
        let (pem, key) = request(&own, &mut keys).unwrap();
        let keys_of = |pem: &str| super::keys(&asked(&requests(pem), "i-1").unwrap());
        let first = keys_of(&pem);
        let again = request_for(&own, &key).unwrap();
        assert_eq!(keys_of(&again), first, "the same key");
        let (other, _) = request(&own, &mut keys).unwrap();
        assert_ne!(keys_of(&other), first);

        let foreign = [
            leaf(Certificate::Kubelet, "i-2", Duration::DAY),
            leaf(Certificate::KubeProxy, "i-1", Duration::DAY),
            Leaf {
                organization: Some("system:masters".to_owned()),
                ..own.clone()
            },
            Leaf {
                organization: None,
                ..own
            },
        ];
        for leaf in foreign {
            let pem = request_for(&leaf, &key).unwrap();
            let refusal = asked(&requests(&pem), "i-1");
            assert!(
                matches!(refusal, Err(Refusal::OtherName { .. })),
                "{leaf:?}"
            );
        }
    }

    #[test]
    fn a_request_that_is_damaged_or_none_is_said_so() {
        let mut keys = SystemKeys::at(OffsetDateTime::UNIX_EPOCH);
        let own = leaf(Certificate::Kubelet, "i-1", Duration::DAY);
        let (pem, _) = request(&own, &mut keys).unwrap();
        let (_, parsed) = x509_parser::pem::parse_x509_pem(pem.as_bytes()).unwrap();
        let mut der = parsed.contents.clone();
        *der.last_mut().unwrap() ^= 1;
        let label = "CERTIFICATE REQUEST";
        let text = {
            use base64::Engine as _;
            base64::engine::general_purpose::STANDARD.encode(der)
        };
        let forged = format!("-----BEGIN {label}-----\n{text}\n-----END {label}-----\n");
        // Two readers could take another one of two requests: the key that is recorded must be the key that is signed.
        let two = format!("{pem}{pem}");
        let begun = "-----BEGIN CERTIFICATE REQUEST-----";
        for wrong in [forged.as_str(), &two, "", begun] {
            let refusal = asked(&requests(wrong), "i-1");
            assert!(matches!(refusal, Err(Refusal::CertificateRequest { .. })));
        }
    }
}
