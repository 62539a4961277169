//! Which targets a network load balancer's address sends connections to, as AWS chooses them.

use super::family::Family;
use super::topology::Topology;
use crate::aws_state::{BalancerAddress, Listener, LoadBalancer, Target, TargetGroup};
use std::collections::BTreeMap;
use std::net::IpAddr;

/// What health checks found: `healthy` or `unhealthy` by ARN of the target group, then by `INSTANCE:PORT`, as in
/// [`crate::aws_state::HostReport::targets`].
pub type TargetHealth = BTreeMap<String, BTreeMap<String, String>>;

/// A target as an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Backend {
    pub address: IpAddr,
    pub port: u16,
}

/// What a balancer's address does with connections to one listener.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Choice {
    /// Targets of new connections.
    pub new: Vec<Backend>,
    /// May go on with connections that they have: those for new ones, and those being drained.
    pub kept: Vec<Backend>,
}

/// The transport protocols of a listener; none when the lab does not do it.
pub fn transport_protocols(listener: &str) -> &'static [&'static str] {
    match listener {
        "TCP" => &["tcp"],
        "UDP" => &["udp"],
        "TCP_UDP" => &["tcp", "udp"],
        _ => &[],
    }
}

/// A target's key in reports.
pub fn target_key(target: &Target) -> String {
    format!("{}:{}", target.instance, target.port)
}

/// A target's state: draining whatever checks say, else what they said last, else what AWS has.
pub fn target_state<'a>(
    health: &'a TargetHealth,
    group: &TargetGroup,
    target: &'a Target,
) -> &'a str {
    if target.state == "draining" {
        return "draining";
    }
    let checked = health
        .get(&group.arn)
        .and_then(|group| group.get(&target_key(target)));
    checked.unwrap_or(&target.state)
}

/// Targets of the address's zone, or of all zones when the balancer crosses them. Healthy ones; all that are registered
/// when none is healthy (AWS calls it failing open).
pub fn choose_targets(
    topology: &Topology<'_>,
    health: &TargetHealth,
    balancer: &LoadBalancer,
    address: &BalancerAddress,
    listener: &Listener,
    family: Family,
) -> Choice {
    let groups = &topology.world.target_groups;
    let Some(group) = groups
        .iter()
        .find(|group| group.arn == listener.target_group)
    else {
        return Choice::default();
    };
    let mut healthy = Vec::new();
    let mut registered = Vec::new();
    let mut draining = Vec::new();
    for target in &group.targets {
        let Some(host) = topology.find_host(&target.instance) else {
            continue;
        };
        let reached = balancer.cross_zone || host.instance.zone == address.zone;
        if !reached || host.instance.vpc != balancer.vpc {
            continue;
        }
        let Some(address) = family.reached_address(host.instance) else {
            continue;
        };
        let backend = Backend {
            address,
            port: target.port,
        };
        match target_state(health, group, target) {
            "draining" => draining.push(backend),
            "healthy" => healthy.push(backend),
            _ => registered.push(backend),
        }
    }
    let mut new = if healthy.is_empty() {
        registered
    } else {
        healthy
    };
    new.sort_unstable();
    let mut kept: Vec<_> = new.iter().copied().chain(draining).collect();
    kept.sort_unstable();
    kept.dedup();
    Choice { new, kept }
}
