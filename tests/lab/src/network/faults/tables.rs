//! Faults as nft tables: one at the hosts' links (sees every packet, also the router's own), and one of each address family where
//! packets between hosts are forwarded.

use super::super::family::Family;
use super::super::names::link_name;
use super::super::ruleset::block_text;
use super::super::topology::Topology;
use super::{Faults, HostFaults, Lost};
use crate::aws_state::{AwsState, Instance};
use std::collections::BTreeSet;
use std::net::IpAddr;

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
    let forward =
        Family::BOTH.map(|family| table_text(family.word(), &forward_chain(faults, world, family)));
    table_text("netdev", &chains.concat()) + &forward.concat()
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

/// What the hypervisor answers, which no partition of the network takes away; on IPv6 also what keeps a link alive.
fn host_services_rule(world: &AwsState, instance: &Instance, family: Family) -> String {
    let topology = Topology::from_world(world).ok();
    let resolver = topology.and_then(|topology| {
        topology
            .vpcs
            .get(instance.vpc.as_str())
            .map(|vpc| vpc.resolver)
    });
    let both = address_list(&[family.metadata(), family.resolver()]);
    match family {
        Family::V4 => {
            let own = resolver.map(|address| format!(", {address}"));
            format!("{{ {both}{} }}", own.unwrap_or_default())
        }
        Family::V6 => format!("{{ {both}, ::, fe80::/10, ff02::/16 }}"),
    }
}

fn address_list(addresses: &[IpAddr]) -> String {
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
        rules.extend(Family::BOTH.map(|family| {
            let services = host_services_rule(world, instance, family);
            format!("{} daddr != {services} drop", family.word())
        }));
    }
    rules.extend(loss_rule(host));
    rules
}

fn to_host(world: &AwsState, instance: &Instance, host: &HostFaults) -> Vec<String> {
    let mut rules = Vec::new();
    if host.inbound {
        for family in Family::BOTH {
            let word = family.word();
            let services = host_services_rule(world, instance, family);
            rules.push(format!("{word} saddr != {services} udp sport != 67 drop"));
            rules.push(format!(
                "{word} saddr != {services} meta l4proto != udp drop"
            ));
        }
    }
    for family in Family::BOTH {
        let balancers = balancer_addresses(world, family);
        if host.from_balancers && !balancers.is_empty() {
            let word = family.word();
            rules.push(format!(
                "{word} saddr {{ {} }} drop",
                address_list(&balancers)
            ));
        }
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

fn balancer_addresses(world: &AwsState, family: Family) -> Vec<IpAddr> {
    let mut all: Vec<_> = world
        .load_balancers
        .iter()
        .flat_map(|balancer| &balancer.addresses)
        .flat_map(|at| family.all_balancer_addresses(at))
        .collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// Between hosts, by whatever address; the answers of a connection too.
fn forward_chain(faults: &Faults, world: &AwsState, family: Family) -> String {
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
    for way in &faults.ways {
        let packets = match way.lost {
            Lost::TcpPort(port) => format!("tcp dport {port}"),
            Lost::UdpLargerThan(bytes) => format!("meta l4proto udp meta length > {bytes}"),
        };
        rules.push(format!(
            "iifname \"{}\" oifname \"{}\" {packets} drop",
            link_name(&way.from),
            link_name(&way.to)
        ));
    }
    let balancers = balancer_addresses(world, family);
    for (id, _) in faults
        .hosts
        .iter()
        .filter(|(_, host)| host.from_balancers && !balancers.is_empty())
    {
        for way in ["iifname", "oifname"] {
            rules.push(format!(
                "{way} \"{}\" ct original {} daddr {{ {} }} drop",
                link_name(id),
                family.word(),
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
    use super::super::LossyWay;
    use super::*;

    #[test]
    fn some_packets_are_dropped_where_they_are_forwarded_and_in_their_direction_only() {
        let way = |lost| LossyWay {
            from: "i-1".to_owned(),
            to: "i-2".to_owned(),
            lost,
        };
        let faults = Faults {
            ways: [way(Lost::TcpPort(10250)), way(Lost::UdpLargerThan(1000))].into(),
            ..Faults::default()
        };
        let text = fault_ruleset(&faults, &AwsState::default(), &BTreeSet::new());
        let (from, to) = (link_name("i-1"), link_name("i-2"));
        for packets in ["tcp dport 10250", "meta l4proto udp meta length > 1000"] {
            let rule = format!("iifname \"{from}\" oifname \"{to}\" {packets} drop");
            assert!(text.contains(&rule), "{text}");
        }
        assert!(!text.contains(&format!("iifname \"{to}\"")), "{text}");
    }

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
