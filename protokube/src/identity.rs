//! protokube's own certificates: issued in memory from `kubernetes-ca`, and issued anew long before they end, for a
//! control plane may run for years.

use anyhow::{Context, anyhow};
use node::pki::{Issued, Keyset, Leaf, SystemKeys, issue};
use std::fmt;
use std::sync::Arc;
use time::OffsetDateTime;

/// What time it is.
pub type Clock = Arc<dyn Fn() -> OffsetDateTime + Send + Sync>;

/// The machine's clock.
pub fn system_clock() -> Clock {
    Arc::new(OffsetDateTime::now_utc)
}

/// A certificate with its key, and when to get another.
#[derive(Clone, PartialEq, Eq)]
pub struct Identity {
    /// Certificate and key.
    pub issued: Issued,
    /// After two thirds of its life.
    pub renew: OffsetDateTime,
}

impl Identity {
    /// Issues it.
    pub fn issue(authority: &Keyset, leaf: &Leaf, now: OffsetDateTime) -> anyhow::Result<Self> {
        let name = &leaf.common_name;
        let issued = issue(authority, leaf, &mut SystemKeys::at(now));
        let issued = issued.with_context(|| format!("could not issue a certificate for {name}"))?;
        let ends = ends(&issued.certificate)
            .with_context(|| format!("the certificate for {name} cannot be read"))?;
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

/// When a certificate (PEM) ends: no later than its authority, whatever was wanted.
fn ends(pem: &str) -> anyhow::Result<OffsetDateTime> {
    let (_, pem) =
        x509_parser::pem::parse_x509_pem(pem.as_bytes()).map_err(|error| anyhow!("{error}"))?;
    let certificate = pem.parse_x509().map_err(|error| anyhow!("{error}"))?;
    Ok(certificate.validity().not_after.to_datetime())
}

#[cfg(test)]
mod tests {
    use super::*;
    use node::pki::{KeyAlgorithm, Usage, mint};
    use time::Duration;

    #[test]
    fn a_certificate_is_renewed_before_it_and_before_its_authority_ends() {
        let now = OffsetDateTime::UNIX_EPOCH + Duration::days(20_000);
        let mut keys = SystemKeys::at(now);
        let authority = mint("kubernetes-ca", KeyAlgorithm::EcdsaP256, &mut keys).unwrap();
        let renewed = |validity| {
            let leaf = Leaf {
                common_name: "kops-controller".to_owned(),
                organization: None,
                usage: Usage::Server,
                names: Vec::new(),
                validity,
            };
            Identity::issue(&authority, &leaf, now).unwrap().renew - now
        };
        assert_eq!(renewed(Duration::days(300)), Duration::days(200));
        let authoritys_life = Duration::days(3650);
        assert!(renewed(Duration::days(9999)) < authoritys_life);
    }
}
