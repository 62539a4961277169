//! Where AWS is to look for a cluster's objects: names that the cluster may have used, whether it uses them now
//! or not. What is found there belongs to it only if its tags say so.

use aws_cloud::{AssetSource, Scope};
use cloud::{Cloud, OwnTags};
use node::components::EtcdMemberNames;
use node::config::Role;
use node::names::{self, dns};
use spec::api::Cluster;

/// What a scope is made from, besides the spec.
#[derive(Clone, Debug)]
pub struct Place {
    /// Twelve digits.
    pub account: String,
    /// `aws`, `aws-cn`, `aws-us-gov`.
    pub partition: String,
    /// `eu-west-1`.
    pub region: String,
    /// The hosted zone of its records, by id.
    pub hosted_zone: Option<String>,
    /// The journal's, for client tokens.
    pub generation: String,
    /// The tags that are the cluster's; `None`, to delete it: all are looked at.
    pub own_tags: Option<OwnTags>,
}

/// The scope of a cluster; `spec` is its completed spec where there is one. `expect` is what is wanted, nothing to
/// delete it.
pub fn scope(
    spec: &Cluster,
    place: Place,
    expect: Vec<Cloud>,
    refresh: bool,
    assets: AssetSource,
) -> Scope {
    let name = spec.name();
    let roles = [Role::ControlPlane, Role::Node, Role::Bastion];
    let routes = spec
        .spec
        .subnets
        .iter()
        .flat_map(|subnet| &subnet.additional_routes);
    Scope {
        cluster: name.to_owned(),
        account: place.account,
        partition: place.partition,
        region: place.region,
        base: name.to_owned(),
        roles: roles.map(|role| names::iam(name, role)).to_vec(),
        hosted_zone: place.hosted_zone,
        record_names: record_names(spec),
        balancer_prefixes: balancer_prefixes(name),
        queue: names::queue(name),
        event_rule_prefix: names::event_rule(name, ""),
        route_destinations: routes.map(|route| route.cidr.clone()).collect(),
        generation: place.generation,
        expect,
        own_tags: place.own_tags,
        refresh,
        assets,
    }
}

/// Every name that kctl or protokube publishes for a cluster.
fn record_names(spec: &Cluster) -> Vec<String> {
    let name = spec.name();
    let said = [
        &spec.spec.master_public_name,
        &spec.spec.master_internal_name,
    ];
    let mut all = vec![
        dns::api(name),
        dns::api_internal(name),
        dns::bootstrap(name),
        dns::bastion(name),
    ];
    all.extend(said.into_iter().flatten().cloned());
    for etcd in &spec.spec.etcd_clusters {
        let members = etcd.etcd_members.iter().map(|member| &member.name);
        let names = EtcdMemberNames::new(&etcd.name, members, name);
        all.extend(names.members.iter().map(|member| names.host(member)));
    }
    all.sort();
    all.dedup();
    all
}

/// What AWS names of balancers and target groups begin with.
fn balancer_prefixes(cluster: &str) -> Vec<String> {
    let logical = [
        names::api_load_balancer(cluster),
        names::bastion_load_balancer(cluster),
        format!("tcp.{cluster}"),
        format!("tls.{cluster}"),
        format!("kops-controller.{cluster}"),
    ];
    let without_hash = |logical: &String| {
        let name = names::load_balancer(logical);
        name.rsplit_once('-')
            .map_or(name.clone(), |(stem, _)| format!("{stem}-"))
    };
    let mut all: Vec<String> = logical.iter().map(without_hash).collect();
    all.sort();
    all.dedup();
    all
}
