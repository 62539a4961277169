//! Reads in the state store whether etcd keeps its quorum without a control plane that ends.

use anyhow::Context;
use aws_client::store::Store;
use etcd_rules::{
    FormationRecord, MEMBER_STATUS_LIMIT, MemberStatus, find_ending_risk, member_status_prefix,
    read_member_status, record_key,
};
use node::config::NodeConfig;
use std::time::Duration;

/// protokube writes a status once a minute.
const LATELY: Duration = Duration::from_mins(3);

/// Why the control plane on this instance should not end yet; `None`: each etcd cluster goes on without it.
pub(super) async fn find_risk(
    store: &Store,
    config: &NodeConfig,
    instance: &str,
) -> anyhow::Result<Option<String>> {
    let own = config.control_plane.iter();
    for etcd in own.flat_map(|own| &own.etcd) {
        let key = record_key(&etcd.name);
        let found = store.get(&key).await;
        let Some(found) = found.with_context(|| format!("could not read {key}"))? else {
            continue;
        };
        let record = FormationRecord::parse(&key, &found.bytes)?;
        let members: Vec<String> = etcd.members.iter().map(|one| one.name.clone()).collect();
        let reports = read_reports(store, &etcd.name).await?;
        let risk = find_ending_risk(&etcd.name, &members, &record, &reports, instance);
        if risk.is_some() {
            return Ok(risk);
        }
    }
    Ok(None)
}

/// What the members of an etcd cluster have reported lately, by the store's clock.
async fn read_reports(store: &Store, etcd: &str) -> anyhow::Result<Vec<MemberStatus>> {
    let prefix = member_status_prefix(etcd);
    let entries = store.list(&prefix, None).await;
    let entries = entries.with_context(|| format!("could not list {prefix}"))?;
    let mut reports = Vec::new();
    for entry in entries {
        if entry.age.is_some_and(|age| age > LATELY) || !entry.key.ends_with(".status.json") {
            continue;
        }
        let key = &entry.key;
        let found = store.get_first(key, MEMBER_STATUS_LIMIT + 1).await;
        let found = found.with_context(|| format!("could not read {key}"))?;
        reports.extend(found.and_then(|bytes| read_member_status(key, &bytes).ok()));
    }
    Ok(reports)
}
