//! Downloads from S3 with the credentials of the instance: `s3://BUCKET/KEY`. Waits without limit while S3 is unavailable or denies
//! access: a new role may read soon. A missing object is an error where S3 says that it is missing: to who may not list, it denies it.

use super::run_blocking;
use crate::digest;
use crate::retry::{AttemptError, AttemptLog, repeat_until_final, unlimited_backoff};
use crate::stored::classify_error;
use anyhow::{Context, anyhow, bail};
use aws_client::Clients;
use aws_client::store::{Store, StoreError};
use engine::Class;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Downloads the object to `target`, once it has this sha256. An interrupted download goes on.
pub(super) async fn fetch_object(
    aws: &Clients,
    url: &str,
    sha256: &str,
    target: &Path,
    most: u64,
    attempt_log: AttemptLog<'_>,
) -> anyhow::Result<()> {
    let path = url.strip_prefix("s3://").unwrap_or(url);
    let (bucket, key) = path.split_once('/').unwrap_or((path, ""));
    let store = Store::open(&format!("s3://{bucket}"), aws);
    let store = store.with_context(|| format!("could not open the bucket of {url}"))?;
    let part = target.with_extension("store");
    loop {
        let resumed = std::fs::metadata(&part).map_or(0, |part| part.len());
        if let Err(error) = receive_rest(&store, key, &part, most, attempt_log).await {
            // What fills the disk is in the way of other downloads. The next run begins anew.
            let _ = std::fs::remove_file(&part);
            return Err(error);
        }
        let found = run_blocking({
            let part = part.clone();
            move || digest::sha256_of_file(&part)
        });
        let found = found
            .await
            .with_context(|| format!("could not read {}", part.display()))?;
        if found == sha256 {
            return std::fs::rename(&part, target)
                .with_context(|| format!("could not make {}", target.display()));
        }
        std::fs::remove_file(&part)
            .with_context(|| format!("could not remove {}", part.display()))?;
        // What an earlier run left may be at fault.
        if resumed == 0 {
            bail!("wrong sha256: expected {sha256}, got {found} from {url}");
        }
    }
}

/// Appends to the part what it lacks of the object.
async fn receive_rest(
    store: &Store,
    key: &str,
    part: &Path,
    most: u64,
    attempt_log: AttemptLog<'_>,
) -> anyhow::Result<()> {
    repeat_until_final(unlimited_backoff(), attempt_log, || async {
        let opened = open_part(part).with_context(|| format!("could not open {}", part.display()));
        let mut file = opened.map_err(AttemptError::Final)?;
        let found = store.get_rest(key, &mut file, most).await;
        if found.map_err(classify)? {
            return Ok(());
        }
        let missing = anyhow!(
            "{}/{key} does not exist: `kctl bundle push` or `kctl get assets --copy` puts it there",
            store.url()
        );
        Err(AttemptError::Final(missing))
    })
    .await
}

/// A full disk does not become empty.
fn classify(error: StoreError) -> AttemptError {
    if matches!(&error, StoreError::S3 { source, .. } if source.class == Class::Invalid) {
        return AttemptError::Final(error.into());
    }
    classify_error(error)
}

fn open_part(part: &Path) -> std::io::Result<File> {
    OpenOptions::new()
        .create(true)
        .append(true)
        .read(true)
        .mode(0o600)
        .open(part)
}
