//! `kctl etcd snapshot download`.

use super::BackupStore;
use crate::args::SnapshotDownload;
use crate::commands::session::Session;
use crate::error::{CommandError, ErrorContext, Outcome};
use crate::state::store_error;
use aws_client::packed::unpack_file;
use aws_client::store::StoreError;
use etcd_rules::backup::{SnapshotManifest, cluster_state_key, data_key};
use node::digest::to_hex;
use std::fs;
use std::path::{Path, PathBuf};

/// Downloads a snapshot and unpacks it. The file appears only once it is complete and checked.
pub async fn run(args: &SnapshotDownload, session: &Session<'_>) -> Result<Outcome, CommandError> {
    for file in [Some(&args.file), args.cluster_state.as_ref()] {
        if let Some(file) = file.filter(|file| file.exists()) {
            return Err(CommandError::usage_error(
                format!("{} exists", file.display()),
                "choose another file",
            ));
        }
    }
    let backups = BackupStore::open(args.store.as_deref(), &args.place.etcd, session).await?;
    let manifest = backups.require_manifest(&args.snapshot).await?;
    if let Some(file) = &args.cluster_state {
        download_cluster_state(&backups, &manifest, file, session).await?;
    }
    let (packed, plain) = (beside(&args.file, "gz"), beside(&args.file, "part"));
    for left in [&packed, &plain] {
        // What an interrupted download left.
        let _ = fs::remove_file(left);
    }
    let key = data_key(&args.snapshot);
    session
        .shell
        .note(&format!("downloading {}/{key}", backups.store.url()));
    let most = manifest.compressed_bytes;
    let got = backups.store.get_file_within(&key, &packed, most).await;
    let unusable = || format!("{}/{key} cannot be used", backups.store.url());
    let hint = "use another snapshot: `kctl etcd snapshot list`";
    let unpacked = match got {
        Ok(Some(_)) => unpack_file(&packed, &plain, manifest.bytes, &manifest.sha256)
            .or_failed(unusable(), hint),
        Ok(None) => Err(super::refuse(format!(
            "{}/{key} does not exist: only the manifest of the snapshot is left",
            backups.store.url()
        ))),
        Err(error @ StoreError::TooLarge { .. }) => Err(error).or_failed(unusable(), hint),
        Err(error) => Err(store_error(error)),
    };
    let placed = unpacked.and_then(|()| {
        fs::rename(&plain, &args.file).or_failed(
            format!("could not write {}", args.file.display()),
            "choose another file",
        )
    });
    for left in [&packed, &plain] {
        let _ = fs::remove_file(left);
    }
    placed?;
    session.shell.print_done(&format!(
        "wrote {} ({} bytes, etcd {})",
        args.file.display(),
        manifest.bytes,
        manifest
            .etcd_version
            .as_deref()
            .unwrap_or("of an unknown version")
    ));
    Ok(Outcome::Fine)
}

/// Downloads what only those can read whom the spec names.
async fn download_cluster_state(
    backups: &BackupStore,
    manifest: &SnapshotManifest,
    file: &Path,
    session: &Session<'_>,
) -> Result<(), CommandError> {
    let state = manifest.cluster_state.as_ref().ok_or_else(|| {
        let why = manifest.cluster_state_problem.as_deref();
        let why = why.unwrap_or("the spec named nobody who may read them when it was taken");
        super::refuse(format!(
            "{} has no spec and keys of the cluster: {why}",
            manifest.name
        ))
    })?;
    let key = cluster_state_key(&manifest.name);
    let got = backups.store.get_file_within(&key, file, state.bytes).await;
    let sha256 = got.map_err(store_error)?;
    let sha256 = sha256.ok_or_else(|| super::refuse(format!("{key} does not exist")))?;
    if to_hex(&sha256) != state.sha256 {
        let _ = fs::remove_file(file);
        return Err(super::refuse(format!(
            "{}/{key} is damaged",
            backups.store.url()
        )));
    }
    session.shell.print_done(&format!(
        "wrote {} ({} objects of the state store, sealed for {})",
        file.display(),
        state.objects,
        state.recipients.join(", ")
    ));
    Ok(())
}

/// A temporary file in the same folder.
fn beside(file: &Path, extension: &str) -> PathBuf {
    let mut name = file.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{extension}"));
    file.with_file_name(name)
}
