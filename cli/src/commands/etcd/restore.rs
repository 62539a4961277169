//! `kctl etcd restore`: a snapshot of the backup store, with the changes after it or without, takes the place of an etcd cluster's data. kctl
//! changes the formation record; protokube does the rest.

use super::follow::{Followed, follow_until_done};
use super::formation::{Formation, new_token};
use super::reports::EtcdReports;
use super::restore_point::{PointRow, PointSearch, Source, count_parts};
use super::snapshot::BackupStore;
use super::volume_holders::find_holder;
use crate::args::{EtcdRestore, ReportFormat};
use crate::commands::backups::take_before;
use crate::commands::document::print_document;
use crate::commands::existing_cluster::read_served_version;
use crate::commands::session::Session;
use crate::error::{CommandError, ErrorKind, Outcome};
use crate::state::user_at_host;
use crate::ui::etcd_copies::{CopyRow, copies_table, list_copies};
use etcd_rules::backup::{FoundSnapshot, SnapshotManifest};
use etcd_rules::{
    FormationRecord, NextGeneration, ReportedMember, RestoredChanges, RestoredSnapshot,
    RevisionBump, SaidRevision, begin_restore, call_off_restore, choose_bump, member_name_matches,
};
use etcd_store::StoredRecord;
use node::duration::duration_text;
use node::formatted::UnknownFields;
use serde::Serialize;
use spec::validate::versions::Version;
use std::time::Duration;

/// How long an etcd cluster may take to start after its restore is over.
const START_TIME: Duration = Duration::from_mins(3);

/// A restore that was asked for.
struct Restore<'a> {
    args: &'a EtcdRestore,
    stored: Formation<'a>,
    manifest: SnapshotManifest,
    /// The changes after the snapshot that are restored too.
    changes: Option<RestoredChanges>,
    /// How near it comes to the time that was asked for.
    point: Option<PointRow>,
    all: Vec<FoundSnapshot>,
    store: String,
    reports: EtcdReports,
    record: FormationRecord,
    /// The version of Kubernetes that API servers serve, if that is known. Not read for a restore that an earlier call has begun.
    served: Option<Version>,
    /// How far the revisions of the snapshot are raised.
    bump: u64,
}

/// What a restore takes, and whether it is done, as JSON or YAML.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct RestoreDocument<'a> {
    format: u32,
    cluster: &'a str,
    etcd: &'a str,
    /// Address of the backup store.
    store: &'a str,
    snapshot: &'a str,
    /// Revision of the snapshot.
    #[serde(skip_serializing_if = "Option::is_none")]
    revision: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    keys: Option<u64>,
    /// With `--time` and `--latest`.
    #[serde(skip_serializing_if = "Option::is_none")]
    point: Option<&'a PointRow>,
    /// The member on whose volume it is restored.
    #[serde(skip_serializing_if = "Option::is_none")]
    on: Option<&'a str>,
    /// True once the etcd cluster serves it.
    restored: bool,
}

/// Shows what a restore does, does it, or calls one off.
pub async fn run(args: &EtcdRestore, session: &Session<'_>) -> Result<Outcome, CommandError> {
    let name = session.cluster_name(args.cluster.as_deref()).await?;
    let etcd = args.etcd.as_str();
    let stored = Formation {
        session,
        name: &name,
        etcd,
    };
    let (record, read) = stored.read().await?;
    if args.call_off {
        return call_off(&stored, &record, &read, "restore").await;
    }
    let backups = BackupStore::of_cluster(&name, &args.etcd, session).await?;
    let all = backups.read_all().await?;
    let search = PointSearch {
        backups: &backups,
        all: &all,
        record: &record,
        name: &name,
        etcd: &args.etcd,
    };
    let Source {
        manifest,
        changes,
        point,
    } = search.find_source(args).await?;
    let mut restore = Restore {
        args,
        stored,
        manifest,
        changes,
        point,
        all,
        store: backups.store.url().to_owned(),
        reports: EtcdReports::read(&name, session).await?,
        record,
        served: None,
        bump: 0,
    };
    let copies = list_copies(&restore.reports.members, &restore.record, &args.etcd);
    if let Some(running) = restore.find_running() {
        // An earlier call has begun it.
        return restore.follow_running(running).await;
    }
    if let Some(token) = restore.find_done() {
        // An earlier call has done it: to do it again would give up what was written since.
        if args.yes {
            restore.follow_done(token).await?;
        }
        return restore.print_done();
    }
    restore.check_origin()?;
    restore.check_minor().await?;
    let on = restore.choose_member()?;
    let silent = restore.check_others(&on).await?;
    restore.bump = restore.find_bump()?;
    if !args.yes {
        return restore.print(&restore.describe(&copies, &on, &silent), Some(&on), false);
    }
    restore.note_point();
    restore.keep_present().await?;
    // The record that was looked at: if it has changed meanwhile, nothing is written.
    let volume = restore.find_place(&on);
    let (token, source) = (new_token()?, restore.source());
    let next = begin_restore(&restore.record, &on, volume.as_deref(), &token, source);
    let next = next.map_err(|why| {
        let why = format!("etcd {etcd} cannot be restored on member {on}: {why}");
        stored.refuse(why, "see the members")
    })?;
    stored.write(&next, &read).await?;
    restore.follow(&token, Some(&on)).await?;
    restore.print_end()
}

