//! A request that is not answered: what the worker is told, and what the log says besides.

use super::endpoint::{Cause, Lines};
use node::bootstrap::Refusal;
use node::report::Status;
use std::mem::discriminant;

/// Why a request is not answered.
#[derive(Debug)]
pub(super) struct Rejection {
    /// What the worker is told.
    pub(super) refusal: Refusal,
    /// Who asks, once that is known.
    instance: Option<String>,
    /// What lies behind it, for the log alone.
    cause: Option<String>,
}

impl Rejection {
    /// Something that is needed failed.
    pub(super) fn unavailable(what: &'static str, cause: &anyhow::Error) -> Self {
        Self::because(Refusal::Unavailable { what }, format!("{cause:#}"))
    }

    /// With what lies behind it.
    pub(super) fn because(refusal: Refusal, cause: String) -> Self {
        Self {
            refusal,
            instance: None,
            cause: Some(cause),
        }
    }

    /// Of that instance.
    pub(super) fn of(self, instance: &str) -> Self {
        Self {
            instance: Some(instance.to_owned()),
            ..self
        }
    }

    /// One line, or one more that is counted: anybody can ask.
    pub(super) fn tell(&self, lines: &Lines, what: &str) {
        let mut detail = format!("{what} refused: {}", self.refusal);
        if let Some(cause) = &self.cause {
            detail = format!("{detail}: {cause}");
        }
        let cause = Cause::Refused(discriminant(&self.refusal), self.instance.clone());
        lines.say(cause, Status::Failed, self.instance.as_deref(), &detail);
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
