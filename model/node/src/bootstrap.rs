//! The protocol by which workers get their configuration and certificates from protokube: messages, and checks that bind a
//! caller's identity to one request. No I/O.
//!
//! A worker signs a GetCallerIdentity call for STS with its role's credentials; the signature also covers the request, the
//! cluster and the trusted authority ([`Binding`]). protokube sends the signed call to STS, which returns the signer. The reply
//! contains certificates for the keys in the request only.

mod authority;
mod binding;
mod caller;
mod certificate;
mod date;
mod header;
mod instance;
mod kubelet;
mod labels;
mod record;
mod refusal;
mod report;
mod signature;
mod subject;
mod untrusted_text;

pub use authority::trusted_bundle_digests;
pub use binding::{ExpectedBinding, check_binding};
pub use caller::{Caller, check_role, identify_caller, is_instance};
pub use certificate::{
    CheckedRequest, KeyDigests, certificate_leaf, check_requests, requested_keys,
};
pub use header::{HEADER_LIMIT, parse_identity};
pub use instance::{SeenInstance, check_instance};
pub use kubelet::{KubeletRequest, check_client, check_serving};
pub use labels::{LabelSource, foreign_labels, node_labels};
pub use record::{KeyRecord, key_record_key};
pub use refusal::Refusal;
pub use report::{REPORT_LIMIT, check_report};
pub use untrusted_text::untrusted_excerpt;

use crate::digest::sha256_hex;
use crate::secret::{Secret, serialize_revealed};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Format number of requests and replies.
pub const FORMAT: u32 = 1;

/// Path for joining: POST of a [`JoinRequest`], answered with a [`JoinReply`].
pub const JOIN_PATH: &str = "/bootstrap/v1/join";

/// Path for boot reports: POST of a [`crate::report::BootReport`].
pub const REPORT_PATH: &str = "/bootstrap/v1/report";

/// Health path of the endpoint itself, for load balancers; kOps uses the same.
pub const HEALTH_PATH: &str = "/healthz";

/// Health path of the instance's API server, for load balancers.
pub const READY_PATH: &str = "/readyz";

/// Name of the header with a [`SignedIdentity`] as base64 of JSON.
pub const IDENTITY_HEADER: &str = "x-kctl-identity";

/// Signed header: sha256 (hex) of the request's body.
pub const BODY_HEADER: &str = "x-kctl-body-sha256";

/// Signed header: name of the cluster.
pub const CLUSTER_HEADER: &str = "x-kctl-cluster";

/// Signed header: sha256 (hex) of the PEM bundle of authorities that the worker trusts.
pub const AUTHORITY_HEADER: &str = "x-kctl-authority-sha256";

/// The headers of a signed GetCallerIdentity call, by lower-case name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SignedIdentity {
    /// `authorization`, `host`, `x-amz-date`, `x-amz-security-token`, and those of the [`Binding`].
    pub headers: BTreeMap<String, String>,
}

/// The values that a signature covers besides the call itself, so that it is valid for one request to one cluster by a caller
/// that trusts the cluster's authority.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Binding {
    /// sha256 (hex) of the request body.
    pub body: String,
    /// Name of the cluster.
    pub cluster: String,
    /// sha256 (hex) of the trusted certificates' PEM.
    pub authority: String,
}

impl Binding {
    /// The binding of a request with this body; `trusted` is the PEM bundle that the caller trusts.
    pub fn for_request(body: &[u8], cluster: &str, trusted: &str) -> Self {
        Self {
            body: sha256_hex(body),
            cluster: cluster.to_owned(),
            authority: sha256_hex(trusted),
        }
    }

    /// Names and values of the signed headers.
    pub fn headers(&self) -> [(String, String); 3] {
        [
            (AUTHORITY_HEADER, &self.authority),
            (BODY_HEADER, &self.body),
            (CLUSTER_HEADER, &self.cluster),
        ]
        .map(|(name, value)| (name.to_owned(), value.clone()))
    }
}

/// The certificates that a worker requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CertificateKind {
    /// kubelet's client certificate: `system:node:INSTANCE` of `system:nodes`.
    Kubelet,
    /// kube-proxy's client certificate: `system:kube-proxy`.
    KubeProxy,
}

/// Limit of the body of a [`JoinRequest`], bytes.
pub const JOIN_LIMIT: usize = 64 * 1024;

/// A worker's request to join.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct JoinRequest {
    /// [`FORMAT`].
    pub format: u32,
    /// Name of the instance group.
    pub group: String,
    /// sha256 (hex) of the NodeConfig that user data names.
    pub node_config: String,
    /// Certificate signing requests, PEM.
    pub requests: BTreeMap<CertificateKind, String>,
}

/// The reply to a [`JoinRequest`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct JoinReply {
    /// [`FORMAT`].
    pub format: u32,
    /// Text of the NodeConfig.
    pub node_config: String,
    /// Issued certificates, PEM.
    pub certificates: BTreeMap<CertificateKind, String>,
    /// Passwords of image registries, if the NodeConfig has `docker_config`.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        serialize_with = "serialize_revealed"
    )]
    pub docker_config: Option<Secret>,
}

/// The body of a refusal. The worker shows it on its console and in its report, so it contains no secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RefusalReply {
    pub error: String,
    /// True if the same request may succeed later.
    pub retry: bool,
}
