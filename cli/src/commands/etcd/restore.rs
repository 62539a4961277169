//! `kctl etcd restore`: a snapshot of the backup store takes the place of an etcd cluster's data. kctl changes the formation record;
//! protokube does the rest.

use super::command::CommandChannel;
use super::follow::follow_until_done;
use super::forget::find_holder;
use super::reports::EtcdReports;
use super::snapshot::{BackupStore, FoundSnapshot, take_snapshot, timed_name};
use super::stored_record::{StoredRecord, new_token};
use crate::args::EtcdRestore;
use crate::commands::session::Session;
use crate::error::{CommandError, ErrorKind, Outcome};
use crate::ui::etcd_copies::{CopyRow, copies_table, list_copies};
use aws_client::store::Version;
use fleet::ReportedMember;
use node::backup::SnapshotManifest;
use node::duration::duration_text;
use node::etcd::{
    FormationRecord, FormationState, RestoredSnapshot, UnknownFields, begin_restore,
    call_off_restore, revision_bump,
};
use std::time::Duration;

/// How long protokube may take to begin with the snapshot of the present.
const BEFORE_TIME: Duration = Duration::from_mins(2);

/// A restore that was asked for.
struct Restore<'a> {
    args: &'a EtcdRestore,
    stored: StoredRecord<'a>,
    manifest: SnapshotManifest,
    all: Vec<FoundSnapshot>,
    store: String,
    reports: EtcdReports,
    record: FormationRecord,
}

/// Shows what a restore does, does it, or calls one off.
pub async fn run(args: &EtcdRestore, session: &Session<'_>) -> Result<Outcome, CommandError> {
    let name = session.cluster_name(args.cluster.as_deref()).await?;
    let stored = StoredRecord {
        session,
        name: &name,
        etcd: &args.etcd,
    };
    let (record, version) = stored.read().await?;
    let Some(snapshot) = &args.snapshot else {
        return call_off(&stored, &record, version).await;
    };
    let backups = BackupStore::of_cluster(&name, &args.etcd, session).await?;
    let restore = Restore {
        args,
        stored,
        manifest: backups.require_manifest(snapshot).await?,
        all: backups.read_all().await?,
        store: backups.store.url().to_owned(),
        reports: EtcdReports::read(&name, session).await?,
        record,
    };
    let copies = list_copies(&restore.reports.members, &restore.record, &args.etcd);
    restore.check_origin()?;
    if let FormationState::Recovering(running) = &restore.record.state
        && running
            .snapshot
            .as_ref()
            .is_some_and(|of| of.name == *snapshot)
        && args.on.as_ref().is_none_or(|on| *on == running.from)
    {
        // An earlier call has begun it.
        if !args.yes {
            let text = format!("{snapshot} is being restored on member {}\n", running.from);
            session.shell.print_result(&text)?;
            return Ok(Outcome::Fine);
        }
        restore.follow(&running.from).await?;
        return restore.print_end();
    }
    let on = restore.choose_member()?;
    if !args.yes {
        session
            .shell
            .print_result(&restore.describe(&copies, &on))?;
        return Ok(Outcome::Fine);
    }
    restore.check_others(&on).await?;
    restore.keep_present().await?;
    // It was read before the snapshot of the present was taken.
    let (record, version) = stored.read().await?;
    let next = begin_restore(&record, &on, &new_token()?, restore.source());
    let next = next.map_err(|why| {
        let why = format!(
            "etcd {} cannot be restored on member {on}: {why}",
            args.etcd
        );
        stored.refuse(why, "see the members")
    })?;
    stored.write(&next, version).await?;
    restore.follow(&on).await?;
    restore.print_end()
}

async fn call_off(
    stored: &StoredRecord<'_>,
    record: &FormationRecord,
    version: Version,
) -> Result<Outcome, CommandError> {
    let etcd = stored.etcd;
    let next = call_off_restore(record).map_err(|why| {
        let why = format!("the restore of etcd {etcd} cannot be called off: {why}");
        stored.refuse(why, "see the members")
    })?;
    stored.write(&next, version).await?;
    let done = format!("{etcd}: the restore was called off; nothing was changed");
    stored.session.shell.print_done(&done);
    Ok(Outcome::Fine)
}

