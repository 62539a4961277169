//! Why a rolling update stops before its end.

use std::fmt;

/// The reason, with what an operator needs to find the cause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stop {
    /// Pods did not leave an instance in time.
    DrainTimeout {
        /// The instance.
        instance: String,
        /// The pods that remained, `NAMESPACE/NAME`.
        pods: Vec<String>,
    },
    /// A replacement did not become Ready in time.
    NotReady {
        /// The replacement.
        instance: String,
        /// Its group.
        group: String,
    },
    /// An instance is still there, long after its termination began.
    NotGone {
        /// The instance.
        instance: String,
    },
    /// A group could not launch a replacement.
    NoCapacity {
        /// The group.
        group: String,
        /// Why its last launch failed, if AWS says it.
        failure: Option<String>,
    },
    /// A problem that was not there before the rolling update lasted too long.
    Problem(String),
    /// A change failed in a way that repeating does not mend.
    Failed(String),
    /// Somebody else changes the cluster, or has changed it.
    Superseded(String),
    /// The operator interrupted it.
    Interrupted,
    /// The operator did not agree to the replacement of an instance.
    Declined {
        /// The instance.
        instance: String,
    },
    /// Etcd would not survive the loss of the next control plane, for too long.
    Etcd(String),
}

impl fmt::Display for Stop {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DrainTimeout { instance, pods } => {
                write!(
                    out,
                    "instance {instance} could not be drained in time; pods left: {}",
                    pods.join(", ")
                )
            }
            Self::NotReady { instance, group } => {
                write!(
                    out,
                    "instance {instance}, a replacement in group {group}, is not Ready in time"
                )
            }
            Self::NotGone { instance } => {
                write!(
                    out,
                    "the termination of instance {instance} did not end in time"
                )
            }
            Self::NoCapacity {
                group,
                failure: Some(failure),
            } => {
                write!(
                    out,
                    "group {group} could not launch a replacement: {failure}"
                )
            }
            Self::NoCapacity {
                group,
                failure: None,
            } => {
                write!(out, "group {group} did not launch a replacement in time")
            }
            Self::Problem(text) => write!(out, "a new problem lasts too long: {text}"),
            Self::Failed(text) | Self::Superseded(text) => write!(out, "{text}"),
            Self::Interrupted => write!(out, "interrupted"),
            Self::Declined { instance } => write!(out, "instance {instance} was not agreed to"),
            Self::Etcd(text) => write!(out, "no further control plane may go: {text}"),
        }
    }
}
