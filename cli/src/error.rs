//! The error of a command: a kind that decides the exit code, the cause with its sources, and at least one next step. Errors of
//! libraries are converted once, where the command calls them.

use spec::read::Problem;
use std::fmt;

/// The kind of a failure; decides the exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// The operation failed.
    Failed,
    /// The command line or the spec is wrong.
    Usage,
    /// The cluster is not healthy, or fails a control.
    Unhealthy,
    /// Something else must happen first: a lock, a lost race, a store written by a newer kctl, a problem of a preflight.
    Precondition,
    Interrupted,
    /// The reader of stdout has gone. Nothing is printed.
    BrokenPipe,
}

/// How a command that did not fail ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Done.
    Fine,
    /// Changes are pending, and `--exit-code` was given.
    ChangesPending,
}

/// Documented exit codes.
pub mod exit {
    /// Done.
    pub const FINE: u8 = 0;
    /// It was tried and did not work.
    pub const FAILED: u8 = 1;
    /// The command line or the spec is wrong.
    pub const USAGE: u8 = 2;
    /// The cluster is not healthy, or fails a control.
    pub const UNHEALTHY: u8 = 3;
    /// A lock, a lost race, a store written by a newer kctl.
    pub const PRECONDITION: u8 = 4;
    /// Changes pending; only with `--exit-code`.
    pub const CHANGES_PENDING: u8 = 10;
    pub const INTERRUPTED: u8 = 130;

    /// Meanings, for `docs/reference`.
    pub const DOCUMENTED: &[(u8, &str)] = &[
        (FINE, "done, or nothing to do"),
        (FAILED, "it was tried and did not work"),
        (USAGE, "the command line or the spec is wrong"),
        (
            UNHEALTHY,
            "the cluster is not healthy, or fails a control of `kctl toolbox cis`",
        ),
        (
            PRECONDITION,
            "something else must happen first: a lock, a lost race, a store written by a newer kctl, missing binaries, a problem that `kctl preflight` found",
        ),
        (
            CHANGES_PENDING,
            "there are changes that were not made; only with `--exit-code`",
        ),
        (INTERRUPTED, "interrupted"),
    ];
}

impl ErrorKind {
    /// The process' exit code.
    pub fn exit_code(self) -> u8 {
        match self {
            Self::Failed => exit::FAILED,
            Self::Usage => exit::USAGE,
            Self::Unhealthy => exit::UNHEALTHY,
            Self::Precondition => exit::PRECONDITION,
            Self::Interrupted => exit::INTERRUPTED,
            Self::BrokenPipe => exit::FINE,
        }
    }
}

impl Outcome {
    /// The process' exit code.
    pub fn exit_code(self) -> u8 {
        match self {
            Self::Fine => exit::FINE,
            Self::ChangesPending => exit::CHANGES_PENDING,
        }
    }
}

/// Why a command failed.
#[derive(Debug)]
pub struct CommandError {
    pub kind: ErrorKind,
    /// The error with its sources.
    pub cause: Option<anyhow::Error>,
    /// Problems of a spec.
    pub problems: Vec<Problem>,
    /// Next steps for the user.
    pub hints: Vec<String>,
}

impl CommandError {
    /// The chain of its causes in one line, for what goes on without what failed.
    pub fn cause_text(&self) -> String {
        let cause = self.cause.as_ref();
        cause.map_or_else(|| format!("{self:?}"), |cause| format!("{cause:#}"))
    }

    /// A failure of that kind with its cause and a next step.
    pub fn new(kind: ErrorKind, cause: impl Into<anyhow::Error>, hint: impl Into<String>) -> Self {
        Self {
            kind,
            cause: Some(cause.into()),
            problems: Vec::new(),
            hints: vec![hint.into()],
        }
    }

    /// An error from a message and a next step.
    pub fn from_message(
        kind: ErrorKind,
        sentence: impl Into<String>,
        hint: impl Into<String>,
    ) -> Self {
        Self::new(kind, Sentence(sentence.into()), hint)
    }

    /// A usage error from a message and a next step.
    pub fn usage_error(sentence: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::from_message(ErrorKind::Usage, sentence, hint)
    }

    /// The error of a closed stdout.
    pub fn broken_pipe() -> Self {
        Self {
            kind: ErrorKind::BrokenPipe,
            cause: None,
            problems: Vec::new(),
            hints: Vec::new(),
        }
    }

    /// The error of an invalid spec. Each problem has its own next step.
    pub fn from_problems(problems: Vec<Problem>) -> Self {
        Self {
            kind: ErrorKind::Usage,
            cause: None,
            problems,
            hints: Vec::new(),
        }
    }

    /// Adds a next step.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }
}

/// An error that is only a message.
#[derive(Debug)]
struct Sentence(String);

impl fmt::Display for Sentence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Sentence {}

impl From<Vec<Problem>> for CommandError {
    fn from(problems: Vec<Problem>) -> Self {
        Self::from_problems(problems)
    }
}

/// Converts errors of libraries.
pub trait ErrorContext<T> {
    /// Error of kind [`ErrorKind::Failed`] with a message about what failed, and a next step.
    fn or_failed(self, what: impl Into<String>, hint: impl Into<String>)
    -> Result<T, CommandError>;
    /// Error of kind [`ErrorKind::Usage`]: the command line, or a file that it names, is wrong.
    fn or_usage_error(
        self,
        what: impl Into<String>,
        hint: impl Into<String>,
    ) -> Result<T, CommandError>;
}

impl<T, E: Into<anyhow::Error>> ErrorContext<T> for Result<T, E> {
    fn or_failed(
        self,
        what: impl Into<String>,
        hint: impl Into<String>,
    ) -> Result<T, CommandError> {
        self.map_err(|error| {
            CommandError::new(ErrorKind::Failed, error.into().context(what.into()), hint)
        })
    }

    fn or_usage_error(
        self,
        what: impl Into<String>,
        hint: impl Into<String>,
    ) -> Result<T, CommandError> {
        self.map_err(|error| {
            CommandError::new(ErrorKind::Usage, error.into().context(what.into()), hint)
        })
    }
}
