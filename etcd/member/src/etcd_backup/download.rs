//! `protokube etcd-backup download`: brings a snapshot from S3 or from another control plane into the folder of this instance. An interrupted
//! download goes on where it stopped, and the manifest is written last.

use super::local::LocalSnapshots;
use super::peer::SnapshotPeer;
use anyhow::{Context, bail};
use aws_client::store::{Encryption, Expect, Store, StoreError, sha256_of_file};
use etcd_rules::backup::{
    MANIFEST_LIMIT, SnapshotManifest, check_snapshot_name, cluster_state_key, data_key,
    manifest_key, meta_key,
};
use etcd_store::read_manifest;
use host::PartialFile;
use node::digest::{sha256_hex, to_hex};
use reqwest::StatusCode;
use reqwest::header::RANGE;
use std::io::{self, ErrorKind};
use std::path::Path;
use std::time::Duration;

/// Pause before a download from another control plane goes on.
const PAUSE: Duration = Duration::from_secs(1);

/// How often it is tried again without a single byte more.
const RETRIES: u32 = 10;

/// Limit of the sealed state of the cluster, bytes.
const STATE_LIMIT: usize = 64 << 20;

/// Where a snapshot comes from.
#[derive(Clone, Debug)]
pub enum SnapshotOrigin {
    Store(Box<Store>),
    Peer(SnapshotPeer),
}

/// Brings a snapshot into the folder. Returns what was done.
pub async fn download_snapshot(
    origin: &SnapshotOrigin,
    name: &str,
    local: &LocalSnapshots,
    say: fn(&str),
) -> anyhow::Result<String> {
    check_snapshot_name(name).map_err(anyhow::Error::msg)?;
    let key = manifest_key(name);
    let text = origin.read(&key, MANIFEST_LIMIT).await?;
    let text = text.with_context(|| format!("{} has no snapshot {name}", origin.url()))?;
    let manifest = SnapshotManifest::parse_of(name, &format!("{}/{key}", origin.url()), &text)?;
    let done = format!("{}/{name} is complete and checked", local.store.url());
    if let Some(there) = read_manifest(&local.store, name).await? {
        if there.sha256 != manifest.sha256 {
            bail!(
                "{} has another snapshot {name}: delete or rename it first",
                local.store.url()
            );
        }
        origin.confirm(name).await?;
        return Ok(done);
    }
    local.check_room(name, manifest.compressed_bytes)?;
    receive_data(origin, &manifest, local, say).await?;
    receive_cluster_state(origin, &manifest, local).await?;
    let meta = origin.read(&meta_key(name), MANIFEST_LIMIT).await?;
    let objects = [(meta_key(name), meta), (key, Some(text))];
    for (key, bytes) in objects {
        let Some(bytes) = bytes else { continue };
        let put = local.store.put(&key, bytes, Expect::Any).await;
        put.with_context(|| format!("could not write {}/{key}", local.store.url()))?;
    }
    PartialFile::remove(&local.partial_path(name))?;
    origin.confirm(name).await?;
    Ok(done)
}

/// Receives the compressed file under a temporary name, checks it, and stores it.
async fn receive_data(
    origin: &SnapshotOrigin,
    manifest: &SnapshotManifest,
    local: &LocalSnapshots,
    say: fn(&str),
) -> anyhow::Result<()> {
    let key = data_key(&manifest.name);
    let partial = local.partial_path(&manifest.name);
    origin
        .receive(&key, &partial, manifest.compressed_bytes, say)
        .await?;
    let sha256 = sha256_of_file(&partial).await;
    let sha256 = sha256.with_context(|| format!("could not read {}", partial.display()))?;
    if to_hex(&sha256) != manifest.compressed_sha256 {
        PartialFile::remove(&partial)?;
        bail!(
            "{}/{key} is damaged: it has the SHA-256 {}, and its manifest says {}",
            origin.url(),
            to_hex(&sha256),
            manifest.compressed_sha256
        );
    }
    // An earlier download may have ended between this and the manifest.
    let store = &local.store;
    let put = store.put_same_file(&key, &partial, &sha256, Encryption::Bucket);
    put.await
        .with_context(|| format!("could not write {}/{key}", store.url()))
}

async fn receive_cluster_state(
    origin: &SnapshotOrigin,
    manifest: &SnapshotManifest,
    local: &LocalSnapshots,
) -> anyhow::Result<()> {
    let Some(state) = &manifest.cluster_state else {
        return Ok(());
    };
    let key = cluster_state_key(&manifest.name);
    let read = origin.read(&key, STATE_LIMIT).await?;
    let sealed = read.with_context(|| format!("{}/{key} does not exist", origin.url()))?;
    if sha256_hex(&sealed) != state.sha256 {
        bail!(
            "{}/{key} is damaged: its SHA-256 is not that of the manifest",
            origin.url()
        );
    }
    let put = local.store.put(&key, sealed, Expect::Any).await;
    put.with_context(|| format!("could not write {}/{key}", local.store.url()))?;
    Ok(())
}

