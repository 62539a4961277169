//! `kctl etcd snapshot save` and `verify`: protokube on the instance of a member does the work.

use super::BackupStore;
use super::refuse;
use crate::args::{AskedMember, EtcdDrill, SnapshotSave, SnapshotVerify};
use crate::commands::etcd::EtcdReports;
use crate::commands::etcd::command::{CommandChannel, reporting_members};
use crate::commands::session::Session;
use crate::error::{CommandError, ErrorKind, Outcome};
use crate::ui::etcd_members::member_name;
use etcd_rules::Verb;
use etcd_rules::backup::{check_asked_name, newest_verified};
use time::OffsetDateTime;
use time::macros::format_description;

/// Takes a snapshot.
pub async fn save(args: &SnapshotSave, session: &Session<'_>) -> Result<Outcome, CommandError> {
    let name = session.cluster_name(None).await?;
    let asked = args.snapshot.clone();
    let asked = asked.unwrap_or_else(|| timed_name("manual"));
    let channel = open_channel(&name, &args.asked, session);
    let says = take_snapshot(&asked, &args.asked.place.etcd, &channel).await?;
    session.shell.print_result(&format!("{says}\n"))?;
    Ok(Outcome::Fine)
}

fn open_channel<'a>(
    name: &'a str,
    asked: &AskedMember,
    session: &'a Session<'a>,
) -> CommandChannel<'a> {
    CommandChannel {
        session,
        name,
        timeout: asked.timeout,
    }
}

/// `manual-2026-11-25T05-40-00Z`.
pub fn timed_name(prefix: &str) -> String {
    let form = format_description!("[year]-[month]-[day]T[hour]-[minute]-[second]Z");
    let now = OffsetDateTime::now_utc().format(form).unwrap_or_default();
    format!("{prefix}-{now}")
}

/// Lets an instance take a snapshot under this name. Returns what it says.
pub async fn take_snapshot(
    asked: &str,
    etcd: &str,
    channel: &CommandChannel<'_>,
) -> Result<String, CommandError> {
    check_asked_name(asked).map_err(refuse)?;
    if asked == channel.name {
        return Err(CommandError::usage_error(
            format!("{asked} is the name of the cluster, not of a snapshot"),
            format!("name the cluster with --name {asked}, and the snapshot first, or not at all"),
        ));
    }
    let backups = BackupStore::of_cluster(channel.name, etcd, channel.session).await?;
    if backups.list().await?.iter().any(|one| one.name == asked) {
        return Err(refuse(format!("there is a snapshot {asked} already")));
    }
    let verb = Verb::Snapshot {
        name: asked.to_owned(),
    };
    ask_member(etcd, verb, channel).await
}

/// Lets a scratch etcd on an instance read a stored snapshot.
pub async fn verify(args: &SnapshotVerify, session: &Session<'_>) -> Result<Outcome, CommandError> {
    let name = session.cluster_name(None).await?;
    let Some(snapshot) = &args.snapshot else {
        return drill_newest(&name, &args.asked, session).await;
    };
    let backups = BackupStore::of_cluster(&name, &args.asked.place.etcd, session).await?;
    let snapshot = backups.require_manifest(snapshot).await?.name;
    verify_named(snapshot, &name, &args.asked, session).await
}

/// The same with the newest snapshot.
pub async fn drill(args: &EtcdDrill, session: &Session<'_>) -> Result<Outcome, CommandError> {
    let name = session.cluster_name(args.cluster.as_deref()).await?;
    drill_newest(&name, &args.asked, session).await
}

async fn drill_newest(
    name: &str,
    asked: &AskedMember,
    session: &Session<'_>,
) -> Result<Outcome, CommandError> {
    let backups = BackupStore::of_cluster(name, &asked.place.etcd, session).await?;
    let all = backups.read_all().await?;
    let newest = newest_verified(&all, |why| session.shell.warning(why));
    let newest = newest.ok_or_else(|| {
        refuse(format!(
            "{} has no verified snapshot that can be read",
            backups.store.url()
        ))
        .with_hint(format!(
            "take one: `kctl etcd snapshot save --etcd {} --name {name}`",
            asked.place.etcd
        ))
    })?;
    verify_named(newest.name().to_owned(), name, asked, session).await
}

async fn verify_named(
    snapshot: String,
    name: &str,
    asked: &AskedMember,
    session: &Session<'_>,
) -> Result<Outcome, CommandError> {
    let verb = Verb::VerifySnapshot { name: snapshot };
    let channel = open_channel(name, asked, session);
    let says = ask_member(&asked.place.etcd, verb, &channel).await?;
    session.shell.print_result(&format!("{says}\n"))?;
    Ok(Outcome::Fine)
}

/// Asks the instance of a member that votes, preferably not of the leader.
async fn ask_member(
    etcd: &str,
    verb: Verb,
    channel: &CommandChannel<'_>,
) -> Result<String, CommandError> {
    let reports = EtcdReports::read(channel.name, channel.session).await?;
    let members = reporting_members(&reports.members, etcd, channel.name)?;
    let chosen = members.iter().filter(|one| one.votes());
    let chosen = chosen.min_by_key(|one| (one.role == "leader", member_name(one)));
    let chosen = chosen.ok_or_else(|| {
        CommandError::from_message(
            ErrorKind::Precondition,
            format!("no member of {etcd} knows a leader"),
            format!("see why: `kctl etcd status {}`", channel.name),
        )
    })?;
    let instance = &chosen.status.instance;
    channel.session.shell.note(&format!(
        "{etcd}: asking protokube on {instance} to {}",
        verb.describe()
    ));
    channel.execute(chosen, verb).await
}
