//! Faults as two nft tables: one at the hosts' links (sees every packet, also the router's own), one where packets between
//! hosts are forwarded.

use super::super::names::{DELAY_LINK, DELAYED_MARK, METADATA, RESOLVER, link};
use super::super::topology::Topology;
use super::{Faults, HostFaults};
use crate::world::{Instance, World};
use std::collections::BTreeSet;
use std::net::Ipv4Addr;

const TABLE: &str = "faults";

/// The tables as `nft -f` reads them; chains only for links that exist, which the kernel insists on.
pub fn ruleset(faults: &Faults, world: &World, links: &BTreeSet<String>) -> String {
    let mut text = String::new();
    for family in ["netdev", "ip"] {
        text += &format!("table {family} {TABLE} {{}}\ndelete table {family} {TABLE}\n");
    }
    let hosts: Vec<_> = faults
        .hosts
        .iter()
        .filter_map(|(id, host)| {
            Some((
                world.instances.iter().find(|instance| instance.id == *id)?,
                host,
            ))
        })
        .filter(|(instance, _)| links.contains(&link(&instance.id)))
        .collect();
    text += &format!("table netdev {TABLE} {{\n");
    for (instance, host) in &hosts {
        text += &chain(&instance.id, "ingress", &from_host(world, instance, host));
        text += &chain(&instance.id, "egress", &to_host(world, instance, host));
    }
    let late: Vec<_> = hosts.iter().filter(|(_, host)| host.delay > 0).collect();
    if links.contains(DELAY_LINK) && !late.is_empty() {
        let rules = late.iter().map(|(instance, _)| {
            format!(
                "ether daddr {} meta mark set {DELAYED_MARK:#x} fwd to \"{}\"",
                instance.mac,
                link(&instance.id)
            )
        });
        let rules: Vec<_> = rules.collect();
        text += &device_chain("waited", "ingress", DELAY_LINK, &rules);
    }
    text += "}\n";
    text += &format!("table ip {TABLE} {{\n{}}}\n", forward(faults, world));
    text
}

fn chain(instance: &str, hook: &str, rules: &[String]) -> String {
    let link = link(instance);
    device_chain(&format!("{hook}_{link}"), hook, &link, rules)
}

fn device_chain(name: &str, hook: &str, link: &str, rules: &[String]) -> String {
    let body: String = rules.iter().map(|rule| format!("    {rule}\n")).collect();
    format!(
        "  chain {name} {{\n    type filter hook {hook} device \"{link}\" priority 0; policy accept;\n{body}  }}\n"
    )
}

/// What the hypervisor answers, which no partition of the network takes away.
fn near(world: &World, instance: &Instance) -> String {
    let topology = Topology::of(world).ok();
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
    format!("{{ {} }}", list(&all))
}

fn list(addresses: &[Ipv4Addr]) -> String {
    addresses
        .iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(", ")
}

fn from_host(world: &World, instance: &Instance, host: &HostFaults) -> Vec<String> {
    let mut rules = Vec::new();
    if host.isolated {
        rules.push("udp dport 67 accept".to_owned());
        rules.push(format!("ip daddr != {} drop", near(world, instance)));
    }
    rules.extend(lose(host));
    rules
}

fn to_host(world: &World, instance: &Instance, host: &HostFaults) -> Vec<String> {
    let mut rules = vec![format!("meta mark {DELAYED_MARK:#x} accept")];
    if host.isolated {
        rules.push(format!(
            "ip saddr != {} udp sport != 67 drop",
            near(world, instance)
        ));
        rules.push(format!(
            "ip saddr != {} meta l4proto != udp drop",
            near(world, instance)
        ));
    }
    let balancers = balancers(world);
    if host.from_balancers && !balancers.is_empty() {
        rules.push(format!("ip saddr {{ {} }} drop", list(&balancers)));
    }
    rules.extend(lose(host));
    if host.delay > 0 {
        rules.push(format!("fwd to \"{DELAY_LINK}\""));
    }
    rules
}

fn lose(host: &HostFaults) -> Option<String> {
    match host.loss {
        0 => None,
        1..1000 => Some(format!("numgen random mod 1000 < {} drop", host.loss)),
        1000.. => Some("drop".to_owned()),
    }
}

fn balancers(world: &World) -> Vec<Ipv4Addr> {
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
fn forward(faults: &Faults, world: &World) -> String {
    let mut rules = Vec::new();
    for (one, other) in &faults.pairs {
        for (from, to) in [(one, other), (other, one)] {
            rules.push(format!(
                "iifname \"{}\" oifname \"{}\" drop",
                link(from),
                link(to)
            ));
        }
    }
    let balancers = balancers(world);
    for (id, _) in faults
        .hosts
        .iter()
        .filter(|(_, host)| host.from_balancers && !balancers.is_empty())
    {
        for way in ["iifname", "oifname"] {
            rules.push(format!(
                "{way} \"{}\" ct original ip daddr {{ {} }} drop",
                link(id),
                list(&balancers)
            ));
        }
    }
    let body: String = rules.iter().map(|rule| format!("    {rule}\n")).collect();
    // The operator's connections by a balancer come and go by the router's own hooks.
    ["forward", "input", "postrouting"].map(|hook| format!("  chain {hook} {{\n    type filter hook {hook} priority -10; policy accept;\n{body}  }}\n")).concat()
}