impl Restore<'_> {
    fn check_origin(&self) -> Result<(), CommandError> {
        let SnapshotManifest { cluster, etcd, .. } = &self.manifest;
        if self.args.force || (cluster.as_str(), etcd) == (self.stored.name, &self.args.etcd) {
            return Ok(());
        }
        Err(self.stored.refuse(
            format!(
                "{} is a snapshot of etcd {etcd} of {cluster}, not of etcd {} of {}; --force restores it nevertheless",
                self.manifest.name, self.args.etcd, self.stored.name
            ),
            "see the members",
        ))
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
            bump: revision_bump(revision.unwrap_or_default(), self.newest_revision()),
            unknown: UnknownFields::new(),
        }
    }

    /// The highest revision that a member has reported, or that a snapshot has.
    fn newest_revision(&self) -> u64 {
        let reported = self.members().filter_map(|one| one.status.running.as_ref());
        let reported = reported.map(|running| running.revision);
        let stored = self.all.iter().filter_map(FoundSnapshot::revision);
        reported.chain(stored).max().unwrap_or_default()
    }

    fn members(&self) -> impl Iterator<Item = &ReportedMember> {
        let of_cluster = |one: &&ReportedMember| one.status.etcd == self.args.etcd;
        self.reports.members.iter().filter(of_cluster)
    }

    /// The member that was named, or the first whose instance reports: a running one if there is one.
    fn choose_member(&self) -> Result<String, CommandError> {
        if let Some(named) = &self.args.on {
            return self.stored.find_member(&self.record, named);
        }
        let fresh = self.members().filter(|one| one.is_stored_lately());
        let mut able: Vec<(bool, String)> = fresh
            .filter_map(|one| Some((one.status.running.is_none(), self.member_of(one)?)))
            .collect();
        able.sort();
        let first = able.into_iter().next();
        first.map(|(_, member)| member).ok_or_else(|| {
            self.stored.refuse(
                format!(
                    "no instance reports lately that it has a volume of etcd {}, and protokube there would have to restore the snapshot",
                    self.args.etcd
                ),
                "bring up a control plane (`kctl update --yes` makes volumes and groups), then look",
            )
        })
    }

    /// The member in the record that an instance has the volume of.
    fn member_of(&self, one: &ReportedMember) -> Option<String> {
        let mut recorded = self.record.members.iter();
        let by_volume = recorded.find(|(_, of)| Some(&of.volume) == one.status.volume.as_ref());
        let by_volume = by_volume.map(|(member, _)| member.clone());
        let by_name = || one.status.member.clone();
        let known = |member: &String| self.record.members.contains_key(member);
        by_volume.or_else(by_name).filter(known)
    }

    /// Fails if an instance that does not report has the volume of another member: the others would stop, and wait for it.
    async fn check_others(&self, on: &str) -> Result<(), CommandError> {
        let reports = |volume: &String| {
            let mut members = self.members();
            members.any(|one| one.is_stored_lately() && one.status.volume.as_ref() == Some(volume))
        };
        let others = self.record.members.iter();
        for (member, recorded) in others.filter(|(member, _)| *member != on) {
            let volume = &recorded.volume;
            if self.args.force || reports(volume) {
                continue;
            }
            let StoredRecord { session, name, .. } = self.stored;
            if let Some(holder) = find_holder(volume, name, session).await? {
                return Err(self.stored.refuse(
                    format!(
                        "{holder} has {volume} of member {member} and does not report: all other members would stop and wait for it. Bring \
                         it back, or terminate it; --force stops the others now"
                    ),
                    "see the members",
                ));
            }
        }
        Ok(())
    }

    /// A snapshot of what is given up, if etcd can still give one.
    async fn keep_present(&self) -> Result<(), CommandError> {
        let votes = |one: &ReportedMember| one.is_stored_lately() && one.votes();
        let shell = self.stored.session.shell;
        if !self.members().any(votes) {
            shell.note("etcd does not serve, so no snapshot of the present is taken; its data stays on the volumes");
            return Ok(());
        }
        let channel = CommandChannel {
            session: self.stored.session,
            name: self.stored.name,
            timeout: BEFORE_TIME,
        };
        let name = timed_name("before-restore");
        match take_snapshot(&name, self.stored.etcd, &channel).await {
            Ok(says) => shell.print_done(&says),
            Err(error) if !self.args.force || error.kind == ErrorKind::Interrupted => {
                return Err(error.with_hint(
                    "nothing was changed; --force restores without a snapshot of the present",
                ));
            }
            Err(error) => {
                let why = error.cause.map(|cause| format!(": {cause:#}"));
                let why = why.unwrap_or_default();
                shell.warning(&format!("no snapshot of the present was taken{why}"));
            }
        }
        Ok(())
    }

    async fn follow(&self, on: &str) -> Result<(), CommandError> {
        let followed = follow_until_done(&self.stored, &self.record, on, self.args.timeout).await;
        followed.map_err(|error| {
            error.with_hint(format!(
                "until a member has stopped, `kctl etcd restore {} --etcd {} --call-off` ends it",
                self.stored.name, self.args.etcd
            ))
        })
    }

    fn print_end(&self) -> Result<Outcome, CommandError> {
        let (etcd, name) = (&self.args.etcd, self.stored.name);
        let text = format!(
            "etcd {etcd} serves the data of {}. The other members join as new ones:\n  kctl update {name} --yes    creates volumes that \
             were deleted\n  kctl etcd status {name}     shows how far the members are\n",
            self.manifest.name
        );
        self.stored.session.shell.print_result(&text)?;
        Ok(Outcome::Fine)
    }

    /// What a restore does, for a preview.
    fn describe(&self, copies: &[CopyRow], on: &str) -> String {
        let found = self.all.iter().find(|one| one.name() == self.manifest.name);
        let age = found.and_then(|one| one.stored.age);
        let age = age.and_then(|age| i64::try_from(age.as_secs()).ok());
        let age = age.map_or_else(String::new, |age| format!(", {} old", duration_text(age)));
        let content = self.manifest.verified.as_ref().map_or_else(
            || "nobody has verified it yet".to_owned(),
            |of| format!("{} keys at revision {}", of.keys, of.revision),
        );
        let (etcd, name, snapshot) = (&self.args.etcd, self.stored.name, &self.manifest.name);
        format!(
            "{}\nA restore of etcd {etcd} from {snapshot} ({content}{age}):\n\
             - gives up everything that was written since; a snapshot of the present is taken first, if etcd serves\n\
             - proves the snapshot in a scratch etcd and unpacks it beside the data of member {on}, while the members serve\n\
             - then stops all members, and waits until each has stopped, or its volume is deleted or attached to nothing. Terminate an \
             instance that does not answer\n\
             - begins a new etcd cluster with the snapshot on member {on}. Revisions begin far above all that were used, so every client \
             lists anew\n\
             - keeps all old data on its volumes, in data.lost-N\n\
             - lets the other members join as new ones\n\
             Nothing was changed. To begin: kctl etcd restore {name} --etcd {etcd} --snapshot {snapshot} --on {on} --yes\n",
            copies_table(copies)
        )
    }
}
