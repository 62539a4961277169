//! What `kctl etcd restore` takes: the snapshot that is named, or with `--time` and `--latest` a snapshot and some of the parts of the changes
//! after it. Times are those of the backup store's clock alone: neither this computer nor any instance says when something was written.

use super::snapshot::{BackupStore, failed_store};
use crate::args::EtcdRestore;
use crate::error::{CommandError, ErrorKind};
use crate::moment;
use anyhow::Context;
use etcd_rules::backup::{
    ChainEnd, ChainGap, ChangesError, ChosenPoint, FoundSnapshot, RestorePoint, RestoreTime,
    SnapshotManifest, check_follows, choose_restore_point,
};
use etcd_rules::{FormationRecord, NextGeneration, RestoredChanges, RestoredSnapshot};
use etcd_store::{end_before, require_part};
use indicatif::BinaryBytes;
use node::duration::duration_text;
use node::formatted::UnknownFields;
use serde::Serialize;
use time::OffsetDateTime;

/// What is restored.
#[derive(Debug)]
pub(super) struct Source {
    /// That of the snapshot.
    pub(super) manifest: SnapshotManifest,
    /// The changes after it.
    pub(super) changes: Option<RestoredChanges>,
    /// How near it comes to the time that was asked for; `None`: a snapshot was named.
    pub(super) point: Option<PointRow>,
}

/// How near a restore comes to the time that was asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PointRow {
    /// The time; missing: the latest moment was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    asked: Option<String>,
    /// The moment of the data, by the backup store's clock; missing: the store does not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    reaches: Option<String>,
    /// Seconds from then to the time that was asked for, or to now.
    #[serde(skip_serializing_if = "Option::is_none")]
    misses_seconds: Option<u64>,
    /// How many parts of the changes after the snapshot are replayed, from the first one on.
    parts: u32,
    /// Bytes of these parts, as they are stored.
    part_bytes: u64,
    /// The last revision.
    revision: u64,
    /// etcd's id of the etcd cluster whose data it is, if that was given up since.
    #[serde(skip_serializing_if = "Option::is_none")]
    given_up: Option<String>,
    /// The time that chooses the same later.
    #[serde(skip)]
    pinned: Option<String>,
}

impl PointRow {
    /// The option that asks for the same.
    pub(super) fn option(&self, snapshot: &str) -> String {
        match (&self.asked, &self.pinned) {
            (Some(asked), _) => format!("--time {asked}"),
            (None, _) if self.parts == 0 => format!("--snapshot {snapshot}"),
            (None, Some(pinned)) => format!("--time {pinned}"),
            (None, None) => "--latest".to_owned(),
        }
    }

    /// A line of a preview.
    pub(super) fn describe(&self) -> String {
        let missed = self.misses_seconds.map(words);
        let distance = match (missed, &self.asked) {
            (Some(missed), Some(asked)) => format!(", {missed} before {asked}"),
            (Some(missed), None) => format!(", {missed} ago"),
            (None, _) => String::new(),
        };
        let reaches = match &self.reaches {
            Some(reaches) => format!("reaches {reaches} by the backup store's clock{distance}"),
            None => "reaches a time that the backup store does not say".to_owned(),
        };
        let how = match self.parts {
            0 => "the snapshot alone".to_owned(),
            parts => format!(
                "the snapshot and {} after it ({})",
                count_parts(parts),
                BinaryBytes(self.part_bytes)
            ),
        };
        let whose = self.given_up.as_ref().map(|id| {
            format!("; it is of etcd cluster {id}, which was given up in a recovery or restore")
        });
        format!(
            "{reaches}: {how}, up to revision {}{}",
            self.revision,
            whose.unwrap_or_default()
        )
    }
}

/// `7 parts of changes`.
pub(super) fn count_parts(parts: u32) -> String {
    match parts {
        1 => "1 part of changes".to_owned(),
        parts => format!("{parts} parts of changes"),
    }
}

fn refuse(why: String, next: String) -> CommandError {
    CommandError::from_message(ErrorKind::Precondition, why, next)
}

fn words(seconds: u64) -> String {
    duration_text(i64::try_from(seconds).unwrap_or(i64::MAX))
}

/// Where a restore finds what it takes.
#[derive(Clone, Copy, Debug)]
pub(super) struct PointSearch<'a> {
    pub(super) backups: &'a BackupStore,
    /// All snapshots of the backup store.
    pub(super) all: &'a [FoundSnapshot],
    pub(super) record: &'a FormationRecord,
    /// The cluster.
    pub(super) name: &'a str,
    /// The etcd cluster.
    pub(super) etcd: &'a str,
}

