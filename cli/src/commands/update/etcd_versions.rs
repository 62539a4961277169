//! Refuses an etcd version that is older than the running one, or newer by more than one minor; and a newer minor while a member is
//! not well.

use crate::commands::etcd::EtcdReports;
use crate::commands::observe::ObservedCluster;
use crate::commands::session::Session;
use crate::commands::version_skew::control_plane_instances;
use crate::error::CommandError;
use etcd_rules::{ReportedMember, find_upgrade_obstacle};
use full::EtcdCluster;
use node::config::etcd_versions_of;
use spec::api::Cluster;
use spec::completed::CompletedCluster;
use spec::etcd::{RunningVersion, check_version, is_next_minor};
use spec::read::Problem;

/// Problems with the versions of existing etcd clusters, given with their indices in the spec. `last`: the spec of the last update. Calls
/// AWS only if the versions changed since then.
pub async fn version_problems(
    formed: &[(usize, &EtcdCluster)],
    last: Option<&Cluster>,
    observed: &ObservedCluster,
    session: &Session<'_>,
) -> Result<Vec<Problem>, CommandError> {
    let last = last.map(|spec| CompletedCluster::from_cluster(spec).etcd_versions);
    let last = last.unwrap_or_default();
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
    let name = observed.target.cluster.as_str();
    let reports = EtcdReports::find(name, session).await?.unwrap_or_default();
    let edit = |(index, etcd): &(usize, &EtcdCluster)| {
        let runs = instances.iter().filter_map(|(by, versions)| {
            let configured = versions.get(&etcd.name)?;
            Some(RunningVersion {
                version: version_with_data(&etcd.name, by, configured, &reports.members)?,
                by: by.clone(),
            })
        });
        let runs: Vec<RunningVersion> = runs.collect();
        let written = &observed.state.cluster.object.spec.etcd_clusters;
        let names_one = written.get(*index).is_some_and(|one| one.version.is_some());
        let kubernetes = (!names_one).then_some(observed.expanded.full.kubernetes_version.as_str());
        check_version(*index, etcd, kubernetes, &runs).or_else(|| {
            let (message, next) = is_next_minor(&etcd.version, &runs)
                .then(|| find_upgrade_obstacle(&etcd.name, &reports.members, &reports.records))??;
            let message = format!(
                "etcd cluster {} goes to another minor only while all its members are well: {message}",
                etcd.name
            );
            let field = match kubernetes {
                Some(_) => "spec.kubernetesVersion".to_owned(),
                None => format!("spec.etcdClusters[{index}].version"),
            };
            Some(Problem::error(field, message).hint(next))
        })
    };
    Ok(formed.iter().filter_map(edit).collect())
}

/// The version of etcd that runs on an instance. What its configuration says counts if it has not reported lately. `None` if it reports
/// that etcd does not run: protokube may have refused its version, and knows from the volume which ones can run there.
fn version_with_data(
    etcd: &str,
    instance: &str,
    configured: &str,
    members: &[ReportedMember],
) -> Option<String> {
    let mut own = members.iter().filter(|one| one.is_stored_lately());
    let own = own.find(|one| one.status.etcd == etcd && one.status.instance == instance);
    match own {
        None => Some(configured.to_owned()),
        Some(own) => own.status.running.as_ref().map(|one| one.version.clone()),
    }
}
