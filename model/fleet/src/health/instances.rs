//! The problems of instances and of their Nodes.

use super::{Finding, FindingKind};
use crate::{BootSource, InstanceStatus, Membership, unhealthy_waits};

/// What protokube of a control plane waits for or refuses.
pub(super) fn wait_findings(status: &InstanceStatus) -> impl Iterator<Item = Finding> {
    unhealthy_waits(&status.waits).map(|wait| Finding {
        kind: FindingKind::Instance,
        name: status.instance.id.clone(),
        message: format!(
            "the control plane of {}: {}",
            status.group(),
            wait.one_line()
        ),
        next: wait.next.clone(),
    })
}

/// The problem of an instance that should be a node and is not, unless `wait_findings` already has its cause. If the API
/// cannot be asked, only an error counts: the instance may well have joined.
pub(super) fn not_joined_finding(status: &InstanceStatus) -> Option<Finding> {
    let boot = status.boot.as_ref();
    let from_protokube = boot.is_some_and(|boot| boot.known_from == BootSource::Protokube);
    if from_protokube && unhealthy_waits(&status.waits).next().is_some() {
        return None;
    }
    let has_error = boot.is_some_and(|boot| boot.error.is_some());
    if status.membership == Membership::Unknown && !has_error {
        return None;
    }
    let cause = boot.map_or(String::new(), |boot| {
        format!(": {} ({})", boot.line(), boot.known_from.word())
    });
    Some(Finding {
        kind: FindingKind::Instance,
        name: status.instance.id.clone(),
        message: format!("the instance of {} has not joined{cause}", status.group()),
        next: boot.and_then(|boot| boot.next.clone()),
    })
}

/// The problems of an instance's Node.
pub(super) fn node_findings(status: &InstanceStatus) -> Vec<Finding> {
    let Some(node) = status.node.as_ref() else {
        return Vec::new();
    };
    let finding = |message, next: &str| Finding {
        kind: FindingKind::Node,
        name: node.name.clone(),
        message,
        next: Some(next.to_owned()),
    };
    let mut found = Vec::new();
    if !node.ready {
        let reason = node.reason.as_deref().unwrap_or("no reason given");
        let next = format!("kubectl describe node {}", node.name);
        found.push(finding(format!("it is not Ready: {reason}"), &next));
    }
    if node.uninitialized {
        found.push(finding(
            "the cloud controller manager has not initialized it, so pods are not scheduled on it".to_owned(),
            "see the cloud controller manager's log: kubectl --namespace kube-system logs --selector k8s-app=aws-cloud-controller-manager",
        ));
    }
    found
}
