//! `protokube etcd-backup delete`: deletes one snapshot by the exact keys of its objects, and never the newest verified one.

use anyhow::bail;
use aws_client::store::Store;
use etcd_rules::backup::{ManifestError, StoreOwner, StoredSnapshot, check_snapshot_name};
use etcd_store::{check_owner, delete_snapshot, list_snapshots, read_manifest};

/// Deletes the snapshot of this name from a store, which must not be that of another cluster or etcd cluster than `own`. Returns what was
/// done.
pub async fn delete_snapshot_named(
    store: &Store,
    own: &StoreOwner,
    name: &str,
) -> anyhow::Result<String> {
    check_snapshot_name(name).map_err(anyhow::Error::msg)?;
    check_owner(store, own).await?;
    let mut all = list_snapshots(store).await?;
    let Some(found) = all.iter().find(|one| one.name == name).cloned() else {
        return Ok(format!("{} has no snapshot {name}", store.url()));
    };
    if let Some(newest) = find_newest(store, &mut all, name).await {
        bail!(
            "{name} is the newest verified snapshot in {}{newest}: nothing was deleted; take another one first",
            store.url()
        );
    }
    delete_snapshot(store, &found).await?;
    Ok(format!("deleted {}/{name}", store.url()))
}

/// Something to say if this is the newest verified snapshot, by the time of writing or by that in names. One whose manifest is damaged is
/// not verified; one whose manifest cannot be read at the moment may be. One that was imported is the newest only if there is no other:
/// nobody knows when its data was current.
async fn find_newest(store: &Store, all: &mut [StoredSnapshot], name: &str) -> Option<String> {
    let orders: [fn(&StoredSnapshot) -> Option<i64>; 2] =
        [|one| one.written, StoredSnapshot::taken];
    for time in orders {
        all.sort_by_key(|one| std::cmp::Reverse((time(one), one.name.clone())));
        if let Some((newest, says)) = find_newest_in_order(store, all, name).await
            && newest == name
        {
            return Some(says);
        }
    }
    None
}

/// The name of the first verified snapshot, and what is to be said if it only may be verified.
async fn find_newest_in_order(
    store: &Store,
    all: &[StoredSnapshot],
    name: &str,
) -> Option<(String, String)> {
    let mut imported = None;
    for one in all.iter().filter(|one| one.has_manifest && one.has_data) {
        match read_manifest(store, &one.name).await {
            Ok(Some(manifest)) if manifest.verified.is_some() && manifest.is_imported() => {
                imported.get_or_insert((one.name.clone(), String::new()));
            }
            Ok(Some(manifest)) if manifest.verified.is_some() => {
                return Some((one.name.clone(), String::new()));
            }
            Err(error) if !error.is::<ManifestError>() && one.name == name => {
                let says = format!(", as far as is known: {error:#}");
                return Some((one.name.clone(), says));
            }
            _ => {}
        }
    }
    imported
}
