//! Whether packets pass between the parts of a cluster: what must reach what, and the rules of security groups, entries of network
//! ACLs and routes that AWS has, evaluated as AWS evaluates them.

mod acl;
mod routes;

pub use acl::{AclEntry, BlockingEntry, NetworkAcl};
pub use routes::{ObservedRoute, ObservedRouteTable, RouteProblem, RoutedSubnet};

use super::{RuleSource, SecurityGroupRule};
use engine::Ref;
use ipnet::{IpNet, Ipv4Net};
use std::fmt;

/// Protocol and range of ports, as security groups have them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Traffic {
    /// `tcp`, `udp`, `icmp`, `icmpv6`, a protocol number, or `-1` for all.
    pub protocol: &'static str,
    /// First port or ICMP type; -1: any.
    pub from: i32,
    /// Last port or ICMP code; -1: any.
    pub to: i32,
}

impl Traffic {
    /// All protocols and ports.
    pub const ALL: Self = Self {
        protocol: "-1",
        from: -1,
        to: -1,
    };

    /// True for protocols with ports.
    fn has_ports(self) -> bool {
        matches!(self.protocol, "tcp" | "udp")
    }

    /// Ports of this traffic that stand for all of it: between two of them, none of these ranges begins or ends.
    fn probes(self, ranges: impl Iterator<Item = (i32, i32)>) -> Vec<i32> {
        let ends = ranges.flat_map(|(low, high)| [low, high.saturating_add(1)]);
        let inside = ends.filter(|port| self.has_ports() && (self.from..=self.to).contains(port));
        let mut all: Vec<i32> = inside.chain([self.from]).collect();
        all.sort_unstable();
        all.dedup();
        all
    }
}

impl fmt::Display for Traffic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.protocol, self.from, self.to) {
            ("-1", ..) => f.write_str("everything"),
            ("icmp", 3, 4) => f.write_str("icmp \"fragmentation needed\""),
            ("icmp" | "icmpv6", ..) => f.write_str(self.protocol),
            (protocol @ ("tcp" | "udp"), from, to) if from == to => write!(f, "{protocol} {from}"),
            (protocol @ ("tcp" | "udp"), from, to) => write!(f, "{protocol} {from}-{to}"),
            (protocol, ..) => write!(f, "protocol {protocol}"),
        }
    }
}

/// Where network interfaces are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    pub subnet: Ref,
    /// Its IPv4 range; `None`: IPv6 only.
    pub range: Option<Ipv4Net>,
}

/// Network interfaces with the same security groups.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interfaces {
    /// Whose they are: `nodes`, `the API's load balancer`.
    pub what: String,
    /// Their security groups; first the one that kctl gives rules to.
    pub groups: Vec<Ref>,
    pub places: Vec<Place>,
}

/// One end of an [`Edge`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    Interfaces(Interfaces),
    /// A range, or a prefix list.
    Outside(RuleSource),
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Interfaces(interfaces) => f.write_str(&interfaces.what),
            Self::Outside(source) => f.write_str(source_words(source)),
        }
    }
}

/// The other side of a rule in words.
fn source_words(source: &RuleSource) -> &str {
    match source {
        RuleSource::CidrIpv4(text)
        | RuleSource::CidrIpv6(text)
        | RuleSource::PrefixListId(text) => text,
        RuleSource::ReferencedGroupId(group) => super::listing::reference_words(group),
    }
}

/// What one part of a cluster must be able to send to another, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edge {
    pub from: End,
    pub to: End,
    pub traffic: Traffic,
    pub why: &'static str,
    /// Only processes in the network of their instances open it: no pod, load balancer or client.
    pub is_of_hosts: bool,
    /// Perhaps only a part of the other side is needed, and which is not known.
    pub is_vague: bool,
}

impl fmt::Display for Edge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            from,
            to,
            traffic,
            why,
            ..
        } = self;
        write!(f, "{from} to {to}, {traffic}: {why}")
    }
}

/// A rule that is not there and would let an edge pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingRule {
    /// The security group that lacks it.
    pub group: Ref,
    pub is_egress: bool,
    pub traffic: Traffic,
    pub source: RuleSource,
    /// False: the edge needs perhaps less, or a rule has a prefix list, whose ranges nobody asked for.
    pub is_certain: bool,
}

impl fmt::Display for MissingRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let other = source_words(&self.source);
        if self.is_egress {
            write!(f, "egress {} to {other}", self.traffic)
        } else {
            write!(f, "ingress {} from {other}", self.traffic)
        }
    }
}

/// Addresses, and the security groups of the interfaces that have them.
struct Peer<'a> {
    groups: &'a [Ref],
    range: Option<IpNet>,
    prefix_list: Option<&'a str>,
}

impl<'a> Peer<'a> {
    fn new(groups: &'a [Ref], range: Option<IpNet>) -> Self {
        Self {
            groups,
            range,
            prefix_list: None,
        }
    }

