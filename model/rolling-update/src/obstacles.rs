//! What would stop a rolling update or cost something, said before the first instance is touched.

use crate::decide::not_ready_text;
use crate::{
    Condition, Observed, OnDrainTimeout, RollingInstance, Settings, Survival, would_survive,
};
use drain::{Loss, NeverEvicted, loss_of, never_evicted, pod_name};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use node::config::Role;
use std::collections::{BTreeMap, BTreeSet};

/// Something to know before a rolling update.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Obstacle {
    /// True if the rolling update could not end with it.
    pub stops: bool,
    /// What it is, in one sentence.
    pub text: String,
}

/// Everything that would stop the rolling update, and what it would lose, most severe first.
pub fn find_obstacles(
    observed: &Observed,
    pods: &[Pod],
    budgets: &[PodDisruptionBudget],
    settings: &Settings,
) -> Vec<Obstacle> {
    let outdated: Vec<&RollingInstance> = observed
        .instances
        .iter()
        .filter(|one| one.is_outdated())
        .collect();
    let mut all = BTreeSet::new();
    if !settings.cloud_only {
        all.extend(eviction_obstacles(&outdated, pods, budgets, settings));
        all.extend(losses(&outdated, pods));
    }
    all.extend(etcd_obstacles(observed, &outdated, settings));
    all.extend(broken_control_planes(observed, &outdated));
    let warning = |text: String| Obstacle { stops: false, text };
    all.extend(
        observed
            .problems
            .values()
            .map(|text| warning(format!("there is a problem already: {text}"))),
    );
    let mut all: Vec<Obstacle> = all.into_iter().collect();
    all.sort_by_key(|one| !one.stops);
    all
}

/// The pods of instances to be replaced, with the instance of each.
fn pods_of<'a>(
    outdated: &[&'a RollingInstance],
    pods: &'a [Pod],
) -> impl Iterator<Item = (&'a RollingInstance, &'a Pod)> {
    let by_node: BTreeMap<&str, &RollingInstance> = outdated
        .iter()
        .filter_map(|one| Some((one.node.as_ref()?.name.as_str(), *one)))
        .collect();
    pods.iter().filter_map(move |pod| {
        let node = pod.spec.as_ref()?.node_name.as_deref()?;
        Some((*by_node.get(node)?, pod))
    })
}

fn eviction_obstacles(
    outdated: &[&RollingInstance],
    pods: &[Pod],
    budgets: &[PodDisruptionBudget],
    settings: &Settings,
) -> Vec<Obstacle> {
    let never = pods_of(outdated, pods).filter_map(|(instance, pod)| {
        let why = match never_evicted(pod, budgets)? {
            NeverEvicted::BudgetOfZero(budget) => {
                format!("its budget {budget} allows no disruption")
            }
            NeverEvicted::SeveralBudgets(names) => {
                format!("several budgets select it: {}", names.join(", "))
            }
        };
        Some(Obstacle {
            stops: settings.on_drain_timeout == OnDrainTimeout::Fail,
            text: format!(
                "pod {} on {} can never be evicted: {why}",
                pod_name(pod),
                instance.id
            ),
        })
    });
    never.collect()
}

fn losses(outdated: &[&RollingInstance], pods: &[Pod]) -> Vec<Obstacle> {
    let (mut alone, mut local) = (Vec::new(), Vec::new());
    for (_, pod) in pods_of(outdated, pods) {
        match loss_of(pod) {
            Some(Loss::Pod) => alone.push(pod_name(pod)),
            Some(Loss::LocalData) => local.push(pod_name(pod)),
            None => {}
        }
    }
    let losses = [
        (alone, "pods without a controller do not come back"),
        (local, "emptyDir volumes of pods are lost"),
    ];
    losses
        .into_iter()
        .filter(|(pods, _)| !pods.is_empty())
        .map(|(pods, what)| Obstacle {
            stops: false,
            text: format!("{what}: {}", pods.join(", ")),
        })
        .collect()
}

/// True for an instance of a group of control planes.
fn is_control_plane(observed: &Observed, instance: &RollingInstance) -> bool {
    let mut groups = observed.groups.iter();
    groups.any(|group| group.name == instance.group && group.role == Role::ControlPlane)
}

/// Control planes are replaced while at most one is not Ready.
fn broken_control_planes(observed: &Observed, outdated: &[&RollingInstance]) -> Option<Obstacle> {
    let broken = observed.instances.iter().filter(|one| {
        let is_there = one.condition != Condition::Ready && one.condition != Condition::Leaving;
        is_there && is_control_plane(observed, one)
    });
    let broken: Vec<&RollingInstance> = broken.collect();
    let mut outdated = outdated.iter();
    let concerns = broken.len() > 1 && outdated.any(|one| is_control_plane(observed, one));
    let text = not_ready_text(&broken);
    concerns.then(|| Obstacle {
        stops: false,
        text: format!("no control plane is replaced while {text}"),
    })
}

