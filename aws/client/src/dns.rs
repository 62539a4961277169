//! Reads and replaces the Route 53 address records of the control plane.

use crate::Clients;
use crate::failure::{Classify, local_failure};
use aws_sdk_route53::types::{
    Change, ChangeAction, ChangeBatch, ResourceRecord, ResourceRecordSet, RrType,
};
use engine::{Class, Failure};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::IpAddr;

/// Whether a record set has IPv4 addresses, in A records, or IPv6 addresses, in AAAA records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AddressFamily {
    V4,
    V6,
}

impl AddressFamily {
    pub fn of(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(_) => Self::V4,
            IpAddr::V6(_) => Self::V6,
        }
    }

    fn record_type(self) -> RrType {
        match self {
            Self::V4 => RrType::A,
            Self::V6 => RrType::Aaaa,
        }
    }
}

/// An address record set of a hosted zone.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RecordName {
    /// Without the trailing dot.
    pub name: String,
    pub family: AddressFamily,
}

impl RecordName {
    pub fn new(name: impl Into<String>, family: AddressFamily) -> Self {
        Self {
            name: name.into(),
            family,
        }
    }
}

impl fmt::Display for RecordName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddressRecord {
    pub name: RecordName,
    /// Of the name's family. Not empty when published: Route 53 refuses an empty record set.
    pub addresses: BTreeSet<IpAddr>,
    /// Seconds.
    pub ttl: i64,
}

/// An address record set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DnsRecord {
    Addresses(AddressRecord),
    /// An alias of another AWS resource, such as a load balancer.
    Alias,
}

/// These record sets. Makes one call per record set, whatever the size of the zone.
pub async fn read_addresses(
    clients: &Clients,
    zone: &str,
    names: &[RecordName],
) -> Result<BTreeMap<RecordName, DnsRecord>, Failure> {
    const CALL: &str = "route53:ListResourceRecordSets";
    let mut found = BTreeMap::new();
    for record in names {
        let wanted = record.family.record_type();
        let page = clients
            .route53
            .list_resource_record_sets()
            .hosted_zone_id(zone)
            .start_record_name(&record.name)
            .start_record_type(wanted.clone())
            .max_items(1)
            .send()
            .await
            .classify_call(CALL)?;
        // The first at or after the name.
        let mut sets = page.resource_record_sets.into_iter();
        let set =
            sets.find(|set| set.name.trim_end_matches('.') == record.name && set.r#type == wanted);
        found.extend(set.map(|set| (record.clone(), parse_record_set(record, set))));
    }
    Ok(found)
}

fn parse_record_set(name: &RecordName, set: ResourceRecordSet) -> DnsRecord {
    if set.alias_target.is_some() {
        return DnsRecord::Alias;
    }
    let values = set.resource_records.unwrap_or_default();
    let addresses = values.iter().filter_map(|record| record.value.parse().ok());
    DnsRecord::Addresses(AddressRecord {
        name: name.clone(),
        addresses: addresses.collect(),
        ttl: set.ttl.unwrap_or_default(),
    })
}

/// Replaces these record sets in one atomic change.
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
            .name(&record_set.name.name)
            .r#type(record_set.name.family.record_type())
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
