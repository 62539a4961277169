//! Reasons for refusing a worker's request, their HTTP status, and whether a retry may help.

use super::RefusalReply;
use crate::pki::Malformed;

/// The reason for a refusal. Its text is sent to the worker and contains no secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The body is too large.
    #[error("the request has more than {limit} bytes")]
    TooLarge {
        /// Allowed number of bytes.
        limit: usize,
    },
    /// The identity header is missing or invalid.
    #[error("the identity header {why}")]
    Identity {
        /// Predicate that completes the sentence.
        why: String,
    },
    /// The body is invalid.
    #[error("the request {why}")]
    Request {
        /// Predicate that completes the sentence.
        why: String,
    },
    /// The signature does not cover a binding header.
    #[error("the signature does not cover {header}")]
    Unsigned {
        /// Name of the header.
        header: &'static str,
    },
    /// The identity was signed for another request.
    #[error("the identity was signed for a different request")]
    OtherBody,
    /// The identity was signed for another cluster.
    #[error("the identity was signed for the cluster {bound}, but this cluster is {own}")]
    OtherCluster {
        /// Name in the identity.
        bound: String,
        /// Name of this cluster.
        own: String,
    },
    /// The caller trusts other authorities.
    #[error("the caller does not trust the current certificates of this cluster's authority")]
    OtherAuthority,
    /// The identity was signed for another STS.
    #[error("the identity was signed for {bound}, but only {own} is accepted")]
    OtherHost {
        /// Host in the identity.
        bound: String,
        /// STS host of this region.
        own: String,
    },
    /// The identity was signed too long ago, or in the future.
    #[error(
        "the identity was signed at {signed}, more than five minutes from {now}: check the clocks"
    )]
    Date {
        /// Date in the identity.
        signed: String,
        /// Current time, in the same format.
        now: String,
    },
    /// STS does not confirm the signature.
    #[error("STS does not confirm the signature ({code})")]
    Unconfirmed {
        /// Error code of STS.
        code: String,
    },
    /// The caller belongs to another account.
    #[error("the caller belongs to the AWS account {account}")]
    OtherAccount {
        /// Account of the caller.
        account: String,
    },
    /// The caller is not an instance.
    #[error("{arn} is not the role of an instance")]
    NoMachine {
        /// ARN of the caller.
        arn: String,
    },
    /// The caller's role is not that of this cluster's nodes.
    #[error("{role} is not the role of this cluster's nodes")]
    OtherRole {
        /// Role of the caller.
        role: String,
    },
    /// EC2 does not know the instance.
    #[error("EC2 does not know the instance {instance}")]
    UnknownInstance { instance: String },
    /// The instance does not run.
    #[error("the instance is {state}, not running")]
    NotRunning {
        /// State according to EC2.
        state: String,
    },
    /// The instance belongs to another cluster.
    #[error("the instance does not belong to {cluster}")]
    OtherClusterInstance {
        /// Name of this cluster.
        cluster: String,
    },
    /// The instance belongs to another group.
    #[error("the instance belongs to the instance group {own:?}, not to {asked:?}")]
    OtherGroup {
        /// Group in the instance's tag.
        own: String,
        /// Group in the request.
        asked: String,
    },
    /// The state store has no such NodeConfig for this group.
    #[error("the instance group {group} has no NodeConfig {sha256}: run `kctl update --yes`")]
    UnknownNodeConfig {
        /// Name of the group.
        group: String,
        /// Hash in the request.
        sha256: String,
    },
    /// A certificate signing request is malformed or not signed by its own key.
    #[error("the certificate signing request for {certificate} cannot be used: it {why}")]
    CertificateRequest {
        /// Name of the requested certificate.
        certificate: &'static str,
        /// Predicate that completes the sentence.
        why: Malformed,
    },
    /// The request names another subject.
    #[error("the instance may only request a certificate for {wanted}")]
    OtherName { wanted: String },
    /// The key differs from the one that the Node joined with.
    #[error(
        "the Node {node} joined with another key: if this instance has lost its disk, replace it with kctl delete instance {node}"
    )]
    NewKey {
        /// Name of the Node.
        node: String,
    },
    /// A service that the check needs does not respond.
    #[error("{what} is not available now")]
    Unavailable {
        /// Name of the service.
        what: &'static str,
    },
    /// Too many requests at once.
    #[error("too many requests are in progress")]
    Busy,
}

impl Refusal {
    /// HTTP status of the reply.
    pub fn http_status(&self) -> u16 {
        match self {
            Self::TooLarge { .. } => 413,
            Self::Identity { .. } | Self::Request { .. } | Self::CertificateRequest { .. } => 400,
            Self::NewKey { .. } => 409,
            Self::Unavailable { .. } | Self::Busy => 503,
            _ => 403,
        }
    }

    /// True if the same request, signed anew, may succeed later: clocks get set, credentials and instances become known to AWS,
    /// operators run `kctl update` or continue a rotation, services recover. The identity of the instance does not change.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::OtherAuthority
            | Self::Date { .. }
            | Self::Unconfirmed { .. }
            | Self::UnknownInstance { .. }
            | Self::UnknownNodeConfig { .. }
            | Self::NewKey { .. }
            | Self::Unavailable { .. }
            | Self::Busy => true,
            Self::NotRunning { state } => state == "pending",
            _ => false,
        }
    }

    /// The body of the HTTP reply.
    pub fn to_reply(&self) -> RefusalReply {
        RefusalReply {
            error: self.to_string(),
            retry: self.is_retryable(),
        }
    }
}