fn etcd_obstacles(
    observed: &Observed,
    outdated: &[&RollingInstance],
    settings: &Settings,
) -> Vec<Obstacle> {
    let control_planes = outdated.iter();
    let control_planes = control_planes.filter(|one| is_control_plane(observed, one));
    if settings.cloud_only && control_planes.clone().next().is_some() {
        let text = "nobody asks whether etcd survives: the API may be away until the replacements have its volumes";
        return vec![Obstacle {
            stops: false,
            text: text.to_owned(),
        }];
    }
    let found = control_planes.filter_map(|instance| {
        let id = &instance.id;
        Some(match would_survive(&observed.etcd, id) {
            Ok(Survival::QuorumKept) => return None,
            Ok(Survival::Outage) => Obstacle {
                stops: false,
                text: format!(
                    "the API is away while {id}, the only control plane, is replaced; pods keep running"
                ),
            },
            Err(refusal) => Obstacle {
                stops: false,
                text: format!("{id} is not replaced as long as {refusal}"),
            },
        })
    });
    found.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{EtcdCluster, EtcdMember, RollingGroup, RollingNode, Traffic};
    use serde_json::json;

    fn observed() -> Observed {
        let group = |name: &str, role: Role| RollingGroup {
            name: name.to_owned(),
            role,
            desired: 1,
            max_surge: 0,
            max_unavailable: 1,
            launch_failure: None,
        };
        let instance = |id: &str, group: &str| RollingInstance {
            id: id.to_owned(),
            group: group.to_owned(),
            outdated: Some("older".to_owned()),
            condition: Condition::Ready,
            attached: true,
            node: Some(RollingNode {
                name: id.to_owned(),
                ..RollingNode::default()
            }),
            traffic: Traffic::Withdrawn,
            hook_waits: false,
            launched: 0,
        };
        Observed {
            groups: vec![
                group("control", Role::ControlPlane),
                group("nodes", Role::Node),
            ],
            instances: vec![instance("i-c", "control"), instance("i-n", "nodes")],
            etcd: vec![EtcdCluster {
                name: "main".to_owned(),
                members: vec![EtcdMember {
                    name: "a".to_owned(),
                    instance: Some("i-c".to_owned()),
                    problem: None,
                }],
            }],
            problems: [("Pod/x".to_owned(), "Pod/x: it is Pending".to_owned())].into(),
            ..Observed::default()
        }
    }

    #[test]
    fn what_would_stop_it_comes_first_and_force_is_a_way_around_budgets() {
        let pod = |name: &str, owner: &str, volume: bool| -> Pod {
            let owners = json!([{"apiVersion": "v1", "kind": owner, "name": "r", "uid": "1", "controller": true}]);
            let volumes = if volume {
                json!([{"name": "v", "emptyDir": {}}])
            } else {
                json!([])
            };
            let metadata = json!({"name": name, "namespace": "n", "labels": {"app": name},
                "ownerReferences": if owner.is_empty() { json!([]) } else { owners }});
            serde_json::from_value(json!({"metadata": metadata,
                "spec": {"nodeName": "i-n", "containers": [], "volumes": volumes}}))
            .unwrap()
        };
        let pods = [
            pod("web", "ReplicaSet", false),
            pod("bare", "", false),
            pod("cache", "ReplicaSet", true),
        ];
        let budget: PodDisruptionBudget = serde_json::from_value(json!({
            "metadata": {"name": "b", "namespace": "n"}, "spec": {"selector": {"matchLabels": {"app": "web"}}},
            "status": {"currentHealthy": 1, "desiredHealthy": 1, "disruptionsAllowed": 0, "expectedPods": 1}}))
        .unwrap();
        let texts = |on_drain_timeout| {
            let settings = Settings {
                on_drain_timeout,
                ..Settings::default()
            };
            let found =
                find_obstacles(&observed(), &pods, std::slice::from_ref(&budget), &settings);
            found
                .into_iter()
                .map(|one| (one.stops, one.text))
                .collect::<Vec<_>>()
        };
        let never = "pod n/web on i-n can never be evicted: its budget n/b allows no disruption";
        let rest = [
            "emptyDir volumes of pods are lost: n/cache",
            "pods without a controller do not come back: n/bare",
            "the API is away while i-c, the only control plane, is replaced; pods keep running",
            "there is a problem already: Pod/x: it is Pending",
        ];
        let failing = texts(OnDrainTimeout::Fail);
        assert_eq!(failing[0], (true, never.to_owned()));
        let others: Vec<&str> = failing[1..].iter().map(|(_, text)| text.as_str()).collect();
        assert_eq!(others, rest);
        assert!(texts(OnDrainTimeout::Force).iter().all(|(stops, _)| !stops));
        let settings = Settings {
            cloud_only: true,
            ..Settings::default()
        };
        let found = find_obstacles(&observed(), &[], &[], &settings);
        assert!(
            found.iter().any(|one| one.text.starts_with("nobody asks")),
            "{found:?}"
        );
    }
}
