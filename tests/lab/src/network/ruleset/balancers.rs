//! Network load balancers: a connection to a listener gets one of its targets, at random, and keeps it as long as the
//! target is in use or draining. AWS brings a connection to a balancer's IPv6 address to its targets' IPv4 addresses; here it
//! goes to their IPv6 addresses, and from the balancer's as there.

use super::super::balancing::{Choice, TargetHealth, choose_targets, transport_protocols};
use super::super::family::Family;
use super::super::topology::Topology;
use super::{Table, goto_element};
use crate::aws_state::{Listener, LoadBalancer};
use std::net::IpAddr;

/// One listener at one of a balancer's addresses, for one transport protocol.
struct ListenerFront<'a> {
    balancer: &'a LoadBalancer,
    /// Inside the VPC.
    address: IpAddr,
    public_address: Option<IpAddr>,
    listener: &'a Listener,
    protocol: &'static str,
    choice: Choice,
    preserve_client_ip: bool,
    /// Whether its public address leads anywhere.
    public: bool,
}

pub(super) fn write_balancers(topology: &Topology<'_>, health: &TargetHealth, table: &mut Table) {
    let family = table.family;
    let kind = family.address_type();
    let fronts = list_fronts(topology, health, family);
    let addresses = || {
        topology
            .balancers
            .iter()
            .flat_map(|balancer| &balancer.addresses)
    };
    table.add_set(
        "balancers",
        kind,
        addresses().flat_map(|at| family.all_balancer_addresses(at)),
    );
    table.add_set(
        "balancer_links",
        kind,
        addresses().filter_map(|at| family.balancer_address(at)),
    );
    let mut private = Vec::new();
    let mut public = Vec::new();
    for (index, front) in fronts.iter().enumerate() {
        let name = format!("listener_{index}");
        table.add_chain(&name, [target_choice(front)]);
        let key = |address: &dyn std::fmt::Display| {
            format!("{address} . {} . {}", front.protocol, front.listener.port)
        };
        private.push(goto_element(key(&front.address), &name));
        let leads_there = front.public_address.filter(|_| front.public);
        public.extend(leads_there.map(|address| goto_element(key(&address), &name)));
    }
    table.add_map(
        "listeners",
        &format!("{kind} . inet_proto . inet_service : verdict"),
        private,
    );
    table.add_map(
        "public_listeners",
        &format!("{kind} . inet_proto . inet_service : verdict"),
        public,
    );
    for protocol in ["tcp", "udp"] {
        let of = || fronts.iter().filter(|front| front.protocol == protocol);
        table.add_set(
            &format!("{protocol}_flows"),
            &format!("{kind} . inet_service . {kind} . inet_service"),
            of().flat_map(flow_elements),
        );
        table.add_map(
            &format!("{protocol}_masked"),
            &format!("{kind} . inet_service : {kind}"),
            of().flat_map(masked_elements),
        );
    }
    write_hooks(table);
}

fn list_fronts<'a>(
    topology: &Topology<'a>,
    health: &TargetHealth,
    family: Family,
) -> Vec<ListenerFront<'a>> {
    let mut fronts = Vec::new();
    for balancer in topology.balancers.iter().copied() {
        for (at, listener) in balancer
            .addresses
            .iter()
            .flat_map(|at| balancer.listeners.iter().map(move |l| (at, l)))
        {
            let Some(address) = family.balancer_address(at) else {
                continue;
            };
            let public =
                balancer.scheme == "internet-facing" && topology.is_public(&at.subnet, family);
            let groups = &topology.world.target_groups;
            let group = groups
                .iter()
                .find(|group| group.arn == listener.target_group);
            fronts.extend(
                transport_protocols(&listener.protocol)
                    .iter()
                    .map(|protocol| ListenerFront {
                        balancer,
                        address,
                        public_address: family.public_balancer_address(at),
                        listener,
                        protocol,
                        choice: choose_targets(topology, health, balancer, at, listener, family),
                        preserve_client_ip: family == Family::V4
                            && group.is_none_or(|group| group.preserve_client_ip),
                        public,
                    }),
            );
        }
    }
    fronts.sort_by_key(|front| {
        (
            &front.balancer.arn,
            front.address,
            front.listener.port,
            front.protocol,
        )
    });
    fronts
}

/// One target of those that are chosen; a listener without any answers nobody.
fn target_choice(front: &ListenerFront<'_>) -> String {
    let targets = &front.choice.new;
    if targets.is_empty() {
        return "drop".to_owned();
    }
    let numbered = targets
        .iter()
        .enumerate()
        .map(|(number, to)| format!("{number} : {} . {}", to.address, to.port));
    let numbered = numbered.collect::<Vec<_>>().join(", ");
    format!(
        "meta l4proto {} dnat to numgen random mod {} map {{ {numbered} }}",
        front.protocol,
        targets.len()
    )
}

/// The addresses by which a connection to the listener may have come.
fn entrance_addresses(front: &ListenerFront<'_>) -> impl Iterator<Item = IpAddr> {
    std::iter::once(front.address).chain(front.public_address)
}

fn flow_elements(front: &ListenerFront<'_>) -> Vec<String> {
    let port = front.listener.port;
    let kept = front.choice.kept.iter();
    kept.flat_map(|to| {
        entrance_addresses(front)
            .map(move |at| format!("{at} . {port} . {} . {}", to.address, to.port))
    })
    .collect()
}

fn masked_elements(front: &ListenerFront<'_>) -> Vec<String> {
    if front.preserve_client_ip {
        return Vec::new();
    }
    entrance_addresses(front)
        .map(|at| format!("{at} . {} : {}", front.listener.port, front.address))
        .collect()
}

fn write_hooks(table: &mut Table) {
    let word = table.family.word();
    let translates = table.family == Family::V4;
    let listeners = |map: &str| format!("{word} daddr . meta l4proto . th dport vmap @{map}");
    let mut public = vec![listeners("public_listeners")];
    if translates {
        public.push("dnat to ip daddr map @public_instances".to_owned());
    }
    let private = [listeners("listeners")];
    table.add_hook(
        "translate_hosts",
        "nat hook prerouting priority -100; policy accept",
        private.iter().chain(&public),
    );
    table.add_hook(
        "translate_operator",
        "nat hook output priority -100; policy accept",
        public,
    );
    let masks = ["tcp", "udp"].map(|protocol| format!("meta l4proto {protocol} snat to ct original {word} daddr . ct original proto-dst map @{protocol}_masked"));
    let source = translates.then(|| "snat to ct mark map @public_sources".to_owned());
    table.add_hook(
        "leave",
        "nat hook postrouting priority 100; policy accept",
        masks.into_iter().chain(source.clone()),
    );
    table.add_hook(
        "leave_to_services",
        "nat hook input priority 100; policy accept",
        source,
    );
    // Connections to targets that are no longer used end with a reset, as a balancer ends them.
    let gone = ["tcp", "udp"].map(|protocol| {
        let flow = format!("ct original {word} daddr . ct original proto-dst . ct reply {word} saddr . ct reply proto-src");
        format!("meta l4proto {protocol} ct status dnat ct original {word} daddr @balancers {flow} != @{protocol}_flows goto cut")
    });
    table.add_chain("cut", ["meta l4proto tcp reject with tcp reset", "drop"]);
    table.add_chain(
        "drain",
        ["meta l4proto tcp tcp flags & rst == rst return".to_owned()]
            .into_iter()
            .chain(gone),
    );
}
