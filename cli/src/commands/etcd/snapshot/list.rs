//! `kctl etcd snapshot list`.

use super::BackupStore;
use crate::args::{ReportFormat, SnapshotList};
use crate::commands::document::print_document;
use crate::commands::session::Session;
use crate::error::{CommandError, Outcome};
use crate::moment;
use crate::ui::table;
use etcd_rules::backup::{
    ChainGap, FoundSnapshot, SnapshotManifest, StoredSnapshot, Unread, check_extent,
    choose_deletions, is_scheduled,
};
use indicatif::BinaryBytes;
use node::duration::duration_text;
use serde::Serialize;

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ListDocument<'a> {
    format: u32,
    store: &'a str,
    snapshots: Vec<SnapshotRow<'a>>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct SnapshotRow<'a> {
    name: &'a str,
    kind: &'static str,
    verified: bool,
    /// By the store's clock.
    #[serde(skip_serializing_if = "Option::is_none")]
    age_seconds: Option<u64>,
    compressed_bytes: u64,
    /// How many parts of the changes after it can be restored.
    #[serde(skip_serializing_if = "Option::is_none")]
    parts: Option<usize>,
    /// When the last of them was written, by the store's clock.
    #[serde(skip_serializing_if = "Option::is_none")]
    restorable_until: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    manifest: Option<&'a SnapshotManifest>,
    /// Why its manifest cannot be used.
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<&'a str>,
}

/// Lists the snapshots.
pub async fn run(args: &SnapshotList, session: &Session<'_>) -> Result<Outcome, CommandError> {
    let backups = BackupStore::open(args.store.as_deref(), &args.place.etcd, session).await?;
    let all = backups.read_all().await?;
    if args.output != ReportFormat::Table {
        let document = ListDocument {
            format: 1,
            store: backups.store.url(),
            snapshots: all.iter().map(row).collect(),
        };
        warn_of_gaps(&all, session);
        print_document(&document, args.output, session.shell)?;
        return Ok(Outcome::Fine);
    }
    if all.is_empty() {
        let empty = format!("{} has no snapshots.\n", backups.store.url());
        session.shell.print_result(&empty)?;
        return Ok(Outcome::Fine);
    }
    session.shell.print_result(&render(&all))?;
    warn_of_gaps(&all, session);
    warn_of_many(&backups, &all, session);
    Ok(Outcome::Fine)
}

/// Says if protokube keeps more than the retention says, because it would have to delete too many at once.
fn warn_of_many(backups: &BackupStore, all: &[FoundSnapshot], session: &Session<'_>) {
    let Some(settings) = &backups.settings else {
        return;
    };
    // As protokube chooses: what cannot be read stands for no other.
    let restorable = |one: &FoundSnapshot| StoredSnapshot {
        has_data: one.stored.has_data && one.problem.is_none(),
        ..one.stored.clone()
    };
    let stored: Vec<StoredSnapshot> = all.iter().map(restorable).collect();
    let superfluous = choose_deletions(&stored, settings.retention());
    if let Err(many) = check_extent(&stored, &superfluous) {
        session
            .shell
            .warning(&format!("{many}; `kctl etcd snapshot prune` shows them"));
    }
}

/// Says where parts of changes are missing: nothing behind them can be restored.
fn warn_of_gaps(all: &[FoundSnapshot], session: &Session<'_>) {
    for one in all {
        let Some(missing) = one.stored.gaps().into_iter().next() else {
            continue;
        };
        let parts = one.stored.parts.iter();
        let gap = ChainGap {
            snapshot: one.name().to_owned(),
            behind: parts.filter(|part| part.sequence > *missing.end()).count(),
            missing,
        };
        session.shell.warning(&gap.to_string());
    }
}

/// How many parts of the changes after a snapshot can be restored, and when the last of them was written. Without a verified snapshot they are
/// of no use.
fn restorable_parts(one: &FoundSnapshot) -> Option<(usize, Option<i64>)> {
    let usable = one.stored.usable_parts();
    let last = usable.last().filter(|_| one.is_verified())?;
    Some((usable.len(), last.written))
}

/// What kind of snapshot it is.
fn kind_word(one: &FoundSnapshot) -> &'static str {
    match (one.stored.has_manifest, one.stored.has_meta) {
        _ if one.problem.is_some() => "unusable",
        _ if one.stored.is_only_parts() => "changes only",
        (true, _) if is_scheduled(one.name()) => "scheduled",
        (true, _) => "asked for",
        (false, true) => "of etcd-manager",
        (false, false) => "unfinished",
    }
}

fn row(one: &FoundSnapshot) -> SnapshotRow<'_> {
    let parts = restorable_parts(one);
    let until = parts.and_then(|(_, until)| until);
    SnapshotRow {
        name: one.name(),
        kind: kind_word(one),
        verified: one.is_verified(),
        age_seconds: one.stored.age.map(|age| age.as_secs()),
        compressed_bytes: one.stored.compressed_bytes,
        parts: parts.map(|(count, _)| count),
        restorable_until: until.map(moment::text),
        manifest: one.manifest.as_ref(),
        problem: one.problem.as_ref().map(Unread::text),
    }
}

fn render(all: &[FoundSnapshot]) -> String {
    let mut headers = vec![
        "SNAPSHOT", "AGE", "KIND", "VERIFIED", "KEYS", "REVISION", "SIZE", "STORED", "ETCD",
    ];
    let has_changes = all.iter().any(|one| restorable_parts(one).is_some());
    if has_changes {
        headers.push("RESTORABLE UNTIL");
    }
    let has_problems = all.iter().any(|one| one.problem.is_some());
    if has_problems {
        headers.push("PROBLEM");
    }
    let rows = all.iter().map(|one| {
        let manifest = one.manifest.as_ref();
        let verified = manifest.and_then(|manifest| manifest.verified.as_ref());
        let age = one
            .stored
            .age
            .and_then(|age| i64::try_from(age.as_secs()).ok());
        let text = |value: Option<String>| value.unwrap_or_default();
        let problem = one
            .problem
            .as_ref()
            .map(|problem| problem.text().to_owned());
        let mut row = vec![
            one.name().to_owned(),
            text(age.map(duration_text)),
            kind_word(one).to_owned(),
            if verified.is_some() { "yes" } else { "no" }.to_owned(),
            text(verified.map(|verified| verified.keys.to_string())),
            text(verified.map(|verified| verified.revision.to_string())),
            text(manifest.map(|manifest| BinaryBytes(manifest.bytes).to_string())),
            BinaryBytes(one.stored.compressed_bytes).to_string(),
            text(manifest.and_then(|manifest| manifest.etcd_version.clone())),
        ];
        if has_changes {
            let until = restorable_parts(one).and_then(|(_, until)| until);
            row.push(text(until.map(moment::text)));
        }
        if has_problems {
            row.push(text(problem));
        }
        row
    });
    table::render(&headers, &rows.collect::<Vec<_>>())
}
