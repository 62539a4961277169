//! `protokube etcd-backup delete`: deletes one snapshot by the exact keys of its objects, and never the newest verified one.

use crate::backup::{check_owner, delete_snapshot, list_snapshots, read_manifest};
use anyhow::bail;
use aws_client::store::Store;
use node::backup::{ManifestError, StoredSnapshot, check_snapshot_name};

/// Deletes the snapshot of this name from a store, which must not be that of another cluster or etcd cluster than `owner`. Returns what was
/// done.
pub async fn delete_snapshot_named(
    store: &Store,
    owner: (&str, &str),
    name: &str,
) -> anyhow::Result<String> {
    check_snapshot_name(name).map_err(anyhow::Error::msg)?;
    check_owner(store, owner.0, owner.1).await?;
    let mut all = list_snapshots(store).await?;
    let Some(found) = all.iter().find(|one| one.name == name).cloned() else {
        return Ok(format!("{} has no snapshot {name}", store.url()));
    };
    if let Some(newest) = find_newest(store, &mut all, name).await? {
        bail!(
            "{name} is the newest verified snapshot in {}{newest}: nothing was deleted; take another one first",
            store.url()
        );
    }
    delete_snapshot(store, &found).await?;
    Ok(format!("deleted {}/{name}", store.url()))
}

/// Something to say if this is the newest verified snapshot, by the time of writing or by that in names. One whose manifest is damaged is
/// not verified; one whose manifest cannot be read at the moment may be.
async fn find_newest(
    store: &Store,
    all: &mut [StoredSnapshot],
    name: &str,
) -> anyhow::Result<Option<String>> {
    let orders: [fn(&StoredSnapshot) -> Option<i64>; 2] =
        [|one| one.written, StoredSnapshot::taken];
    for time in orders {
        all.sort_by_key(|one| std::cmp::Reverse((time(one), one.name.clone())));
        for one in all.iter().filter(|one| one.has_manifest && one.has_data) {
            let read = read_manifest(store, &one.name).await;
            let (is_verified, says) = match read {
                Ok(manifest) => {
                    let verified = manifest.and_then(|manifest| manifest.verified);
                    (verified.is_some(), String::new())
                }
                Err(error) if error.is::<ManifestError>() => (false, String::new()),
                Err(error) => (one.name == name, format!(", as far as is known: {error:#}")),
            };
            match (is_verified, one.name == name) {
                (true, true) => return Ok(Some(says)),
                (true, false) => break,
                (false, _) => {}
            }
        }
    }
    Ok(None)
}
