//! Writes to stdout and stderr, and asks for confirmation.

use super::{Paint, Tone, error};
use crate::args::{Color, GlobalOptions};
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

/// stdout and stderr, with their capabilities.
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
    /// Reads options, environment and terminal.
    pub fn new(options: &GlobalOptions) -> Self {
        let dumb = env::get_variable(env::TERM).is_some_and(|term| term == "dumb");
        let colour = |terminal: bool| match options.color {
            Color::Always => true,
            Color::Never => false,
            Color::Auto => {
                let forced =
                    env::get_variable(env::CLICOLOR_FORCE).is_some_and(|value| value != "0");
                env::get_variable(env::NO_COLOR).is_none() && (forced || (terminal && !dumb))
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

    pub fn paint(&self) -> Paint {
        self.out
    }

    pub fn err_paint(&self) -> Paint {
        self.err
    }

    /// True if lines at the bottom of the screen can be redrawn while a command runs.
    pub fn can_redraw(&self) -> bool {
        self.live
    }

    /// True if the user can answer a question.
    pub fn can_ask(&self) -> bool {
        self.asks
    }

    /// Columns of the terminal.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Prints a result as text to stdout. If stdout is closed, the error prints nothing.
    pub fn print_result(&self, text: &str) -> Result<(), CommandError> {
        to_stdout(&self.out.sanitize(text))
    }

    /// Prints a document to stdout, unchanged. On a terminal, control characters are written as JSON and YAML escapes.
    pub fn print_document(&self, text: &str) -> Result<(), CommandError> {
        if !self.out_is_terminal {
            return to_stdout(text);
        }
        let escaped = |c: char| match is_terminal_control(c) {
            true => format!("\\u{:04x}", u32::from(c)),
            false => c.to_string(),
        };
        to_stdout(&text.chars().map(escaped).collect::<String>())
    }

    /// Prints a note to stderr, unless `--quiet`.
    pub fn note(&self, text: &str) {
        if !self.quiet {
            self.to_stderr(text);
        }
    }

    /// Prints a completed action to stderr, unless `--quiet`.
    pub fn print_done(&self, text: &str) {
        self.note(&self.err.with_tone(Tone::Add, text));
    }

    /// Prints a warning to stderr, even with `--quiet`.
    pub fn warning(&self, text: &str) {
        self.to_stderr(&format!(
            "{} {text}",
            self.err.with_tone(Tone::Change, "warning:")
        ));
    }

    /// Prints a problem of a spec to stderr.
    pub fn print_problem(&self, problem: &Problem) {
        self.to_stderr(error::render_problem(problem, self.err).trim_end());
    }

    /// Prints a warning for each field that has no effect, and where to read on.
    pub fn not_yet(&self, all: &[NotYet]) {
        all.iter().for_each(|one| self.warning(&one.message));
        if !all.is_empty() {
            self.hint(&format!("{PAGE} describes what to do meanwhile"));
        }
    }

    /// Prints a next step to stderr, unless `--quiet`.
    pub fn hint(&self, text: &str) {
        self.note(&format!(
            "{} {text}",
            self.err.with_tone(Tone::Hint, "hint:")
        ));
    }

    /// Prints an error to stderr.
    pub fn error(&self, error: &CommandError) {
        let text = error::render(error, self.err);
        if !text.is_empty() {
            self.to_stderr(text.trim_end());
        }
    }

    /// Prints a line to stderr. An error is ignored: there is no other output.
    fn to_stderr(&self, text: &str) {
        let _ = writeln!(io::stderr().lock(), "{}", self.err.sanitize(text));
    }

    /// Asks the user to type a word, and returns whether they did. Always false without a terminal: the caller's error then names
    /// the flag to use instead.
    pub async fn confirm(&self, question: &str, word: &str) -> bool {
        self.ask(question).await.as_deref() == Some(word)
    }

    /// The user's answer to a question, without space around it. `None` without a terminal.
    pub async fn ask(&self, question: &str) -> Option<String> {
        if !self.asks {
            return None;
        }
        let mut err = io::stderr().lock();
        if write!(err, "{} ", self.err.sanitize(question))
            .and_then(|()| err.flush())
            .is_err()
        {
            return None;
        }
        drop(err);
        // On its own thread, so that the lock is renewed meanwhile.
        let read = tokio::task::spawn_blocking(|| {
            let mut answer = String::new();
            io::stdin().read_line(&mut answer).map(|_| answer)
        });
        let answer = read.await.ok()?.ok()?;
        Some(answer.trim().to_owned())
    }
}

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
    // Every error of stdout counts as closed: there is no other output for a result.
    written
        .and_then(|()| out.flush())
        .map_err(|_| CommandError::broken_pipe())
}

/// Prints clap's message: help and version to stdout, usage errors to stderr.
pub fn print_clap_message(error: &clap::Error) -> ExitCode {
    // An error cannot be reported.
    let _ = error.print();
    let code = if error.use_stderr() {
        exit::USAGE
    } else {
        exit::FINE
    };
    ExitCode::from(code)
}

/// Starts logging to stderr, as `-v` or RUST_LOG ask for.
pub fn init_logging(verbose: u8) {
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

/// False for libraries at level `trace`: the AWS SDK logs whole requests and responses there, with credentials and private keys
/// (`transmitting request` in aws-smithy-runtime's orchestrator.rs).
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
