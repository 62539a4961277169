//! Certificates that are issued for this machine.

use crate::pki::{Leaf, Usage};
use serde::Serialize;
use time::Duration;

/// A certificate with its key: who it is for, who signs it, where both lie. It says nothing of the key itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Certificate {
    /// Where it lies.
    pub storage: CertificateStorage,
    /// The keyset that signs it.
    pub signer: String,
    /// Subject CN.
    pub common_name: String,
    /// Subject O.
    pub organization: Option<String>,
    /// Its uses.
    #[serde(serialize_with = "usage")]
    pub usage: Usage,
    /// DNS names and addresses, sorted.
    pub names: Vec<String>,
    /// How long it is valid from its issue.
    pub validity_seconds: i64,
    /// Wanted: [`Standing::Good`].
    pub standing: Standing,
}

/// Where a certificate and its key lie.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CertificateStorage {
    /// In two files.
    Pair {
        /// PEM, readable by all.
        certificate: String,
        /// PEM, root's alone.
        key: String,
    },
    /// In one file that kubelet renews: a link to a file beside it, since kubelet does not renew a plain file. Once there
    /// is a valid one it is kubelet's, and nobody else writes it.
    Rotating {
        /// The link.
        link: String,
    },
}

/// How a certificate stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// It is as wanted, and valid for a good while.
    Good,
    /// It or its key cannot be read.
    Unreadable,
    /// The key is another certificate's: writing was interrupted.
    OtherKey,
    /// Subject, names or usage are others.
    OtherContent,
    /// Another authority signed it, or one that is no longer trusted.
    OtherAuthority,
    /// It serves, and less than a third of its life is left.
    Expiring,
    /// It is not valid at this moment.
    Ended,
    /// The link is a plain file, which kubelet would not renew.
    NotALink,
}

impl Certificate {
    /// The path that names it.
    pub fn path(&self) -> &str {
        match &self.storage {
            CertificateStorage::Pair { certificate, .. } => certificate,
            CertificateStorage::Rotating { link } => link,
        }
    }

    /// What it says.
    pub fn leaf(&self) -> Leaf {
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
fn usage<S: serde::Serializer>(usage: &Usage, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(match usage {
        Usage::Client => "client",
        Usage::Server => "server",
        Usage::ClientServer => "client and server",
    })
}
