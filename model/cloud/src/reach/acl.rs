//! Network ACLs: the first entry that fits a packet decides, and replies are packets like all others
//! (<https://docs.aws.amazon.com/vpc/latest/userguide/nacl-basics.html>).

use super::{Edge, End, Place, Traffic};
use crate::RuleSource;
use engine::Ref;
use ipnet::IpNet;
use std::collections::BTreeSet;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr};

/// The ports at which replies arrive: of load balancers, NAT gateways, any client
/// (<https://docs.aws.amazon.com/vpc/latest/userguide/custom-network-acl.html#nacl-ephemeral-ports>), and of pods, to whose packets Linux
/// gives the address of their instance and any port from 1024 on (kube-proxy's `--random-fully`).
const REPLIES: Traffic = Traffic {
    protocol: "tcp",
    from: 1024,
    to: 65535,
};

/// The ports at which processes of Linux itself wait for replies (`net.ipv4.ip_local_port_range`).
const REPLIES_TO_HOSTS: Traffic = Traffic {
    protocol: "tcp",
    from: 32768,
    to: 60999,
};

/// The number of the entry, shown as `*`, that denies what no other one decides about.
const LAST: i32 = 32767;

/// A network ACL of a VPC.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NetworkAcl {
    /// `acl-...`.
    pub id: String,
    /// The subnets that have it.
    pub subnets: Vec<Ref>,
    pub entries: Vec<AclEntry>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AclEntry {
    /// The lowest number that fits decides.
    pub number: i32,
    pub is_egress: bool,
    pub is_allow: bool,
    /// A protocol number, or `-1` for all.
    pub protocol: String,
    /// The other side.
    pub range: IpNet,
    /// First port or ICMP type; `None`: any.
    pub from: Option<i32>,
    /// Last port or ICMP code; `None`: any.
    pub to: Option<i32>,
}

/// An entry that keeps packets of an edge, or replies to them, from passing.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct BlockingEntry {
    pub acl: String,
    pub number: i32,
    pub is_egress: bool,
    /// What it denies, or a part of that.
    pub traffic: Traffic,
    /// The other side.
    pub other: IpNet,
    /// A subnet with the ACL.
    pub subnet: Ref,
}

impl fmt::Display for BlockingEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let subnet = crate::listing::reference_words(&self.subnet);
        match self.number {
            LAST.. => write!(f, "no entry of {} ({subnet}) allows ", self.acl)?,
            number => write!(f, "entry {number} of {} ({subnet}) denies ", self.acl)?,
        }
        let (way, side) = if self.is_egress {
            ("egress", "to")
        } else {
            ("ingress", "from")
        };
        write!(f, "{way} {} {side} {}", self.traffic, self.other)
    }
}

/// A subnet's border that packets of an edge cross, seen from the subnet.
struct Crossing<'a> {
    place: &'a Place,
    other: IpNet,
    /// The other side is no subnet: that an ACL denies or allows a part of it only is somebody's decision about strangers.
    is_outside: bool,
    sends: bool,
}

impl Edge {
    /// The entries in the way of its packets and of replies. Nothing for all protocols at once: which of them is needed is not known.
    pub fn blocking_entries(&self, acls: &[NetworkAcl]) -> Vec<BlockingEntry> {
        if self.traffic == Traffic::ALL {
            return Vec::new();
        }
        let replies = match self.is_of_hosts {
            true => REPLIES_TO_HOSTS,
            false => REPLIES,
        };
        let reply = (self.traffic.protocol == "tcp").then_some(replies);
        let mut found = Vec::new();
        for crossing in self.crossings() {
            found.extend(crossing.find_block(acls, self.traffic, crossing.sends));
            found.extend(reply.and_then(|reply| crossing.find_block(acls, reply, !crossing.sends)));
        }
        found.sort();
        found.dedup();
        found
    }

    /// The subnets that its packets leave or enter, and that none of these ACLs has. Every subnet has one: theirs cannot be seen.
    pub fn unseen_subnets(&self, acls: &[NetworkAcl]) -> BTreeSet<&Ref> {
        if self.traffic == Traffic::ALL {
            return BTreeSet::new();
        }
        let crossings = self.crossings().into_iter();
        let subnets = crossings.map(|crossing| &crossing.place.subnet);
        let is_seen = |subnet: &Ref| acls.iter().any(|acl| acl.subnets.contains(subnet));
        subnets.filter(|subnet| !is_seen(subnet)).collect()
    }

