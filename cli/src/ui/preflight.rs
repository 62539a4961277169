//! What a preflight found: a table of all checks, and what to do about problems.

use super::health::one_line;
use super::{Paint, Tone, table};
use serde::Serialize;

/// How a check ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RowState {
    Ok,
    Problem,
    /// It could not be checked.
    NotKnown,
}

impl RowState {
    fn words(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Problem => "PROBLEM",
            Self::NotKnown => "not known",
        }
    }
}

/// One thing that was checked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PreflightRow {
    /// `quotas`, `permissions`, ...
    pub check: &'static str,
    /// What it is about: a quota, a subnet, an action.
    pub subject: String,
    pub state: RowState,
    /// What was found.
    pub message: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

impl PreflightRow {
    pub fn fine(
        check: &'static str,
        subject: impl Into<String>,
        message: impl Into<String>,
    ) -> Self {
        Self::new(check, subject, RowState::Ok, message)
    }

    pub fn not_known(
        check: &'static str,
        subject: impl Into<String>,
        why: impl Into<String>,
    ) -> Self {
        Self::new(check, subject, RowState::NotKnown, why)
    }

    /// A problem with what to do about it.
    pub fn problem(
        check: &'static str,
        subject: impl Into<String>,
        message: impl Into<String>,
        next: impl Into<String>,
    ) -> Self {
        Self {
            next: Some(next.into()),
            ..Self::new(check, subject, RowState::Problem, message)
        }
    }

    fn new(
        check: &'static str,
        subject: impl Into<String>,
        state: RowState,
        message: impl Into<String>,
    ) -> Self {
        Self {
            check,
            subject: subject.into(),
            state,
            message: message.into(),
            next: None,
        }
    }
}

/// All rows as a table, and below it the next step of each problem.
pub fn render(rows: &[PreflightRow], paint: Paint) -> String {
    let cells = |row: &PreflightRow| {
        vec![
            row.check.to_owned(),
            row.subject.clone(),
            row.state.words().to_owned(),
            one_line(&row.message),
        ]
    };
    let cells: Vec<Vec<String>> = rows.iter().map(cells).collect();
    let mut text = table::render(&["CHECK", "SUBJECT", "STATE", "FOUND"], &cells);
    let steps = rows
        .iter()
        .filter_map(|row| Some((&row.subject, row.next.as_ref()?)));
    for (subject, next) in steps {
        text.push_str(&format!(
            "\n{}\n  {} {}\n",
            paint.with_tone(Tone::Delete, subject),
            paint.with_tone(Tone::Hint, "next:"),
            one_line(next)
        ));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn problems_have_their_next_steps_below_the_table() {
        let rows = [
            PreflightRow::fine("images", "2 groups", "as their instance types"),
            PreflightRow::problem("quotas", "VPCs per Region", "6 of 5", "delete one"),
            PreflightRow::not_known("permissions", "root", "IAM does not say"),
        ];
        insta::assert_snapshot!(render(&rows, Paint::default()), @r"
        CHECK         SUBJECT           STATE       FOUND
        images        2 groups          ok          as their instance types
        quotas        VPCs per Region   PROBLEM     6 of 5
        permissions   root              not known   IAM does not say

        VPCs per Region
          next: delete one
        ");
    }
}
