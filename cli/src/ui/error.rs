//! Errors as text: the cause, what caused that, and the next step.

use super::{Paint, Tone};
use crate::error::CommandError;
use spec::read::Problem;

/// All of an error, ready for stderr; empty if there is nothing to say.
pub fn render(error: &CommandError, paint: Paint) -> String {
    let mut blocks: Vec<String> = error
        .problems
        .iter()
        .map(|problem| self::problem(problem, paint))
        .collect();
    blocks.extend(error.cause.as_ref().map(|cause| chain(cause, paint)));
    let mut text = blocks.join("\n");
    let mut told: Vec<&String> = Vec::new();
    for hint in &error.hints {
        if !told.contains(&hint) {
            text.push_str(&format!("{} {hint}\n", paint.tone(Tone::Hint, "hint:")));
            told.push(hint);
        }
    }
    text
}

/// A finding about a spec, with its place and its next step.
pub fn problem(problem: &Problem, paint: Paint) -> String {
    let mut text = String::new();
    for line in problem.render().lines() {
        let (head, rest) = line.split_once(' ').unwrap_or((line, ""));
        let tone = match head {
            "error:" => Tone::Delete,
            "warning:" => Tone::Change,
            "hint:" => Tone::Hint,
            _ => {
                text.push_str(line);
                text.push('\n');
                continue;
            }
        };
        text.push_str(&format!("{} {rest}\n", paint.tone(tone, head)));
    }
    text
}

fn chain(cause: &anyhow::Error, paint: Paint) -> String {
    let mut chain = cause.chain().map(ToString::to_string);
    let mut before = chain.next().unwrap_or_default();
    let mut text = format!(
        "{} {}\n",
        paint.tone(Tone::Delete, "error:"),
        before.trim_end()
    );
    for source in chain {
        // A library that repeats its source's text says nothing new with it.
        if !before.contains(source.as_str()) {
            text.push_str(&format!(
                "  {} {}\n",
                paint.tone(Tone::Faint, "because:"),
                indented(&source)
            ));
        }
        before = source;
    }
    text
}

fn indented(text: &str) -> String {
    text.trim_end().replace('\n', "\n    ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::{Context, Kind};

    #[test]
    fn the_whole_chain_is_told_once_and_ends_in_a_next_step() {
        let cause: Result<(), _> = Err(std::io::Error::other("permission denied"));
        let error = cause
            .failed("could not write /x", "choose another file")
            .unwrap_err()
            .hint("choose another file");
        assert_eq!(
            render(&error, Paint::default()),
            "error: could not write /x\n  because: permission denied\nhint: choose another file\n"
        );
    }

    #[test]
    fn a_broken_pipe_is_quiet_and_fine() {
        let error = CommandError::broken_pipe();
        assert_eq!(render(&error, Paint::default()), "");
        assert_eq!(error.kind.exit_code(), 0);
        assert_eq!(Kind::Interrupted.exit_code(), 130);
    }
}
