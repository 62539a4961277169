//! `protokube etcd-backup delete`: deletes one snapshot by the exact keys of its objects, and never the newest verified one.

use anyhow::bail;
use aws_client::store::Store;
use etcd_rules::backup::{StoreOwner, check_snapshot_name};
use etcd_store::{delete_snapshot, read_snapshots, require_own};

/// Deletes the snapshot of this name from a store, which must not be that of another cluster or etcd cluster than `own`. Returns what was
/// done.
pub async fn delete_snapshot_named(
    store: &Store,
    own: &StoreOwner,
    name: &str,
) -> anyhow::Result<String> {
    check_snapshot_name(name).map_err(anyhow::Error::msg)?;
    require_own(store, own).await?;
    let all = read_snapshots(store).await?;
    let Some(found) = all.iter().find(|one| one.name() == name) else {
        return Ok(format!("{} has no snapshot {name}", store.url()));
    };
    if found.is_newest_verified(&all) {
        bail!(
            "{name} is the newest verified snapshot in {}{}: nothing was deleted; take another one first",
            store.url(),
            found.doubt()
        );
    }
    delete_snapshot(store, &found.stored).await?;
    Ok(format!("deleted {}/{name}", store.url()))
}
