//! The version-skew guard: a kubelet must not be newer than a running API server (Kubernetes' version skew policy). Auto
//! Scaling may replace a worker at any time, so after a version change the workers' launch templates keep the old version
//! until every control plane is replaced. kOps has the same rule and asks the API for the running versions. kctl reads the
//! NodeConfig that each control plane was launched with, which needs no API.

use super::node_configs::{find_node_config, read_node_config};
use super::observe::{ObservedCluster, aws_error};
use super::session::Session;
use crate::error::CommandError;
use aws_cloud::fleet::{observe_fleet, user_data_of_instances};
use full::Group;
use node::config::{Role, kubernetes_version_of};
use spec::validate::versions::Version;
use std::collections::BTreeMap;

/// Kubernetes versions of the running control planes, compared with the spec.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ControlPlaneVersions {
    /// The oldest version and the instance that runs it, if it is older than the spec's.
    pub older: Option<(String, String)>,
    /// Control plane instances whose version is unknown.
    pub unknown: Vec<String>,
}

/// Reads the versions of the control planes. Makes no call if the update does not change the workers' version.
pub async fn control_plane_versions(
    observed: &ObservedCluster,
    session: &Session<'_>,
) -> Result<ControlPlaneVersions, CommandError> {
    let mut versions = ControlPlaneVersions::default();
    let wanted = &observed.expanded.full.kubernetes_version;
    if !workers_change_version(observed, session).await? {
        return Ok(versions);
    }
    for (instance, config) in control_plane_instances(observed, session).await? {
        let Some(version) = config.and_then(|text| kubernetes_version_of(&text)) else {
            versions.unknown.push(instance);
            continue;
        };
        let oldest = versions.older.as_ref().map_or(wanted, |(oldest, _)| oldest);
        if is_older(&version, oldest) {
            versions.older = Some((version, instance));
        }
    }
    Ok(versions)
}

/// All control plane instances that are not terminating, with the NodeConfig each was launched with; `None` if unknown.
pub async fn control_plane_instances(
    observed: &ObservedCluster,
    session: &Session<'_>,
) -> Result<Vec<(String, Option<String>)>, CommandError> {
    let groups = &observed.expanded.full.groups;
    let fleet = observe_fleet(&observed.clients, &observed.target.cluster).await;
    let mut fleet = fleet.map_err(aws_error)?;
    fleet.instances.retain(|one| {
        let of = |group: &&Group| Some(&group.name) == one.instance_group.as_ref();
        let group = groups.iter().find(of);
        group.is_some_and(|group| group.role == Role::ControlPlane)
    });
    let launches = user_data_of_instances(&observed.clients, &fleet)
        .await
        .map_err(aws_error)?;
    let mut configs: BTreeMap<String, Option<String>> = BTreeMap::new();
    let mut instances = Vec::new();
    for launch in launches {
        let key = launch
            .user_data
            .and_then(|text| find_node_config(&observed.state, &text));
        let config = match key {
            Some(key) => match configs.get(&key) {
                Some(known) => known.clone(),
                None => {
                    let config = read_node_config(&key, session).await?;
                    configs.insert(key, config.clone());
                    config
                }
            },
            None => None,
        };
        instances.push((launch.name, config));
    }
    Ok(instances)
}

/// True if the update would change the Kubernetes version of a group of workers. A stored NodeConfig equal to the desired one
/// passed this check before. Without any stored NodeConfig of a control plane, none runs.
async fn workers_change_version(
    observed: &ObservedCluster,
    session: &Session<'_>,
) -> Result<bool, CommandError> {
    let folder = control_plane_folder(observed);
    if !observed
        .state
        .entries
        .iter()
        .any(|entry| entry.key.starts_with(&folder))
    {
        return Ok(false);
    }
    let assembled = observed.assemble()?;
    let full = &observed.expanded.full;
    for group in full.groups.iter().filter(|group| group.role == Role::Node) {
        let config = assembled.group_configs.get(&group.name);
        let Some(wanted) = config.and_then(|config| config.node_config.as_ref()) else {
            continue;
        };
        let [_, last] = &wanted.keys;
        let key = observed.state.keys.key_below(last);
        let Some(entry) = observed.state.find_entry(&key) else {
            return Ok(true);
        };
        let same = session.store.surely_holds(entry, wanted.text.as_bytes());
        if !same {
            let version = read_node_config(&key, session)
                .await?
                .and_then(|text| kubernetes_version_of(&text));
            if version.as_ref() != Some(&full.kubernetes_version) {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

/// Key prefix of the control planes' NodeConfigs.
fn control_plane_folder(observed: &ObservedCluster) -> String {
    observed.state.keys.key_below("igconfig/control-plane/")
}

fn is_older(version: &str, than: &str) -> bool {
    let numbers = |text: &str| {
        Version::parse(text).map(|version| (version.major, version.minor, version.patch))
    };
    matches!((numbers(version), numbers(than)), (Some(one), Some(other)) if one < other)
}
