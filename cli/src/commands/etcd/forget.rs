//! `kctl etcd forget`: an etcd cluster is founded without a member whose machine does not come, or events are founded anew. kctl changes
//! the formation record, if nobody else has changed it; protokube does the rest.

use super::formation::{Formation, new_token};
use super::reports::EtcdReports;
use super::volume_holders::find_holder;
use crate::args::EtcdForget;
use crate::commands::session::Session;
use crate::error::{CommandError, ErrorKind, Outcome};
use etcd_rules::{FormationRecord, ReportedMember, forget_member, found_anew, member_name_matches};
use etcd_store::StoredRecord;

/// A record, and what becomes of it.
struct Forgetting {
    etcd: String,
    next: FormationRecord,
    read: StoredRecord,
    /// What changes, a sentence.
    says: String,
}

/// Shows what would be forgotten, or forgets it.
pub async fn run(args: &EtcdForget, session: &Session<'_>) -> Result<Outcome, CommandError> {
    let name = session.cluster_name(Some(&args.cluster)).await?;
    let work = match &args.member {
        Some(member) => forget_everywhere(args, &name, member, session).await?,
        None => vec![give_up(args, &name, session).await?],
    };
    let mut text = String::new();
    for one in &work {
        if args.yes {
            write_record(one, &name, session).await?;
        }
        text.push_str(&format!("etcd {}: {}\n", one.etcd, one.says));
    }
    session.shell.print_result(&text)?;
    session.shell.hint(&if args.yes {
        format!("kctl etcd status {name}    shows how far the members are")
    } else {
        "the same command with --yes does it".to_owned()
    });
    Ok(Outcome::Fine)
}

/// The member in every etcd cluster that waits for it.
async fn forget_everywhere(
    args: &EtcdForget,
    name: &str,
    member: &str,
    session: &Session<'_>,
) -> Result<Vec<Forgetting>, CommandError> {
    let all = match &args.etcd {
        Some(etcd) => vec![etcd.clone()],
        None => vec!["main".to_owned(), "events".to_owned()],
    };
    let (mut work, mut refusals) = (Vec::new(), Vec::new());
    for etcd in all {
        match forget_in(&etcd, name, member, session).await {
            Ok(one) => work.push(one),
            Err(error) if error.kind == ErrorKind::Precondition && args.etcd.is_none() => {
                refusals.push(error);
            }
            Err(error) => return Err(error),
        }
    }
    match refusals.pop() {
        Some(refusal) if work.is_empty() => Err(refusal),
        _ => Ok(work),
    }
}

async fn forget_in(
    etcd: &str,
    name: &str,
    named: &str,
    session: &Session<'_>,
) -> Result<Forgetting, CommandError> {
    let (record, read) = stored(etcd, name, session).read().await?;
    let is_named = |one: &&String| *one == named || member_name_matches(etcd, named, one);
    let member = record.members.keys().find(is_named);
    let member = member.map_or(named, String::as_str);
    let refuse = |why| {
        let why = format!("member {member} of etcd {etcd} is not forgotten: {why}");
        refusal(name, why)
    };
    // What speaks against it without EC2.
    forget_member(&record, member, None).map_err(refuse)?;
    let holder = match record.members.get(member) {
        Some(recorded) => find_holder(&recorded.volume, name, session).await?,
        None => None,
    };
    let next = forget_member(&record, member, holder.as_deref()).map_err(refuse)?;
    let left: Vec<&str> = next.members.keys().map(String::as_str).collect();
    let says = format!(
        "founded without member {member}, by {}; {}. If the machine of {member} comes later, it joins",
        left.join(", "),
        match left.len() {
            1 => "one member has no reserve: its loss is an outage".to_owned(),
            2 => "of two members none may fail".to_owned(),
            count => format!("of {count} members {} may fail", (count - 1) / 2),
        }
    );
    Ok(Forgetting {
        etcd: etcd.to_owned(),
        next,
        read,
        says,
    })
}

/// The whole cluster: events only, and only without a quorum.
async fn give_up(
    args: &EtcdForget,
    name: &str,
    session: &Session<'_>,
) -> Result<Forgetting, CommandError> {
    let etcd = args.etcd.as_deref().unwrap_or_default();
    if etcd != "events" {
        return Err(CommandError::usage_error(
            format!("etcd {etcd} has the data of Kubernetes: it is not given up"),
            "to go on with the data of one member: `kctl etcd recover`",
        ));
    }
    let (record, read) = stored(etcd, name, session).read().await?;
    let reports = EtcdReports::read(name, session).await?;
    let serves =
        |one: &&ReportedMember| one.status.etcd == etcd && one.is_stored_lately() && one.votes();
    if let Some(led) = reports.members.iter().find(serves) {
        return Err(refusal(
            name,
            format!(
                "etcd {etcd} has a leader, as {} reports: nothing is given up. Lost members of a cluster with a quorum are replaced \
                 without a command",
                led.status.instance
            ),
        ));
    }
    let token = new_token()?;
    let next = found_anew(&record, &token)
        .map_err(|why| refusal(name, format!("etcd {etcd} is not given up: {why}")))?;
    let members: Vec<&str> = next.members.keys().map(String::as_str).collect();
    Ok(Forgetting {
        says: format!(
            "given up and founded anew by {}, once each of them has stopped and has moved its data aside. Events of before are gone from \
             the API; their data stays on the volumes",
            members.join(", ")
        ),
        etcd: etcd.to_owned(),
        next,
        read,
    })
}

fn stored<'a>(etcd: &'a str, name: &'a str, session: &'a Session<'a>) -> Formation<'a> {
    Formation {
        session,
        name,
        etcd,
    }
}

async fn write_record(
    one: &Forgetting,
    name: &str,
    session: &Session<'_>,
) -> Result<(), CommandError> {
    let stored = stored(&one.etcd, name, session);
    // A write whose answer was lost was repeated.
    if stored.try_write(&one.next, &one.read).await? || stored.read().await?.0 == one.next {
        return Ok(());
    }
    let state = match one.next.is_forming() {
        true => "a member came up, or somebody else changed it",
        false => "somebody else changed it",
    };
    Err(refusal(
        name,
        format!(
            "the record of etcd {} was changed meanwhile ({state}); nothing was changed",
            one.etcd
        ),
    ))
}

fn refusal(name: &str, why: String) -> CommandError {
    CommandError::from_message(
        ErrorKind::Precondition,
        why,
        format!("see the members with `kctl etcd status {name}`"),
    )
}
