//! Refuses an etcd version that is older than the running one, or newer by more than one minor.

use crate::commands::assemble::completed_documents;
use crate::commands::existing_cluster::read_completed_spec;
use crate::commands::observe::ObservedCluster;
use crate::commands::session::Session;
use crate::commands::version_skew::control_plane_instances;
use crate::error::CommandError;
use full::EtcdCluster;
use node::config::etcd_versions_of;
use spec::completed::CompletedCluster;
use spec::etcd::{RunningVersion, check_version};
use spec::read::Problem;
use std::collections::BTreeMap;

/// Problems with the versions of existing etcd clusters, given with their indices in the spec. Calls AWS only if the versions
/// changed since the last update.
pub async fn version_problems(
    formed: &[(usize, &EtcdCluster)],
    observed: &ObservedCluster,
    session: &Session<'_>,
) -> Result<Vec<Problem>, CommandError> {
    let wanted = completed_documents(&observed.expanded)?;
    let stored = observed.state.find_entry(&observed.state.keys.completed());
    let same = stored.is_some_and(|entry| session.store.surely_holds(entry, wanted.as_bytes()));
    if same || formed.is_empty() {
        return Ok(Vec::new());
    }
    let last = last_versions(observed, session).await?;
    let moved = |(_, etcd): &(usize, &EtcdCluster)| last.get(&etcd.name) != Some(&etcd.version);
    if !formed.iter().any(moved) {
        return Ok(Vec::new());
    }
    let mut instances = Vec::new();
    let mut all_known = true;
    for (instance, config) in control_plane_instances(observed, session).await? {
        let versions = config.map(|text| etcd_versions_of(&text));
        match versions.filter(|versions| !versions.is_empty()) {
            Some(versions) => instances.push((instance, versions)),
            None => all_known = false,
        }
    }
    if instances.is_empty() || !all_known {
        instances.push(("the last update".to_owned(), last));
    }
    let edit = |(index, etcd): &(usize, &EtcdCluster)| {
        let runs = instances.iter().filter_map(|(by, versions)| {
            Some(RunningVersion {
                version: versions.get(&etcd.name)?.clone(),
                by: by.clone(),
            })
        });
        let runs: Vec<RunningVersion> = runs.collect();
        let written = &observed.state.cluster.object.spec.etcd_clusters;
        let names_one = written.get(*index).is_some_and(|one| one.version.is_some());
        let kubernetes = (!names_one).then_some(observed.expanded.full.kubernetes_version.as_str());
        check_version(*index, etcd, kubernetes, &runs)
    };
    Ok(formed.iter().filter_map(edit).collect())
}

/// The etcd versions of the last update, by etcd cluster.
async fn last_versions(
    observed: &ObservedCluster,
    session: &Session<'_>,
) -> Result<BTreeMap<String, String>, CommandError> {
    let spec = read_completed_spec(&observed.state, session).await?;
    let versions = spec.map(|spec| CompletedCluster::from_cluster(&spec).etcd_versions);
    Ok(versions.unwrap_or_default())
}
