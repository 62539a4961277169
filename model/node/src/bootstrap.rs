//! How workers ask protokube for their configuration and certificates: the words of the conversation, and what binds
//! a caller's identity to one request. No I/O.
//!
//! A worker signs a GetCallerIdentity for STS with its role's credentials, and puts under the signature which request,
//! which cluster and which authority it means ([`Binding`]). protokube sends that signed call to STS and learns who
//! signed; what it answers serves only the keys in the request.

mod authority;
mod binding;
mod caller;
mod certificate;
mod date;
mod echo;
mod header;
mod instance;
mod kubelet;
mod labels;
mod record;
mod refusal;
mod report;
mod signature;
mod subject;

pub use authority::authorities;
pub use binding::{Expected, check_binding};
pub use caller::{Caller, check_role, is_instance, machine};
pub use certificate::{Asked, Keys, asked, keys, leaf};
pub use echo::echo;
pub use header::{HEADER_LIMIT, signed_identity};
pub use instance::{Seen, check_instance};
pub use kubelet::{KubeletRequest, check_client, check_serving};
pub use labels::{Labelling, foreign_labels, node_labels};
pub use record::{KeyRecord, key_record_key};
pub use refusal::Refusal;
pub use report::{REPORT_LIMIT, check_report};

use crate::secret::{Secret, revealed};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;

/// The format of requests and replies.
pub const FORMAT: u32 = 1;

/// Where workers ask for configuration and certificates: POST of a [`Join`], answered by a [`Joined`].
pub const JOIN_PATH: &str = "/bootstrap/v1/join";

/// Where workers leave their boot report: POST of a [`crate::report::BootReport`].
pub const REPORT_PATH: &str = "/bootstrap/v1/report";

/// Where load balancers ask whether it answers; kOps' path.
pub const HEALTH_PATH: &str = "/healthz";

/// Where load balancers ask whether the API server of that machine is ready.
pub const READY_PATH: &str = "/readyz";

/// The header with a [`SignedIdentity`] as JSON in base64.
pub const IDENTITY_HEADER: &str = "x-kctl-identity";

/// Signed header: sha256 (hex) of the request's body.
pub const BODY_HEADER: &str = "x-kctl-body-sha256";

/// Signed header: the cluster's name.
pub const CLUSTER_HEADER: &str = "x-kctl-cluster";

/// Signed header: sha256 (hex) of the authorities' certificates that the worker trusts, as PEM.
pub const AUTHORITY_HEADER: &str = "x-kctl-authority-sha256";

/// The headers of a signed GetCallerIdentity, by lower-case name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SignedIdentity {
    /// `authorization`, `host`, `x-amz-date`, `x-amz-security-token`, and those of the [`Binding`].
    pub headers: BTreeMap<String, String>,
}

/// What a signature must be good for: one request, to one cluster, by one who trusts its authority.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Binding {
    /// sha256 (hex) of the body.
    pub body: String,
    /// The cluster's name.
    pub cluster: String,
    /// sha256 (hex) of the trusted certificates' PEM.
    pub authority: String,
}

impl Binding {
    /// Of this body.
    pub fn of(body: &[u8], cluster: &str, trusted: &str) -> Self {
        Self {
            body: format!("{:x}", Sha256::digest(body)),
            cluster: cluster.to_owned(),
            authority: format!("{:x}", Sha256::digest(trusted)),
        }
    }

    /// As the headers that are signed.
    pub fn headers(&self) -> [(String, String); 3] {
        [
            (AUTHORITY_HEADER, &self.authority),
            (BODY_HEADER, &self.body),
            (CLUSTER_HEADER, &self.cluster),
        ]
        .map(|(name, value)| (name.to_owned(), value.clone()))
    }
}

/// A certificate that a worker asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Certificate {
    /// kubelet's client certificate: `system:node:INSTANCE` of `system:nodes`.
    Kubelet,
    /// kube-proxy's: `system:kube-proxy`.
    KubeProxy,
}

/// The largest body of a [`Join`], bytes.
pub const JOIN_LIMIT: usize = 64 * 1024;

/// What a worker asks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Join {
    /// [`FORMAT`].
    pub format: u32,
    /// The instance group.
    pub group: String,
    /// sha256 (hex) of the NodeConfig that user data names.
    pub node_config: String,
    /// Certificate signing requests, PEM.
    pub requests: BTreeMap<Certificate, String>,
}

/// What it gets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Joined {
    /// [`FORMAT`].
    pub format: u32,
    /// NodeConfig's text.
    pub node_config: String,
    /// Certificates, PEM.
    pub certificates: BTreeMap<Certificate, String>,
    /// Passwords of image registries, if the NodeConfig says that there are some.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        serialize_with = "revealed"
    )]
    pub docker_config: Option<Secret>,
}

/// Why a request was refused: what the machine says in its console and report, without anything secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Refused {
    /// In words.
    pub error: String,
    /// It may be otherwise later: try again.
    pub retry: bool,
}
