//! Reads and replaces the Route 53 address records of the control plane.

use crate::Clients;
use crate::failure::{Classify, local_failure};
use aws_sdk_route53::types::{
    Change, ChangeAction, ChangeBatch, ResourceRecord, ResourceRecordSet, RrType,
};
use engine::{Class, Failure};
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddressRecord {
    /// Without the trailing dot.
    pub name: String,
    /// Not empty when published: Route 53 refuses an empty record set.
    pub addresses: BTreeSet<Ipv4Addr>,
    /// Seconds.
    pub ttl: i64,
}

/// The A record set of one name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DnsRecord {
    Addresses(AddressRecord),
    /// An alias of another AWS resource, such as a load balancer.
    Alias,
}

/// The A record sets of these names (without the trailing dot). Makes one call per name, whatever the size of the zone.
pub async fn read_addresses(
    clients: &Clients,
    zone: &str,
    names: &[String],
) -> Result<BTreeMap<String, DnsRecord>, Failure> {
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
            .classify_call(CALL)?;
        // The first at or after the name.
        let mut sets = page.resource_record_sets.into_iter();
        let set =
            sets.find(|set| set.name.trim_end_matches('.') == name && set.r#type == RrType::A);
        found.extend(set.map(|set| (name.clone(), parse_record_set(name, set))));
    }
    Ok(found)
}

fn parse_record_set(name: &str, set: ResourceRecordSet) -> DnsRecord {
    if set.alias_target.is_some() {
        return DnsRecord::Alias;
    }
    let values = set.resource_records.unwrap_or_default();
    let addresses = values.iter().filter_map(|record| record.value.parse().ok());
    DnsRecord::Addresses(AddressRecord {
        name: name.to_owned(),
        addresses: addresses.collect(),
        ttl: set.ttl.unwrap_or_default(),
    })
}

/// Replaces the A record sets of these names in one atomic change.
pub async fn publish_addresses(
    clients: &Clients,
    zone: &str,
    names: &[AddressRecord],
) -> Result<(), Failure> {
    const CALL: &str = "route53:ChangeResourceRecordSets";
    let wrong =
        |error: &dyn std::error::Error| local_failure(Class::Invalid, CALL, error.to_string());
    let mut batch = ChangeBatch::builder();
    for record_set in names {
        let mut set = ResourceRecordSet::builder()
            .name(&record_set.name)
            .r#type(RrType::A)
            .ttl(record_set.ttl);
        for address in &record_set.addresses {
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
    call.send().await.classify_call(CALL).map(drop)
}
