//! Deletes scheduled snapshots that are not kept any more.

use super::backup_store::{delete_snapshot, list_snapshots, read_manifest};
use aws_client::store::Store;
use etcd_rules::backup::{
    StoredSnapshot, check_extent, choose_deletions, find_successors, is_scheduled,
};
use node::backup::Retention;
use std::collections::BTreeSet;

/// How much is deleted at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// No more than nobody has to look at.
    Checked,
    /// Whatever is not kept any more: a folder of this instance must not fill its disk.
    All,
}

/// The scheduled snapshots that are not kept any more.
#[derive(Clone, Debug)]
pub struct Superfluous {
    /// The whole listing, as deletions are chosen.
    pub all: Vec<StoredSnapshot>,
    /// Those of it, the oldest first.
    pub chosen: Vec<StoredSnapshot>,
}

impl Superfluous {
    /// Checks that they are so few that nobody has to look. The error says how many they are.
    pub fn check_extent(&self) -> Result<(), String> {
        check_extent(&self.all, &self.chosen.iter().collect::<Vec<_>>())
    }
}

/// Finds what is not kept any more. `report` is told what stays although it is not kept, and what stands for no other.
pub async fn find_superfluous(
    backups: &Store,
    retention: Retention,
    report: impl Fn(&str),
) -> anyhow::Result<Superfluous> {
    let all = only_restorable(backups, list_snapshots(backups).await?, retention, &report).await;
    let mut chosen = Vec::new();
    for old in choose_deletions(&all, retention) {
        match is_last_of_its_cluster(backups, &all, old).await {
            Ok(true) => {}
            Ok(false) => chosen.push(old.clone()),
            Err(error) => report(&format!(
                "the snapshot {} is not deleted, although it is not kept any more: {error:#}",
                old.name
            )),
        }
    }
    Ok(Superfluous { all, chosen })
}

/// Deletes what is not kept any more, and says so with `report`. If the listing fails, or it is too much, nothing is deleted. One that
/// cannot be deleted does not keep the others; the error is that of the first.
pub async fn prune_snapshots(
    backups: &Store,
    (retention, extent): (Retention, Extent),
    report: impl Fn(&str),
) -> anyhow::Result<()> {
    let superfluous = find_superfluous(backups, retention, &report).await?;
    if extent == Extent::Checked
        && let Err(many) = superfluous.check_extent()
    {
        report(&format!(
            "nothing is deleted in {}: {many}. Look, and delete them: kctl etcd snapshot prune --force",
            backups.url()
        ));
        return Ok(());
    }
    let mut failed = None;
    for old in &superfluous.chosen {
        match delete_snapshot(backups, old).await {
            Ok(()) => report(&format!(
                "deleted the snapshot {}/{}",
                backups.url(),
                old.name
            )),
            Err(error) => {
                failed.get_or_insert(error);
            }
        }
    }
    failed.map_or(Ok(()), Err)
}

/// The listing as deletions are chosen. A snapshot whose manifest cannot be read cannot be restored, for all that is known: it takes the
/// place of none that can, and is not deleted by itself. Only manifests of those that may stand for one that is chosen are read.
async fn only_restorable(
    backups: &Store,
    mut all: Vec<StoredSnapshot>,
    retention: Retention,
    report: &impl Fn(&str),
) -> Vec<StoredSnapshot> {
    let mut known = BTreeSet::new();
    loop {
        let asked = find_substitutes(&all, retention, &known);
        if asked.is_empty() {
            return all;
        }
        for name in asked {
            if let Err(error) = read_manifest(backups, &name).await {
                report(&format!(
                    "the snapshot {name} stands for no other when old ones are deleted: {error:#}"
                ));
                let bad = all.iter_mut().filter(|one| one.name == name);
                bad.for_each(|one| one.has_data = false);
            }
            known.insert(name);
        }
    }
}

/// The names of complete snapshots that stay, of which nothing is known yet, and for which one that is chosen may have to go: those of the
/// same day, and the newest.
fn find_substitutes(
    all: &[StoredSnapshot],
    retention: Retention,
    known: &BTreeSet<String>,
) -> BTreeSet<String> {
    const DAY: i64 = 24 * 60 * 60;
    let chosen = choose_deletions(all, retention);
    let is_complete = |one: &&StoredSnapshot| one.has_manifest && one.has_data;
    let chosen: Vec<&StoredSnapshot> = chosen.into_iter().filter(|one| is_complete(one)).collect();
    let times: [fn(&StoredSnapshot) -> Option<i64>; 2] = [|one| one.written, StoredSnapshot::taken];
    let mut found = BTreeSet::new();
    for time in times {
        let day = |one: &StoredSnapshot| time(one).map(|at| at.div_euclid(DAY));
        let days: BTreeSet<Option<i64>> = chosen.iter().map(|one| day(one)).collect();
        let stays = |one: &&StoredSnapshot| is_scheduled(&one.name) && !chosen.contains(one);
        let staying = || all.iter().filter(is_complete).filter(stays);
        let newest = staying().max_by_key(|one| (time(one), &one.name));
        let of_days = staying().filter(|one| days.contains(&day(one)));
        let asked = of_days.chain(newest.filter(|_| !chosen.is_empty()));
        found.extend(asked.map(|one| one.name.clone()));
    }
    found.retain(|name| !known.contains(name));
    found
}

/// True if the next snapshot is of another etcd cluster: this one has what was last written to one that was lost or given up. It may be, if
/// one of the two manifests cannot be read.
async fn is_last_of_its_cluster(
    backups: &Store,
    all: &[StoredSnapshot],
    old: &StoredSnapshot,
) -> anyhow::Result<bool> {
    if !old.has_manifest {
        return Ok(false);
    }
    let id_of = async |name: &str| {
        let manifest = read_manifest(backups, name).await?;
        anyhow::Ok(manifest.and_then(|manifest| manifest.cluster_id))
    };
    let own = id_of(&old.name).await?;
    for next in find_successors(all, old) {
        let next = id_of(&next.name).await?;
        if own.is_some() && next.is_some() && own != next {
            return Ok(true);
        }
    }
    Ok(false)
}
