//! `kctl etcd snapshot list`.

use super::BackupStore;
use crate::args::{ReportFormat, SnapshotList};
use crate::commands::etcd::print_document;
use crate::commands::session::Session;
use crate::error::{CommandError, Outcome};
use crate::ui::table;
use etcd_rules::backup::{
    FoundSnapshot, SnapshotManifest, StoredSnapshot, Unread, check_extent, choose_deletions,
    is_scheduled,
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
        return print_document(&document, args.output, session);
    }
    if all.is_empty() {
        let empty = format!("{} has no snapshots.\n", backups.store.url());
        session.shell.print_result(&empty)?;
        return Ok(Outcome::Fine);
    }
    session.shell.print_result(&render(&all))?;
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

/// What kind of snapshot it is.
fn kind_word(one: &FoundSnapshot) -> &'static str {
    match (one.stored.has_manifest, one.stored.has_meta) {
        _ if one.problem.is_some() => "unusable",
        (true, _) if is_scheduled(one.name()) => "scheduled",
        (true, _) => "asked for",
        (false, true) => "of etcd-manager",
        (false, false) => "unfinished",
    }
}

fn row(one: &FoundSnapshot) -> SnapshotRow<'_> {
    SnapshotRow {
        name: one.name(),
        kind: kind_word(one),
        verified: one.is_verified(),
        age_seconds: one.stored.age.map(|age| age.as_secs()),
        compressed_bytes: one.stored.compressed_bytes,
        manifest: one.manifest.as_ref(),
        problem: one.problem.as_ref().map(Unread::text),
    }
}

fn render(all: &[FoundSnapshot]) -> String {
    let mut headers = vec![
        "SNAPSHOT", "AGE", "KIND", "VERIFIED", "KEYS", "REVISION", "SIZE", "STORED", "ETCD",
    ];
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
        if has_problems {
            row.push(text(problem));
        }
        row
    });
    table::render(&headers, &rows.collect::<Vec<_>>())
}
