//! Which pods leave a node that is drained, and what would keep them there. The rules are those of `kubectl drain`.

use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{
    LabelSelector, LabelSelectorRequirement, ObjectMeta, Time,
};
use std::collections::BTreeMap;

/// What a drain does with a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drain {
    /// It stays: a static pod, or one that would come back at once, such as that of a DaemonSet.
    Stays,
    /// It is evicted.
    Evict,
    /// It is on its way out already.
    Leaving,
}

/// Taint of a cordoned Node.
const UNSCHEDULABLE: &str = "node.kubernetes.io/unschedulable";

/// From when on nothing that a drain of the Node removes can come back, in seconds since 1970: since the drain began, as whoever drains has
/// noted it, and the Node is cordoned, as the controller manager notes on the taint. `None`: one of both is not so.
pub fn drained_since(node: &Node, begun: Option<i64>) -> Option<i64> {
    let taints = node.spec.as_ref()?.taints.as_ref()?;
    let cordon = taints.iter().find(|taint| taint.key == UNSCHEDULABLE)?;
    let cordoned = seconds(cordon.time_added.as_ref()?);
    Some(cordoned.max(begun?))
}

fn seconds(time: &Time) -> i64 {
    time.0.as_second()
}

/// What a drain does with a pod of a Node that is drained since that time ([`drained_since`]). A pod that was made later tolerates the
/// cordon: evicted, it would come back at once, and the drain would never end. `kubectl drain` lists the pods once, when it begins, so it
/// leaves such pods too.
pub fn drain_of(pod: &Pod, drained_since: Option<i64>) -> Drain {
    let annotations = pod.metadata.annotations.as_ref();
    if annotations.is_some_and(|all| all.contains_key("kubernetes.io/config.mirror")) {
        return Drain::Stays;
    }
    if pod.metadata.deletion_timestamp.is_some() {
        return Drain::Leaving;
    }
    let made = pod.metadata.creation_timestamp.as_ref().map(seconds);
    let came_later = drained_since.is_some() && made > drained_since;
    match controller_kind(pod) {
        Some("DaemonSet") if !is_finished(pod) => Drain::Stays,
        _ if came_later => Drain::Stays,
        _ => Drain::Evict,
    }
}

/// What an eviction of a pod would lose for good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// No controller makes another one.
    Pod,
    /// Its emptyDir volumes.
    LocalData,
}

/// What an eviction of that pod would lose for good, if anything.
pub fn loss_of(pod: &Pod) -> Option<Loss> {
    if drain_of(pod, None) != Drain::Evict || is_finished(pod) {
        return None;
    }
    if controller_kind(pod).is_none() {
        return Some(Loss::Pod);
    }
    let volumes = pod.spec.as_ref().and_then(|spec| spec.volumes.as_ref());
    let mut volumes = volumes.into_iter().flatten();
    volumes
        .any(|volume| volume.empty_dir.is_some())
        .then_some(Loss::LocalData)
}

/// Why no eviction of a pod can ever succeed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NeverEvicted {
    /// The budget allows no disruption, even if all its pods are healthy.
    BudgetOfZero(String),
    /// More than one budget selects the pod: the eviction API refuses that.
    SeveralBudgets(Vec<String>),
}

/// Why no eviction of that pod can ever succeed, if so. `budgets` are those of its namespace and others.
pub fn never_evicted(pod: &Pod, budgets: &[PodDisruptionBudget]) -> Option<NeverEvicted> {
    if drain_of(pod, None) != Drain::Evict || is_finished(pod) {
        return None;
    }
    let selecting: Vec<&PodDisruptionBudget> = budgets
        .iter()
        .filter(|budget| selects(budget, pod))
        .collect();
    let name = |budget: &PodDisruptionBudget| full_name(&budget.metadata);
    match selecting.as_slice() {
        [] => None,
        [budget] => allows_none(budget).then(|| NeverEvicted::BudgetOfZero(name(budget))),
        several => Some(NeverEvicted::SeveralBudgets(
            several.iter().map(|budget| name(budget)).collect(),
        )),
    }
}