/// Calls off what was asked for: a `restore` or a `recovery`.
pub(super) async fn call_off(
    stored: &Formation<'_>,
    record: &FormationRecord,
    read: &StoredRecord,
    what: &str,
) -> Result<Outcome, CommandError> {
    let etcd = stored.etcd;
    let by = format!("it was called off by {}", user_at_host());
    let next = call_off_restore(record, &by).map_err(|why| {
        let why = format!("the {what} of etcd {etcd} cannot be called off: {why}");
        stored.refuse(why, "see the members")
    })?;
    stored.write(&next, read).await?;
    let done = format!("{etcd}: the {what} was called off; the members go on as before");
    stored.session.shell.print_done(&done);
    Ok(Outcome::Fine)
}

impl Restore<'_> {
    fn list_command(&self) -> String {
        let (etcd, name) = (&self.args.etcd, self.stored.name);
        format!("`kctl etcd snapshot list --etcd {etcd} --name {name}`")
    }

    /// True if the snapshot is one of this etcd cluster.
    fn is_own(&self) -> bool {
        let SnapshotManifest { cluster, etcd, .. } = &self.manifest;
        (cluster.as_str(), etcd) == (self.stored.name, &self.args.etcd)
    }

    fn check_origin(&self) -> Result<(), CommandError> {
        if self.args.force || self.is_own() {
            return Ok(());
        }
        let SnapshotManifest { cluster, etcd, .. } = &self.manifest;
        Err(CommandError::from_message(
            ErrorKind::Precondition,
            format!(
                "{} is a snapshot of etcd {etcd} of {cluster}, not of etcd {} of {}; --force restores it nevertheless",
                self.manifest.name, self.args.etcd, self.stored.name
            ),
            format!("see the snapshots: {}", self.list_command()),
        ))
    }

    /// The version of Kubernetes that the data is of and the one that API servers serve, if the first is of a newer minor.
    fn find_newer(&self) -> Option<(Version, &Version)> {
        let taken = Version::parse(self.manifest.kubernetes_version.as_deref()?)?;
        let served = self.served.as_ref()?;
        (taken.minor > served.minor).then_some((taken, served))
    }

    /// API servers cannot read what a newer minor has stored, and drop fields that they do not know.
    async fn check_minor(&mut self) -> Result<(), CommandError> {
        let Formation { session, name, .. } = self.stored;
        self.served = read_served_version(name, session).await?;
        let Some((taken, served)) = self.find_newer().filter(|_| !self.args.newer_minor) else {
            return Ok(());
        };
        let refused = CommandError::from_message(
            ErrorKind::Precondition,
            format!(
                "{} was taken with Kubernetes {taken}, and API servers of {name} serve {served}: they could not read all of it; \
                 --newer-minor restores it nevertheless",
                self.manifest.name
            ),
            format!(
                "upgrade to Kubernetes 1.{} first: `kctl upgrade {name}`",
                taken.minor
            ),
        );
        Err(refused.with_hint(format!("or see the snapshots: {}", self.list_command())))
    }

    /// What goes into the record.
    fn source(&self) -> RestoredSnapshot {
        let verified = self.manifest.verified.as_ref();
        let revision = verified.map(|verified| verified.revision);
        RestoredSnapshot {
            store: self.store.clone(),
            name: self.manifest.name.clone(),
            sha256: self.manifest.sha256.clone(),
            bytes: self.manifest.bytes,
            revision,
            keys: verified.map(|verified| verified.keys),
            bump: self.bump,
            unreadable_secrets: self.args.unreadable_secrets,
            changes: self.changes.clone(),
            unknown: UnknownFields::new(),
        }
    }

    /// How far the revisions of the snapshot are raised: above all that a member has reported, or that a snapshot of this etcd cluster has.
    fn find_bump(&self) -> Result<u64, CommandError> {
        let leads = |one: &&ReportedMember| {
            let running = one.status.running.as_ref();
            running.is_some_and(|of| of.leader.as_ref() == Some(&of.id))
        };
        let leaders = self.members().filter(leads);
        let leading = leaders.filter_map(|one| Some(one.status.running.as_ref()?.revision));
        let verified = self.manifest.verified.as_ref();
        let snapshot = verified.map(|verified| verified.revision);
        let chosen = choose_bump(snapshot, leading.min(), self.said_revisions());
        let shell = self.stored.session.shell;
        match chosen {
            Ok(RevisionBump { bump, ignored }) => {
                for SaidRevision { who, revision } in ignored {
                    shell.warning(&format!(
                        "the revision {revision} of {who} is ignored: nothing else comes near it"
                    ));
                }
                Ok(bump)
            }
            Err(SaidRevision { who, revision }) => Err(CommandError::from_message(
                ErrorKind::Precondition,
                format!(
                    "{who} says that revision {revision} was used: above it, etcd could not count for long"
                ),
                format!(
                    "see who wrote that, and delete it, or restore another snapshot: {}",
                    self.list_command()
                ),
            )),
        }
    }

    fn said_revisions(&self) -> Vec<SaidRevision> {
        let reported = self.members().filter_map(|one| {
            let who = format!("the member on {}", one.status.instance);
            Some((who, one.status.running.as_ref()?.revision))
        });
        let stored = self.all.iter().filter_map(|one| {
            let manifest = one.manifest.as_ref()?;
            let whose = (manifest.cluster.as_str(), &manifest.etcd);
            let is_own = whose == (self.stored.name, &self.args.etcd);
            let who = format!("the manifest of the snapshot {}", one.name());
            Some((who, one.revision().filter(|_| is_own)?))
        });
        // What a restore before this one began with.
        let next = self.record.next.as_ref().and_then(NextGeneration::snapshot);
        let begun = next.or(self.record.generation.restored.as_ref());
        let begun = begun.map(|of| {
            let changes = of.changes.as_ref().map(|changes| changes.revision);
            let last = of.revision.max(changes).unwrap_or_default();
            let revision = last.saturating_add(of.bump);
            (format!("the restore of {}", of.name), revision)
        });
        let changes = self.changes.as_ref().map(|changes| {
            let who = format!("the last of the changes after {}", self.manifest.name);
            (who, changes.revision)
        });
        let all = reported.chain(stored).chain(begun).chain(changes);
        all.map(|(who, revision)| SaidRevision { who, revision })
            .collect()
    }

    fn members(&self) -> impl Iterator<Item = &ReportedMember> {
        let of_cluster = |one: &&ReportedMember| one.status.etcd == self.args.etcd;
        self.reports.members.iter().filter(of_cluster)
    }

    /// The member that was named, or the first whose instance reports: a running one if there is one. One that is still to be added can take
    /// a snapshot too.
    fn choose_member(&self) -> Result<String, CommandError> {
        if let Some(named) = &self.args.on {
            let etcd = &self.args.etcd;
            let joins = self.reporting().filter_map(|one| self.member_of(one));
            let mut joins = joins.filter(|one| !self.record.members.contains_key(one));
            return match joins.find(|one| one == named || member_name_matches(etcd, named, one)) {
                Some(member) => Ok(member),
                None => self.stored.find_member(&self.record, named),
            };
        }
        let mut able: Vec<(bool, bool, Option<u32>, String)> = self
            .reporting()
            .filter_map(|one| {
                let member = self.member_of(one)?;
                let joins = !self.record.members.contains_key(&member);
                let running = one.status.running.as_ref();
                // During an upgrade, one of the minor before: others of it could not join a newer cluster.
                let minor = running.and_then(|one| one.version.split('.').nth(1)?.parse().ok());
                Some((joins, running.is_none(), minor, member))
            })
            .collect();
        able.sort();
        let first = able.into_iter().next();
        first.map(|(_, _, _, member)| member).ok_or_else(|| {
            self.stored.refuse(
                format!(
                    "no instance reports lately that it has a volume of etcd {}, and protokube there would have to restore the snapshot",
                    self.args.etcd
                ),
                "bring up a control plane (`kctl update --yes` makes volumes and groups), wait until it reports, then look",
            )
        })
    }

    /// The instances with a volume of this etcd cluster that have reported lately.
    fn reporting(&self) -> impl Iterator<Item = &ReportedMember> {
        self.members().filter(|one| one.is_stored_lately())
    }

    /// The member that an instance has the volume of: one in the record, or one that is to be added and whose volume is known.
    fn member_of(&self, one: &ReportedMember) -> Option<String> {
        let mut recorded = self.record.members.iter();
        let by_volume = recorded.find(|(_, of)| Some(&of.volume) == one.status.volume.as_ref());
        let by_volume = by_volume.map(|(member, _)| member.clone());
        let by_name = || one.status.member.clone();
        let can_restore = |member: &String| {
            let joins = || !self.record.has_left(member) && self.find_place(member).is_some();
            self.record.members.contains_key(member) || joins()
        };
        by_volume.or_else(by_name).filter(can_restore)
    }

    /// The volume of a member that the record lacks: the one that its instance reports, or that it had in an etcd cluster that was given up.
    fn find_place(&self, member: &str) -> Option<String> {
        let is_own = |one: &&ReportedMember| one.status.member.as_deref() == Some(member);
        let mut reported = self.reporting().filter(is_own);
        let reported = reported.find_map(|one| one.status.volume.clone());
        let given_up = self.record.retired.values().filter(|of| of.given_up);
        let mut given_up = given_up.filter_map(|of| of.members.get(member)?.last());
        reported.or_else(|| given_up.next().map(|one| one.volume.clone()))
    }

    /// Fails if an instance that does not report has the volume of another member: the others would stop, and wait for it. With --force,
    /// says which.
    async fn check_others(&self, on: &str) -> Result<Vec<String>, CommandError> {
        let mut silent = Vec::new();
        let reports = |volume: &String| {
            let mut members = self.members();
            members.any(|one| one.is_stored_lately() && one.status.volume.as_ref() == Some(volume))
        };
        let others = self.record.members.iter();
        for (member, recorded) in others.filter(|(member, _)| *member != on) {
            let volume = &recorded.volume;
            if reports(volume) {
                continue;
            }
            let Formation { session, name, .. } = self.stored;
            let held = find_holder(volume, name, session).await;
            if self.args.force {
                silent.push(match held {
                    Ok(Some(holder)) => format!("{holder} with {volume} of member {member}"),
                    Ok(None) => continue,
                    Err(_) => format!("whatever has {volume} of member {member}"),
                });
            } else if let Some(holder) = held? {
                return Err(self.stored.refuse(
                    format!(
                        "{holder} has {volume} of member {member} and does not report: all other members would stop and wait for it. Bring \
                         it back, or terminate it; --force stops the others now"
                    ),
                    "see the members",
                ));
            }
        }
        Ok(silent)
    }

    /// A snapshot of what is given up, if etcd can still give one.
    async fn keep_present(&self) -> Result<(), CommandError> {
        let Formation {
            session,
            name,
            etcd,
        } = self.stored;
        match take_before("restore", (name, etcd), "--force", session).await {
            Err(error) if self.args.force && error.kind != ErrorKind::Interrupted => {
                let why = error.cause.map(|cause| format!(": {cause:#}"));
                let why = why.unwrap_or_default();
                let warning = format!("no snapshot of the present was taken{why}");
                session.shell.warning(&warning);
                Ok(())
            }
            taken => taken,
        }
    }

    /// True if this snapshot with these changes is what was asked for.
    fn is_asked(&self, of: &RestoredSnapshot) -> bool {
        of.name == self.manifest.name && of.changes == self.changes
    }

    /// The restore that an earlier call has begun, if it is this one.
    fn find_running(&self) -> Option<&NextGeneration> {
        let running = self.record.next.as_ref()?;
        let is_asked = running.snapshot().is_some_and(|of| self.is_asked(of));
        let is_there = self.args.on.as_ref().is_none_or(|on| *on == running.from);
        (is_asked && is_there).then_some(running)
    }

    async fn follow_running(&self, running: &NextGeneration) -> Result<Outcome, CommandError> {
        if !self.args.yes {
            let (what, from) = (self.name_source(), &running.from);
            let text = format!("{what} is being restored on member {from}\n");
            self.print(&text, Some(from), false)?;
            let shell = self.stored.session.shell;
            shell.hint("the same command with --yes follows it");
            return Ok(Outcome::Fine);
        }
        self.follow(&running.token, Some(&running.from)).await?;
        self.print_end()
    }

    /// The token of the etcd cluster, if it began with this, and that is not asked for once more.
    fn find_done(&self) -> Option<&str> {
        let generation = &self.record.generation;
        let of = generation.restored.as_ref();
        let of = of.filter(|_| self.record.is_formed())?;
        let wanted = (&self.store, &self.manifest.sha256);
        let is_done = (&of.store, &of.sha256) == wanted && self.is_asked(of);
        (is_done && !self.args.again).then_some(&generation.token)
    }

    /// The etcd cluster that an earlier call has begun may just be starting, or all its members may be lost.
    async fn follow_done(&self, token: &str) -> Result<(), CommandError> {
        let time = self.args.timeout.min(START_TIME);
        let followed = follow_until_done(&self.stored, token, None, time).await;
        followed.map(drop).map_err(|error| {
            error.with_hint(format!(
                "etcd {} has begun with {} already; if it is lost since, --again restores it once more",
                self.args.etcd,
                self.name_source()
            ))
        })
    }

    async fn follow(&self, token: &str, on: Option<&str>) -> Result<(), CommandError> {
        let followed = follow_until_done(&self.stored, token, on, self.args.timeout).await;
        let followed = followed.map_err(|error| {
            error.with_hint(format!(
                "until a member has stopped, `kctl etcd restore {} --etcd {} --call-off` ends it",
                self.stored.name, self.args.etcd
            ))
        });
        match followed? {
            Followed::Serves => Ok(()),
            Followed::Refused(why) => Err(CommandError::from_message(
                ErrorKind::Failed,
                format!("nothing was changed: {why}"),
                format!("restore another snapshot: {}", self.list_command()),
            )),
        }
    }

    fn print_done(&self) -> Result<Outcome, CommandError> {
        let text = format!(
            "etcd {} has begun with {} already; nothing was changed\n",
            self.args.etcd,
            self.name_source()
        );
        self.print(&text, None, true)?;
        self.stored
            .session
            .shell
            .hint("--again restores it once more, and gives up everything that was written since");
        Ok(Outcome::Fine)
    }

    /// What is restored, and how to name it once more: what is written meanwhile is not in it.
    fn note_point(&self) {
        let Some(point) = &self.point else { return };
        let (shell, etcd) = (self.stored.session.shell, &self.args.etcd);
        let option = point.option(&self.manifest.name);
        shell.note(&format!("{etcd}: {}", point.describe()));
        if self.args.latest {
            shell.note(&format!(
                "{etcd}: should this be interrupted, repeat the command with {option} in the place of --latest"
            ));
        }
    }

    fn print_end(&self) -> Result<Outcome, CommandError> {
        let (etcd, name) = (&self.args.etcd, self.stored.name);
        let text = format!(
            "etcd {etcd} serves the data of {}. The other members join as new ones:\n  kctl update {name} --yes    creates volumes that \
             were deleted\n  kctl etcd status {name}     shows how far the members are\n",
            self.name_source()
        );
        self.print(&text, None, true)
    }

    /// The snapshot, with the changes after it.
    fn name_source(&self) -> String {
        let name = &self.manifest.name;
        match &self.changes {
            None => name.clone(),
            Some(changes) => format!("{name} with {} after it", count_parts(changes.parts)),
        }
    }

    /// Prints a text for people, or what it says for programs.
    fn print(&self, text: &str, on: Option<&str>, restored: bool) -> Result<Outcome, CommandError> {
        let session = self.stored.session;
        let verified = self.manifest.verified.as_ref();
        let document = RestoreDocument {
            format: 1,
            cluster: self.stored.name,
            etcd: &self.args.etcd,
            store: &self.store,
            snapshot: &self.manifest.name,
            revision: verified.map(|verified| verified.revision),
            keys: verified.map(|verified| verified.keys),
            point: self.point.as_ref(),
            on,
            restored,
        };
        match self.args.output {
            ReportFormat::Table => session.shell.print_result(text)?,
            other => print_document(&document, other, session.shell)?,
        }
        Ok(Outcome::Fine)
    }

    /// What options give up, a line each, for a preview.
    fn describe_given_up(&self, silent: &[String]) -> String {
        let mut lines = Vec::new();
        if self.args.force {
            lines.push("--force: goes on if no snapshot of the present can be taken".to_owned());
        }
        if self.args.force && !self.is_own() {
            let SnapshotManifest { cluster, etcd, .. } = &self.manifest;
            lines.push(format!(
                "--force: it is a snapshot of etcd {etcd} of {cluster}, and not of this etcd cluster"
            ));
        }
        if self.args.newer_minor
            && let Some((taken, served)) = self.find_newer()
        {
            lines.push(format!(
                "--newer-minor: it was taken with Kubernetes {taken}, and API servers serve {served}: they drop what they do not know"
            ));
        }
        for holder in silent {
            lines.push(format!(
                "--force: {holder} does not report; all others stop, and wait until it is back or terminated"
            ));
        }
        if self.args.unreadable_secrets {
            lines.push(
                "--unreadable-secrets: goes on if no API server can decrypt its Secrets; they are lost then".to_owned(),
            );
        }
        let lines = lines.into_iter().map(|line| format!("! {line}\n"));
        lines.collect()
    }

    /// What a restore does, for a preview.
    fn describe(&self, copies: &[CopyRow], on: &str, silent: &[String]) -> String {
        let found = self.all.iter().find(|one| one.name() == self.manifest.name);
        let age = found.and_then(|one| one.stored.age);
        let age = age.and_then(|age| i64::try_from(age.as_secs()).ok());
        let mut age = age.map_or_else(String::new, |age| format!(", {} old", duration_text(age)));
        if found.is_some_and(|one| one.taken() < one.stored.written) {
            // The object was copied since.
            age.push_str(&format!(", taken at {}", self.manifest.taken_at));
        }
        let content = self.manifest.verified.as_ref().map_or_else(
            || "nobody has verified it yet".to_owned(),
            |of| format!("{} keys at revision {}", of.keys, of.revision),
        );
        let (etcd, name, snapshot) = (&self.args.etcd, self.stored.name, &self.manifest.name);
        let given_up = self.describe_given_up(silent);
        let given = [
            (self.args.force, " --force"),
            (self.args.unreadable_secrets, " --unreadable-secrets"),
            (self.args.newer_minor, " --newer-minor"),
            (self.args.again, " --again"),
        ];
        let options: String = given.iter().filter(|one| one.0).map(|one| one.1).collect();
        let reaches = self.point.as_ref().map(PointRow::describe);
        let reaches = reaches.map_or_else(String::new, |reaches| format!("- {reaches}\n"));
        let wanted = match (&self.point, &self.changes) {
            (Some(point), _) => point.option(snapshot),
            // What an earlier call has begun, on another member.
            (None, Some(_)) => "--latest".to_owned(),
            (None, None) => format!("--snapshot {snapshot}"),
        };
        let proof = match self.changes {
            None => "proves the snapshot in a scratch etcd and unpacks it",
            Some(_) => {
                "replays the changes after the snapshot in a scratch etcd, proves what is there, and unpacks it"
            }
        };
        format!(
            "{}\nA restore of etcd {etcd} from {snapshot} ({content}{age}):\n{reaches}\
             - gives up everything that was written since; a snapshot of the present is taken first, if etcd serves\n\
             - {proof} beside the data of member {on}, while the members serve\n\
             - then stops all members, and waits until each has stopped, or its volume is deleted or attached to nothing. Terminate an \
             instance that does not answer\n\
             - begins a new etcd cluster with it on member {on}. Revisions begin far above all that were used, so every client \
             lists anew\n\
             - keeps all old data on its volumes, in data.lost-N\n\
             - lets the other members join as new ones\n{given_up}\
             Nothing was changed. To begin: kctl etcd restore {name} --etcd {etcd} {wanted} --on {on}{options} --yes\n",
            copies_table(copies)
        )
    }
}
