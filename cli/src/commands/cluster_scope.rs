//! The names under which a cluster's resources may exist in AWS, used now or in the past. A resource found by name belongs
//! to the cluster only if its tags say so.

use aws_cloud::{AssetSource, Scope};
use cloud::{Cloud, OwnTags};
use node::config::Role;
use node::names;
use node::pki::{JsonWebKeySet, Keyset};
use spec::completed::CompletedCluster;
use std::collections::BTreeMap;

/// Input of a scope besides the spec.
#[derive(Clone, Debug)]
pub struct ScopeTarget {
    /// AWS account id: twelve digits.
    pub account: String,
    /// `aws`, `aws-cn`, `aws-us-gov`.
    pub partition: String,
    /// `eu-west-1`.
    pub region: String,
    /// Id of the hosted zone with the cluster's records.
    pub hosted_zone: Option<String>,
    /// Generation of the journal, for client tokens.
    pub generation: String,
    /// The cluster's own tags; `None`, for a deletion: all tags are read.
    pub own_tags: Option<OwnTags>,
    /// Issuers of service accounts' tokens that the cluster has or has had, with their discovery store.
    pub issuers: BTreeMap<String, String>,
    /// The keys that verify those tokens; `None`: there are none yet.
    pub token_keys: Option<JsonWebKeySet>,
    /// Public half of the keyset that signs; `None`: there is none yet.
    pub signer: Option<Keyset>,
}

/// The scope of a cluster. `expect` is the desired state; empty for a deletion.
pub fn cluster_scope(
    cluster: &CompletedCluster,
    target: ScopeTarget,
    expect: Vec<Cloud>,
    refresh: bool,
    assets: AssetSource,
) -> Scope {
    let name = cluster.name.as_str();
    let roles = [Role::ControlPlane, Role::Node, Role::Bastion];
    Scope {
        cluster: name.to_owned(),
        account: target.account,
        partition: target.partition,
        region: target.region,
        base: name.to_owned(),
        roles: roles.map(|role| names::iam_name(name, role)).to_vec(),
        issuers: target.issuers,
        token_keys: target.token_keys,
        hosted_zone: target.hosted_zone,
        record_names: cluster.record_names(),
        balancer_prefixes: balancer_prefixes(name),
        queue: names::queue_name(name),
        event_rule_prefix: names::event_rule(name, ""),
        route_destinations: cluster.route_destinations.clone(),
        ipv6: cluster.ipv6,
        generation: target.generation,
        expect,
        own_tags: target.own_tags,
        signer: target.signer,
        refresh,
        assets,
    }
}

/// Prefixes of the AWS names of load balancers and target groups.
fn balancer_prefixes(cluster: &str) -> Vec<String> {
    let prefixes = ["api", "bastion", "tcp", "tls", "kops-controller"];
    let mut all = prefixes.map(|prefix| names::load_balancer_stem(&format!("{prefix}.{cluster}")));
    all.sort();
    all.to_vec()
}
