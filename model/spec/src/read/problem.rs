//! A finding about a spec: what is wrong, where it stands, and what to do about it.

use node::terminal::is_terminal_control;
use std::fmt::Write as _;
use std::panic::Location;

/// Whether a finding stops the command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// The spec cannot be used.
    Error,
    /// The spec can be used, and may not do what its author thinks.
    Warning,
}

/// The object a finding is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectRef {
    /// Its `kind`.
    pub kind: String,
    /// Its `metadata.name`.
    pub name: String,
    /// Which of several with this kind and name, from 0.
    pub occurrence: usize,
}

/// Where a finding stands in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Name of the file as the user gave it.
    pub file: String,
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// Characters to underline, at least 1.
    pub width: usize,
    /// The line itself; `None` where it may hold a secret.
    pub snippet: Option<Snippet>,
}

/// A line of a file, or the part of a long one around a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snippet {
    /// What is shown of the line.
    pub text: String,
    /// Characters of it before the place.
    pub indent: usize,
}

/// A finding about a spec.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Whether it stops the command.
    pub severity: Severity,
    /// The object, where known.
    pub object: Option<ObjectRef>,
    /// Path of the field, `spec.subnets[2].cidr`; empty for the object or file as a whole.
    pub path: String,
    /// What is wrong; one line, no path in front.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
    /// Where it stands; `None` for specs that come from no file.
    pub place: Option<Place>,
    /// The rule that found it: the place in kctl's source that reports it. A test holds that every rule has a broken spec.
    pub rule: &'static Location<'static>,
}

/// At most this many findings are printed at once: nobody reads more before fixing these.
pub(crate) const MOST: usize = 100;

/// The first findings of many, errors before warnings, and how many more there are.
pub(crate) fn first_of(mut problems: Vec<Problem>) -> Vec<Problem> {
    if problems.len() <= MOST {
        return problems;
    }
    problems.sort_by_key(|problem| !problem.is_error());
    let more = problems.split_off(MOST);
    let untold = more.iter().find(|problem| problem.place.is_some());
    let mut rest = Problem::error("", "there are more findings than are worth telling at once");
    rest.object = more.first().and_then(|problem| problem.object.clone());
    rest.place = untold.and_then(|problem| problem.place.clone());
    problems.push(rest.hint("correct these first, then repeat the command"));
    problems
}

/// Columns of a source line that are shown at most.
const SHOWN_COLUMNS: usize = 120;

impl Problem {
    /// An error about a field.
    #[track_caller]
    pub fn error(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            severity: Severity::Error,
            object: None,
            path: path.into(),
            message: message.into(),
            hint: None,
            place: None,
            rule: Location::caller(),
        }
    }

    /// A warning about a field.
    #[track_caller]
    pub fn warning(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            severity: Severity::Warning,
            ..Self::error(path, message)
        }
    }

    /// The same finding with a next step.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// True if it stops the command.
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }

    /// The finding as text for people, without colour, ending in a newline:
    /// what is wrong, the place with the source line, the next step.
    pub fn render(&self) -> String {
        let mut text = match self.severity {
            Severity::Error => "error: ".to_owned(),
            Severity::Warning => "warning: ".to_owned(),
        };
        if let Some(object) = self
            .object
            .as_ref()
            .filter(|object| object.kind != "Cluster")
        {
            let heading = format!("{} {}", object.kind, object.name);
            let _ = write!(text, "{}: ", without_control_characters(&heading));
        }
        if !self.path.is_empty() {
            let _ = write!(text, "{}: ", without_control_characters(&self.path));
        }
        text.push_str(&without_control_characters(&self.message));
        text.push('\n');
        if let Some(place) = &self.place {
            place.render(&mut text);
        }
        if let Some(hint) = &self.hint {
            let _ = writeln!(text, "hint: {}", without_control_characters(hint));
        }
        text
    }
}

impl Place {
    fn render(&self, text: &mut String) {
        let number = self.line.to_string();
        let gutter = " ".repeat(number.len());
        let _ = writeln!(
            text,
            "{gutter}--> {}:{}:{}",
            self.file, self.line, self.column
        );
        let Some(Snippet { text: line, indent }) = &self.snippet else {
            return;
        };
        let room = line.chars().count().saturating_sub(*indent).max(1);
        let width = self.width.clamp(1, room);
        let _ = writeln!(text, "{gutter} |");
        let _ = writeln!(text, "{number} | {line}");
        let _ = writeln!(
            text,
            "{gutter} | {}{}",
            " ".repeat(*indent),
            "^".repeat(width)
        );
    }
}

impl Snippet {
    /// Of a line, around a column (from 1).
    pub(crate) fn excerpt_of(line: &str, column: usize) -> Self {
        let length = line.chars().count();
        let start = column.saturating_sub(1).min(length);
        let skipped = if length <= SHOWN_COLUMNS {
            0
        } else {
            start.saturating_sub(SHOWN_COLUMNS / 3)
        };
        let shown: String = line.chars().skip(skipped).take(SHOWN_COLUMNS).collect();
        Self {
            text: without_control_characters(&shown),
            indent: start - skipped,
        }
    }
}

/// Text without control characters, which could move a terminal's cursor; every one becomes a
/// space, so that columns stay.
fn without_control_characters(text: &str) -> String {
    text.chars()
        .map(|c| {
            if c.is_control() || is_terminal_control(c) {
                ' '
            } else {
                c
            }
        })
        .collect()
}

/// All findings as text for people, a blank line between them.
pub fn render_problems(problems: &[Problem]) -> String {
    problems
        .iter()
        .map(Problem::render)
        .collect::<Vec<_>>()
        .join("\n")
}
