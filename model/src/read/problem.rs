//! A finding about a spec: what is wrong, where it stands, and what to do about it.

use std::fmt::Write as _;

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
    pub snippet: Option<String>,
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
}

/// Columns of a source line that are shown at most.
const SHOWN_COLUMNS: usize = 120;

impl Problem {
    /// An error about a field.
    pub fn error(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            severity: Severity::Error,
            object: None,
            path: path.into(),
            message: message.into(),
            hint: None,
            place: None,
        }
    }

    /// A warning about a field.
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
            let _ = write!(text, "{}: ", printable(&heading));
        }
        if !self.path.is_empty() {
            let _ = write!(text, "{}: ", printable(&self.path));
        }
        text.push_str(&printable(&self.message));
        text.push('\n');
        if let Some(place) = &self.place {
            place.render(&mut text);
        }
        if let Some(hint) = &self.hint {
            let _ = writeln!(text, "hint: {}", printable(hint));
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
        let Some(snippet) = &self.snippet else { return };
        let (line, indent, width) = self.window(snippet);
        let _ = writeln!(text, "{gutter} |");
        let _ = writeln!(text, "{number} | {line}");
        let _ = writeln!(
            text,
            "{gutter} | {}{}",
            " ".repeat(indent),
            "^".repeat(width)
        );
    }

    /// The part of a source line around the place, columns before the caret, carets.
    fn window(&self, snippet: &str) -> (String, usize, usize) {
        let length = snippet.chars().count();
        let start = self.column.saturating_sub(1).min(length);
        let skipped = if length <= SHOWN_COLUMNS {
            0
        } else {
            start.saturating_sub(SHOWN_COLUMNS / 3)
        };
        let shown: String = snippet.chars().skip(skipped).take(SHOWN_COLUMNS).collect();
        let indent = start - skipped;
        let room = shown.chars().count().saturating_sub(indent).max(1);
        (printable(&shown), indent, self.width.clamp(1, room))
    }
}

/// Text without control characters, which could move a terminal's cursor; every one becomes a
/// space, so that columns stay.
fn printable(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect()
}

/// All findings as text for people, a blank line between them.
pub fn render(problems: &[Problem]) -> String {
    problems
        .iter()
        .map(Problem::render)
        .collect::<Vec<_>>()
        .join("\n")
}