/// True if the budget wants all its pods healthy.
fn allows_none(budget: &PodDisruptionBudget) -> bool {
    let Some(status) = &budget.status else {
        return false;
    };
    let expected = status.expected_pods.unwrap_or_default();
    expected > 0 && status.desired_healthy.unwrap_or_default() >= expected
}

fn selects(budget: &PodDisruptionBudget, pod: &Pod) -> bool {
    let selector = budget.spec.as_ref().and_then(|spec| spec.selector.as_ref());
    budget.metadata.namespace == pod.metadata.namespace
        && selector.is_some_and(|selector| matches_labels(selector, pod.metadata.labels.as_ref()))
}

/// Whether labels match a selector; one without terms matches everything.
fn matches_labels(selector: &LabelSelector, labels: Option<&BTreeMap<String, String>>) -> bool {
    let value = |key: &str| labels.and_then(|labels| labels.get(key));
    let equal = selector.match_labels.iter().flatten();
    let terms = selector.match_expressions.iter().flatten();
    equal
        .into_iter()
        .all(|(key, wanted)| value(key) == Some(wanted))
        && terms
            .into_iter()
            .all(|term| matches_term(term, value(&term.key)))
}

fn matches_term(term: &LabelSelectorRequirement, value: Option<&String>) -> bool {
    let is_listed = || {
        let mut values = term.values.iter().flatten();
        values.any(|listed| Some(listed) == value)
    };
    match term.operator.as_str() {
        "In" => is_listed(),
        "NotIn" => !is_listed(),
        "Exists" => value.is_some(),
        "DoesNotExist" => value.is_none(),
        _ => false,
    }
}

/// `NAMESPACE/NAME`.
pub fn pod_name(pod: &Pod) -> String {
    full_name(&pod.metadata)
}

fn full_name(metadata: &ObjectMeta) -> String {
    let namespace = metadata.namespace.as_deref().unwrap_or_default();
    format!(
        "{namespace}/{}",
        metadata.name.as_deref().unwrap_or_default()
    )
}

fn controller_kind(pod: &Pod) -> Option<&str> {
    let owners = pod.metadata.owner_references.as_ref()?;
    let controller = owners.iter().find(|owner| owner.controller == Some(true))?;
    Some(&controller.kind)
}

