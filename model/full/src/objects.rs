//! Builds all desired AWS objects of a cluster from its full spec, one module for each area.

mod addons;
mod autoscaling;
mod bastion;
mod discovery;
mod dns;
mod edges;
mod etcd_backups;
mod etcd_volumes;
mod group_tags;
mod iam;
mod key_pair;
mod launch_templates;
mod load_balancer;
mod network;
mod node_termination;
mod pod_identity;
mod ports_between;
mod routing;
mod rules;
mod security_groups;

#[cfg(test)]
pub(crate) mod tests;

pub use addons::addon_objects;
pub use autoscaling::hooks_digest;
pub use discovery::discovery_documents;
pub use edges::{edges_behind_load_balancers, groups_at, required_edges, subnets_with_routes};

use crate::{FullSpec, Group, Subnet};
use cloud::{Cloud, Kind, S3Object};
use engine::{Id, Ref, Resource, Text};
use std::collections::BTreeMap;

/// Every object of the cluster, sorted by id, each id once. `user_data` is by instance group; `objects` are those
/// of the state store. References are logical; what AWS treats as a set is sorted.
pub fn desired_objects(
    full: &FullSpec,
    user_data: &BTreeMap<String, Text>,
    objects: Vec<S3Object>,
) -> Vec<Cloud> {
    let mut all: Vec<Cloud> = [
        network::build_network(full),
        routing::build_routing(full),
        security_groups::build_security_groups(full),
        load_balancer::build_load_balancer(full),
        bastion::build_bastion(full),
        dns::build_dns(full),
        iam::build_iam(full),
        pod_identity::build_pod_identity(full),
        key_pair::build_key_pair(full),
        etcd_volumes::build_etcd_volumes(full),
        launch_templates::build_launch_templates(full, user_data),
        autoscaling::build_autoscaling(full),
        node_termination::build_node_termination(full),
        vec![etcd_backups::build_backup_settings(full).into()],
        objects.into_iter().map(Cloud::from).collect(),
    ]
    .concat();
    all.extend(rules::distinct_rules(
        [
            security_groups::instance_rules(full),
            load_balancer::load_balancer_rules(full),
            bastion::bastion_rules(full),
        ]
        .concat(),
    ));
    all.sort_by_key(Resource::id);
    all
}

/// A reference to an object of this cluster.
fn own_ref<K: Kind>(name: impl Into<String>) -> Ref {
    Ref::own(&id_of::<K>(name))
}

/// The id of an object of this cluster.
fn id_of<K: Kind>(name: impl Into<String>) -> Id {
    Id::new(K::TYPE, name)
}

/// True if instances of the group are in subnets with IPv6 alone or beside IPv4. If some of its subnets have none, instances cannot be
/// asked to have an address everywhere: those of the cluster's own subnets with IPv6 get one from the subnet.
fn has_ipv6(full: &FullSpec, group: &Group) -> bool {
    let mut subnets = full.network.subnets.iter();
    subnets.all(|subnet| subnet.ipv6_cidr.is_some() || !group.subnets.contains(&subnet.name))
}

/// A reference to the VPC: the cluster's own or a shared one.
fn vpc_ref(full: &FullSpec) -> Ref {
    match &full.network.shared_vpc {
        Some(given) => Ref::Given(given.clone()),
        None => own_ref::<cloud::Vpc>(&full.name),
    }
}

/// A reference to a subnet: the cluster's own or a shared one.
pub fn subnet_ref(full: &FullSpec, subnet: &Subnet) -> Ref {
    match &subnet.shared {
        Some(given) => Ref::Given(given.clone()),
        None => own_ref::<cloud::Subnet>(node::names::subnet_name(&full.name, &subnet.name)),
    }
}

/// References to the subnets with these names, sorted and without duplicates.
fn subnet_refs<'a>(full: &FullSpec, names: impl IntoIterator<Item = &'a String>) -> Vec<Ref> {
    let named = |name: &String| full.network.subnets.iter().find(|one| one.name == *name);
    sort_unique(
        names
            .into_iter()
            .filter_map(named)
            .map(|one| subnet_ref(full, one)),
    )
}

/// Sorts and removes duplicates, for lists that AWS treats as sets.
fn sort_unique<T: Ord>(items: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut items: Vec<T> = items.into_iter().collect();
    items.sort();
    items.dedup();
    items
}
