//! Where AWS is to look for a cluster's objects: names that the cluster may have used, whether it uses them now
//! or not. What is found there belongs to it only if its tags say so.

use aws_cloud::{AssetSource, Scope};
use cloud::{Cloud, OwnTags};
use node::config::Role;
use node::names;
use spec::completed::Completed;

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

/// The scope of a cluster. `expect` is what is wanted, nothing to delete it.
pub fn scope(
    cluster: &Completed,
    place: Place,
    expect: Vec<Cloud>,
    refresh: bool,
    assets: AssetSource,
) -> Scope {
    let name = cluster.name.as_str();
    let roles = [Role::ControlPlane, Role::Node, Role::Bastion];
    Scope {
        cluster: name.to_owned(),
        account: place.account,
        partition: place.partition,
        region: place.region,
        base: name.to_owned(),
        roles: roles.map(|role| names::iam(name, role)).to_vec(),
        hosted_zone: place.hosted_zone,
        record_names: cluster.record_names.iter().cloned().collect(),
        balancer_prefixes: balancer_prefixes(name),
        queue: names::queue(name),
        event_rule_prefix: names::event_rule(name, ""),
        route_destinations: cluster.route_destinations.clone(),
        generation: place.generation,
        expect,
        own_tags: place.own_tags,
        refresh,
        assets,
    }
}

/// What AWS names of balancers and target groups begin with.
fn balancer_prefixes(cluster: &str) -> Vec<String> {
    let prefixes = ["api", "bastion", "tcp", "tls", "kops-controller"];
    let mut all = prefixes.map(|prefix| names::load_balancer_stem(&format!("{prefix}.{cluster}")));
    all.sort();
    all.to_vec()
}
