//! Faults as two nft tables: one at the hosts' links (sees every packet, also the router's own), one where packets between
//! hosts are forwarded.

use super::super::names::{METADATA, RESOLVER, link_name};
use super::super::ruleset::block_text;
use super::super::topology::Topology;
use super::{Faults, HostFaults};
use crate::aws_state::{AwsState, Instance};
use std::collections::BTreeSet;
use std::net::Ipv4Addr;

const TABLE: &str = "faults";

/// The tables as `nft -f` reads them; chains only for links that exist, which the kernel insists on.
pub fn fault_ruleset(faults: &Faults, world: &AwsState, links: &BTreeSet<String>) -> String {
    let find = |id: &String| world.instances.iter().find(|instance| instance.id == *id);
    let hosts: Vec<_> = faults
        .hosts
        .iter()
        .filter_map(|(id, host)| Some((find(id)?, host)))
        .filter(|(instance, _)| links.contains(&link_name(&instance.id)))
        .collect();
    let mut chains: Vec<String> = Vec::new();
    for (instance, host) in &hosts {
        let link = link_name(&instance.id);
        chains.push(chain_text(
            "ingress",
            &link,
            from_host(world, instance, host),
        ));
        chains.push(chain_text("egress", &link, to_host(world, instance, host)));
    }
    table_text("netdev", &chains.concat()) + &table_text("ip", &forward_chain(faults, world))
}

fn table_text(family: &str, chains: &str) -> String {
    let name = format!("table {family} {TABLE}");
    format!("{name} {{}}\ndelete {name}\n{name} {{\n{chains}}}\n")
}

fn chain_text(hook: &str, link: &str, rules: Vec<String>) -> String {
    let head = format!("type filter hook {hook} device \"{link}\" priority 0; policy accept;");
    block_text(
        &format!("chain {hook}_{link}"),
        [head].into_iter().chain(rules),
    )
}

/// What the hypervisor answers, which no partition of the network takes away.
fn host_services_rule(world: &AwsState, instance: &Instance) -> String {
    let topology = Topology::from_world(world).ok();
    let resolver = topology.and_then(|topology| {
        topology
            .vpcs
            .get(instance.vpc.as_str())
            .map(|vpc| vpc.resolver)
    });
    let all: Vec<_> = [Some(METADATA), Some(RESOLVER), resolver]
        .into_iter()
        .flatten()
        .collect();
    format!("{{ {} }}", address_list(&all))
}

fn address_list(addresses: &[Ipv4Addr]) -> String {
    addresses
        .iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(", ")
}

fn from_host(world: &AwsState, instance: &Instance, host: &HostFaults) -> Vec<String> {
    let mut rules = Vec::new();
    if host.outbound {
        rules.push("udp dport 67 accept".to_owned());
        rules.push(format!(
            "ip daddr != {} drop",
            host_services_rule(world, instance)
        ));
    }
    rules.extend(loss_rule(host));
    rules
}

fn to_host(world: &AwsState, instance: &Instance, host: &HostFaults) -> Vec<String> {
    let mut rules = Vec::new();
    if host.inbound {
        rules.push(format!(
            "ip saddr != {} udp sport != 67 drop",
            host_services_rule(world, instance)
        ));
        rules.push(format!(
            "ip saddr != {} meta l4proto != udp drop",
            host_services_rule(world, instance)
        ));
    }
    let balancers = balancer_addresses(world);
    if host.from_balancers && !balancers.is_empty() {
        rules.push(format!("ip saddr {{ {} }} drop", address_list(&balancers)));
    }
    rules.extend(loss_rule(host));
    rules
}

fn loss_rule(host: &HostFaults) -> Option<String> {
    match host.loss {
        0 => None,
        1..1000 => Some(format!("numgen random mod 1000 < {} drop", host.loss)),
        1000.. => Some("drop".to_owned()),
    }
}

fn balancer_addresses(world: &AwsState) -> Vec<Ipv4Addr> {
    let mut all: Vec<_> = world
        .load_balancers
        .iter()
        .flat_map(|balancer| &balancer.addresses)
        .flat_map(|at| std::iter::once(at.address).chain(at.public_address))
        .collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// Between hosts, by whatever address; the answers of a connection too.
fn forward_chain(faults: &Faults, world: &AwsState) -> String {
    let mut rules = Vec::new();
    for (one, other) in &faults.pairs {
        for (from, to) in [(one, other), (other, one)] {
            rules.push(format!(
                "iifname \"{}\" oifname \"{}\" drop",
                link_name(from),
                link_name(to)
            ));
        }
    }
    let balancers = balancer_addresses(world);
    for (id, _) in faults
        .hosts
        .iter()
        .filter(|(_, host)| host.from_balancers && !balancers.is_empty())
    {
        for way in ["iifname", "oifname"] {
            rules.push(format!(
                "{way} \"{}\" ct original ip daddr {{ {} }} drop",
                link_name(id),
                address_list(&balancers)
            ));
        }
    }
    // The operator's connections by a balancer come and go by the router's own hooks.
    let chains = ["forward", "input", "postrouting"].map(|hook| {
        let head = format!("type filter hook {hook} priority -10; policy accept;");
        block_text(&format!("chain {hook}"), [&head].into_iter().chain(&rules))
    });
    chains.concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_way_that_is_lost_is_dropped_at_its_own_hook_only() {
        let world = AwsState {
            instances: vec![Instance::new_running("i-1", [10, 0, 0, 4].into())],
            ..AwsState::default()
        };
        let links = BTreeSet::from([link_name("i-1")]);
        for (inbound, outbound) in [(true, false), (false, true), (true, true)] {
            let host = HostFaults {
                inbound,
                outbound,
                ..HostFaults::default()
            };
            let faults = Faults {
                hosts: [("i-1".to_owned(), host)].into(),
                ..Faults::default()
            };
            let text = fault_ruleset(&faults, &world, &links);
            for (hook, lost) in [("ingress", outbound), ("egress", inbound)] {
                let chain = text.split("chain ").find(|chain| chain.starts_with(hook));
                assert_eq!(chain.unwrap().contains("drop"), lost, "{hook}: {text}");
            }
        }
    }
}
