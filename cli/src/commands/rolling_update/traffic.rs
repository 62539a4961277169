//! Whether load balancers and names send clients to an instance.

use super::names::ClusterNames;
use aws_cloud::CloudClients;
use aws_cloud::fleet::target_states;
use engine::Failure;
use fleet::{Fleet, InstanceStatus};
use k8s_openapi::api::core::v1::Node;
use node::names::ROLLING_UPDATE_ANNOTATION;
use rolling_update::Traffic;
use std::collections::BTreeMap;

/// The target groups of an instance's Auto Scaling group: of the one it is in or, once detached, of its instance group's.
pub fn target_groups<'a>(fleet: &'a Fleet, status: &InstanceStatus) -> &'a [String] {
    let group = fleet.scaling_group(status.group());
    group.map_or(&[], |group| group.target_groups.as_slice())
}

/// The traffic of instances with target groups. Target groups are asked only while an instance of theirs is being replaced or is
/// detached. The
/// only API server of a cluster keeps its clients until it is terminated: there is nowhere else to send them.
pub async fn observe_traffic(
    clients: &CloudClients,
    fleet: &Fleet,
    nodes: &[Node],
    names: &mut Option<ClusterNames>,
    now: i64,
) -> Result<BTreeMap<String, Traffic>, Failure> {
    let control_planes = fleet.instances.iter();
    let control_planes = control_planes.filter(|one| one.is_control_plane() && one.is_counted());
    let control_planes: Vec<&InstanceStatus> = control_planes.collect();
    let is_only = control_planes.len() == 1;
    let targets = fleet.instances.iter().filter(|one| {
        let keeps_clients = is_only && one.is_control_plane();
        !keeps_clients && !target_groups(fleet, one).is_empty()
    });
    let mut states: BTreeMap<&String, BTreeMap<String, String>> = BTreeMap::new();
    let mut traffic = BTreeMap::new();
    for status in targets {
        let id = &status.instance.id;
        let is_marked = is_marked(status, nodes);
        let is_detached = status.instance.detached && status.instance.scaling_group.is_none();
        if !is_marked && !is_detached {
            traffic.insert(id.clone(), Traffic::Served);
            continue;
        }
        let mut own = Traffic::Withdrawn;
        for target_group in target_groups(fleet, status) {
            if !states.contains_key(target_group) {
                let found = target_states(clients, target_group).await?;
                states.insert(target_group, found);
            }
            let state = states.get(target_group).and_then(|states| states.get(id));
            let by_group = match state.map(String::as_str) {
                None => Traffic::Withdrawn,
                Some("draining") => Traffic::Draining,
                Some(_) => Traffic::Served,
            };
            own = busier(own, by_group);
        }
        if !is_marked && own != Traffic::Served {
            own = Traffic::Lost;
        }
        traffic.insert(id.clone(), own);
    }
    if let Some(names) = names.as_mut().filter(|_| !is_only) {
        let replaced = control_planes.iter().filter(|one| is_marked(one, nodes));
        let replaced: Vec<&InstanceStatus> = replaced.copied().collect();
        let named = names
            .observe(clients.shared_clients(), &replaced, now)
            .await?;
        for (id, by_name) in named {
            let by_balancer = traffic.get(&id).copied().unwrap_or(Traffic::Withdrawn);
            traffic.insert(id, busier(by_name, by_balancer));
        }
    }
    Ok(traffic)
}

/// The one of two ways to an instance that has more clients.
fn busier(one: Traffic, other: Traffic) -> Traffic {
    match (one, other) {
        (Traffic::Served, _) | (_, Traffic::Served) => Traffic::Served,
        (Traffic::Draining, _) | (_, Traffic::Draining) => Traffic::Draining,
        _ => Traffic::Withdrawn,
    }
}

fn is_marked(status: &InstanceStatus, nodes: &[Node]) -> bool {
    let node = status.node.as_ref().and_then(|node| {
        let mut all = nodes.iter();
        all.find(|object| object.metadata.name.as_deref() == Some(&node.name))
    });
    let annotations = node.and_then(|node| node.metadata.annotations.as_ref());
    annotations.is_some_and(|all| all.contains_key(ROLLING_UPDATE_ANNOTATION))
}
