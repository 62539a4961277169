//! What all the name servers of the lab's world say of a name, seen from one place: hosted zones, AWS's own names,
//! the sites behind the front. No caching, no waiting: a pure function of what is known.

use super::names::AwsNames;
use super::zone::{
    Denial, NEGATIVE_TTL, RecordSet, Zone, ZoneAnswer, dns_name, is_within, parent_name, plain_name,
};
use crate::aws_state::HostedZone;
use hickory_proto::rr::rdata::{A, AAAA, PTR};
use hickory_proto::rr::{RData, RecordType};
use std::net::{IpAddr, Ipv4Addr};

/// Seconds that AWS gives to addresses of its own names.
const AWS_TTL: u32 = 60;

/// Aliases may lead to aliases; this many of them do.
const MOST_ALIASES: u8 = 8;

/// From where a name is asked for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum View {
    /// By the id of the VPC.
    Vpc(String),
    /// What a resolver on the public internet sees.
    Public,
}

/// One step of an answer.
#[derive(Debug, Clone, PartialEq)]
pub enum AuthorityAnswer {
    /// TTL in seconds, and the records.
    Records(u32, Vec<RData>),
    /// The name is another name's alias; the records of that one are to be asked for.
    Cname(u32, RData),
    NoData(Denial),
    NxDomain(Denial),
    /// SERVFAIL with its reason.
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
    fn find_private(&self, vpc: &str, name: &str) -> Option<&Zone> {
        let seen = |zone: &&Zone| zone.private && zone.vpcs.iter().any(|id| id == vpc);
        let zones = self.0.iter().filter(seen);
        closest_zone(zones.filter(|zone| is_within(name, &zone.name)))
    }

    /// The zone that is reached from above: one inside another public zone only by that one's NS records.
    fn find_public(&self, name: &str) -> Option<&Zone> {
        let public = self.0.iter().filter(|zone| !zone.private);
        let mut above: Vec<&Zone> = public.filter(|zone| is_within(name, &zone.name)).collect();
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

fn closest_zone<'a>(zones: impl Iterator<Item = &'a Zone>) -> Option<&'a Zone> {
    zones.max_by_key(|zone| zone.name.len())
}

/// Everything there is to ask.
pub struct Authority<'a> {
    pub zones: &'a Zones,
    pub names: &'a AwsNames,
    /// Whether the front serves a host of that name.
    pub is_site: &'a dyn Fn(&str) -> bool,
    /// Address of the lab's HTTPS front.
    pub front: Ipv4Addr,
}