    fn crossings(&self) -> Vec<Crossing<'_>> {
        match (&self.from, &self.to) {
            (End::Interfaces(from), End::Interfaces(to)) => {
                let pairs = from
                    .places
                    .iter()
                    .flat_map(move |from| to.places.iter().map(move |to| (from, to)));
                // Within a subnet no ACL is asked.
                let pairs = pairs.filter(|(from, to)| from.subnet != to.subnet);
                pairs
                    .flat_map(|(from, to)| {
                        let there = between(from, to, true);
                        there.into_iter().chain(between(to, from, false))
                    })
                    .collect()
            }
            (End::Interfaces(own), End::Outside(other)) => to_outside(&own.places, other, true),
            (End::Outside(other), End::Interfaces(own)) => to_outside(&own.places, other, false),
            (End::Outside(_), End::Outside(_)) => Vec::new(),
        }
    }
}

fn between<'a>(place: &'a Place, other: &Place, sends: bool) -> Option<Crossing<'a>> {
    // Of another family, if the subnet has none of this.
    place.range?;
    Some(Crossing {
        place,
        other: IpNet::V4(other.range?),
        is_outside: false,
        sends,
    })
}

fn to_outside<'a>(places: &'a [Place], other: &RuleSource, sends: bool) -> Vec<Crossing<'a>> {
    let RuleSource::CidrIpv4(text) = other else {
        return Vec::new();
    };
    let Ok(other) = text.parse::<IpNet>() else {
        return Vec::new();
    };
    let places = places.iter().filter(|place| place.range.is_some());
    places
        .map(|place| Crossing {
            place,
            other,
            is_outside: true,
            sends,
        })
        .collect()
}

impl Crossing<'_> {
    /// The entry that denies this traffic or a part of it.
    fn find_block(
        &self,
        acls: &[NetworkAcl],
        traffic: Traffic,
        is_egress: bool,
    ) -> Option<BlockingEntry> {
        let acl = acls
            .iter()
            .find(|acl| acl.subnets.contains(&self.place.subnet))?;
        let entries = acl.entries.iter();
        let entries = entries.filter(|entry| entry.is_egress == is_egress && self.asks(entry));
        let mut entries: Vec<&AclEntry> = entries.collect();
        entries.sort_by_key(|entry| entry.number);
        let ranges = entries
            .iter()
            .filter_map(|entry| Some((entry.from?, entry.to?)));
        let ports = traffic.probes(ranges);
        let addresses = probe_addresses(self.other, &entries);
        let mut points = addresses
            .into_iter()
            .flat_map(|address| ports.iter().map(move |port| (address, *port)));
        let number = points.find_map(|(address, port)| {
            let mut decided = entries.iter();
            let entry = decided.find(|entry| {
                let is_about = self.is_outside || entry.range.contains(&address);
                is_about && entry.fits(traffic, port)
            });
            match entry {
                Some(entry) if entry.is_allow => None,
                Some(entry) => Some(entry.number),
                None => Some(LAST),
            }
        })?;
        Some(BlockingEntry {
            acl: acl.id.clone(),
            number,
            is_egress,
            traffic,
            other: self.other,
            subnet: self.place.subnet.clone(),
        })
    }

    /// True if an entry decides about packets of this crossing, and of strangers for this connection to count.
    fn asks(&self, entry: &AclEntry) -> bool {
        let is_of_part = entry.is_allow && self.other.contains(&entry.range);
        !self.is_outside || is_of_part || entry.range.contains(&self.other)
    }
}

/// Addresses of a range that stand for all of it: between two of them no entry's range begins or ends.
fn probe_addresses(of: IpNet, entries: &[&AclEntry]) -> Vec<IpAddr> {
    let inside = entries.iter().filter(|entry| of.contains(&entry.range));
    let ends = inside.flat_map(|entry| [Some(entry.range.network()), after(entry.range)]);
    let ends = ends.flatten().filter(|address| of.contains(address));
    std::iter::once(of.network()).chain(ends).collect()
}

/// The first address behind an IPv4 range.
fn after(range: IpNet) -> Option<IpAddr> {
    let IpNet::V4(range) = range else {
        return None;
    };
    let next = range.broadcast().to_bits().checked_add(1)?;
    Some(Ipv4Addr::from_bits(next).into())
}

impl AclEntry {
    fn fits(&self, traffic: Traffic, port: i32) -> bool {
        let protocol = match traffic.protocol {
            "tcp" => "6",
            "udp" => "17",
            "icmp" => "1",
            "icmpv6" => "58",
            other => other,
        };
        let any_or = |of_entry: Option<i32>, wanted: i32| {
            of_entry.is_none_or(|of_entry| of_entry == -1 || of_entry == wanted)
        };
        let ports = match traffic.protocol {
            _ if self.protocol == "-1" => true,
            "tcp" | "udp" => {
                self.from.is_none_or(|from| from <= port) && self.to.is_none_or(|to| port <= to)
            }
            "icmp" | "icmpv6" => any_or(self.from, traffic.from) && any_or(self.to, traffic.to),
            _ => true,
        };
        (self.protocol == "-1" || self.protocol == protocol) && ports
    }
}
