//! Why a worker's request is refused, what it is told, and whether asking again may help.

use super::Refused;
use crate::pki::Malformed;

/// Why a request is refused. Its text goes to the worker, and holds nothing secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The body is too large.
    #[error("the request has more than {limit} bytes")]
    TooLarge {
        /// How many it may have.
        limit: usize,
    },
    /// The identity header is missing or no signed identity.
    #[error("the identity header {why}")]
    Identity {
        /// What is wrong with it.
        why: String,
    },
    /// The body is not what it should be.
    #[error("the request {why}")]
    Request {
        /// What is wrong with it.
        why: String,
    },
    /// A header that binds the identity is not under the signature.
    #[error("the signature does not cover {header}")]
    Unsigned {
        /// Its name.
        header: &'static str,
    },
    /// The identity was signed for another request.
    #[error("the identity was signed for another request than this one")]
    OtherBody,
    /// The identity was signed for another cluster.
    #[error("the identity was signed for the cluster {bound}, this is {own}")]
    OtherCluster {
        /// What it says.
        bound: String,
        /// Ours.
        own: String,
    },
    /// The caller trusts other authorities.
    #[error("the caller does not trust the certificates that this cluster's authority has now")]
    OtherAuthority,
    /// The identity was signed for another STS.
    #[error("the identity was signed for {bound}, only {own} is asked")]
    OtherHost {
        /// What it says.
        bound: String,
        /// Our region's STS.
        own: String,
    },
    /// The identity was signed too long ago, or in the future.
    #[error("the identity was signed at {signed}, more than five minutes from {now}")]
    Date {
        /// What it says.
        signed: String,
        /// Our time, in the same form.
        now: String,
    },
    /// STS does not confirm the signature.
    #[error("STS does not confirm the signature ({code})")]
    Unconfirmed {
        /// What STS calls it.
        code: String,
    },
    /// The caller is of another account.
    #[error("the caller belongs to the AWS account {account}")]
    OtherAccount {
        /// Which.
        account: String,
    },
    /// The caller is no machine.
    #[error("{arn} is not the role of an instance")]
    NoMachine {
        /// Who it is.
        arn: String,
    },
    /// The caller's role is not that of nodes of this cluster.
    #[error("{role} is not the role of nodes of this cluster")]
    OtherRole {
        /// Which.
        role: String,
    },
    /// EC2 does not know the instance.
    #[error("EC2 knows no instance {instance}")]
    UnknownInstance {
        /// Which.
        instance: String,
    },
    /// The instance does not run.
    #[error("the instance is {state}, not running")]
    NotRunning {
        /// EC2's word for it.
        state: String,
    },
    /// The instance belongs to another cluster.
    #[error("the instance does not belong to {cluster}")]
    OtherClusterInstance {
        /// Ours.
        cluster: String,
    },
    /// The instance belongs to another group.
    #[error("the instance belongs to the instance group {own:?}, not to {asked:?}")]
    OtherGroup {
        /// What its tag says.
        own: String,
        /// What it says.
        asked: String,
    },
    /// There is no such NodeConfig for nodes.
    #[error("the group {group} has no NodeConfig {sha256}: run kctl update")]
    UnknownNodeConfig {
        /// Of which group.
        group: String,
        /// Which.
        sha256: String,
    },
    /// A certificate signing request cannot be read, or is not signed by its own key.
    #[error("the certificate signing request for {certificate} cannot be used: it {why}")]
    CertificateRequest {
        /// For which certificate.
        certificate: &'static str,
        /// What is wrong with it.
        why: Malformed,
    },
    /// A certificate of somebody else is asked for.
    #[error("the instance may only ask for a certificate of {wanted}")]
    OtherName {
        /// Who may ask.
        wanted: String,
    },
    /// Another key than the one that the Node joined with.
    #[error(
        "the Node {node} joined with another key: if this machine has lost its disk, run kubectl delete node {node}"
    )]
    NewKey {
        /// Which.
        node: String,
    },
    /// Something that is needed does not answer.
    #[error("{what} does not answer now")]
    Unavailable {
        /// What.
        what: &'static str,
    },
    /// Too many requests.
    #[error("too many requests are under way")]
    Busy,
}

impl Refusal {
    /// The status of the HTTP answer.
    pub fn status(&self) -> u16 {
        match self {
            Self::TooLarge { .. } => 413,
            Self::Identity { .. } | Self::Request { .. } | Self::CertificateRequest { .. } => 400,
            Self::NewKey { .. } => 409,
            Self::Unavailable { .. } | Self::Busy => 503,
            _ => 403,
        }
    }

    /// The same request, signed anew, may be answered later: clocks get set, credentials and instances become known,
    /// operators run `kctl update` or go on with a rotation, services come back. What the machine is does not change.
    pub fn retry(&self) -> bool {
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

    /// What the worker is told.
    pub fn refused(&self) -> Refused {
        Refused {
            error: self.to_string(),
            retry: self.retry(),
        }
    }
}
