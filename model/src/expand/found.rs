//! Findings of a run, errors and warnings in the order they were found.

use crate::api::InstanceGroup;
use crate::read::{ObjectRef, Problem};

/// Findings so far.
#[derive(Default)]
pub(super) struct Found(Vec<Problem>);

impl Found {
    /// Something about the cluster that stops the command, and what to do about it.
    pub fn error(&mut self, path: impl Into<String>, message: impl Into<String>, hint: &str) {
        self.0.push(Problem::error(path, message).hint(hint));
    }

    /// Something about the cluster that its author should know.
    pub fn warning(&mut self, path: impl Into<String>, message: impl Into<String>) {
        self.0.push(Problem::warning(path, message));
    }

    /// Something about a group that stops the command, and what to do about it.
    pub fn group_error(
        &mut self,
        group: &InstanceGroup,
        path: impl Into<String>,
        message: impl Into<String>,
        hint: &str,
    ) {
        let mut problem = Problem::error(path, message).hint(hint);
        problem.object = Some(ObjectRef {
            kind: "InstanceGroup".to_owned(),
            name: group.name().to_owned(),
        });
        self.0.push(problem);
    }

    pub fn has_errors(&self) -> bool {
        self.0.iter().any(Problem::is_error)
    }

    /// All findings of a run that failed: errors, then warnings.
    pub fn into_errors(self) -> Vec<Problem> {
        let (mut errors, warnings): (Vec<_>, Vec<_>) =
            self.0.into_iter().partition(Problem::is_error);
        errors.extend(warnings);
        errors
    }

    /// The warnings of a run that went well.
    pub fn into_warnings(self) -> Vec<Problem> {
        self.0
    }
}
