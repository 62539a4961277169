//! The version-skew guard: a kubelet must not be newer than the API servers that run (Kubernetes' version skew policy). Auto
//! Scaling may replace a worker at any time, so after a change of the version workers' templates stay behind until every
//! control plane was replaced. (kOps' rule too, `--ignore-kubelet-version-skew` of its update; it asks the API which
//! versions run. Machines change only by replacement, so here each says it by what it was launched with, whether the API
//! can be reached or not.)

use super::look::{Looked, aws_error};
use super::session::Session;
use crate::error::CommandError;
use crate::state::store_error;
use aws_client::store::Entry;
use aws_cloud::fleet::{observe_fleet, told};
use full::Group;
use node::config::{Role, kubernetes_version_of};
use spec::validate::versions::Version;
use std::collections::BTreeMap;

/// The version that workers keep, and the control planes that run it or that cannot tell.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Running {
    /// The oldest version of a control plane, if it is older than the spec's.
    pub older: Option<(String, String)>,
    /// Instances of the control plane of which nobody knows what they run.
    pub unknown: Vec<String>,
}

/// What the control planes run, if an update would give workers another version than they have.
pub async fn running(looked: &Looked, session: &Session<'_>) -> Result<Running, CommandError> {
    let mut running = Running::default();
    let wanted = &looked.expanded.full.kubernetes_version;
    if !workers_move(looked, session).await? {
        return Ok(running);
    }
    for (instance, config) in control_plane_machines(looked, session).await? {
        let Some(version) = config.and_then(|text| kubernetes_version_of(&text)) else {
            running.unknown.push(instance);
            continue;
        };
        let oldest = running.older.as_ref().map_or(wanted, |(oldest, _)| oldest);
        if is_older(&version, oldest) {
            running.older = Some((version, instance));
        }
    }
    Ok(running)
}

/// Every instance of the control plane that is not on its way out, with the NodeConfig that it was launched with; `None`:
/// nobody knows that.
pub async fn control_plane_machines(
    looked: &Looked,
    session: &Session<'_>,
) -> Result<Vec<(String, Option<String>)>, CommandError> {
    let groups = &looked.expanded.full.groups;
    let fleet = observe_fleet(&looked.clients, &looked.target.cluster).await;
    let mut fleet = fleet.map_err(aws_error)?;
    fleet.instances.retain(|one| {
        let of = |group: &&Group| Some(&group.name) == one.instance_group.as_ref();
        let group = groups.iter().find(of);
        group.is_some_and(|group| group.role == Role::ControlPlane)
    });
    let told = told(&looked.clients, &fleet).await.map_err(aws_error)?;
    let mut configs: BTreeMap<String, Option<String>> = BTreeMap::new();
    let mut machines = Vec::new();
    for machine in told {
        let key = machine
            .user_data
            .and_then(|text| configuration(looked, &text));
        let config = match key {
            Some(key) => match configs.get(&key) {
                Some(known) => known.clone(),
                None => {
                    let config = stored(&key, session).await?;
                    configs.insert(key, config.clone());
                    config
                }
            },
            None => None,
        };
        machines.push((machine.name, config));
    }
    Ok(machines)
}

/// True if some group of workers would be given another version than its machines got last. A NodeConfig that is stored as it
/// is wanted was let through before, and where no control plane has one, none runs.
async fn workers_move(looked: &Looked, session: &Session<'_>) -> Result<bool, CommandError> {
    let folder = control_planes(looked);
    if !looked
        .state
        .entries
        .iter()
        .any(|entry| entry.key.starts_with(&folder))
    {
        return Ok(false);
    }
    let assembled = looked.assemble()?;
    let full = &looked.expanded.full;
    for group in full.groups.iter().filter(|group| group.role == Role::Node) {
        let machine = assembled.machines.get(&group.name);
        let Some((_, wanted)) = machine.and_then(|machine| machine.node_config.as_ref()) else {
            continue;
        };
        let [_, last] = &wanted.keys;
        let key = looked.state.keys.below(last);
        let Some(entry) = looked.state.entry(&key) else {
            return Ok(true);
        };
        let same = session.store.surely_holds(entry, wanted.text.as_bytes());
        if !same {
            let version = stored(&key, session)
                .await?
                .and_then(|text| kubernetes_version_of(&text));
            if version.as_ref() != Some(&full.kubernetes_version) {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

/// What keys of control planes' NodeConfigs begin with.
fn control_planes(looked: &Looked) -> String {
    looked.state.keys.below("igconfig/control-plane/")
}

/// Key of the control plane's NodeConfig that user data names.
fn configuration(looked: &Looked, user_data: &str) -> Option<String> {
    let folder = control_planes(looked);
    let named = |entry: &&Entry| {
        let hash = entry.key.strip_prefix(&folder).and_then(|rest| {
            let (_, hash) = rest.rsplit_once("/nodeupconfig-")?;
            hash.strip_suffix(".yaml")
        });
        hash.is_some_and(|hash| user_data.contains(hash))
    };
    let entry = looked.state.entries.iter().find(named)?;
    Some(entry.key.clone())
}

/// A stored NodeConfig.
async fn stored(key: &str, session: &Session<'_>) -> Result<Option<String>, CommandError> {
    let object = session.store.get(key).await.map_err(store_error)?;
    Ok(object.map(|object| String::from_utf8_lossy(&object.bytes).into_owned()))
}

fn is_older(version: &str, than: &str) -> bool {
    let numbers = |text: &str| {
        Version::parse(text).map(|version| (version.major, version.minor, version.patch))
    };
    matches!((numbers(version), numbers(than)), (Some(one), Some(other)) if one < other)
}
