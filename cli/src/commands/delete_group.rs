//! `kctl delete ig`: removes an instance group from the spec. The next update shows and deletes its instances.

use super::session::Session;
use super::spec_log;
use super::spec_objects::SpecObjects;
use crate::args::DeleteGroup;
use crate::error::{CommandError, ErrorKind, Outcome};
use crate::state::{ClusterState, SpecChange, store_error};
use aws_client::store::{Expect, StoreError};
use spec::api::etcd::EtcdMemberSpec;
use spec::read::ReadOptions;
use std::collections::BTreeMap;

/// Removes the group's object from the store.
pub async fn run(args: &DeleteGroup, session: &Session<'_>) -> Result<Outcome, CommandError> {
    let name = session.cluster_name(None).await?;
    let state = ClusterState::read(
        &session.store,
        &name,
        ReadOptions {
            allow_unsupported: true,
        },
    )
    .await?;
    let stored = state.group(&args.group)?;
    check_no_etcd_member(&state, &args.group)?;
    let mut rest = SpecObjects::from_state(&state);
    rest.groups.retain(|group| group.name() != args.group);
    rest.check(session.shell)?;
    let question = format!(
        "Take instance group {} out of {name}? Type yes:",
        args.group
    );
    if !args.yes && !session.shell.can_ask() {
        session.shell.print_result(&format!(
            "Instance group {} of {name} would be taken out of the spec.",
            args.group
        ))?;
        session.shell.hint(&format!(
            "kctl delete ig {} --name {name} --yes    takes it out",
            args.group
        ));
        return Ok(Outcome::Fine);
    }
    if !args.yes && !session.shell.confirm(&question, "yes").await {
        return Err(CommandError::from_message(
            ErrorKind::Usage,
            format!("instance group {} was not deleted", args.group),
            format!("kctl delete ig {} --name {name} --yes", args.group),
        ));
    }
    let key = state.keys.group(&args.group);
    session
        .store
        .delete(&key, Expect::Version(stored.version.clone()))
        .await
        .map_err(|error| match error {
            StoreError::Conflict { .. } => CommandError::from_message(
                ErrorKind::Precondition,
                format!("InstanceGroup {} was changed by somebody else at the same time: it was not deleted", args.group),
                format!("see what it is now with `kctl get ig {} -o yaml`, and repeat the command", args.group),
            ),
            error => store_error(error),
        })?;
    let change = SpecChange::from_objects(Some(&stored.object), None);
    let change = change.into_iter().collect();
    spec_log::log_spec_changes("delete instancegroup", &state.keys, change, session).await;
    session
        .shell
        .print_done(&format!("took instance group {} out of {name}", args.group));
    session.shell.hint(&format!(
        "kctl update {name} --yes    deletes its instances"
    ));
    Ok(Outcome::Fine)
}

/// Fails if a member of etcd is in the group.
fn check_no_etcd_member(state: &ClusterState, group: &str) -> Result<(), CommandError> {
    let mut members: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for etcd in &state.cluster.object.spec.etcd_clusters {
        let here = |member: &&EtcdMemberSpec| member.instance_group == group;
        for member in etcd.etcd_members.iter().filter(here) {
            members.entry(&member.name).or_default().push(&etcd.name);
        }
    }
    if members.is_empty() {
        return Ok(());
    }
    let members = members
        .iter()
        .map(|(member, of)| format!("etcd member {member} of {}", of.join(", ")));
    let members: Vec<String> = members.collect();
    Err(CommandError::usage_error(
        format!(
            "{} is in instance group {group}: this release removes no members",
            members.join(" and ")
        ),
        format!("the group stays; `kctl edit ig {group}` changes its instances"),
    ))
}