/// A snapshot with the changes after it, as far as they were read.
struct Reached {
    manifest: SnapshotManifest,
    changes: Option<RestoredChanges>,
    revision: u64,
}

impl PointSearch<'_> {
    /// What the command line asks for.
    pub(super) async fn find_source(&self, args: &EtcdRestore) -> Result<Source, CommandError> {
        if let Some(snapshot) = &args.snapshot {
            return Ok(Source {
                manifest: self.backups.require_manifest(snapshot).await?,
                changes: None,
                point: None,
            });
        }
        if let Some(of) = self.find_begun().filter(|_| args.latest && !args.again) {
            return Ok(Source {
                manifest: self.backups.require_manifest(&of.name).await?,
                changes: of.changes.clone(),
                point: None,
            });
        }
        let until = args.time.map(OffsetDateTime::unix_timestamp);
        self.find_point(until.map_or(RestoreTime::Latest, RestoreTime::NotAfter))
            .await
    }

    /// What an earlier call with `--latest` has begun to restore, or has just restored: nothing is stored of the etcd cluster since. The snapshot
    /// of the present that it has taken is neither.
    fn find_begun(&self) -> Option<&RestoredSnapshot> {
        let next = self.record.next.as_ref().and_then(NextGeneration::snapshot);
        next.or_else(|| {
            let current = self.record.formed_id()?;
            let stored = choose_restore_point(self.all, current, RestoreTime::Latest).point;
            let begun = self.record.generation.restored.as_ref();
            begun.filter(|_| stored.is_none())
        })
    }

    /// The last moment until then.
    async fn find_point(&self, until: RestoreTime) -> Result<Source, CommandError> {
        self.check_past(until)?;
        let (given_up, chosen) = self.choose(until)?;
        let Some(mut point) = chosen.point else {
            return Err(self.nothing_error(until));
        };
        if let Some(gap) = chosen.gaps.first() {
            return Err(self.gap_error(gap, &point, until));
        }
        let mut reached = self.reach(&point).await?;
        if let Some(other) = chosen.other
            && self.snapshot_revision(&other.snapshot) > Some(reached.revision)
        {
            // An upload that took long: what seemed to be written after it has less.
            reached = self.reach(&other).await?;
            point = other;
        }
        let asked = match until {
            RestoreTime::Latest => None,
            RestoreTime::NotAfter(time) => Some(time),
        };
        let misses = match asked {
            Some(time) => point.moment.map(|moment| time.saturating_sub(moment)),
            None => point
                .age
                .map(|age| i64::try_from(age.as_secs()).unwrap_or(i64::MAX)),
        };
        Ok(Source {
            manifest: reached.manifest,
            changes: reached.changes,
            point: Some(PointRow {
                asked: asked.map(moment::text),
                reaches: point.moment.map(moment::text),
                misses_seconds: misses.map(|misses| u64::try_from(misses).unwrap_or_default()),
                parts: point.parts,
                part_bytes: point.part_bytes,
                revision: reached.revision,
                given_up: given_up.map(str::to_owned),
                pinned: self.time_of(&point).map(moment::text),
            }),
        })
    }

    /// etcd's id of the etcd cluster as the record has it; `None`: it was never formed.
    fn current_id(&self) -> Option<&str> {
        self.record.cluster_id()
    }

    /// The ids of the etcd cluster, and of those that were given up for it.
    fn own_ids(&self) -> impl Iterator<Item = &str> {
        self.current_id().into_iter().chain(self.record.given_up())
    }

    /// The last moment of the etcd cluster as it is. A time before it began is one of those that were given up; their id is returned too.
    fn choose(&self, until: RestoreTime) -> Result<(Option<&str>, ChosenPoint), CommandError> {
        let Some(current) = self.current_id() else {
            return Err(refuse(
                format!(
                    "etcd {} of {} was never formed, so there is no moment of it",
                    self.etcd, self.name
                ),
                format!("see how far it is: `kctl etcd status {}`", self.name),
            ));
        };
        let own = choose_restore_point(self.all, current, until);
        if own.point.is_some() || until == RestoreTime::Latest {
            return Ok((None, own));
        }
        Ok(match self.choose_given_up(until) {
            Some((id, chosen)) => (Some(id), chosen),
            None => (None, own),
        })
    }

    /// The last moment of the etcd clusters that were given up.
    fn choose_given_up(&self, until: RestoreTime) -> Option<(&str, ChosenPoint)> {
        let given_up = self.record.given_up();
        let given_up = given_up.map(|id| (id, choose_restore_point(self.all, id, until)));
        let found = given_up.filter(|(_, chosen)| chosen.point.is_some());
        found.max_by_key(|(_, chosen)| chosen.point.as_ref().and_then(|point| point.moment))
    }

    /// A time that has not come says nothing about what will be stored until then.
    fn check_past(&self, until: RestoreTime) -> Result<(), CommandError> {
        let RestoreTime::NotAfter(time) = until else {
            return Ok(());
        };
        let now = self.store_time().filter(|now| time > *now);
        now.map_or(Ok(()), |now| {
            Err(refuse(
                format!(
                    "{} is in the future: the clock of {} shows {}",
                    moment::text(time),
                    self.backups.store.url(),
                    moment::text(now)
                ),
                format!(
                    "the last moment that is stored: {}",
                    self.command("--latest")
                ),
            ))
        })
    }

    /// The time of the listing by the store's clock, Unix seconds.
    fn store_time(&self) -> Option<i64> {
        let objects = self.all.iter().flat_map(|one| {
            let parts = one.stored.parts.iter();
            let parts = parts.map(|part| (part.written, part.age));
            parts.chain([(one.stored.written, one.stored.age)])
        });
        let shown = objects.filter_map(|(written, age)| {
            let age = i64::try_from(age?.as_secs()).ok()?;
            Some(written?.saturating_add(age))
        });
        shown.max()
    }

    fn find_snapshot(&self, name: &str) -> Option<&FoundSnapshot> {
        self.all.iter().find(|one| one.name() == name)
    }

    fn snapshot_revision(&self, name: &str) -> Option<u64> {
        self.find_snapshot(name)?.revision()
    }

    /// The first time that allows all that a moment consists of: a snapshot is older than its objects.
    fn time_of(&self, point: &RestorePoint) -> Option<i64> {
        let found = self.find_snapshot(&point.snapshot);
        found.and_then(|one| one.stored.written).max(point.moment)
    }

    /// Reads the last part of a moment, which the record names by its hash. protokube reads and checks all of them before any member stops.
    async fn reach(&self, point: &RestorePoint) -> Result<Reached, CommandError> {
        let found = self.find_snapshot(&point.snapshot);
        let manifest = found.and_then(|one| one.manifest.clone());
        let manifest = manifest.ok_or_else(|| {
            refuse(
                format!(
                    "{} has no manifest of {}",
                    self.backups.store.url(),
                    point.snapshot
                ),
                format!("see the snapshots: {}", self.list_command()),
            )
        })?;
        let verified = manifest.verified.as_ref();
        let revision = verified.map_or(0, |verified| verified.revision);
        if point.parts == 0 {
            return Ok(Reached {
                manifest,
                changes: None,
                revision,
            });
        }
        let read = self.read_end(&manifest, point.parts).await;
        let end = read.map_err(|error| self.part_error(error, point))?;
        Ok(Reached {
            manifest,
            revision: end.revision,
            changes: Some(RestoredChanges {
                parts: end.sequence,
                sha256: end.sha256,
                revision: end.revision,
                unknown: UnknownFields::new(),
            }),
        })
    }

    /// How far the chain after a snapshot is known with so many parts. The error is a [`ChangesError`] if the last of them is none of it.
    async fn read_end(&self, manifest: &SnapshotManifest, parts: u32) -> anyhow::Result<ChainEnd> {
        let begin = ChainEnd::of_manifest(manifest);
        let begin = begin.with_context(|| {
            format!(
                "the manifest of {} does not say of which etcd cluster it is",
                manifest.name
            )
        })?;
        let last = require_part(&self.backups.store, &begin.snapshot, parts).await?;
        let before = match parts {
            1 => begin,
            parts => end_before(&begin, parts, &last),
        };
        Ok(check_follows(&before, &last)?)
    }

    /// The last part cannot be used: it is damaged, or of another chain.
    fn part_error(&self, error: anyhow::Error, point: &RestorePoint) -> CommandError {
        if !error.is::<ChangesError>() {
            return failed_store(error);
        }
        let parts = self.find_snapshot(&point.snapshot);
        let parts = parts.map(|one| one.stored.parts.as_slice());
        let mut before = parts.unwrap_or_default().iter();
        let before = before.rfind(|part| part.sequence < point.parts);
        let before = before.and_then(|part| part.written);
        let error = error.context(format!(
            "{}: the moment that was asked for cannot be restored",
            self.backups.store.url()
        ));
        let hint = format!(
            "the snapshot before it: {}",
            self.command(&format!("--snapshot {}", point.snapshot))
        );
        let refused = CommandError::new(ErrorKind::Precondition, error, hint);
        match before {
            Some(before) => refused.with_hint(self.time_hint("the moment before it", before)),
            None => refused,
        }
    }

    /// What is behind a missing part cannot be reached.
    fn gap_error(&self, gap: &ChainGap, point: &RestorePoint, until: RestoreTime) -> CommandError {
        let after = match until {
            RestoreTime::Latest => None,
            RestoreTime::NotAfter(time) => {
                let written = self.own_verified().map(|(written, _)| written);
                written.filter(|written| *written > time).min()
            }
        };
        let sentence = format!("{}: {gap}", self.backups.store.url());
        let before = match self.time_of(point) {
            Some(before) => self.time_hint("the last moment before it", before),
            None => format!(
                "the snapshot before it: {}",
                self.command(&format!("--snapshot {}", point.snapshot))
            ),
        };
        let refused = refuse(sentence, before);
        match after {
            Some(after) => refused.with_hint(self.time_hint("the first moment after it", after)),
            None => refused.with_hint(format!(
                "or restore a snapshot of now, which needs no changes: `kctl etcd snapshot save --etcd {} --name {}`",
                self.etcd, self.name
            )),
        }
    }

    /// Nothing of the etcd cluster is stored until then.
    fn nothing_error(&self, until: RestoreTime) -> CommandError {
        let url = self.backups.store.url();
        let etcd = self.etcd;
        if let RestoreTime::NotAfter(time) = until
            && let Some((first, snapshot)) = self.own_verified().min()
        {
            return refuse(
                format!(
                    "{url} has nothing of etcd {etcd} until {}: its oldest verified snapshot, {snapshot}, was stored at {}",
                    moment::text(time),
                    moment::text(first)
                ),
                self.time_hint("the first moment that can be restored", first),
            );
        }
        let current = self.current_id().unwrap_or_default();
        let before = self.choose_given_up(until);
        if let Some((id, chosen)) = before
            && let Some(before) = chosen.point.and_then(|point| self.time_of(&point))
        {
            return refuse(
                format!(
                    "{url} has no verified snapshot of etcd {etcd} since it was recovered or restored as etcd cluster {current}"
                ),
                self.time_hint(
                    &format!("the last moment of etcd cluster {id}, before that"),
                    before,
                ),
            );
        }
        match self.newest_foreign() {
            Some((other, id)) => refuse(
                format!(
                    "{url} has no verified snapshot of etcd {etcd}, etcd cluster {current}: {}, with {} after it, is of {id}",
                    other.name(),
                    count_parts(u32::try_from(other.stored.parts.len()).unwrap_or(u32::MAX))
                ),
                format!(
                    "that snapshot without changes: {}",
                    self.command(&format!("--snapshot {}", other.name()))
                ),
            ),
            None => refuse(
                format!("{url} has no verified snapshot of etcd {etcd}, etcd cluster {current}"),
                format!("see what there is: {}", self.list_command()),
            ),
        }
    }

    /// Times of writing and names of the verified snapshots of this etcd cluster, and of those that were given up for it.
    fn own_verified(&self) -> impl Iterator<Item = (i64, &str)> {
        let own = self.all.iter().filter(move |one| {
            let manifest = one.manifest.as_ref();
            let id = manifest.and_then(|manifest| manifest.cluster_id.as_deref());
            one.is_verified() && id.is_some_and(|id| self.own_ids().any(|own| own == id))
        });
        own.filter_map(|one| Some((one.stored.written?, one.name())))
    }

    /// The newest verified snapshot of another etcd cluster, and whose it is.
    fn newest_foreign(&self) -> Option<(&FoundSnapshot, String)> {
        let found = self.all.iter().find(|one| one.is_verified())?;
        let id = found.manifest.as_ref()?.cluster_id.as_ref();
        let id = id.map_or("an etcd cluster that nobody knows".to_owned(), |id| {
            format!("etcd cluster {id}")
        });
        Some((found, id))
    }

    fn command(&self, option: &str) -> String {
        let (etcd, name) = (self.etcd, self.name);
        let words = format!("kctl etcd restore {name} --etcd {etcd}");
        format!("`{words} {option}`")
    }

    fn time_hint(&self, what: &str, time: i64) -> String {
        let command = self.command(&format!("--time {}", moment::text(time)));
        format!("{what}: {command}")
    }

    fn list_command(&self) -> String {
        let (etcd, name) = (self.etcd, self.name);
        format!("`kctl etcd snapshot list --etcd {etcd} --name {name}`")
    }
}
