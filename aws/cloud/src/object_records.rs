//! DNS records that protokube has made for Services, Ingresses and pods. kctl makes none; it deletes those of a cluster that goes, after its
//! instances: protokube would make them again.

use crate::CloudClients;
use aws_client::record_sets::{ListedRecord, RecordChange, change_record_sets, list_record_sets};
use engine::Failure;
use node::names::dns::record_identifier;

/// Values in one batch of deletions, of which Route 53 takes 1000. A record has at most 400.
const BATCH: usize = 900;

/// The names of these records in a hosted zone (its id), sorted. Reads the whole zone: annotations name any of its names.
pub async fn object_record_names(
    clients: &CloudClients,
    zone: &str,
    cluster: &str,
) -> Result<Vec<String>, Failure> {
    let found = find_records(clients, zone, cluster).await?;
    let mut names: Vec<String> = found.into_iter().map(|record| record.key.name).collect();
    names.sort();
    names.dedup();
    Ok(names)
}

/// Deletes these records.
pub async fn delete_object_records(
    clients: &CloudClients,
    zone: &str,
    cluster: &str,
) -> Result<(), Failure> {
    let found = find_records(clients, zone, cluster).await?;
    let (mut batch, mut values) = (Vec::new(), 0);
    for record in found {
        let Some(content) = record.content else {
            continue;
        };
        if values + content.values.len() > BATCH {
            change_record_sets(clients.shared_clients(), zone, &batch).await?;
            (batch, values) = (Vec::new(), 0);
        }
        values += content.values.len();
        batch.push(RecordChange::Delete(record.key, content));
    }
    if !batch.is_empty() {
        change_record_sets(clients.shared_clients(), zone, &batch).await?;
    }
    Ok(())
}

async fn find_records(
    clients: &CloudClients,
    zone: &str,
    cluster: &str,
) -> Result<Vec<ListedRecord>, Failure> {
    let identifier = Some(record_identifier(cluster));
    let (mut found, mut from) = (Vec::new(), None);
    loop {
        let (page, next) = list_record_sets(clients.shared_clients(), zone, from).await?;
        let own = page.into_iter();
        found.extend(own.filter(|record| record.key.identifier == identifier));
        if next.is_none() {
            return Ok(found);
        }
        from = next;
    }
}
