//! What commands fail with. Libraries' errors become this once, here, at the edge: a kind, which decides the
//! exit code; the cause with all its sources; and at least one next step for whoever reads it.

use spec::read::Problem;
use std::fmt;

/// What kind of failure it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It was tried and did not work.
    Failed,
    /// The command line or the spec is wrong.
    Usage,
    /// The cluster is not healthy.
    Unhealthy,
    /// Something else must happen first: a lock, a lost race, a store written by a newer kctl.
    Precondition,
    /// Ctrl-C.
    Interrupted,
    /// Nobody reads our output any more; nothing to say, and nobody to say it to.
    BrokenPipe,
}

/// How a command that did not fail ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Done.
    Fine,
    /// There are changes that were not made, and the user asked to hear of it in the exit code.
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
    /// The cluster is not healthy.
    pub const UNHEALTHY: u8 = 3;
    /// A lock, a lost race, a store written by a newer kctl.
    pub const PRECONDITION: u8 = 4;
    /// Changes pending; only with `--exit-code`.
    pub const CHANGES_PENDING: u8 = 10;
    /// Ctrl-C.
    pub const INTERRUPTED: u8 = 130;

    /// What each means, for the reference.
    pub const DOCUMENTED: &[(u8, &str)] = &[
        (FINE, "done, or nothing to do"),
        (FAILED, "it was tried and did not work"),
        (USAGE, "the command line or the spec is wrong"),
        (UNHEALTHY, "the cluster is not healthy"),
        (
            PRECONDITION,
            "something else must happen first: a lock, a lost race, a store written by a newer kctl, missing binaries",
        ),
        (
            CHANGES_PENDING,
            "there are changes that were not made; only with `--exit-code`",
        ),
        (INTERRUPTED, "interrupted"),
    ];
}

impl Kind {
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
    /// Decides the exit code.
    pub kind: Kind,
    /// What is wrong, with what caused it.
    pub cause: Option<anyhow::Error>,
    /// What is wrong with a spec, all of it.
    pub problems: Vec<Problem>,
    /// What to do about it.
    pub hints: Vec<String>,
}

impl CommandError {
    /// A failure of that kind with its cause and a next step.
    pub fn new(kind: Kind, cause: impl Into<anyhow::Error>, hint: impl Into<String>) -> Self {
        Self {
            kind,
            cause: Some(cause.into()),
            problems: Vec::new(),
            hints: vec![hint.into()],
        }
    }

    /// A failure told in one sentence, and a next step.
    pub fn said(kind: Kind, sentence: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::new(kind, Sentence(sentence.into()), hint)
    }

    /// A wrong command line, told in one sentence, and how it would be right.
    pub fn usage(sentence: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::said(Kind::Usage, sentence, hint)
    }

    /// Nobody reads our output any more.
    pub fn broken_pipe() -> Self {
        Self {
            kind: Kind::BrokenPipe,
            cause: None,
            problems: Vec::new(),
            hints: Vec::new(),
        }
    }

    /// A spec that cannot be used; each problem carries its own next step.
    pub fn problems(problems: Vec<Problem>) -> Self {
        Self {
            kind: Kind::Usage,
            cause: None,
            problems,
            hints: Vec::new(),
        }
    }

    /// One more next step.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }
}

/// An error that is only a sentence.
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
        Self::problems(problems)
    }
}

/// Gives a library's error its kind and its next step.
pub trait Context<T> {
    /// It was tried and did not work.
    fn failed(self, what: impl Into<String>, hint: impl Into<String>) -> Result<T, CommandError>;
    /// The command line, or a file it names, is wrong.
    fn usage(self, what: impl Into<String>, hint: impl Into<String>) -> Result<T, CommandError>;
}

impl<T, E: Into<anyhow::Error>> Context<T> for Result<T, E> {
    fn failed(self, what: impl Into<String>, hint: impl Into<String>) -> Result<T, CommandError> {
        self.map_err(|error| {
            CommandError::new(Kind::Failed, error.into().context(what.into()), hint)
        })
    }

    fn usage(self, what: impl Into<String>, hint: impl Into<String>) -> Result<T, CommandError> {
        self.map_err(|error| {
            CommandError::new(Kind::Usage, error.into().context(what.into()), hint)
        })
    }
}
