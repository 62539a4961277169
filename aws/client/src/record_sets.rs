//! Reads the record sets of a hosted zone page by page, and changes those with a set identifier. Route 53 tells record sets apart by
//! name, type and identifier, so a change of one with an identifier cannot meet another.

use crate::Clients;
use crate::failure::{Classify, local_failure};
use aws_sdk_route53::operation::change_resource_record_sets::ChangeResourceRecordSetsError;
use aws_sdk_route53::types::{
    Change, ChangeAction, ChangeBatch, ResourceRecord, ResourceRecordSet, RrType,
};
use engine::{Class, Failure};
use std::collections::BTreeSet;

const CHANGE: &str = "route53:ChangeResourceRecordSets";

/// What tells record sets apart.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RecordKey {
    /// In lower case, without the trailing dot, with `*` for any label.
    pub name: String,
    /// `A`, `AAAA`, `CNAME` or any other type.
    pub record_type: String,
    pub identifier: Option<String>,
}

/// What a record set says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordContent {
    pub values: BTreeSet<String>,
    /// Seconds.
    pub ttl: i64,
    /// Share of the answers among record sets of one name and type: an identifier needs a routing policy.
    pub weight: i64,
}

/// A record set of a zone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedRecord {
    pub key: RecordKey,
    /// `None` if it is not of the form that [`RecordChange`] writes: an alias, or without a weight.
    pub content: Option<RecordContent>,
}

/// A change of one record set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecordChange {
    /// Makes or replaces it.
    Upsert(RecordKey, RecordContent),
    /// Deletes it. Refused unless it has exactly this content.
    Delete(RecordKey, RecordContent),
}

/// A page of a zone's record sets, 300 at most, and the key with which the next page begins, its name as Route 53 writes it.
pub type RecordPage = (Vec<ListedRecord>, Option<RecordKey>);

/// The page of a zone's record sets that begins with this key; the first one without.
pub async fn list_record_sets(
    clients: &Clients,
    zone: &str,
    from: Option<RecordKey>,
) -> Result<RecordPage, Failure> {
    let mut call = clients
        .route53
        .list_resource_record_sets()
        .hosted_zone_id(zone);
    if let Some(from) = from {
        call = call
            .start_record_name(from.name)
            .start_record_type(RrType::from(from.record_type.as_str()))
            .set_start_record_identifier(from.identifier);
    }
    let page = call.send().await;
    let page = page.classify_call("route53:ListResourceRecordSets")?;
    let next = page.next_record_name.zip(page.next_record_type);
    let next = next.filter(|_| page.is_truncated);
    let next = next.map(|(name, record_type)| RecordKey {
        name,
        record_type: record_type.as_str().to_owned(),
        identifier: page.next_record_identifier,
    });
    let sets = page.resource_record_sets.iter();
    Ok((sets.map(read_record_set).collect(), next))
}

fn read_record_set(set: &ResourceRecordSet) -> ListedRecord {
    let values = set.resource_records().iter();
    let values: BTreeSet<String> = values.map(|record| record.value().to_owned()).collect();
    // A deletion has to say all that a record set has: one with more than we give it is nobody's to delete.
    let has_more = set.alias_target().is_some() || set.health_check_id().is_some();
    let values = Some(values).filter(|_| !has_more);
    ListedRecord {
        key: RecordKey {
            name: plain_name(set.name()),
            record_type: set.r#type().as_str().to_owned(),
            identifier: set.set_identifier().map(str::to_owned),
        },
        content: read_content(values, set.ttl(), set.weight()),
    }
}

fn read_content(
    values: Option<BTreeSet<String>>,
    ttl: Option<i64>,
    weight: Option<i64>,
) -> Option<RecordContent> {
    Some(RecordContent {
        values: values?,
        ttl: ttl?,
        weight: weight?,
    })
}

/// A name as people write it: no dot at the end, no octal for the asterisk.
pub fn plain_name(name: &str) -> String {
    name.trim_end_matches('.')
        .replace("\\052", "*")
        .to_lowercase()
}

/// Makes all of these changes, or none.
pub async fn change_record_sets(
    clients: &Clients,
    zone: &str,
    changes: &[RecordChange],
) -> Result<(), Failure> {
    let changes: Result<Vec<Change>, Failure> = changes.iter().map(change_request).collect();
    send_changes(&clients.route53, zone, changes?).await
}

/// Sends changes of record sets, of which Route 53 makes all or none.
pub async fn send_changes(
    route53: &aws_sdk_route53::Client,
    zone: &str,
    changes: Vec<Change>,
) -> Result<(), Failure> {
    let batch = ChangeBatch::builder().set_changes(Some(changes)).build();
    let batch = batch.map_err(|error| unusable(&error))?;
    let call = route53.change_resource_record_sets();
    let call = call.hosted_zone_id(zone).change_batch(batch);
    let done = call.send().await;
    // Route 53 says what is wrong in a list beside the message.
    let said = match done.as_ref().map_err(|error| error.as_service_error()) {
        Err(Some(ChangeResourceRecordSetsError::InvalidChangeBatch(batch))) => {
            batch.messages().join(" ")
        }
        _ => String::new(),
    };
    done.classify_call(CHANGE).map(drop).map_err(|mut failure| {
        if !failure.message.contains(&said) {
            failure.message = said;
        }
        failure
    })
}

fn change_request(change: &RecordChange) -> Result<Change, Failure> {
    let (action, key, content) = match change {
        RecordChange::Upsert(key, content) => (ChangeAction::Upsert, key, content),
        RecordChange::Delete(key, content) => (ChangeAction::Delete, key, content),
    };
    let mut set = ResourceRecordSet::builder()
        .name(&key.name)
        .r#type(RrType::from(key.record_type.as_str()))
        .set_set_identifier(key.identifier.clone())
        .weight(content.weight)
        .ttl(content.ttl);
    for value in &content.values {
        let record = ResourceRecord::builder().value(value).build();
        set = set.resource_records(record.map_err(|error| unusable(&error))?);
    }
    Change::builder()
        .action(action)
        .resource_record_set(set.build().map_err(|error| unusable(&error))?)
        .build()
        .map_err(|error| unusable(&error))
}

fn unusable(error: &dyn std::error::Error) -> Failure {
    local_failure(Class::Invalid, CHANGE, error.to_string())
}
