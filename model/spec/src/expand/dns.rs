//! The cluster's names, and the hosted zone they are published in.

use super::fill::fill;
use super::{Found, Known};
use crate::api::DnsType;
use crate::api::cluster::ClusterSpec;
use cloud::facts::{HostedZone, hosted_zone};
use full::{Dns, DnsKind, Zone};
use node::names::dns;

/// The id of a hosted zone that nobody could look up.
pub const STAND_IN_ZONE: &str = "Z00000000000000000000";

/// Names of the API, and the hosted zone.
pub(super) fn complete(spec: &mut ClusterSpec, known: &Known, found: &mut Found) {
    let name = &known.name;
    fill(&mut spec.master_public_name, dns::api(name));
    fill(&mut spec.master_internal_name, dns::api_internal(name));
    let topology = spec.topology.get_or_insert_default();
    let dns = topology.dns.get_or_insert_default();
    fill(&mut dns.type_, DnsType::Public);
    if dns_kind(spec) == DnsKind::None {
        return;
    }
    let external = spec.external_dns.get_or_insert_default();
    fill(&mut external.provider, "dns-controller");
    match zone(spec, known) {
        // Its id, also where the spec names it: whoever reads the completed spec needs no list of zones.
        Some(zone) => spec.dns_zone = Some(zone.id.clone()),
        // A made-up id must not be written down.
        None if known.facts.stand_in => {}
        None => found.error(
            "spec.dnsZone",
            match &spec.dns_zone {
                Some(zone) => format!("{zone} is no {} hosted zone of this account", word(spec)),
                None => format!("no {} hosted zone of this account holds {name}", word(spec)),
            },
            "create the hosted zone, name another, or use topology.dns.type None",
        ),
    }
}

fn word(spec: &ClusterSpec) -> &'static str {
    match dns_kind(spec) {
        DnsKind::Private => "private",
        _ => "public",
    }
}

/// Where names are published.
pub fn dns_kind(spec: &ClusterSpec) -> DnsKind {
    let dns = spec
        .topology
        .as_ref()
        .and_then(|topology| topology.dns.as_ref());
    match dns.and_then(|dns| dns.type_) {
        Some(DnsType::None) => DnsKind::None,
        Some(DnsType::Private) => DnsKind::Private,
        Some(DnsType::Public) | None => DnsKind::Public,
    }
}

/// The account's zone, if it is of the kind that the spec wants.
fn zone<'a>(spec: &ClusterSpec, known: &'a Known) -> Option<&'a HostedZone> {
    let private = dns_kind(spec) == DnsKind::Private;
    let zones = &known.facts.hosted_zones;
    hosted_zone(zones, spec.dns_zone.as_deref(), &known.name, private)
        .filter(|zone| zone.private == private)
}

/// The names of a completed spec.
pub(super) fn full(spec: &ClusterSpec, known: &Known) -> Dns {
    let kind = dns_kind(spec);
    Dns {
        kind,
        zone: (kind != DnsKind::None).then(|| {
            zone(spec, known).map_or_else(
                || stand_in(spec, &known.name),
                |zone| Zone {
                    id: zone.id.clone(),
                    name: zone.name.clone(),
                },
            )
        }),
        api_public_name: spec.master_public_name.clone().unwrap_or_default(),
        api_internal_name: spec.master_internal_name.clone().unwrap_or_default(),
    }
}

/// What the spec says of its zone, and the rest made up.
fn stand_in(spec: &ClusterSpec, name: &str) -> Zone {
    let parent = name.split_once('.').map_or(name, |(_, parent)| parent);
    let (id, name) = match spec.dns_zone.as_deref() {
        Some(said) if said.contains('.') => (STAND_IN_ZONE, said.trim_end_matches('.')),
        Some(said) => (said.trim_start_matches("/hostedzone/"), parent),
        None => (STAND_IN_ZONE, parent),
    };
    Zone {
        id: id.to_owned(),
        name: name.to_owned(),
    }
}
