//! Errors as text: problems, causes and next steps.

use super::{Paint, Tone};
use crate::error::CommandError;
use spec::read::Problem;

/// The text of an error; empty for a closed stdout.
pub fn render(error: &CommandError, paint: Paint) -> String {
    let mut blocks: Vec<String> = error
        .problems
        .iter()
        .map(|problem| self::render_problem(problem, paint))
        .collect();
    blocks.extend(
        error
            .cause
            .as_ref()
            .map(|cause| render_causes(cause, paint)),
    );
    let mut text = blocks.join("\n");
    let mut printed: Vec<&String> = Vec::new();
    for hint in &error.hints {
        if !printed.contains(&hint) {
            text.push_str(&format!(
                "{} {hint}\n",
                paint.with_tone(Tone::Hint, "hint:")
            ));
            printed.push(hint);
        }
    }
    text
}

/// A problem of a spec, with line number and next step.
pub fn render_problem(problem: &Problem, paint: Paint) -> String {
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
        text.push_str(&format!("{} {rest}\n", paint.with_tone(tone, head)));
    }
    text
}

fn render_causes(cause: &anyhow::Error, paint: Paint) -> String {
    let mut chain = cause.chain().map(ToString::to_string);
    let mut before = chain.next().unwrap_or_default();
    let mut text = format!(
        "{} {}\n",
        paint.with_tone(Tone::Delete, "error:"),
        before.trim_end()
    );
    for source in chain {
        // Some libraries repeat the text of their source.
        if !before.contains(source.as_str()) {
            text.push_str(&format!(
                "  {} {}\n",
                paint.with_tone(Tone::Faint, "because:"),
                indent_lines(&source)
            ));
        }
        before = source;
    }
    text
}

fn indent_lines(text: &str) -> String {
    text.trim_end().replace('\n', "\n    ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::{ErrorContext, ErrorKind};

    #[test]
    fn the_whole_chain_is_told_once_and_ends_in_a_next_step() {
        let cause: Result<(), _> = Err(std::io::Error::other("permission denied"));
        let error = cause
            .or_failed("could not write /x", "choose another file")
            .unwrap_err()
            .with_hint("choose another file");
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
        assert_eq!(ErrorKind::Interrupted.exit_code(), 130);
    }
}
