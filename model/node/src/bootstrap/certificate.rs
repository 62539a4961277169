//! Checks the certificate signing requests of a worker.

use super::subject::is_subject;
use super::{CertificateKind, Refusal};
use crate::pki::{Leaf, SigningRequest, Usage};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use time::Duration;

/// sha256 (hex) of the public key (DER SubjectPublicKeyInfo) of each requested certificate.
pub type KeyDigests = BTreeMap<CertificateKind, String>;

/// A signing request that passed all checks. Exactly this request is signed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckedRequest {
    pub request: SigningRequest,
    /// sha256 (hex) of the request's public key.
    pub key: String,
}

/// Validity of a worker's certificate for kube-proxy. nodeup looks once a week, and renews it when less than a third is left: three
/// weeks.
pub const KUBE_PROXY_VALIDITY: Duration = Duration::days(60);

impl CertificateKind {
    /// The name in requests and messages.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Kubelet => "kubelet",
            Self::KubeProxy => "kube-proxy",
        }
    }
}

/// The content of the certificate for an instance. kubelet's is valid for `signing`, like the ones that it renews itself later.
/// kube-proxy's names no instance, so nothing ends it before its time.
pub fn certificate_leaf(certificate: CertificateKind, instance: &str, signing: Duration) -> Leaf {
    let (common_name, organization, validity) = match certificate {
        CertificateKind::Kubelet => (
            format!("system:node:{instance}"),
            Some("system:nodes".to_owned()),
            signing,
        ),
        CertificateKind::KubeProxy => ("system:kube-proxy".to_owned(), None, KUBE_PROXY_VALIDITY),
    };
    Leaf {
        common_name,
        organization,
        usage: Usage::Client,
        names: Vec::new(),
        validity,
    }
}

/// Checks that every request (PEM) is signed by its own key and names only what the instance may have.
pub fn check_requests(
    requests: &BTreeMap<CertificateKind, String>,
    instance: &str,
) -> Result<BTreeMap<CertificateKind, CheckedRequest>, Refusal> {
    let one = |(certificate, pem): (&CertificateKind, &String)| {
        let wanted = certificate_leaf(*certificate, instance, Duration::ZERO);
        Ok((*certificate, check_request(*certificate, pem, &wanted)?))
    };
    requests.iter().map(one).collect()
}

/// The key digests of checked requests, which are recorded.
pub fn requested_keys(asked: &BTreeMap<CertificateKind, CheckedRequest>) -> KeyDigests {
    let key = |(certificate, asked): (&CertificateKind, &CheckedRequest)| {
        (*certificate, asked.key.clone())
    };
    asked.iter().map(key).collect()
}

fn check_request(
    certificate: CertificateKind,
    pem: &str,
    wanted: &Leaf,
) -> Result<CheckedRequest, Refusal> {
    let unusable = |why| Refusal::CertificateRequest {
        certificate: certificate.name(),
        why,
    };
    let request = SigningRequest::from_pem(pem.as_bytes()).map_err(unusable)?;
    let parsed = request.to_x509().map_err(unusable)?;
    let own = is_subject(&parsed, &wanted.common_name, wanted.organization.as_deref());
    let mut extensions = parsed.requested_extensions().into_iter().flatten();
    if !own || extensions.next().is_some() {
        return Err(Refusal::OtherName {
            wanted: wanted.common_name.clone(),
        });
    }
    let key = Sha256::digest(parsed.certification_request_info.subject_pki.raw);
    Ok(CheckedRequest {
        key: format!("{key:x}"),
        request: request.clone(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pki::{SystemKeys, create_request, request_for_key};
    use time::OffsetDateTime;

    fn kubelet_request(pem: &str) -> BTreeMap<CertificateKind, String> {
        [(CertificateKind::Kubelet, pem.to_owned())].into()
    }

    #[test]
    fn an_instance_gets_certificates_in_its_own_name_only() {
        let mut keys = SystemKeys::issuing_at(OffsetDateTime::UNIX_EPOCH);
        let own = certificate_leaf(CertificateKind::Kubelet, "i-1", Duration::DAY);
        let (pem, key) = create_request(&own, &mut keys).unwrap();
        let keys_of = |pem: &str| {
            super::requested_keys(&check_requests(&kubelet_request(pem), "i-1").unwrap())
        };
        let first = keys_of(&pem);
        let again = request_for_key(&own, &key).unwrap();
        assert_eq!(keys_of(&again), first, "the same key");
        let (other, _) = create_request(&own, &mut keys).unwrap();
        assert_ne!(keys_of(&other), first);

        let foreign = [
            certificate_leaf(CertificateKind::Kubelet, "i-2", Duration::DAY),
            certificate_leaf(CertificateKind::KubeProxy, "i-1", Duration::DAY),
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
            let pem = request_for_key(&leaf, &key).unwrap();
            let refusal = check_requests(&kubelet_request(&pem), "i-1");
            assert!(
                matches!(refusal, Err(Refusal::OtherName { .. })),
                "{leaf:?}"
            );
        }
    }

    #[test]
    fn a_request_that_is_damaged_or_none_is_said_so() {
        let mut keys = SystemKeys::issuing_at(OffsetDateTime::UNIX_EPOCH);
        let own = certificate_leaf(CertificateKind::Kubelet, "i-1", Duration::DAY);
        let (pem, _) = create_request(&own, &mut keys).unwrap();
        let (_, parsed) = x509_parser::pem::parse_x509_pem(pem.as_bytes()).unwrap();
        let mut der = parsed.contents.clone();
        *der.last_mut().unwrap() ^= 1;
        let label = "CERTIFICATE REQUEST";
        let text = {
            use base64::Engine as _;
            base64::engine::general_purpose::STANDARD.encode(der)
        };
        let forged = format!("-----BEGIN {label}-----\n{text}\n-----END {label}-----\n");
        // Of two requests in one text, two parsers could take different ones: the recorded key must be the signed key.
        let two = format!("{pem}{pem}");
        let begun = "-----BEGIN CERTIFICATE REQUEST-----";
        for wrong in [forged.as_str(), &two, "", begun] {
            let refusal = check_requests(&kubelet_request(wrong), "i-1");
            assert!(matches!(refusal, Err(Refusal::CertificateRequest { .. })));
        }
    }
}
