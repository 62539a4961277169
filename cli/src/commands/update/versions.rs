//! Refuses a spec whose etcd is older than that which runs, or newer by more than one minor.

use crate::commands::assemble::completed_documents;
use crate::commands::look::Looked;
use crate::commands::running::completed;
use crate::commands::session::Session;
use crate::commands::skew::control_plane_machines;
use crate::error::CommandError;
use full::EtcdCluster;
use node::config::etcd_versions_of;
use spec::completed::Completed;
use spec::etcd::{Runs, version_edit};
use spec::read::Problem;
use std::collections::BTreeMap;

/// What is wrong with the versions of these etcd clusters, which exist, with their places in the spec. Asks AWS only if the
/// last update had others.
pub async fn edits(
    formed: &[(usize, &EtcdCluster)],
    looked: &Looked,
    session: &Session<'_>,
) -> Result<Vec<Problem>, CommandError> {
    let wanted = completed_documents(&looked.expanded)?;
    let stored = looked.state.entry(&looked.state.keys.completed());
    let same = stored.is_some_and(|entry| session.store.surely_holds(entry, wanted.as_bytes()));
    if same || formed.is_empty() {
        return Ok(Vec::new());
    }
    let last = last(looked, session).await?;
    let moved = |(_, etcd): &(usize, &EtcdCluster)| last.get(&etcd.name) != Some(&etcd.version);
    if !formed.iter().any(moved) {
        return Ok(Vec::new());
    }
    let mut machines = Vec::new();
    let mut all_known = true;
    for (instance, config) in control_plane_machines(looked, session).await? {
        let versions = config.map(|text| etcd_versions_of(&text));
        match versions.filter(|versions| !versions.is_empty()) {
            Some(versions) => machines.push((instance, versions)),
            None => all_known = false,
        }
    }
    if machines.is_empty() || !all_known {
        machines.push(("the last update".to_owned(), last));
    }
    let edit = |(index, etcd): &(usize, &EtcdCluster)| {
        let runs = machines.iter().filter_map(|(by, versions)| {
            Some(Runs {
                version: versions.get(&etcd.name)?.clone(),
                by: by.clone(),
            })
        });
        let runs: Vec<Runs> = runs.collect();
        let written = &looked.state.cluster.object.spec.etcd_clusters;
        let names_one = written.get(*index).is_some_and(|one| one.version.is_some());
        let kubernetes = (!names_one).then_some(looked.expanded.full.kubernetes_version.as_str());
        version_edit(*index, etcd, kubernetes, &runs)
    };
    Ok(formed.iter().filter_map(edit).collect())
}

/// The version of each etcd cluster in the last update.
async fn last(
    looked: &Looked,
    session: &Session<'_>,
) -> Result<BTreeMap<String, String>, CommandError> {
    let spec = completed(&looked.state, session).await?;
    let versions = spec.map(|spec| Completed::read(&spec).etcd_versions);
    Ok(versions.unwrap_or_default())
}
