//! Collects the errors and warnings of an expansion, in the order they were found.

use crate::api::cluster::ClusterSpec;
use crate::api::instance_group::InstanceGroupSpec;
use crate::api::{Cluster, InstanceGroup, Spec as _};
use crate::read::{ObjectRef, Problem};

/// The findings so far about a cluster and its groups.
pub(super) struct Findings {
    cluster: ObjectRef,
    problems: Vec<Problem>,
}

impl Findings {
    pub fn new(cluster: &Cluster) -> Self {
        Self {
            cluster: object_ref(ClusterSpec::KIND, cluster.name()),
            problems: Vec::new(),
        }
    }

    /// Adds an error about the cluster, with the next step as hint.
    #[track_caller]
    pub fn add_error(&mut self, path: impl Into<String>, message: impl Into<String>, hint: &str) {
        self.push(Problem::error(path, message).hint(hint));
    }

    /// Adds a warning about the cluster, with the next step as hint.
    #[track_caller]
    pub fn add_warning(&mut self, path: impl Into<String>, message: impl Into<String>, hint: &str) {
        self.push(Problem::warning(path, message).hint(hint));
    }

    /// Adds a finding about the cluster.
    pub fn push(&mut self, mut problem: Problem) {
        problem.object = Some(self.cluster.clone());
        self.problems.push(problem);
    }

    /// Adds an error about a group, with the next step as hint.
    #[track_caller]
    pub fn add_group_error(
        &mut self,
        group: &InstanceGroup,
        path: impl Into<String>,
        message: impl Into<String>,
        hint: &str,
    ) {
        self.push_of_group(group, Problem::error(path, message).hint(hint));
    }

    /// Adds a warning about a group, with the next step as hint.
    #[track_caller]
    pub fn add_group_warning(
        &mut self,
        group: &InstanceGroup,
        path: impl Into<String>,
        message: impl Into<String>,
        hint: &str,
    ) {
        self.push_of_group(group, Problem::warning(path, message).hint(hint));
    }

    fn push_of_group(&mut self, group: &InstanceGroup, mut problem: Problem) {
        problem.object = Some(object_ref(InstanceGroupSpec::KIND, group.name()));
        self.problems.push(problem);
    }

    pub fn has_errors(&self) -> bool {
        self.problems.iter().any(Problem::is_error)
    }

    /// All findings of a failed expansion: errors, then warnings.
    pub fn into_errors(self) -> Vec<Problem> {
        let (mut errors, warnings): (Vec<_>, Vec<_>) =
            self.problems.into_iter().partition(Problem::is_error);
        errors.extend(warnings);
        errors
    }

    /// The warnings of a successful expansion.
    pub fn into_warnings(self) -> Vec<Problem> {
        self.problems
    }
}

fn object_ref(kind: &str, name: &str) -> ObjectRef {
    ObjectRef {
        kind: kind.to_owned(),
        name: name.to_owned(),
        // Validation ensures that names are unique.
        occurrence: 0,
    }
}
