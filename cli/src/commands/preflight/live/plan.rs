//! What is tried between the nodes that take part: each TCP connection that instances need of each other, packets from pod to pod, and the
//! cluster's DNS server.

use super::members::Member;
use crate::commands::preflight::{CLUSTER_DNS, CONNECTIONS, PACKETS};
use cloud::reach::{End, Traffic};
use full::FullSpec;
use full::objects::{groups_at, required_edges};
use node::probe::{LISTENER, Trial};
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

/// The port of DNS servers.
const DNS: u16 = 53;

/// A trial, and what it stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Planned {
    /// The check whose row it belongs to.
    pub check: &'static str,
    /// `nodes to control planes, tcp 443`: as the rows of `ports` have it.
    pub subject: String,
    /// What needs it.
    pub why: &'static str,
    /// Index of the member that tries.
    pub from: usize,
    /// Index of the member that is tried; `None`: no certain one.
    pub to: Option<usize>,
    pub trial: Trial,
}

/// The TCP connections to services in the network of instances.
pub(super) fn plan_connections(full: &FullSpec, members: &[Member]) -> Vec<Planned> {
    let mut planned: BTreeMap<(usize, usize, u16), Planned> = BTreeMap::new();
    for edge in required_edges(full) {
        let Some(port) = service_port(edge.traffic) else {
            continue;
        };
        let (from, to) = (
            members_at(full, members, &edge.from),
            members_at(full, members, &edge.to),
        );
        for (from, to) in pairs(&from, &to) {
            let Some(target) = members.get(to) else {
                continue;
            };
            planned.entry((from, to, port)).or_insert_with(|| Planned {
                check: CONNECTIONS,
                subject: format!("{} to {}, {}", edge.from, edge.to, edge.traffic),
                why: edge.why,
                from,
                to: Some(to),
                trial: Trial::Connect {
                    to: SocketAddr::new(target.address, port),
                },
            });
        }
    }
    planned.into_values().collect()
}

/// The port, if it is one of TCP.
fn service_port(traffic: Traffic) -> Option<u16> {
    let is_one = traffic.protocol == "tcp" && traffic.from == traffic.to;
    let port = u16::try_from(traffic.from).ok();
    port.filter(|_| is_one)
}

fn members_at(full: &FullSpec, members: &[Member], end: &End) -> Vec<usize> {
    let groups = groups_at(full, end);
    let all = members.iter().enumerate();
    let at = all.filter(|(_, member)| groups.contains(&member.group.as_str()));
    at.map(|(index, _)| index).collect()
}

/// Each with each other one.
fn pairs(from: &[usize], to: &[usize]) -> Vec<(usize, usize)> {
    let all = from
        .iter()
        .flat_map(|from| to.iter().map(|to| (*from, *to)));
    all.filter(|(from, to)| from != to).collect()
}

/// Packets between pods, and from pods to the DNS server. `pods`: the addresses of the listeners, by member.
pub(super) fn plan_packets(full: &FullSpec, pods: &[Option<IpAddr>]) -> Vec<Planned> {
    let mut planned = Vec::new();
    let listening = pods.iter().enumerate();
    let listening = listening.filter_map(|(index, address)| Some((index, (*address)?)));
    let listening: BTreeMap<usize, IpAddr> = listening.collect();
    for from in listening.keys().copied() {
        let others = listening.iter().filter(|(to, _)| **to != from);
        for (to, address) in others {
            let at = SocketAddr::new(*address, LISTENER);
            let trials = [
                ("pods to pods, udp", Trial::Datagrams { to: at }),
                ("pods to pods, tcp", Trial::Transfer { to: at }),
            ];
            planned.extend(trials.map(|(subject, trial)| Planned {
                check: PACKETS,
                subject: subject.to_owned(),
                why: "packets of pods on different nodes",
                from,
                to: Some(*to),
                trial,
            }));
        }
        let server = full.pods.dns_service_ip;
        planned.push(Planned {
            check: CLUSTER_DNS,
            subject: format!("pods to {server}, udp {DNS}"),
            why: "names in pods",
            from,
            to: None,
            trial: Trial::Resolve {
                server: SocketAddr::new(server, DNS),
                name: format!("kubernetes.default.svc.{}", full.pods.dns_domain),
            },
        });
    }
    planned
}
