//! The components of control planes, and the pods of critical priority.

use super::{Finding, FindingKind};
use crate::InstanceStatus;
use k8s_openapi::api::core::v1::{ContainerStatus, Pod};

/// The static pods of every control plane, by their label `k8s-app`.
const COMPONENTS: [&str; 3] = [
    "kube-apiserver",
    "kube-controller-manager",
    "kube-scheduler",
];

/// Priority classes of pods on which a cluster depends
/// (<https://kubernetes.io/docs/tasks/administer-cluster/guaranteed-scheduling-critical-addon-pods/>).
const CRITICAL: [&str; 2] = ["system-cluster-critical", "system-node-critical"];

/// Nodes of control planes on which a component does not run.
pub(super) fn component_findings(instances: &[InstanceStatus], pods: &[Pod]) -> Vec<Finding> {
    let mut found = Vec::new();
    for status in instances.iter().filter(|one| one.is_control_plane()) {
        let Some(node) = &status.node else {
            continue;
        };
        for component in COMPONENTS {
            let runs = |pod: &Pod| {
                node_name(pod) == Some(&node.name) && label(pod, "k8s-app") == Some(component)
            };
            if !pods.iter().any(runs) {
                found.push(Finding {
                    kind: FindingKind::Node,
                    name: node.name.clone(),
                    message: format!("it runs no {component}"),
                    next: Some(format!(
                        "see the log of protokube, which writes the manifest, on {}: journalctl -u protokube",
                        status.instance.id
                    )),
                });
            }
        }
    }
    found
}

/// Pods of critical priority that do not run.
pub(super) fn critical_pod_findings(pods: &[Pod]) -> Vec<Finding> {
    pods.iter()
        .filter(|pod| is_critical(pod) && pod.metadata.deletion_timestamp.is_none())
        .filter_map(|pod| {
            let name = pod.metadata.name.clone().unwrap_or_default();
            Some(Finding {
                kind: FindingKind::Pod,
                message: pod_problem(pod)?,
                next: Some(format!(
                    "kubectl --namespace kube-system describe pod {name}"
                )),
                name: format!("kube-system/{name}"),
            })
        })
        .collect()
}

fn node_name(pod: &Pod) -> Option<&String> {
    pod.spec.as_ref()?.node_name.as_ref()
}

fn label<'a>(pod: &'a Pod, key: &str) -> Option<&'a str> {
    pod.metadata.labels.as_ref()?.get(key).map(String::as_str)
}

fn is_critical(pod: &Pod) -> bool {
    let priority = pod
        .spec
        .as_ref()
        .and_then(|spec| spec.priority_class_name.as_deref());
    priority.is_some_and(|priority| CRITICAL.contains(&priority))
}

/// Why a pod does not run; `None` if it runs, or has ended and is replaced by another one.
fn pod_problem(pod: &Pod) -> Option<String> {
    let status = pod.status.as_ref();
    let phase = status
        .and_then(|status| status.phase.as_deref())
        .unwrap_or("Unknown");
    let containers = status.and_then(|status| status.container_statuses.as_deref());
    let unready: Vec<&ContainerStatus> = containers
        .unwrap_or_default()
        .iter()
        .filter(|container| !container.ready)
        .collect();
    match phase {
        "Succeeded" | "Failed" => None,
        "Running" if unready.is_empty() => None,
        phase => {
            let why = unready
                .first()
                .map(|container| container_problem(container));
            let why = why.or_else(|| scheduling_problem(pod));
            let phase = if phase == "Running" {
                "not ready"
            } else {
                phase
            };
            Some(match why {
                Some(why) => format!("it is {phase}: {why}"),
                None => format!("it is {phase}"),
            })
        }
    }
}

/// What a container waits for, or how it ended.
fn container_problem(container: &ContainerStatus) -> String {
    let state = container.state.as_ref();
    let waiting = state.and_then(|state| state.waiting.as_ref());
    let ended = state.and_then(|state| state.terminated.as_ref());
    let (reason, message) = match (waiting, ended) {
        (Some(waiting), _) => (waiting.reason.clone(), waiting.message.clone()),
        (None, Some(ended)) => {
            let code = format!("exit code {}", ended.exit_code);
            (
                Some(ended.reason.clone().unwrap_or(code)),
                ended.message.clone(),
            )
        }
        (None, None) => (Some("its readiness probe fails".to_owned()), None),
    };
    let texts: Vec<String> = [Some(container.name.clone()), reason, message]
        .into_iter()
        .flatten()
        .filter(|text| !text.is_empty())
        .collect();
    texts.join(": ")
}

/// Why the scheduler finds no node for a pod.
fn scheduling_problem(pod: &Pod) -> Option<String> {
    let conditions = pod.status.as_ref()?.conditions.as_deref()?;
    let scheduled = conditions.iter().find(|one| one.type_ == "PodScheduled")?;
    (scheduled.status == "False").then(|| scheduled.message.clone().unwrap_or_default())
}
