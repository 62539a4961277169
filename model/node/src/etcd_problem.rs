//! A problem of an etcd cluster, as `etcd-rules` finds it and the health of the cluster shows it.

/// A problem of an etcd cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EtcdProblem {
    /// The etcd cluster: `main`.
    pub etcd: String,
    /// The instance whose member has the problem; `None`: the etcd cluster as a whole.
    pub instance: Option<String>,
    pub message: String,
    /// What to do about it.
    pub next: String,
    /// True if it is what protokube says about the member: what it waits for or refuses, or why etcd does not answer.
    pub is_told: bool,
}

impl EtcdProblem {
    /// A problem of the etcd cluster as a whole.
    pub fn of_cluster(etcd: &str, message: String, next: String) -> Self {
        Self {
            etcd: etcd.to_owned(),
            instance: None,
            message,
            next,
            is_told: false,
        }
    }

    /// All of it in one line: `main on i-1: it knows no leader`.
    pub fn one_line(&self) -> String {
        let on = self.instance.as_ref().map(|id| format!(" on {id}"));
        format!("{}{}: {}", self.etcd, on.unwrap_or_default(), self.message)
    }
}
