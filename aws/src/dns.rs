//! Address records that follow the control planes' addresses: read and replaced as whole sets.

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

/// The address records of a zone that are no aliases, by name without the trailing dot.
pub async fn addresses(
    clients: &Clients,
    zone: &str,
) -> Result<BTreeMap<String, BTreeSet<Ipv4Addr>>, Failure> {
    const CALL: &str = "route53:ListResourceRecordSets";
    let pages = clients
        .route53
        .list_resource_record_sets()
        .hosted_zone_id(zone);
    let (mut name, mut kind, mut all) = (None, None, BTreeMap::new());
    loop {
        let page = pages
            .clone()
            .set_start_record_name(name)
            .set_start_record_type(kind)
            .send()
            .await
            .called(CALL)?;
        for set in page.resource_record_sets {
            if set.r#type == RrType::A && set.alias_target.is_none() {
                let values = set.resource_records.unwrap_or_default();
                let values = values.iter().filter_map(|record| record.value.parse().ok());
                all.insert(set.name.trim_end_matches('.').to_owned(), values.collect());
            }
        }
        if !page.is_truncated {
            return Ok(all);
        }
        (name, kind) = (page.next_record_name, page.next_record_type);
    }
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
