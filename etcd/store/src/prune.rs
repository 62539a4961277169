//! Deletes scheduled snapshots that are not kept any more.

use super::backup_store::{PARALLEL, delete_snapshot, list_snapshots, read_manifest};
use aws_client::store::Store;
use etcd_rules::backup::{
    StoredSnapshot, check_extent, choose_deletions, find_successors, is_scheduled,
};
use futures::future::join_all;
use node::backup::Retention;
use std::collections::{BTreeMap, BTreeSet};

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
    let listed = list_snapshots(backups).await?;
    let mut clusters = ReadClusters::default();
    let all = only_restorable(backups, listed, retention, &mut clusters, &report).await;
    let old = choose_deletions(&all, retention);
    let complete = old.iter().filter(|old| old.has_manifest);
    let neighbours = complete.flat_map(|old| find_successors(&all, old).into_iter().chain([*old]));
    let neighbours: BTreeSet<String> = neighbours.map(|one| one.name.clone()).collect();
    clusters.read(backups, &neighbours).await;
    let mut chosen = Vec::new();
    for old in old {
        match clusters.is_last_of_its_cluster(&all, old) {
            Ok(true) => {}
            Ok(false) => chosen.push(old.clone()),
            Err(why) => report(&format!(
                "the snapshot {} is not deleted, although it is not kept any more: {why}",
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

/// etcd's ids of the clusters that snapshots are of, by name, as far as their manifests were read; or why one could not be.
#[derive(Debug, Default)]
struct ReadClusters(BTreeMap<String, Result<Option<String>, String>>);

impl ReadClusters {
    /// Reads the manifests of these snapshots, each once.
    async fn read(&mut self, backups: &Store, names: &BTreeSet<String>) {
        let unread = names.iter().filter(|name| !self.0.contains_key(*name));
        let names: Vec<&String> = unread.collect();
        for some in names.chunks(PARALLEL) {
            let read = join_all(some.iter().map(|name| read_manifest(backups, name))).await;
            for (name, read) in some.iter().zip(read) {
                let id = read.map(|manifest| manifest.and_then(|manifest| manifest.cluster_id));
                self.0
                    .insert((*name).clone(), id.map_err(|error| format!("{error:#}")));
            }
        }
    }

    fn of(&self, name: &str) -> Result<Option<&String>, &String> {
        self.0
            .get(name)
            .map_or(Ok(None), |read| read.as_ref().map(Option::as_ref))
    }

    /// True if the next snapshot is of another etcd cluster: this one has what was last written to one that was lost or given up. The error:
    /// it may be, because one of the two manifests cannot be read.
    fn is_last_of_its_cluster(
        &self,
        all: &[StoredSnapshot],
        old: &StoredSnapshot,
    ) -> Result<bool, &String> {
        if !old.has_manifest {
            return Ok(false);
        }
        let own = self.of(&old.name)?;
        for next in find_successors(all, old) {
            let next = self.of(&next.name)?;
            if own.is_some() && next.is_some() && own != next {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// The listing as deletions are chosen. A snapshot whose manifest cannot be read cannot be restored, for all that is known: it takes the
/// place of none that can, and is not deleted by itself. Only manifests of those that may stand for one that is chosen are read.
async fn only_restorable(
    backups: &Store,
    mut all: Vec<StoredSnapshot>,
    retention: Retention,
    clusters: &mut ReadClusters,
    report: &impl Fn(&str),
) -> Vec<StoredSnapshot> {
    loop {
        let asked = find_substitutes(&all, retention, clusters);
        if asked.is_empty() {
            return all;
        }
        clusters.read(backups, &asked).await;
        for name in asked {
            if let Err(why) = clusters.of(&name) {
                report(&format!(
                    "the snapshot {name} stands for no other when old ones are deleted: {why}"
                ));
                let bad = all.iter_mut().filter(|one| one.name == name);
                bad.for_each(|one| one.has_data = false);
            }
        }
    }
}

/// The names of complete snapshots that stay, of which nothing is known yet, and for which one that is chosen may have to go: those of the
/// same day, and the newest.
fn find_substitutes(
    all: &[StoredSnapshot],
    retention: Retention,
    known: &ReadClusters,
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
    found.retain(|name| !known.0.contains_key(name));
    found
}
