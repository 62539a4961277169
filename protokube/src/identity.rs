//! protokube's own certificates: issued in memory by `kubernetes-ca`, and renewed long before they expire, because a control plane
//! may run for years.

use anyhow::{Context, anyhow};
use node::pki::{IssuedCertificate, Keyset, Leaf, SystemKeys, issue_certificate};
use std::fmt;
use std::sync::Arc;
use time::OffsetDateTime;

/// A clock; tests provide their own.
pub type Clock = Arc<dyn Fn() -> OffsetDateTime + Send + Sync>;

pub fn system_clock() -> Clock {
    Arc::new(OffsetDateTime::now_utc)
}

/// A certificate with its key and its time of renewal.
#[derive(Clone, PartialEq, Eq)]
pub struct Identity {
    pub issued: IssuedCertificate,
    /// Time of renewal: after two thirds of the lifetime.
    pub renew: OffsetDateTime,
}

impl Identity {
    pub fn issue_identity(
        authority: &Keyset,
        leaf: &Leaf,
        now: OffsetDateTime,
    ) -> anyhow::Result<Self> {
        let name = &leaf.common_name;
        let issued = issue_certificate(authority, leaf, &mut SystemKeys::issuing_at(now));
        let issued = issued.with_context(|| format!("could not issue a certificate for {name}"))?;
        let ends = certificate_end(&issued.certificate)
            .with_context(|| format!("the certificate for {name} cannot be parsed"))?;
        Ok(Self {
            renew: now + (ends - now) * 2 / 3,
            issued,
        })
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identity")
            .field("renew", &self.renew)
            .finish_non_exhaustive()
    }
}

/// The end of a certificate's validity, which may be earlier than requested if the authority ends earlier.
fn certificate_end(pem: &str) -> anyhow::Result<OffsetDateTime> {
    let (_, pem) =
        x509_parser::pem::parse_x509_pem(pem.as_bytes()).map_err(|error| anyhow!("{error}"))?;
    let certificate = pem.parse_x509().map_err(|error| anyhow!("{error}"))?;
    Ok(certificate.validity().not_after.to_datetime())
}

#[cfg(test)]
mod tests {
    use super::*;
    use node::pki::{KeyAlgorithm, Usage, mint_keyset};
    use time::Duration;

    #[test]
    fn a_certificate_is_renewed_before_it_and_before_its_authority_ends() {
        let now = OffsetDateTime::UNIX_EPOCH + Duration::days(20_000);
        let mut keys = SystemKeys::issuing_at(now);
        let authority = mint_keyset("kubernetes-ca", KeyAlgorithm::EcdsaP256, &mut keys).unwrap();
        let renewed = |validity| {
            let leaf = Leaf {
                common_name: "kops-controller".to_owned(),
                organization: None,
                usage: Usage::Server,
                names: Vec::new(),
                validity,
            };
            Identity::issue_identity(&authority, &leaf, now)
                .unwrap()
                .renew
                - now
        };
        assert_eq!(renewed(Duration::days(300)), Duration::days(200));
        let authoritys_life = Duration::days(3650);
        assert!(renewed(Duration::days(9999)) < authoritys_life);
    }
}