fn is_finished(pod: &Pod) -> bool {
    let phase = pod
        .status
        .as_ref()
        .and_then(|status| status.phase.as_deref());
    matches!(phase, Some("Succeeded" | "Failed"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn pod(extra: Value) -> Pod {
        let mut pod = json!({"metadata": {"name": "a", "namespace": "n", "labels": {"app": "web"},
            "ownerReferences": [{"apiVersion": "v1", "kind": "ReplicaSet", "name": "r", "uid": "1", "controller": true}]}});
        merge(&mut pod, extra);
        serde_json::from_value(pod).unwrap()
    }

    fn merge(into: &mut Value, from: Value) {
        match (into, from) {
            (Value::Object(into), Value::Object(from)) => {
                for (key, value) in from {
                    merge(into.entry(key).or_insert(Value::Null), value);
                }
            }
            (into, from) => *into = from,
        }
    }

    fn owner(kind: &str) -> Value {
        json!({"metadata": {"ownerReferences": [
            {"apiVersion": "v1", "kind": kind, "name": "r", "uid": "1", "controller": true}]}})
    }

    #[test]
    fn a_drain_leaves_static_pods_and_daemon_sets() {
        for (extra, drain, loss) in [
            (json!({}), Drain::Evict, None),
            (owner("DaemonSet"), Drain::Stays, None),
            (
                json!({"metadata": {"annotations": {"kubernetes.io/config.mirror": "x"}}}),
                Drain::Stays,
                None,
            ),
            (
                json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}),
                Drain::Leaving,
                None,
            ),
            (
                json!({"metadata": {"ownerReferences": null}}),
                Drain::Evict,
                Some(Loss::Pod),
            ),
            (
                json!({"spec": {"containers": [], "volumes": [{"name": "v", "emptyDir": {}}]}}),
                Drain::Evict,
                Some(Loss::LocalData),
            ),
            (
                json!({"metadata": {"ownerReferences": null}, "status": {"phase": "Succeeded"}}),
                Drain::Evict,
                None,
            ),
        ] {
            let pod = pod(extra.clone());
            assert_eq!(
                (drain_of(&pod, None), loss_of(&pod)),
                (drain, loss),
                "{extra}"
            );
        }
    }

    /// Whatever tolerates every taint comes back to the node from which it was drained. What came before the drain is evicted, also to a
    /// node that somebody cordoned long ago.
    #[test]
    fn a_pod_that_came_after_the_drain_began_is_not_evicted_again() {
        let node = |key: &str| -> Node {
            let taint =
                json!({"key": key, "effect": "NoSchedule", "timeAdded": "2026-01-01T00:00:10Z"});
            serde_json::from_value(json!({"spec": {"taints": [taint]}})).unwrap()
        };
        let made = |at: &str| pod(json!({"metadata": {"creationTimestamp": at}}));
        let cordoned = seconds(&serde_json::from_value(json!("2026-01-01T00:00:10Z")).unwrap());
        for (begun, at, expected) in [
            (Some(cordoned - 1), "2026-01-01T00:00:10Z", Drain::Evict),
            (Some(cordoned - 1), "2026-01-01T00:00:11Z", Drain::Stays),
            (Some(cordoned + 60), "2026-01-01T00:00:11Z", Drain::Evict),
            (Some(cordoned + 60), "2026-01-01T00:01:11Z", Drain::Stays),
            (None, "2026-01-01T00:01:11Z", Drain::Evict),
        ] {
            let since = drained_since(&node(UNSCHEDULABLE), begun);
            assert_eq!(drain_of(&made(at), since), expected, "{begun:?} {at}");
        }
        // Somebody's own taint says nothing of that.
        assert_eq!(drained_since(&node("own"), Some(cordoned)), None);
        // What is leaving is waited for, whenever it came.
        let mut leaving = made("2026-01-01T00:01:11Z");
        leaving.metadata.deletion_timestamp = leaving.metadata.creation_timestamp.clone();
        assert_eq!(drain_of(&leaving, Some(cordoned)), Drain::Leaving);
    }

    fn budget(name: &str, selector: &Value, wanted: i32, expected: i32) -> PodDisruptionBudget {
        serde_json::from_value(json!({"metadata": {"name": name, "namespace": "n"}, "spec": {"selector": selector},
            "status": {"currentHealthy": expected, "desiredHealthy": wanted, "disruptionsAllowed": 0, "expectedPods": expected}}))
        .unwrap()
    }

    #[test]
    fn a_budget_that_wants_all_its_pods_and_two_of_one_pod_can_never_be_met() {
        let web = || json!({"matchLabels": {"app": "web"}});
        let zero = NeverEvicted::BudgetOfZero("n/b".to_owned());
        for (budgets, expected) in [
            (vec![], None),
            (vec![budget("b", &web(), 2, 3)], None),
            (vec![budget("b", &web(), 3, 3)], Some(zero.clone())),
            (vec![budget("b", &json!({}), 3, 3)], Some(zero.clone())),
            (vec![budget("b", &Value::Null, 3, 3)], None),
            (
                vec![budget(
                    "b",
                    &json!({"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["web"]}]}),
                    3,
                    3,
                )],
                None,
            ),
            (
                vec![budget(
                    "b",
                    &json!({"matchExpressions": [{"key": "app", "operator": "Exists"}]}),
                    3,
                    3,
                )],
                Some(zero),
            ),
            (
                vec![budget("b", &web(), 1, 3), budget("c", &json!({}), 1, 3)],
                Some(NeverEvicted::SeveralBudgets(vec![
                    "n/b".to_owned(),
                    "n/c".to_owned(),
                ])),
            ),
        ] {
            assert_eq!(never_evicted(&pod(json!({})), &budgets), expected);
        }
        assert_eq!(
            never_evicted(&pod(owner("DaemonSet")), &[budget("b", &web(), 3, 3)]),
            None
        );
    }
}
