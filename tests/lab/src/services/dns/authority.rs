//! What all the name servers of the lab's world say of a name, seen from one place: hosted zones, AWS's own names,
//! the sites behind the front. No caching, no waiting: a pure function of what is known.

use super::names::AwsNames;
use super::zone::{Denial, Found, NEGATIVE_TTL, RecordSet, Zone, name, parent, plain, within};
use crate::world::HostedZone;
use hickory_proto::rr::rdata::{A, PTR};
use hickory_proto::rr::{RData, RecordType};
use std::net::Ipv4Addr;

/// Seconds that AWS gives to addresses of its own names.
const AWS_TTL: u32 = 60;

/// Aliases may lead to aliases; this many of them do.
const MOST_ALIASES: u8 = 8;

/// From where a name is asked for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum View {
    /// By the id of the VPC.
    Vpc(String),
    /// The public internet.
    Public,
}

/// One step of an answer.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// TTL in seconds.
    Records(u32, Vec<RData>),
    /// The name is another name's alias; the records of that one are to be asked for.
    Cname(u32, RData),
    NoData(Denial),
    NxDomain(Denial),
    /// SERVFAIL, and why.
    Failure(String),
}

/// The hosted zones of one moment.
#[derive(Debug, Default)]
pub struct Zones(Vec<Zone>);

impl Zones {
    pub fn new(zones: &[HostedZone]) -> Self {
        Self(zones.iter().map(Zone::new).collect())
    }

    /// Of the private zones that the VPC sees, the closest one.
    fn private(&self, vpc: &str, name: &str) -> Option<&Zone> {
        let seen = |zone: &&Zone| zone.private && zone.vpcs.iter().any(|id| id == vpc);
        let zones = self.0.iter().filter(seen);
        closest(zones.filter(|zone| within(name, &zone.name)))
    }

    /// The zone that is reached from above: one inside another public zone only by that one's NS records.
    fn public(&self, name: &str) -> Option<&Zone> {
        let public = self.0.iter().filter(|zone| !zone.private);
        let mut above: Vec<&Zone> = public.filter(|zone| within(name, &zone.name)).collect();
        above.sort_by_key(|zone| zone.name.len());
        let mut above = above.into_iter();
        let mut reached = above.next()?;
        for zone in above {
            let told = reached.name_servers(&zone.name);
            if zone.name != reached.name && !told.is_disjoint(&zone.name_servers(&zone.name)) {
                reached = zone;
            }
        }
        Some(reached)
    }
}

fn closest<'a>(zones: impl Iterator<Item = &'a Zone>) -> Option<&'a Zone> {
    zones.max_by_key(|zone| zone.name.len())
}

/// Everything there is to ask.
pub struct Authority<'a> {
    pub zones: &'a Zones,
    pub names: &'a AwsNames,
    /// Whether the front serves a host of that name.
    pub is_site: &'a dyn Fn(&str) -> bool,
    /// The front's address.
    pub front: Ipv4Addr,
}

