//! Refuses changes of etcd members that cannot be made, etcd versions that cannot follow the running one, another network than the running
//! one, and an older minor of Kubernetes than the one that API servers serve.

use super::etcd_removals::{check_quorum, find_changes};
use super::etcd_versions;
use crate::commands::assemble::completed_documents;
use crate::commands::etcd::Formation;
use crate::commands::existing_cluster::read_completed_spec;
use crate::commands::observe::{ObservedCluster, aws_error};
use crate::commands::session::Session;
use crate::commands::spec_objects::SpecObjects;
use crate::error::CommandError;
use crate::ui::member_change::MemberChange;
use aws_cloud::is_volume_deleted;
use cloud::Cloud;
use engine::Snapshot;
use etcd_rules::{FormationRecord, record_key};
use etcd_store::StoredRecord;
use spec::etcd::{FormedMembers, check_members};
use spec::network_change::find_network_change;
use spec::read::Problem;
use spec::upgrade::find_version_change;

/// Compares the spec with the formation records, running versions, the running network and the served minor, and fails with all problems;
/// warnings are printed. Returns the members that leave or come back.
pub async fn check_etcd_members(
    observed: &ObservedCluster,
    snapshot: &Snapshot<Cloud>,
    session: &Session<'_>,
) -> Result<Vec<MemberChange>, CommandError> {
    let spec = &observed.expanded.full.etcd;
    let mut problems: Vec<Problem> = Vec::new();
    let mut existing = Vec::new();
    let (mut changes, mut records) = (Vec::new(), Vec::new());
    for (index, etcd) in spec.iter().enumerate() {
        if let Some((record, _)) = read_formation_record(&etcd.name, observed, session).await? {
            let cluster = &observed.target.cluster;
            let mut formed = FormedMembers::from_record(&record, cluster, &etcd.name, snapshot);
            for volume in formed.missing_volumes() {
                let deleted = is_volume_deleted(&observed.clients, &volume).await;
                if deleted.map_err(aws_error)? {
                    formed.mark_deleted(&volume);
                }
            }
            problems.extend(check_members(index, etcd, &formed));
            existing.push((index, etcd));
            let wanted = etcd.members.iter().map(|one| one.name.clone()).collect();
            changes.extend(find_changes(&etcd.name, &record, &wanted));
            records.push((etcd.name.clone(), record));
        }
    }
    if !existing.is_empty() && !is_spec_of_last_update(observed, session)? {
        let last = read_completed_spec(&observed.state, session).await?;
        let versions = etcd_versions::version_problems(&existing, last.as_ref(), observed, session);
        problems.extend(Box::pin(versions).await?);
        let wanted = &observed.expanded.cluster;
        if let Some(last) = last {
            problems.extend(find_network_change(wanted, &last));
            problems.extend(find_version_change(wanted, &last));
        }
    }
    SpecObjects::from_state(&observed.state).locate_problems(&mut problems);
    if !problems.iter().any(Problem::is_error) {
        for warning in &problems {
            session.shell.print_problem(warning);
        }
        check_quorum(&changes, &records, &observed.target.cluster, session).await?;
        return Ok(changes);
    }
    Err(CommandError::from_problems(problems))
}

fn is_spec_of_last_update(
    observed: &ObservedCluster,
    session: &Session<'_>,
) -> Result<bool, CommandError> {
    let wanted = completed_documents(&observed.expanded)?;
    let stored = observed.state.find_entry(&observed.state.keys.completed());
    Ok(stored.is_some_and(|entry| session.store.surely_holds(entry, wanted.as_bytes())))
}

/// The formation record of an etcd cluster; `None`: no instance has begun to form it.
pub async fn read_formation_record(
    etcd: &str,
    observed: &ObservedCluster,
    session: &Session<'_>,
) -> Result<Option<(FormationRecord, StoredRecord)>, CommandError> {
    let key = observed.state.keys.key_below(&record_key(etcd));
    if observed.state.find_entry(&key).is_none() {
        return Ok(None);
    }
    formation(etcd, observed, session).find().await
}

/// Access to the formation record of an etcd cluster.
pub fn formation<'a>(
    etcd: &'a str,
    observed: &'a ObservedCluster,
    session: &'a Session<'a>,
) -> Formation<'a> {
    Formation {
        session,
        name: &observed.target.cluster,
        etcd,
    }
}
