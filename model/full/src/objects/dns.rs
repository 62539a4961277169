//! The DNS records of the API in Route 53: aliases of the load balancer, or placeholders that protokube fills; and the
//! association of a private zone with the VPC.

use crate::{DnsKind, FullSpec, Zone};
use cloud::{AliasTarget, Cloud, Lb, Route53Record, Route53ZoneAssociation};
use engine::{Ref, Text};
use node::names;

/// Seconds that a placeholder may be cached.
const PLACEHOLDER_TTL: i64 = 10;

pub(super) fn build_dns(full: &FullSpec) -> Vec<Cloud> {
    let zone = match (&full.dns.zone, full.dns.kind) {
        (Some(zone), DnsKind::Public | DnsKind::Private) => zone,
        (None, _) | (_, DnsKind::None) => return Vec::new(),
    };
    let public = &full.dns.api_public_name;
    let internal = &full.dns.api_internal_name;
    let bootstrap = &names::dns::bootstrap_name(&full.name);
    let (aliases, placeholders) = match &full.api.load_balancer {
        None => (vec![], vec![public, internal, bootstrap]),
        Some(one) if one.use_for_internal_api => (vec![public, internal], vec![bootstrap]),
        Some(_) => (vec![public], vec![internal, bootstrap]),
    };
    let balancer = names::api_load_balancer(&full.name);
    let aliases = aliases
        .into_iter()
        .flat_map(|name| alias_records(zone, name, &balancer));
    let bastion = names::bastion_load_balancer(&full.name);
    let of_bastions = super::bastion::public_name(full);
    let of_bastions = of_bastions
        .into_iter()
        .flat_map(|name| alias_records(zone, name, &bastion));
    let placeholders = placeholders.into_iter().flat_map(|name| {
        let types = placeholder_types(full, name);
        types.map(move |record_type| placeholder_record(zone, name, record_type))
    });
    let records = aliases.chain(of_bastions).chain(placeholders);
    vpc_association(full, zone)
        .into_iter()
        .chain(records)
        .collect()
}

/// Associates a private zone with the VPC, also a shared one, so that instances can resolve its names.
fn vpc_association(full: &FullSpec, zone: &Zone) -> Option<Cloud> {
    let association = Route53ZoneAssociation {
        name: full.name.clone(),
        vpc_id: super::vpc_ref(full),
        vpc_region: full.placement.region.clone(),
        hosted_zone_id: zone.id.clone(),
    };
    (full.dns.kind == DnsKind::Private).then(|| association.into())
}

/// The A and AAAA alias records of a name for a load balancer, given by its logical name.
fn alias_records(zone: &Zone, name: &str, balancer: &str) -> [Cloud; 2] {
    let balancer = super::id_of::<Lb>(balancer);
    ["A", "AAAA"].map(|record_type| {
        Route53Record {
            name: name.to_owned(),
            record_type: record_type.to_owned(),
            hosted_zone_id: zone.id.clone(),
            alias_target: Some(AliasTarget {
                of: Ref::own(&balancer),
                dns_name: Text::late(&balancer, "dns_name"),
                hosted_zone_id: Text::late(&balancer, "canonical_hosted_zone_id"),
                evaluate_target_health: false,
            }),
            resource_records: None,
            initial: Vec::new(),
            ttl: None,
        }
        .into()
    })
}

/// The types of records that protokube publishes of a name. In an IPv6 cluster, clients outside may still have IPv4 only.
fn placeholder_types(full: &FullSpec, name: &str) -> impl Iterator<Item = &'static str> {
    let v4 = !full.is_ipv6() || *name == full.dns.api_public_name;
    let v6 = full.is_ipv6();
    v4.then_some("A").into_iter().chain(v6.then_some("AAAA"))
}

fn placeholder_record(zone: &Zone, name: &str, record_type: &str) -> Cloud {
    let placeholder = if record_type == "A" {
        names::PLACEHOLDER
    } else {
        names::PLACEHOLDER_V6
    };
    Route53Record {
        name: name.to_owned(),
        record_type: record_type.to_owned(),
        hosted_zone_id: zone.id.clone(),
        alias_target: None,
        resource_records: None,
        initial: vec![placeholder.into()],
        ttl: Some(PLACEHOLDER_TTL),
    }
    .into()
}
