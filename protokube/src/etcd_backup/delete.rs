//! `protokube etcd-backup delete`: deletes one snapshot by the exact keys of its objects, and never the newest verified one.

use crate::backup::{check_owner, delete_snapshot, list_snapshots, read_manifest};
use anyhow::bail;
use aws_client::store::Store;
use node::backup::check_snapshot_name;

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
    all.sort_by_key(|one| std::cmp::Reverse((one.written, one.name.clone())));
    for one in all.iter().filter(|one| one.has_manifest && one.has_data) {
        let manifest = read_manifest(store, &one.name).await?;
        if manifest.is_none_or(|(manifest, _)| manifest.verified.is_none()) {
            continue;
        }
        if one.name == name {
            bail!(
                "{name} is the newest verified snapshot in {}: nothing was deleted; take another one first",
                store.url()
            );
        }
        break;
    }
    delete_snapshot(store, &found).await?;
    Ok(format!("deleted {}/{name}", store.url()))
}
