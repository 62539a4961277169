//! The one place that writes to the terminal.

use super::{Paint, Tone, error};
use crate::args::{Color, Global};
use crate::env;
use crate::error::{CommandError, exit};
use node::terminal::is_terminal_control;
use spec::not_yet::{NotYet, PAGE};
use spec::read::Problem;
use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;
use tracing::Level;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

/// stdout and stderr, and what they can show.
#[derive(Clone, Debug)]
pub struct Shell {
    out: Paint,
    err: Paint,
    out_is_terminal: bool,
    quiet: bool,
    live: bool,
    asks: bool,
    width: usize,
}

impl Shell {
    /// The terminal as the options and the environment want it.
    pub fn new(options: &Global) -> Self {
        let dumb = env::value(env::TERM).is_some_and(|term| term == "dumb");
        let colour = |terminal: bool| match options.color {
            Color::Always => true,
            Color::Never => false,
            Color::Auto => {
                let forced = env::value(env::CLICOLOR_FORCE).is_some_and(|value| value != "0");
                env::value(env::NO_COLOR).is_none() && (forced || (terminal && !dumb))
            }
        };
        let (out, err) = (io::stdout().is_terminal(), io::stderr().is_terminal());
        Self {
            out: Paint::new(colour(out)),
            err: Paint::new(colour(err)),
            out_is_terminal: out,
            quiet: options.quiet,
            live: err && !dumb && !options.quiet,
            asks: io::stdin().is_terminal() && err,
            width: console::Term::stdout()
                .size_checked()
                .map_or(100, |(_, columns)| usize::from(columns)),
        }
    }

    /// Colour of results.
    pub fn paint(&self) -> Paint {
        self.out
    }

    /// Colour of everything else.
    pub fn err_paint(&self) -> Paint {
        self.err
    }

    /// Whether a block of text at the bottom of the screen can change while a command runs.
    pub fn live(&self) -> bool {
        self.live
    }

    /// Whether somebody can answer a question.
    pub fn asks(&self) -> bool {
        self.asks
    }

    /// Columns of the terminal.
    pub fn width(&self) -> usize {
        self.width
    }

    /// A result for people, to stdout. Fails quietly if nobody reads.
    pub fn result(&self, text: &str) -> Result<(), CommandError> {
        to_stdout(&self.out.safe(text))
    }

    /// A result for programs, to stdout: exactly this. On a terminal what would steer it is written as JSON and YAML
    /// write it in quotes.
    pub fn document(&self, text: &str) -> Result<(), CommandError> {
        if !self.out_is_terminal {
            return to_stdout(text);
        }
        let escaped = |c: char| match is_terminal_control(c) {
            true => format!("\\u{:04x}", u32::from(c)),
            false => c.to_string(),
        };
        to_stdout(&text.chars().map(escaped).collect::<String>())
    }

    /// Something worth knowing while the command runs, to stderr.
    pub fn note(&self, text: &str) {
        if !self.quiet {
            self.to_stderr(text);
        }
    }

    /// Something done, to stderr.
    pub fn done(&self, text: &str) {
        self.note(&self.err.tone(Tone::Add, text));
    }

    /// Something that may be wrong, to stderr, even with `--quiet`.
    pub fn warning(&self, text: &str) {
        self.to_stderr(&format!(
            "{} {text}",
            self.err.tone(Tone::Change, "warning:")
        ));
    }

    /// A finding about a spec, to stderr.
    pub fn problem(&self, problem: &Problem) {
        self.to_stderr(error::problem(problem, self.err).trim_end());
    }

    /// What nobody does for a cluster yet: a line each, and once where it says what to do meanwhile.
    pub fn not_yet(&self, all: &[NotYet]) {
        all.iter().for_each(|one| self.warning(&one.message));
        if !all.is_empty() {
            self.hint(&format!("{PAGE} says what to do meanwhile"));
        }
    }

    /// A next step, to stderr.
    pub fn hint(&self, text: &str) {
        self.note(&format!("{} {text}", self.err.tone(Tone::Hint, "hint:")));
    }

    /// An error, to stderr.
    pub fn error(&self, error: &CommandError) {
        let text = error::render(error, self.err);
        if !text.is_empty() {
            self.to_stderr(text.trim_end());
        }
    }

    /// A line to stderr; if that is closed, nobody can be told.
    fn to_stderr(&self, text: &str) {
        let _ = writeln!(io::stderr().lock(), "{}", self.err.safe(text));
    }

    /// Asks for a word to be typed, and says whether it was. Without a terminal nobody can answer: the caller
    /// names the flag that would have.
    pub async fn confirm(&self, question: &str, word: &str) -> bool {
        if !self.asks {
            return false;
        }
        let mut err = io::stderr().lock();
        if write!(err, "{} ", self.err.safe(question))
            .and_then(|()| err.flush())
            .is_err()
        {
            return false;
        }
        drop(err);
        // On a thread of its own, so that a lock is renewed while the user thinks.
        let read = tokio::task::spawn_blocking(|| {
            let mut answer = String::new();
            io::stdin().read_line(&mut answer).map(|_| answer)
        });
        matches!(read.await, Ok(Ok(answer)) if answer.trim() == word)
    }
}

/// Text to stdout.
fn to_stdout(text: &str) -> Result<(), CommandError> {
    let mut out = io::stdout().lock();
    let end = if text.ends_with('\n') || text.is_empty() {
        ""
    } else {
        "\n"
    };
    let written = out
        .write_all(text.as_bytes())
        .and_then(|()| out.write_all(end.as_bytes()));
    // Whatever went wrong with stdout, there is no other place for a result.
    written
        .and_then(|()| out.flush())
        .map_err(|_| CommandError::broken_pipe())
}

/// What clap says: help and versions to stdout, wrong usage to stderr.
pub fn command_line(said: &clap::Error) -> ExitCode {
    // Nobody can be told if this cannot be written.
    let _ = said.print();
    let code = if said.use_stderr() {
        exit::USAGE
    } else {
        exit::FINE
    };
    ExitCode::from(code)
}

/// Logs for debugging go to stderr, if `-v` or RUST_LOG asks for them.
pub fn logging(verbose: u8) {
    let default = match verbose {
        0 => "off",
        1 => "kctl=debug,cli=debug,aws_client=debug,aws_cloud=debug",
        _ => "trace",
    };
    let filter =
        tracing_subscriber::EnvFilter::try_from_default_env().unwrap_or_else(|_| default.into());
    tracing_subscriber::registry()
        .with(filter)
        .with(filter_fn(|of| may_log(of.target(), *of.level())))
        .with(tracing_subscriber::fmt::layer().with_writer(io::stderr))
        .init();
}

/// Libraries say everything at `trace`: AWS' SDK whole requests and answers, with credentials and private keys in them
/// (`transmitting request` in aws-smithy-runtime's orchestrator.rs). Whatever is asked for, they say no more than `debug`.
fn may_log(target: &str, level: Level) -> bool {
    let of = target.split("::").next().unwrap_or_default();
    ["kctl", "cli", "aws_client", "aws_cloud"].contains(&of) || level <= Level::DEBUG
}

#[cfg(test)]
mod tests {
    use super::{Level, may_log};

    #[test]
    fn only_our_own_crates_may_say_everything() {
        for (target, level, may) in [
            ("cli::commands::update", Level::TRACE, true),
            ("aws_client::store", Level::TRACE, true),
            ("rustls::conn", Level::TRACE, false),
            ("rustls::conn", Level::DEBUG, true),
            ("hyper::proto", Level::TRACE, false),
        ] {
            assert_eq!(may_log(target, level), may, "{target} {level}");
        }
    }
}