impl SnapshotOrigin {
    fn url(&self) -> &str {
        match self {
            Self::Store(store) => store.url(),
            Self::Peer(peer) => &peer.url,
        }
    }

    /// A small object, `most` bytes at most; `None`: it does not exist.
    async fn read(&self, key: &str, most: usize) -> anyhow::Result<Option<Vec<u8>>> {
        let read = match self {
            Self::Store(store) => store
                .get_first(key, most)
                .await
                .map_err(anyhow::Error::from),
            Self::Peer(peer) => peer.read(key, most).await,
        };
        read.with_context(|| format!("could not read {}/{key}", self.url()))
    }

    /// Writes an object of `bytes` bytes to a file.
    async fn receive(&self, key: &str, to: &Path, bytes: u64, say: fn(&str)) -> anyhow::Result<()> {
        match self {
            Self::Store(store) => {
                let mut file = PartialFile::open(to)?;
                let got = store.get_rest(key, file.file(), bytes).await;
                if let Err(error @ StoreError::TooLarge { .. }) = got {
                    PartialFile::remove(to)?;
                    return Err(error).with_context(|| format!("{}/{key} is damaged", self.url()));
                }
                if !got.with_context(|| format!("could not read {}/{key}", self.url()))? {
                    bail!("{}/{key} does not exist", self.url());
                }
                Ok(())
            }
            Self::Peer(peer) => peer.receive(key, to, bytes, say).await,
        }
    }

    /// Tells the other control plane that the snapshot is complete here.
    async fn confirm(&self, name: &str) -> anyhow::Result<()> {
        let Self::Peer(peer) = self else {
            return Ok(());
        };
        let told = peer
            .client
            .post(format!("{}/{name}/received", peer.url))
            .send()
            .await;
        told.and_then(reqwest::Response::error_for_status)
            .map(drop)
            .with_context(|| {
                format!(
                    "the snapshot is complete, but {} could not be told",
                    peer.url
                )
            })
    }
}

const NOT_SERVED: &str =
    "nobody can be reached there: run `protokube etcd-backup serve` on that control plane first";

/// reqwest calls a certificate that is not accepted an error of the connection, too.
fn is_connection_refused(error: &anyhow::Error) -> bool {
    let mut causes = error.chain().filter_map(|cause| cause.downcast_ref());
    causes.any(|cause: &io::Error| cause.kind() == ErrorKind::ConnectionRefused)
}

impl SnapshotPeer {
    async fn read(&self, key: &str, most: usize) -> anyhow::Result<Option<Vec<u8>>> {
        let asked = self.client.get(format!("{}/{key}", self.url)).send().await;
        let mut answer = asked.map_err(|error| {
            let error = anyhow::Error::from(error);
            match is_connection_refused(&error) {
                true => error.context(NOT_SERVED),
                false => error,
            }
        })?;
        if answer.status() == StatusCode::NOT_FOUND {
            return Ok(None);
        }
        answer = answer.error_for_status()?;
        let mut bytes = Vec::new();
        while let Some(piece) = answer.chunk().await? {
            bytes.extend_from_slice(&piece);
            if bytes.len() > most {
                bail!("it has more than {most} bytes");
            }
        }
        Ok(Some(bytes))
    }

    async fn receive(&self, key: &str, to: &Path, bytes: u64, say: fn(&str)) -> anyhow::Result<()> {
        let mut file = PartialFile::open(to)?;
        let mut failures = 0;
        while file.bytes() < bytes {
            let before = file.bytes();
            let Err(error) = self.receive_rest(key, &mut file, bytes).await else {
                continue;
            };
            failures = if file.bytes() > before {
                0
            } else {
                failures + 1
            };
            let is_final = error.downcast_ref::<host::Error>().is_some();
            if is_final || failures > RETRIES {
                return Err(error).with_context(|| format!("could not receive {}/{key}", self.url));
            }
            say(&format!(
                "goes on at byte {} of {bytes}: {error:#}",
                file.bytes()
            ));
            tokio::time::sleep(PAUSE).await;
        }
        if file.bytes() > bytes {
            file.clear()?;
            bail!(
                "{}/{key} is damaged: it has more than {bytes} bytes",
                self.url
            );
        }
        Ok(())
    }

    /// Appends what the file lacks.
    async fn receive_rest(
        &self,
        key: &str,
        file: &mut PartialFile,
        bytes: u64,
    ) -> anyhow::Result<()> {
        let request = self.client.get(format!("{}/{key}", self.url));
        let request = request.header(RANGE, format!("bytes={}-", file.bytes()));
        let mut answer = request.send().await?.error_for_status()?;
        if answer.status() == StatusCode::OK && file.bytes() > 0 {
            file.clear()?;
        }
        while let Some(piece) = answer.chunk().await? {
            file.append(&piece)?;
            if file.bytes() > bytes {
                return Ok(());
            }
        }
        if file.bytes() < bytes {
            bail!("it ends after {} of {bytes} bytes", file.bytes());
        }
        Ok(())
    }
}
