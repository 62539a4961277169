//! Findings of a run, errors and warnings in the order they were found.

use crate::api::cluster::ClusterSpec;
use crate::api::instance_group::InstanceGroupSpec;
use crate::api::{Cluster, InstanceGroup, Spec as _};
use crate::read::{ObjectRef, Problem};

/// Findings so far about a cluster and its groups.
pub(super) struct Found {
    cluster: ObjectRef,
    problems: Vec<Problem>,
}

impl Found {
    /// None yet.
    pub fn about(cluster: &Cluster) -> Self {
        Self {
            cluster: object(ClusterSpec::KIND, cluster.name()),
            problems: Vec::new(),
        }
    }

    /// Something about the cluster that stops the command, and what to do about it.
    #[track_caller]
    pub fn error(&mut self, path: impl Into<String>, message: impl Into<String>, hint: &str) {
        self.push(Problem::error(path, message).hint(hint));
    }

    /// Something about the cluster that its author should know, and what to do about it.
    #[track_caller]
    pub fn warning(&mut self, path: impl Into<String>, message: impl Into<String>, hint: &str) {
        self.push(Problem::warning(path, message).hint(hint));
    }

    fn push(&mut self, mut problem: Problem) {
        problem.object = Some(self.cluster.clone());
        self.problems.push(problem);
    }

    /// Something about a group that stops the command, and what to do about it.
    #[track_caller]
    pub fn group_error(
        &mut self,
        group: &InstanceGroup,
        path: impl Into<String>,
        message: impl Into<String>,
        hint: &str,
    ) {
        let mut problem = Problem::error(path, message).hint(hint);
        problem.object = Some(object(InstanceGroupSpec::KIND, group.name()));
        self.problems.push(problem);
    }

    pub fn has_errors(&self) -> bool {
        self.problems.iter().any(Problem::is_error)
    }

    /// All findings of a run that failed: errors, then warnings.
    pub fn into_errors(self) -> Vec<Problem> {
        let (mut errors, warnings): (Vec<_>, Vec<_>) =
            self.problems.into_iter().partition(Problem::is_error);
        errors.extend(warnings);
        errors
    }

    /// The warnings of a run that went well.
    pub fn into_warnings(self) -> Vec<Problem> {
        self.problems
    }
}

fn object(kind: &str, name: &str) -> ObjectRef {
    ObjectRef {
        kind: kind.to_owned(),
        name: name.to_owned(),
        // Names are unique in what validation let through.
        occurrence: 0,
    }
}
