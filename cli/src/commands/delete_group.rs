//! `kctl delete ig`: removes instance groups from the spec, with their members of etcd. The next update removes the members, and then
//! deletes the instances.

use super::removal::{Removal, confirm_removal};
use super::session::Session;
use super::spec_log;
use super::spec_objects::SpecObjects;
use crate::args::DeleteGroup;
use crate::error::{CommandError, ErrorKind, Outcome};
use crate::state::{ClusterState, SpecChange, StoredObject, store_error, write_object};
use aws_client::store::{Expect, StoreError};
use spec::api::Cluster;
use spec::api::instance_group::InstanceGroupSpec;
use spec::read::ReadOptions;
use std::collections::BTreeMap;

/// Removes the groups' objects from the store.
pub async fn run(args: &DeleteGroup, session: &Session<'_>) -> Result<Outcome, CommandError> {
    let name = session.cluster_name(None).await?;
    let state = ClusterState::read(&session.store, &name, ReadOptions::AS_STORED).await?;
    let mut stored = Vec::new();
    for group in &args.groups {
        stored.push(state.group(group)?);
    }
    let (cluster, members) = without_members(&state.cluster.object, &args.groups);
    let mut rest = SpecObjects::from_state(&state);
    rest.groups
        .retain(|group| !args.groups.iter().any(|one| one == group.name()));
    rest.cluster.clone_from(&cluster);
    rest.check(session.shell)?;
    let what = describe(&args.groups, &members);
    let command = format!(
        "kctl delete ig {} --name {name} --yes",
        args.groups.join(" ")
    );
    let removal = Removal {
        what: &what,
        cluster: &name,
        preview: format!("{what} of {name} would be taken out of the spec."),
        command: &command,
        effect: "takes it out",
    };
    if !confirm_removal(&removal, args.yes, session.shell).await? {
        return Ok(Outcome::Fine);
    }
    let mut changes = Vec::new();
    // The members first: a group that is left over is an error that says so, and the command can be repeated.
    if !members.is_empty() {
        let (key, expect) = (
            state.keys.config(),
            Expect::Version(state.cluster.version.clone()),
        );
        write_object(&session.store, &key, &cluster, expect).await?;
        changes.extend(SpecChange::from_objects(
            Some(&state.cluster.object),
            Some(&cluster),
        ));
    }
    for group in stored {
        delete_object(group, &state, session).await?;
        changes.extend(SpecChange::from_objects(Some(&group.object), None));
    }
    spec_log::log_spec_changes("delete instancegroup", &state.keys, changes, session).await;
    session
        .shell
        .print_done(&format!("took {what} out of {name}"));
    let first = if members.is_empty() {
        ""
    } else {
        "removes the members from etcd, and "
    };
    session.shell.hint(&format!(
        "kctl update {name} --yes    {first}deletes its instances"
    ));
    Ok(Outcome::Fine)
}

/// The cluster without the members of etcd in these groups, and the names of these by etcd cluster.
fn without_members(
    cluster: &Cluster,
    groups: &[String],
) -> (Cluster, BTreeMap<String, Vec<String>>) {
    let mut cluster = cluster.clone();
    let mut members: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for etcd in &mut cluster.spec.etcd_clusters {
        let (gone, stay) = std::mem::take(&mut etcd.etcd_members)
            .into_iter()
            .partition(|member| groups.contains(&member.instance_group));
        let gone: Vec<spec::api::etcd::EtcdMemberSpec> = gone;
        etcd.etcd_members = stay;
        if !gone.is_empty() {
            let names = gone.into_iter().map(|member| member.name);
            members.insert(etcd.name.clone(), names.collect());
        }
    }
    (cluster, members)
}

/// `instance group control-plane-eu-west-1d with etcd member d of main and d of events`.
fn describe(groups: &[String], members: &BTreeMap<String, Vec<String>>) -> String {
    let word = if groups.len() == 1 { "group" } else { "groups" };
    let what = format!("instance {word} {}", groups.join(" and "));
    if members.is_empty() {
        return what;
    }
    let members = members
        .iter()
        .map(|(etcd, names)| format!("{} of {etcd}", names.join(" and ")));
    let members: Vec<String> = members.collect();
    format!("{what}, with etcd members {}", members.join(", "))
}

async fn delete_object(
    stored: &StoredObject<InstanceGroupSpec>,
    state: &ClusterState,
    session: &Session<'_>,
) -> Result<(), CommandError> {
    let group = stored.object.name();
    let deleted = session
        .store
        .delete(
            &state.keys.group(group),
            Expect::Version(stored.version.clone()),
        )
        .await;
    deleted.map_err(|error| match error {
        StoreError::Conflict { .. } => CommandError::from_message(
            ErrorKind::Precondition,
            format!("InstanceGroup {group} was changed by somebody else at the same time: it was not deleted"),
            format!("see what it is now with `kctl get ig {group} -o yaml`, and repeat the command"),
        ),
        error => store_error(error),
    })
}
