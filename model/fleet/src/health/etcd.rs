//! The problems of etcd clusters, as findings.

use super::{Finding, FindingKind, Health};
use crate::{Fleet, unhealthy_waits};
use node::etcd_problem::EtcdProblem;

impl Health {
    /// Adds what is wrong with etcd by the reports of its members, before what follows from it: an API that does not answer, Nodes
    /// that are not Ready.
    #[must_use]
    pub fn with_etcd(mut self, problems: Vec<EtcdProblem>, fleet: &Fleet) -> Self {
        let new = problems.into_iter().filter(|one| !is_waited(one, fleet));
        let new: Vec<Finding> = new.map(etcd_finding).collect();
        let causes = self.findings.iter();
        let causes = causes.take_while(|found| found.kind == FindingKind::Instance);
        let place = causes.count();
        self.findings.splice(place..place, new);
        self.healthy = self.findings.is_empty();
        self
    }
}

/// True if the finding of the instance says it already: protokube reports what the role of a member waits for in two places.
fn is_waited(problem: &EtcdProblem, fleet: &Fleet) -> bool {
    let role = format!("etcd-{}", problem.etcd);
    let mut own = fleet
        .instances
        .iter()
        .filter(|status| Some(&status.instance.id) == problem.instance.as_ref());
    problem.is_told && own.any(|status| unhealthy_waits(&status.waits).any(|of| of.role == role))
}

fn etcd_finding(problem: EtcdProblem) -> Finding {
    Finding {
        kind: FindingKind::Etcd,
        name: match problem.instance {
            Some(instance) => format!("{}/{instance}", problem.etcd),
            None => problem.etcd,
        },
        message: problem.message,
        next: Some(problem.next),
    }
}