    /// True if a rule with this other side is about all of it.
    fn is_covered_by(&self, source: &RuleSource) -> bool {
        match source {
            RuleSource::ReferencedGroupId(group) => self.groups.contains(group),
            RuleSource::PrefixListId(list) => self.prefix_list == Some(list.as_str()),
            RuleSource::CidrIpv4(text) | RuleSource::CidrIpv6(text) => {
                let Ok(allowed) = text.parse::<IpNet>() else {
                    return false;
                };
                match self.range {
                    Some(range) => allowed.contains(&range),
                    // Its range is not known: only what allows every address is sure to have it.
                    None => self.prefix_list.is_none() && allowed.prefix_len() == 0,
                }
            }
        }
    }
}

impl End {
    fn peers(&self) -> Vec<Peer<'_>> {
        match self {
            Self::Interfaces(interfaces) if interfaces.places.is_empty() => {
                vec![Peer::new(&interfaces.groups, None)]
            }
            Self::Interfaces(interfaces) => interfaces
                .places
                .iter()
                .map(|place| Peer::new(&interfaces.groups, place.range.map(IpNet::V4)))
                .collect(),
            Self::Outside(RuleSource::CidrIpv4(text) | RuleSource::CidrIpv6(text)) => {
                vec![Peer::new(&[], text.parse().ok())]
            }
            Self::Outside(RuleSource::PrefixListId(list)) => vec![Peer {
                prefix_list: Some(list.as_str()),
                ..Peer::new(&[], None)
            }],
            Self::Outside(RuleSource::ReferencedGroupId(group)) => {
                vec![Peer::new(std::slice::from_ref(group), None)]
            }
        }
    }

    /// As the other side of a rule.
    fn as_source(&self) -> Option<RuleSource> {
        match self {
            Self::Outside(source) => Some(source.clone()),
            Self::Interfaces(interfaces) => {
                let group = interfaces.groups.first()?;
                Some(RuleSource::ReferencedGroupId(group.clone()))
            }
        }
    }
}

impl Edge {
    /// The rules that would have to be there, at the sender and at the receiver: of all groups of an interface, one rule suffices.
    pub fn missing_rules(&self, rules: &[SecurityGroupRule]) -> Vec<MissingRule> {
        let sides = [(&self.from, &self.to, true), (&self.to, &self.from, false)];
        let missing = sides.into_iter().filter_map(|(own, other, is_egress)| {
            let End::Interfaces(own) = own else {
                return None;
            };
            let of_own = |rule: &&SecurityGroupRule| {
                rule.is_egress == is_egress && own.groups.contains(&rule.group_id)
            };
            let own_rules: Vec<&SecurityGroupRule> = rules.iter().filter(of_own).collect();
            if self.is_allowed(&own_rules, other, false) {
                return None;
            }
            Some(MissingRule {
                group: own.groups.first()?.clone(),
                is_egress,
                traffic: self.traffic,
                source: other.as_source()?,
                is_certain: !self.is_vague && !self.is_allowed(&own_rules, other, true),
            })
        });
        missing.collect()
    }

    /// `lists_have_all`: prefix lists are taken to have whatever addresses are asked about.
    fn is_allowed(&self, rules: &[&SecurityGroupRule], other: &End, lists_have_all: bool) -> bool {
        let ranges = rules.iter().map(|rule| (rule.from_port, rule.to_port));
        let ports = self.traffic.probes(ranges);
        let allows = |peer: &Peer<'_>, port: i32| {
            rules.iter().any(|rule| {
                let is_list = matches!(rule.source, RuleSource::PrefixListId(_));
                let covers = peer.is_covered_by(&rule.source) || (lists_have_all && is_list);
                is_about(rule, self.traffic, port) && covers
            })
        };
        let mut peers = other.peers().into_iter();
        peers.all(|peer| ports.iter().all(|port| allows(&peer, *port)))
    }
}

/// True if a rule has the protocol, and with `tcp` and `udp` this port.
fn is_about(rule: &SecurityGroupRule, traffic: Traffic, port: i32) -> bool {
    if rule.ip_protocol == "-1" {
        return true;
    }
    let any_or = |of_rule: i32, wanted: i32| of_rule == -1 || of_rule == wanted;
    let fits = match traffic.protocol {
        "tcp" | "udp" => (rule.from_port..=rule.to_port).contains(&port),
        "icmp" | "icmpv6" => {
            any_or(rule.from_port, traffic.from) && any_or(rule.to_port, traffic.to)
        }
        _ => true,
    };
    rule.ip_protocol == traffic.protocol && fits
}

/// What decides about packets in a VPC, as AWS has it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NetworkState {
    /// Every rule of the security groups that were asked for, whoever made it.
    pub rules: Vec<SecurityGroupRule>,
    pub acls: Vec<NetworkAcl>,
    pub route_tables: Vec<ObservedRouteTable>,
}

#[cfg(test)]
#[path = "reach/reach_test.rs"]
mod tests;
