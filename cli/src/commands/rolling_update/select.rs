//! Which instance groups a rolling update is about, and their limits in the spec.

use crate::args::{RoleName, RollingUpdate};
use crate::commands::existing_cluster::ExistingCluster;
use crate::commands::inspect::group_role;
use crate::error::CommandError;
use node::config::Role;
use rolling_update::GroupLimits;
use spec::api::InstanceGroup;
use spec::api::host::RollingUpdate as Limits;
use spec::api::scalars::IntOrString;
use spec::read::nearest;
use std::collections::BTreeMap;

/// The groups that the options select, and those that the spec takes out of rolling updates.
#[derive(Debug)]
pub struct SelectedGroups {
    pub groups: Vec<GroupLimits>,
    /// Groups with `drainAndTerminate: false`.
    pub reported_only: Vec<String>,
}

/// Selects the groups of a rolling update.
pub fn select_groups(
    args: &RollingUpdate,
    cluster: &ExistingCluster,
) -> Result<SelectedGroups, CommandError> {
    let all = cluster.state.group_objects();
    check_names(args, &all)?;
    let of_cluster = cluster.spec.spec.rolling_update.clone().unwrap_or_default();
    let mut selected = SelectedGroups {
        groups: Vec::new(),
        reported_only: Vec::new(),
    };
    for group in &all {
        let Some(role) = group_role(group) else {
            continue;
        };
        let by_name = &args.instance_group;
        if !by_name.is_empty() && !by_name.iter().any(|name| name == group.name()) {
            continue;
        }
        let by_role = &args.instance_group_roles;
        if !by_role.is_empty() && !by_role.iter().any(|name| is_role(*name, role)) {
            continue;
        }
        let own = group.spec.rolling_update.clone().unwrap_or_default();
        if own.drain_and_terminate.or(of_cluster.drain_and_terminate) == Some(false) {
            selected.reported_only.push(group.name().to_owned());
            continue;
        }
        let limit = |of: fn(&Limits) -> &Option<IntOrString>| {
            let limit = of(&own).as_ref().or(of(&of_cluster).as_ref());
            limit.map(ToString::to_string)
        };
        selected.groups.push(GroupLimits {
            name: group.name().to_owned(),
            role,
            max_surge: limit(|limits| &limits.max_surge),
            max_unavailable: limit(|limits| &limits.max_unavailable),
        });
    }
    Ok(selected)
}

fn check_names(args: &RollingUpdate, groups: &[InstanceGroup]) -> Result<(), CommandError> {
    let names: Vec<&str> = groups.iter().map(InstanceGroup::name).collect();
    for name in &args.instance_group {
        if !names.contains(&name.as_str()) {
            return Err(CommandError::usage_error(
                format!("there is no instance group {name:?}"),
                nearest::hint(name, &names),
            ));
        }
    }
    Ok(())
}

fn is_role(name: RoleName, role: Role) -> bool {
    match name {
        RoleName::ControlPlane => role == Role::ControlPlane,
        RoleName::Node => role == Role::Node,
        RoleName::Bastion => role == Role::Bastion,
    }
}

/// For each etcd cluster its members, and the instance group of each.
pub fn etcd_members(cluster: &ExistingCluster) -> BTreeMap<String, Vec<(String, String)>> {
    let clusters = cluster.spec.spec.etcd_clusters.iter();
    clusters
        .map(|etcd| {
            let members = etcd.etcd_members.iter();
            let members = members.map(|one| (one.name.clone(), one.instance_group.clone()));
            (etcd.name.clone(), members.collect())
        })
        .collect()
}
