//! Certificates that nodeup installs on an instance.

use crate::pki::{Leaf, Usage};
use serde::Serialize;
use time::Duration;

/// A certificate with its key: subject, signer and location. The key itself is not part of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Certificate {
    /// Location of certificate and key.
    pub storage: CertificateStorage,
    /// Name of the keyset that signs it.
    pub signer: String,
    /// Common name of the subject.
    pub common_name: String,
    /// Organization of the subject.
    pub organization: Option<String>,
    #[serde(serialize_with = "serialize_usage")]
    pub usage: Usage,
    /// Alternative names: DNS names and addresses, sorted.
    pub names: Vec<String>,
    /// Validity from the time of issue, in seconds.
    pub validity_seconds: i64,
    /// State of the certificate; [`CertificateState::Good`] in the desired state.
    pub standing: CertificateState,
}

/// Location of a certificate and its key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CertificateStorage {
    Pair {
        /// Path of the certificate, PEM, mode 0644.
        certificate: String,
        /// Path of the key, PEM, mode 0400.
        key: String,
        /// User and group of both; `None`: root.
        #[serde(skip_serializing_if = "Option::is_none")]
        owner: Option<u32>,
    },
    /// One file that kubelet renews: a link to a file in the same folder, because kubelet does not renew a plain file. Once a valid
    /// certificate exists, only kubelet writes it.
    Rotating {
        /// Path of the link.
        link: String,
    },
}

/// State of a certificate on an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CertificateState {
    /// It is as desired and not about to expire.
    Good,
    /// The certificate or the key cannot be parsed.
    Unreadable,
    /// The key belongs to another certificate, because writing was interrupted.
    OtherKey,
    /// Subject, names or usage differ.
    OtherContent,
    /// The signer is another authority, or one that is no longer trusted.
    OtherAuthority,
    /// Valid, but less than a third of its lifetime is left.
    Expiring,
    /// It could stay, but this run is to issue it again and has not done so yet.
    Forced,
    /// Not valid now: expired or not valid yet.
    Ended,
    /// A plain file is in the place of the link, so kubelet would not renew it.
    NotALink,
}

impl Certificate {
    /// The path that identifies it.
    pub fn path(&self) -> &str {
        match &self.storage {
            CertificateStorage::Pair { certificate, .. } => certificate,
            CertificateStorage::Rotating { link } => link,
        }
    }

    /// The content to issue.
    pub fn leaf_to_issue(&self) -> Leaf {
        Leaf {
            common_name: self.common_name.clone(),
            organization: self.organization.clone(),
            usage: self.usage,
            names: self.names.clone(),
            validity: Duration::seconds(self.validity_seconds),
        }
    }
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "how serde passes a field"
)]
fn serialize_usage<S: serde::Serializer>(usage: &Usage, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(match usage {
        Usage::Client => "client",
        Usage::Server => "server",
        Usage::ClientServer => "client and server",
    })
}
