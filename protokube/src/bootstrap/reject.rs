//! Rejected requests: the reason for the worker, and details for the log.

use super::shared_state::{EndpointLog, LineCause};
use node::bootstrap::Refusal;
use node::report::Status;
use std::mem::discriminant;

#[derive(Debug)]
pub(super) struct Rejection {
    /// Reason that is sent to the worker.
    pub(super) refusal: Refusal,
    /// Instance id of the caller, if it is known.
    instance: Option<String>,
    /// Underlying error, for the log only.
    cause: Option<String>,
}

impl Rejection {
    /// A required service failed.
    pub(super) fn unavailable(what: &'static str, cause: &anyhow::Error) -> Self {
        Self::with_cause(Refusal::Unavailable { what }, format!("{cause:#}"))
    }

    /// A refusal with an underlying error.
    pub(super) fn with_cause(refusal: Refusal, cause: String) -> Self {
        Self {
            refusal,
            instance: None,
            cause: Some(cause),
        }
    }

    /// Adds the caller's instance id.
    pub(super) fn with_instance(self, instance: &str) -> Self {
        Self {
            instance: Some(instance.to_owned()),
            ..self
        }
    }

    /// Logs the rejection, or counts it if the same cause was logged shortly before.
    pub(super) fn log_rejection(&self, lines: &EndpointLog, what: &str) {
        let mut detail = format!("{what} refused: {}", self.refusal);
        if let Some(cause) = &self.cause {
            detail = format!("{detail}: {cause}");
        }
        let cause = LineCause::Refused(discriminant(&self.refusal), self.instance.clone());
        lines.log_or_count(cause, Status::Failed, self.instance.as_deref(), &detail);
    }
}

impl From<Refusal> for Rejection {
    fn from(refusal: Refusal) -> Self {
        Self {
            refusal,
            instance: None,
            cause: None,
        }
    }
}
