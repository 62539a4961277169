//! `protokube etcd-backup extractstatefile`: decrypts the spec and the keys of the cluster that lie beside a snapshot.

use super::local::LocalSnapshots;
use crate::backup::unseal_cluster_state;
use anyhow::{Context, bail};
use etcd_rules::backup::{check_snapshot_name, cluster_state_key};
use etcd_store::require_manifest;
use node::digest::sha256_hex;
use std::path::Path;

/// Decrypts the state of the cluster of this snapshot with the keys in `identities`, the content of a file of `age-keygen`, and writes the
/// zip to a new file that only its owner can read. Returns how many objects are in it.
pub async fn extract_cluster_state(
    local: &LocalSnapshots,
    name: &str,
    identities: &str,
    file: &Path,
) -> anyhow::Result<usize> {
    check_snapshot_name(name).map_err(anyhow::Error::msg)?;
    if file.exists() {
        bail!("{} exists: choose another file", file.display());
    }
    let manifest = require_manifest(&local.store, name).await?;
    let state = manifest.cluster_state.with_context(|| {
        let why = manifest.cluster_state_problem;
        let why = why.unwrap_or_else(|| {
            "the spec names nobody who may read them (KCTL_ETCD_BACKUP_AGE_RECIPIENTS)".to_owned()
        });
        format!("the snapshot {name} has no spec and keys of the cluster: {why}")
    })?;
    let key = cluster_state_key(name);
    let read = local.store.get(&key).await?;
    let sealed = read.with_context(|| format!("{}/{key} does not exist", local.store.url()))?;
    if sha256_hex(&sealed.bytes) != state.sha256 {
        bail!(
            "{}/{key} is damaged: its SHA-256 is not that of the manifest",
            local.store.url()
        );
    }
    let zip = unseal_cluster_state(&sealed.bytes, identities).with_context(|| {
        format!(
            "{key} cannot be decrypted; it is sealed for {}",
            state.recipients.join(", ")
        )
    })?;
    let written = host::write_secret_file(file, &zip);
    written.with_context(|| format!("could not write {}", file.display()))?;
    Ok(state.objects)
}
