//! Address records that follow the control planes' addresses: read by name, and replaced as whole sets.

use crate::Clients;
use crate::failure::{Classify, own};
use aws_sdk_route53::types::{
    Change, ChangeAction, ChangeBatch, ResourceRecord, ResourceRecordSet, RrType,
};
use engine::{Class, Failure};
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
