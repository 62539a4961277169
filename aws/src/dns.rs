//! Address records that follow the control planes' addresses: read by name, and replaced as whole sets.

use crate::Clients;
use crate::failure::{Classify, own};
use aws_sdk_route53::types::{
    Change, ChangeAction, ChangeBatch, ResourceRecord, ResourceRecordSet, RrType,
};
use model::engine::{Class, Failure};
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

/// A name's addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Addresses {
    /// Without the trailing dot.
    pub name: String,
    /// At least one.
    pub addresses: BTreeSet<Ipv4Addr>,
    /// Seconds.
    pub ttl: i64,
}

/// What a zone says of a name's IPv4 addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// These.
    Addresses(Addresses),
    /// Those of something else in AWS, such as a load balancer.
    Alias,
}

/// The id of the account's hosted zone of that name (without the trailing dot), private or public.
pub async fn zone_id(
    clients: &Clients,
    name: &str,
    private: bool,
) -> Result<Option<String>, Failure> {
    const CALL: &str = "route53:ListHostedZones";
    let mut marker = None;
    loop {
        let pages = clients.route53.list_hosted_zones();
        let page = pages.set_marker(marker).send().await.called(CALL)?;
        let mut zones = page.hosted_zones.iter();
        let found = zones.find(|zone| {
            let is_private = zone.config.as_ref().is_some_and(|of| of.private_zone);
            zone.name.trim_end_matches('.') == name && is_private == private
        });
        if let Some(zone) = found {
            let id = zone.id.trim_start_matches("/hostedzone/");
            return Ok(Some(id.to_owned()));
        }
        marker = page.next_marker;
        if !page.is_truncated {
            return Ok(None);
        }
    }
}

/// What a zone says of these names (without the trailing dot): one call each, however large the zone is.
pub async fn addresses(
    clients: &Clients,
    zone: &str,
    names: &[String],
) -> Result<BTreeMap<String, Found>, Failure> {
    const CALL: &str = "route53:ListResourceRecordSets";
    let mut found = BTreeMap::new();
    for name in names {
        let page = clients
            .route53
            .list_resource_record_sets()
            .hosted_zone_id(zone)
            .start_record_name(name)
            .start_record_type(RrType::A)
            .max_items(1)
            .send()
            .await
            .called(CALL)?;
        // The first at or after the name.
        let mut sets = page.resource_record_sets.into_iter();
        let set =
            sets.find(|set| set.name.trim_end_matches('.') == name && set.r#type == RrType::A);
        found.extend(set.map(|set| (name.clone(), read(name, set))));
    }
    Ok(found)
}

fn read(name: &str, set: ResourceRecordSet) -> Found {
    if set.alias_target.is_some() {
        return Found::Alias;
    }
    let values = set.resource_records.unwrap_or_default();
    let addresses = values.iter().filter_map(|record| record.value.parse().ok());
    Found::Addresses(Addresses {
        name: name.to_owned(),
        addresses: addresses.collect(),
        ttl: set.ttl.unwrap_or_default(),
    })
}

/// Replaces the addresses of those names, all or none.
pub async fn publish(clients: &Clients, zone: &str, names: &[Addresses]) -> Result<(), Failure> {
    const CALL: &str = "route53:ChangeResourceRecordSets";
    let wrong = |error: &dyn std::error::Error| own(Class::Invalid, CALL, error.to_string());
    let mut batch = ChangeBatch::builder();
    for of in names {
        let mut set = ResourceRecordSet::builder()
            .name(&of.name)
            .r#type(RrType::A)
            .ttl(of.ttl);
        for address in &of.addresses {
            let record = ResourceRecord::builder().value(address.to_string()).build();
            set = set.resource_records(record.map_err(|error| wrong(&error))?);
        }
        let change = Change::builder()
            .action(ChangeAction::Upsert)
            .resource_record_set(set.build().map_err(|error| wrong(&error))?)
            .build();
        batch = batch.changes(change.map_err(|error| wrong(&error))?);
    }
    let batch = batch.build().map_err(|error| wrong(&error))?;
    let call = clients
        .route53
        .change_resource_record_sets()
        .hosted_zone_id(zone)
        .change_batch(batch);
    call.send().await.called(CALL).map(drop)
}