impl Authority<'_> {
    /// The answer for a plain name (lower case, no dot at the end).
    pub fn answer_question(&self, view: &View, name: &str, kind: RecordType) -> AuthorityAnswer {
        if let View::Vpc(vpc) = view {
            if let Some(zone) = self.zones.find_private(vpc, name) {
                return self.of_zone(zone, name, kind, 0);
            }
            if let Some(answer) = self.answer_vpc_name(vpc, name, kind) {
                return answer;
            }
        }
        if let Some(zone) = self.zones.find_public(name) {
            return self.of_zone(zone, name, kind, 0);
        }
        self.of_the_internet(view, name, kind)
    }

    fn of_zone(&self, zone: &Zone, name: &str, kind: RecordType, depth: u8) -> AuthorityAnswer {
        match zone.find_records(name, kind) {
            ZoneAnswer::NoData => AuthorityAnswer::NoData(zone.negative_answer()),
            ZoneAnswer::NxDomain => AuthorityAnswer::NxDomain(zone.negative_answer()),
            ZoneAnswer::Delegated(child) => AuthorityAnswer::Failure(format!(
                "zone {} delegates {child} to name servers that the lab does not have",
                zone.name
            )),
            ZoneAnswer::Set(RecordSet::Bad(why)) | ZoneAnswer::Cname(RecordSet::Bad(why)) => {
                AuthorityAnswer::Failure(why.clone())
            }
            ZoneAnswer::Set(RecordSet::Plain(ttl, data)) => {
                AuthorityAnswer::Records(*ttl, data.clone())
            }
            ZoneAnswer::Cname(RecordSet::Plain(ttl, data)) => match data.first() {
                Some(target) => AuthorityAnswer::Cname(*ttl, target.clone()),
                None => AuthorityAnswer::Failure(format!("the CNAME of {name} has no value")),
            },
            ZoneAnswer::Set(RecordSet::Alias(target))
            | ZoneAnswer::Cname(RecordSet::Alias(target)) => {
                self.of_alias(zone, target, kind, depth)
            }
        }
    }

    /// An alias leads to something of AWS's or to another name of its zone; one that leads nowhere has no data.
    fn of_alias(&self, zone: &Zone, target: &str, kind: RecordType, depth: u8) -> AuthorityAnswer {
        if depth == MOST_ALIASES {
            return AuthorityAnswer::Failure(format!(
                "aliases of zone {} go round by {target}",
                zone.name
            ));
        }
        let answer = if is_within(target, &zone.name) {
            self.of_zone(zone, target, kind, depth + 1)
        } else {
            self.of_the_internet(&View::Public, target, kind)
        };
        match answer {
            AuthorityAnswer::NoData(_) | AuthorityAnswer::NxDomain(_) => {
                AuthorityAnswer::NoData(zone.negative_answer())
            }
            answer => answer,
        }
    }

    /// Names that only the VPC's resolver knows; `None`: not one of those.
    fn answer_vpc_name(&self, vpc: &str, name: &str, kind: RecordType) -> Option<AuthorityAnswer> {
        let private_zone = self.names.private_zone();
        if is_within(name, &private_zone) {
            let addresses = self.names.private_addresses(vpc, name);
            return Some(address_answer(&private_zone, &addresses, kind));
        }
        let address = reverse_address(name)?;
        let hostname = self.names.private_name(vpc, address)?;
        Some(match kind {
            RecordType::PTR => AuthorityAnswer::Records(
                AWS_TTL,
                vec![RData::PTR(PTR(super::zone::dns_name(hostname)))],
            ),
            _ => AuthorityAnswer::NoData(Denial::for_unknown_zone("in-addr.arpa", AWS_TTL)),
        })
    }

    fn of_the_internet(&self, view: &View, name: &str, kind: RecordType) -> AuthorityAnswer {
        if self.names.is_of_balancers(name) {
            let found = self.names.balancer_addresses(name).unwrap_or_default();
            return address_answer(&self.names.balancer_zone(), found, kind);
        }
        let vpc = match view {
            View::Vpc(vpc) => Some(vpc.as_str()),
            View::Public => None,
        };
        let zone = parent_name(name).unwrap_or_default();
        if let Some(address) = self.names.public_address(vpc, name) {
            return address_answer(zone, &[address.into()], kind);
        }
        if (self.is_site)(name) {
            return address_answer(zone, &[self.front.into()], kind);
        }
        // As of the top-level domains.
        let top = name.rsplit('.').next().unwrap_or_default();
        AuthorityAnswer::NxDomain(Denial::for_unknown_zone(top, NEGATIVE_TTL))
    }
}

fn address_answer(zone: &str, found: &[IpAddr], kind: RecordType) -> AuthorityAnswer {
    let data = found.iter().filter_map(|address| match (address, kind) {
        (IpAddr::V4(address), RecordType::A) => Some(RData::A(A(*address))),
        (IpAddr::V6(address), RecordType::AAAA) => Some(RData::AAAA(AAAA(*address))),
        _ => None,
    });
    let data: Vec<_> = data.collect();
    let denial = || Denial::for_unknown_zone(zone, AWS_TTL);
    match (found, data.as_slice()) {
        ([], _) => AuthorityAnswer::NxDomain(denial()),
        (_, []) => AuthorityAnswer::NoData(denial()),
        _ => AuthorityAnswer::Records(AWS_TTL, data),
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
        RData::CNAME(target) => Some(plain_name(&target.0.to_ascii())),
        _ => None,
    }
}

/// A denial's zone as a wire name.
pub fn zone_name(denial: &Denial) -> hickory_proto::rr::Name {
    dns_name(&denial.zone)
}
