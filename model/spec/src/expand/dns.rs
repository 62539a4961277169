//! The cluster's DNS names, and the hosted zone of its records.

use super::external_dns::{DNS_CONTROLLER, full_object_names};
use super::fill::fill;
use super::{Context, Findings};
use crate::api::DnsType;
use crate::api::cluster::ClusterSpec;
use cloud::facts::{HostedZone, hosted_zone, is_in, namesake_zones};
use full::{Dns, DnsKind, Zone};
use node::names::dns;

/// Placeholder for the id of a hosted zone if AWS was not queried.
pub const STAND_IN_ZONE: &str = "Z00000000000000000000";

/// Fills in the names of the API and the hosted zone.
pub(super) fn complete_dns(spec: &mut ClusterSpec, context: &Context, findings: &mut Findings) {
    let name = &context.name;
    fill(&mut spec.master_public_name, dns::api_name(name));
    fill(&mut spec.master_internal_name, dns::api_internal(name));
    let topology = spec.topology.get_or_insert_default();
    let dns = topology.dns.get_or_insert_default();
    fill(&mut dns.type_, DnsType::Public);
    if dns_kind(spec) == DnsKind::None {
        return;
    }
    let external = spec.external_dns.get_or_insert_default();
    fill(&mut external.provider, DNS_CONTROLLER);
    check_zone_is_one(spec, context, findings);
    let named = spec.dns_zone.clone();
    let zone = match find_zone(spec, context) {
        // Write the id even if the spec has the zone's name: readers of the completed spec need no list of zones.
        Some(zone) => {
            spec.dns_zone = Some(zone.id.clone());
            Some(zone.name.as_str())
        }
        // A placeholder must not be stored in the completed spec.
        None if context.facts.stand_in => named.as_deref().filter(|zone| zone.contains('.')),
        None => {
            report_no_zone(spec, name, findings);
            None
        }
    };
    if let Some(zone) = zone {
        check_names_in_zone(spec, name, zone.trim_end_matches('.'), findings);
    }
}

fn report_no_zone(spec: &ClusterSpec, name: &str, findings: &mut Findings) {
    let kind = zone_kind_name(spec);
    findings.add_error(
        "spec.dnsZone",
        match &spec.dns_zone {
            Some(zone) => format!("this account has no {kind} hosted zone {zone}"),
            None => format!("this account has no {kind} hosted zone that contains {name}"),
        },
        "create the hosted zone, name another, or use topology.dns.type None",
    );
}

/// Route 53 refuses a record whose name is not below that of its zone, when other objects of the update are there already.
fn check_names_in_zone(spec: &ClusterSpec, cluster: &str, zone: &str, findings: &mut Findings) {
    if !is_in(cluster, zone) {
        // Instances and etcd's members have names below the cluster's, whatever names the API has.
        let example = dns::bootstrap_name(cluster);
        findings.add_error(
            "spec.dnsZone",
            format!("hosted zone {zone} does not contain the cluster's names, such as {example}"),
            "name a hosted zone with whose name the cluster's ends",
        );
        return;
    }
    let topology = spec.topology.as_ref();
    let bastion = topology.and_then(|topology| topology.bastion.as_ref());
    let bastion = bastion.and_then(|bastion| bastion.bastion_public_name.as_ref());
    for (path, name) in [
        ("spec.masterPublicName", spec.master_public_name.as_ref()),
        (
            "spec.masterInternalName",
            spec.master_internal_name.as_ref(),
        ),
        ("spec.topology.bastion.bastionPublicName", bastion),
    ] {
        if let Some(name) = name.filter(|name| !is_in(name, zone)) {
            findings.add_error(
                path,
                format!("hosted zone {zone} does not contain {name}"),
                &format!("use a name below {zone}, or leave it out"),
            );
        }
    }
}

fn zone_kind_name(spec: &ClusterSpec) -> &'static str {
    match dns_kind(spec) {
        DnsKind::Private => "private",
        _ => "public",
    }
}

/// The kind of hosted zone in which the cluster's names are published.
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

/// Records go to one zone, and which of two is served to clients cannot be known here.
fn check_zone_is_one(spec: &ClusterSpec, context: &Context, findings: &mut Findings) {
    let private = dns_kind(spec) == DnsKind::Private;
    let zones = &context.facts.hosted_zones;
    let same = namesake_zones(zones, spec.dns_zone.as_deref(), &context.name, private);
    let Some(first) = same.first() else {
        return;
    };
    let ids: Vec<&str> = same.iter().map(|zone| zone.id.as_str()).collect();
    let message = format!(
        "this account has {} {} hosted zones {}: {}",
        same.len(),
        zone_kind_name(spec),
        first.name,
        ids.join(", ")
    );
    findings.add_error(
        "spec.dnsZone",
        message,
        "set it to the id of the one to use",
    );
}

/// The hosted zone in the facts, if it is public or private as the spec requires.
fn find_zone<'a>(spec: &ClusterSpec, context: &'a Context) -> Option<&'a HostedZone> {
    let private = dns_kind(spec) == DnsKind::Private;
    let zones = &context.facts.hosted_zones;
    hosted_zone(zones, spec.dns_zone.as_deref(), &context.name, private)
        .filter(|zone| zone.private == private)
}

/// DNS names and zone of a completed spec.
pub(super) fn full_dns(spec: &ClusterSpec, context: &Context) -> Dns {
    let kind = dns_kind(spec);
    Dns {
        kind,
        zone: (kind != DnsKind::None).then(|| {
            find_zone(spec, context).map_or_else(
                || stand_in_zone(spec, &context.name),
                |zone| Zone {
                    id: zone.id.clone(),
                    name: zone.name.clone(),
                },
            )
        }),
        api_public_name: spec.master_public_name.clone().unwrap_or_default(),
        api_internal_name: spec.master_internal_name.clone().unwrap_or_default(),
        object_names: full_object_names(spec),
    }
}

/// A zone from the spec's `dnsZone`, with placeholders for what it does not say.
fn stand_in_zone(spec: &ClusterSpec, name: &str) -> Zone {
    let parent = name.split_once('.').map_or(name, |(_, parent)| parent);
    let (id, name) = match spec.dns_zone.as_deref() {
        Some(name) if name.contains('.') => (STAND_IN_ZONE, name.trim_end_matches('.')),
        Some(id) => (id.trim_start_matches("/hostedzone/"), parent),
        None => (STAND_IN_ZONE, parent),
    };
    Zone {
        id: id.to_owned(),
        name: name.to_owned(),
    }
}
