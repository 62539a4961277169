//! Refuses a spec whose etcd members are not those with which etcd was formed, or whose etcd cannot follow the one that runs.

use super::versions;
use crate::commands::look::Looked;
use crate::commands::objects::Objects;
use crate::commands::session::Session;
use crate::error::{CommandError, Kind};
use crate::state::store_error;
use cloud::Cloud;
use engine::Snapshot;
use node::etcd::{FormationRecord, record_key};
use spec::etcd::{Formed, edits};
use spec::read::Problem;

/// Fails if it is such a spec, with all that is otherwise.
pub async fn check(
    looked: &Looked,
    seen: &Snapshot<Cloud>,
    session: &Session<'_>,
) -> Result<(), CommandError> {
    let spec = &looked.expanded.full.etcd;
    let mut problems: Vec<Problem> = Vec::new();
    let mut existing = Vec::new();
    for (index, etcd) in spec.iter().enumerate() {
        if let Some(record) = record(&etcd.name, looked, session).await? {
            let formed = Formed::of(&record, &looked.target.cluster, &etcd.name, seen);
            problems.extend(edits(index, etcd, &formed));
            existing.push((index, etcd));
        }
    }
    problems.extend(Box::pin(versions::edits(&existing, looked, session)).await?);
    if problems.is_empty() {
        return Ok(());
    }
    Objects::stored(&looked.state).locate(&mut problems);
    Err(CommandError::problems(problems))
}

/// The record of an etcd cluster; `None`: no machine has begun to form it.
async fn record(
    etcd: &str,
    looked: &Looked,
    session: &Session<'_>,
) -> Result<Option<FormationRecord>, CommandError> {
    let key = looked.state.keys.below(&record_key(etcd));
    if looked.state.entry(&key).is_none() {
        return Ok(None);
    }
    let object = session.store.get(&key).await.map_err(store_error)?;
    let read = object
        .map(|object| FormationRecord::parse(&key, &object.bytes))
        .transpose();
    read.map_err(|error| {
        let hint = "use the release that wrote it, or restore it from the bucket's versions: without it nobody knows \
                    which volumes hold the cluster's data";
        CommandError::new(Kind::Precondition, error, hint)
    })
}
