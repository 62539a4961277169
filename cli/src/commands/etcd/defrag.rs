//! `kctl etcd defrag`: defragments the databases of etcd members, one after the other, leaders last.

use super::command::{CommandChannel, is_named, reporting_members};
use super::reports::EtcdReports;
use crate::args::{EtcdDefrag, ReportFormat};
use crate::commands::session::Session;
use crate::error::{CommandError, ErrorKind, Outcome};
use crate::ui::etcd_members::{
    DefragmentedRow, best_informed, defragmented_table, etcd_names, member_name,
};
use etcd_rules::{ReportedMember, Verb};
use indicatif::BinaryBytes;
use serde::Serialize;
use std::collections::BTreeSet;
use std::time::Duration;
use tokio::time::Instant;

/// How long the members may take to be well again after one was defragmented.
const SETTLE_TIME: Duration = Duration::from_mins(2);

/// Time between two looks at the members meanwhile.
const SETTLE_INTERVAL: Duration = Duration::from_secs(5);

/// The members that were defragmented, as JSON or YAML.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct DefragDocument<'a> {
    format: u32,
    cluster: &'a str,
    members: &'a [DefragmentedRow],
}

/// Defragments the members that are asked for. What was done before a failure is shown too.
pub async fn run(args: &EtcdDefrag, session: &Session<'_>) -> Result<Outcome, CommandError> {
    let name = session.cluster_name(args.cluster.as_deref()).await?;
    let channel = CommandChannel {
        session,
        name: &name,
        timeout: args.timeout,
    };
    let mut done = Vec::new();
    let ended = defragment_all(args, &channel, &mut done).await;
    let document = DefragDocument {
        format: 1,
        cluster: &name,
        members: &done,
    };
    match args.output {
        ReportFormat::Table => session.shell.print_result(&defragmented_table(&done))?,
        other => drop(super::print_document(&document, other, session)?),
    }
    ended.map(|()| Outcome::Fine)
}

async fn defragment_all(
    args: &EtcdDefrag,
    channel: &CommandChannel<'_>,
    done: &mut Vec<DefragmentedRow>,
) -> Result<(), CommandError> {
    let reports = EtcdReports::read(channel.name, channel.session).await?;
    let all: Vec<String> = match &args.etcd {
        Some(etcd) => vec![etcd.clone()],
        None => etcd_names(&reports.members)
            .into_iter()
            .map(str::to_owned)
            .collect(),
    };
    if let (Some(etcd), Some(named)) = (&args.etcd, &args.member) {
        let members = reporting_members(&reports.members, etcd, channel.name)?;
        let Some(member) = members.iter().find(|one| is_named(one, named)) else {
            return Err(CommandError::from_message(
                ErrorKind::Precondition,
                format!("no instance reports a member {named} of {etcd} that runs"),
                format!("see the members with `kctl etcd status {}`", channel.name),
            ));
        };
        return defragment_member(member, channel, done).await;
    }
    if all.is_empty() {
        // The error says what to do.
        reporting_members(&reports.members, "main", channel.name)?;
    }
    for etcd in &all {
        defragment_cluster(etcd, channel, done).await?;
    }
    Ok(())
}

/// Defragments the members of an etcd cluster, each once all of them are well.
async fn defragment_cluster(
    etcd: &str,
    channel: &CommandChannel<'_>,
    done: &mut Vec<DefragmentedRow>,
) -> Result<(), CommandError> {
    let mut over = BTreeSet::new();
    loop {
        // The first look has nothing to wait for.
        let patience = if over.is_empty() {
            Duration::ZERO
        } else {
            SETTLE_TIME
        };
        let members = wait_until_well(etcd, patience, channel).await?;
        let mut left: Vec<&ReportedMember> = members
            .iter()
            .filter(|one| !over.contains(&one.status.instance))
            .collect();
        // Who leads may have changed meanwhile.
        left.sort_by_key(|one| one.role == "leader");
        let Some(next) = left.first() else {
            return Ok(());
        };
        defragment_member(next, channel, done).await?;
        over.insert(next.status.instance.clone());
    }
}

async fn defragment_member(
    member: &ReportedMember,
    channel: &CommandChannel<'_>,
    done: &mut Vec<DefragmentedRow>,
) -> Result<(), CommandError> {
    let shell = channel.session.shell;
    let (etcd, name) = (&member.status.etcd, member_name(member));
    let instance = &member.status.instance;
    shell.note(&format!(
        "{etcd}: asking protokube on {instance} to defragment {name}"
    ));
    let answer = channel.execute(member, Verb::Defragment {}).await?;
    let database = answer.database.ok_or_else(|| {
        CommandError::from_message(
            ErrorKind::Failed,
            format!("protokube on {instance} does not say how large the database is"),
            "use the kctl of the cluster's release",
        )
    })?;
    shell.print_done(&format!(
        "{etcd}: {name}: {} before, {} after",
        BinaryBytes(database.before_bytes),
        BinaryBytes(database.after_bytes)
    ));
    done.push(DefragmentedRow {
        etcd: etcd.clone(),
        name: name.to_owned(),
        instance: instance.clone(),
        before_bytes: database.before_bytes,
        after_bytes: database.after_bytes,
    });
    Ok(())
}

/// The members of an etcd cluster once all that etcd lists report, run and know a leader.
async fn wait_until_well(
    etcd: &str,
    patience: Duration,
    channel: &CommandChannel<'_>,
) -> Result<Vec<ReportedMember>, CommandError> {
    let ends = Instant::now() + patience;
    loop {
        let reports = EtcdReports::read(channel.name, channel.session).await?;
        reporting_members(&reports.members, etcd, channel.name)?;
        let ill = find_ill(&reports.members, etcd);
        if ill.is_empty() {
            let own = reports.members.into_iter();
            // An instance may report a member that has not joined yet, and one that is gone has left its report.
            return Ok(own
                .filter(|one| one.status.etcd == etcd && one.is_stored_lately())
                // A learner is left out: it is still receiving the leader's data.
                .filter(|one| one.status.running.as_ref().is_some_and(|one| !one.learner))
                .collect());
        }
        if Instant::now() >= ends {
            return Err(CommandError::from_message(
                ErrorKind::Precondition,
                format!(
                    "{etcd} is not well, and a member that is defragmented answers nothing: {}",
                    ill.join("; ")
                ),
                format!("see why: `kctl etcd status {}`", channel.name),
            )
            .with_hint(format!(
                "to defragment a member anyway: kctl etcd defrag {} --etcd {etcd} --member MEMBER",
                channel.name
            )));
        }
        tokio::time::sleep(SETTLE_INTERVAL).await;
    }
}

/// The members that etcd lists and that are not well, each with the reason. Alarms do not count: a defragmentation is what helps
/// against `NOSPACE`.
fn find_ill(members: &[ReportedMember], etcd: &str) -> Vec<String> {
    let Some(best) = best_informed(members, etcd) else {
        return vec!["no member runs".to_owned()];
    };
    let why = |id: &str| {
        let report = members.iter().find(|one| {
            let running = one.status.running.as_ref();
            one.status.etcd == etcd
                && one.is_stored_lately()
                && running.is_some_and(|one| one.id == id)
        });
        match report {
            None => Some("is reported by no instance"),
            Some(one) if one.role == "no leader" => Some("knows no leader"),
            Some(_) => None,
        }
    };
    let ill = best.members.iter().filter_map(|listed| {
        let named = if listed.name.is_empty() {
            &listed.id
        } else {
            &listed.name
        };
        why(&listed.id).map(|why| format!("{named} {why}"))
    });
    ill.collect()
}