impl Authority<'_> {
    /// The answer for a plain name (lower case, no dot at the end).
    pub fn ask(&self, view: &View, name: &str, kind: RecordType) -> Answer {
        if let View::Vpc(vpc) = view {
            if let Some(zone) = self.zones.private(vpc, name) {
                return self.of_zone(zone, name, kind, 0);
            }
            if let Some(answer) = self.inside(vpc, name, kind) {
                return answer;
            }
        }
        if let Some(zone) = self.zones.public(name) {
            return self.of_zone(zone, name, kind, 0);
        }
        self.of_the_internet(view, name, kind)
    }

    fn of_zone(&self, zone: &Zone, name: &str, kind: RecordType, depth: u8) -> Answer {
        match zone.find(name, kind) {
            Found::NoData => Answer::NoData(zone.denial()),
            Found::NxDomain => Answer::NxDomain(zone.denial()),
            Found::Delegated(child) => Answer::Failure(format!(
                "zone {} delegates {child} to name servers that the lab does not have",
                zone.name
            )),
            Found::Set(RecordSet::Bad(why)) | Found::Cname(RecordSet::Bad(why)) => {
                Answer::Failure(why.clone())
            }
            Found::Set(RecordSet::Plain(ttl, data)) => Answer::Records(*ttl, data.clone()),
            Found::Cname(RecordSet::Plain(ttl, data)) => match data.first() {
                Some(target) => Answer::Cname(*ttl, target.clone()),
                None => Answer::Failure(format!("the CNAME of {name} has no value")),
            },
            Found::Set(RecordSet::Alias(target)) | Found::Cname(RecordSet::Alias(target)) => {
                self.of_alias(zone, target, kind, depth)
            }
        }
    }

    /// An alias leads to something of AWS's or to another name of its zone; one that leads nowhere has no data.
    fn of_alias(&self, zone: &Zone, target: &str, kind: RecordType, depth: u8) -> Answer {
        if depth == MOST_ALIASES {
            return Answer::Failure(format!(
                "aliases of zone {} go round by {target}",
                zone.name
            ));
        }
        let answer = if within(target, &zone.name) {
            self.of_zone(zone, target, kind, depth + 1)
        } else {
            self.of_the_internet(&View::Public, target, kind)
        };
        match answer {
            Answer::NoData(_) | Answer::NxDomain(_) => Answer::NoData(zone.denial()),
            answer => answer,
        }
    }

    /// Names that only the VPC's resolver knows; `None`: not one of those.
    fn inside(&self, vpc: &str, name: &str, kind: RecordType) -> Option<Answer> {
        let private_zone = self.names.private_zone();
        if within(name, &private_zone) {
            let address = self.names.private(vpc, name);
            return Some(addresses(&private_zone, address.as_slice(), kind));
        }
        let address = reverse_address(name)?;
        let hostname = self.names.reverse(vpc, address)?;
        Some(match kind {
            RecordType::PTR => {
                Answer::Records(AWS_TTL, vec![RData::PTR(PTR(super::zone::name(hostname)))])
            }
            _ => Answer::NoData(Denial::of("in-addr.arpa", AWS_TTL)),
        })
    }

    fn of_the_internet(&self, view: &View, name: &str, kind: RecordType) -> Answer {
        if self.names.is_of_balancers(name) {
            let found = self.names.balancer(name).unwrap_or_default();
            return addresses(&self.names.balancer_zone(), found, kind);
        }
        let vpc = match view {
            View::Vpc(vpc) => Some(vpc.as_str()),
            View::Public => None,
        };
        let zone = parent(name).unwrap_or_default();
        if let Some(address) = self.names.public(vpc, name) {
            return addresses(zone, &[address], kind);
        }
        if (self.is_site)(name) {
            return addresses(zone, &[self.front], kind);
        }
        // As of the top-level domains.
        let top = name.rsplit('.').next().unwrap_or_default();
        Answer::NxDomain(Denial::of(top, NEGATIVE_TTL))
    }
}

fn addresses(zone: &str, found: &[Ipv4Addr], kind: RecordType) -> Answer {
    let denial = || Denial::of(zone, AWS_TTL);
    match kind {
        _ if found.is_empty() => Answer::NxDomain(denial()),
        RecordType::A => {
            let data = found.iter().map(|address| RData::A(A(*address)));
            Answer::Records(AWS_TTL, data.collect())
        }
        _ => Answer::NoData(denial()),
    }
}

/// `4.3.2.1.in-addr.arpa` is 1.2.3.4.
fn reverse_address(name: &str) -> Option<Ipv4Addr> {
    let labels = name.strip_suffix(".in-addr.arpa")?.split('.');
    let backwards: Vec<&str> = labels.rev().collect();
    backwards.join(".").parse().ok()
}

/// The plain name that a CNAME's data says.
pub fn target_of(data: &RData) -> Option<String> {
    match data {
        RData::CNAME(target) => Some(plain(&target.0.to_ascii())),
        _ => None,
    }
}

/// A denial's zone as a wire name.
pub fn zone_name(denial: &Denial) -> hickory_proto::rr::Name {
    name(&denial.zone)
}
