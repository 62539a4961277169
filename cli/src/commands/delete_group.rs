//! `kctl delete ig`: takes an instance group out of the spec. Its machines go with the next update, which shows
//! what that means before it happens.

use super::objects::Objects;
use super::session::Session;
use super::spec_log;
use crate::args::DeleteGroup;
use crate::error::{CommandError, Kind, Outcome};
use crate::state::{ClusterState, SpecChange, store_error};
use aws_client::store::{Expect, StoreError};
use spec::api::etcd::EtcdMemberSpec;
use spec::read::ReadOptions;
use std::collections::BTreeMap;

/// Removes the group's object from the store.
pub async fn run(what: &DeleteGroup, session: &Session<'_>) -> Result<Outcome, CommandError> {
    let name = session.cluster(None).await?;
    let state = ClusterState::read(
        &session.store,
        &name,
        ReadOptions {
            allow_unsupported: true,
        },
    )
    .await?;
    let stored = state.group(&what.group)?;
    holds_no_member(&state, &what.group)?;
    let mut rest = Objects::stored(&state);
    rest.groups.retain(|group| group.name() != what.group);
    rest.check(session.shell)?;
    let question = format!(
        "Take instance group {} out of {name}? Type yes:",
        what.group
    );
    if !what.yes && !session.shell.asks() {
        session.shell.result(&format!(
            "Instance group {} of {name} would be taken out of the spec.",
            what.group
        ))?;
        session.shell.hint(&format!(
            "kctl delete ig {} --name {name} --yes    takes it out",
            what.group
        ));
        return Ok(Outcome::Fine);
    }
    if !what.yes && !session.shell.confirm(&question, "yes").await {
        return Err(CommandError::said(
            Kind::Usage,
            format!("instance group {} was not deleted", what.group),
            format!("kctl delete ig {} --name {name} --yes", what.group),
        ));
    }
    let key = state.keys.group(&what.group);
    session
        .store
        .delete(&key, Expect::Version(stored.version.clone()))
        .await
        .map_err(|error| match error {
            StoreError::Conflict { .. } => CommandError::said(
                Kind::Precondition,
                format!("InstanceGroup {} was changed by somebody else at the same time: it was not deleted", what.group),
                format!("see what it is now with `kctl get ig {} -o yaml`, and repeat the command", what.group),
            ),
            error => store_error(error),
        })?;
    let change = SpecChange::of(Some(&stored.object), None);
    let change = change.into_iter().collect();
    spec_log::log("delete instancegroup", &state.keys, change, session).await;
    session
        .shell
        .done(&format!("took instance group {} out of {name}", what.group));
    session
        .shell
        .hint(&format!("kctl update {name} --yes    deletes its machines"));
    Ok(Outcome::Fine)
}

/// Fails if a member of etcd is in the group.
fn holds_no_member(state: &ClusterState, group: &str) -> Result<(), CommandError> {
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
    Err(CommandError::usage(
        format!(
            "{} is in instance group {group}: this release removes no members",
            members.join(" and ")
        ),
        format!("the group stays; `kctl edit ig {group}` changes its machines"),
    ))
}
