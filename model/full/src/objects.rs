//! From a full spec to every AWS object that the cluster should consist of: plain functions by area.

mod addons;
mod autoscaling;
mod bastion;
mod dns;
mod etcd_volumes;
mod group_tags;
mod iam;
mod key_pair;
mod launch_templates;
mod load_balancer;
mod network;
mod node_termination;
mod routing;
mod rules;
mod security_groups;

#[cfg(test)]
pub(crate) mod tests;

pub use addons::addon_objects;
pub use autoscaling::hooks_digest;

use crate::{FullSpec, Subnet};
use cloud::{Cloud, Kind, S3Object};
use engine::{Id, Ref, Resource, Text};
use std::collections::BTreeMap;

/// Every object of the cluster, sorted by id, each id once. `user_data` is by instance group; `objects` are those
/// of the state store. References are logical; what AWS treats as a set is sorted.
pub fn desired(
    full: &FullSpec,
    user_data: &BTreeMap<String, Text>,
    objects: Vec<S3Object>,
) -> Vec<Cloud> {
    let mut all: Vec<Cloud> = [
        network::build(full),
        routing::build(full),
        security_groups::build(full),
        load_balancer::build(full),
        bastion::build(full),
        dns::build(full),
        iam::build(full),
        key_pair::build(full),
        etcd_volumes::build(full),
        launch_templates::build(full, user_data),
        autoscaling::build(full),
        node_termination::build(full),
        objects.into_iter().map(Cloud::from).collect(),
    ]
    .concat();
    all.extend(rules::distinct(
        [
            security_groups::rules(full),
            load_balancer::rules(full),
            bastion::rules(full),
        ]
        .concat(),
    ));
    all.sort_by_key(Resource::id);
    all
}

/// A reference to an object of this cluster.
fn own<K: Kind>(name: impl Into<String>) -> Ref {
    Ref::own(&id_of::<K>(name))
}

/// The id of an object of this cluster.
fn id_of<K: Kind>(name: impl Into<String>) -> Id {
    Id::new(K::TYPE, name)
}

/// The VPC: ours, or the user's.
fn vpc(full: &FullSpec) -> Ref {
    match &full.network.shared_vpc {
        Some(given) => Ref::Given(given.clone()),
        None => own::<cloud::Vpc>(&full.name),
    }
}

/// A subnet: ours, or the user's.
fn subnet(full: &FullSpec, subnet: &Subnet) -> Ref {
    match &subnet.shared {
        Some(given) => Ref::Given(given.clone()),
        None => own::<cloud::Subnet>(node::names::subnet(&full.name, &subnet.name)),
    }
}

/// The subnets of these names, sorted and each once.
fn subnets<'a>(full: &FullSpec, names: impl IntoIterator<Item = &'a String>) -> Vec<Ref> {
    let named = |name: &String| full.network.subnets.iter().find(|one| one.name == *name);
    sorted(
        names
            .into_iter()
            .filter_map(named)
            .map(|one| subnet(full, one)),
    )
}

/// Sorted, each once: the form of lists that AWS treats as sets.
fn sorted<T: Ord>(items: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut items: Vec<T> = items.into_iter().collect();
    items.sort();
    items.dedup();
    items
}
