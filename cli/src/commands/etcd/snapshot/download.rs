//! `kctl etcd snapshot download`.

use super::BackupStore;
use crate::args::SnapshotDownload;
use crate::commands::session::Session;
use crate::error::{CommandError, ErrorContext, Outcome};
use crate::state::store_error;
use aws_client::packed::unpack_file;
use node::backup::data_key;
use std::fs;
use std::path::{Path, PathBuf};

/// Downloads a snapshot and unpacks it. The file appears only once it is complete and checked.
pub async fn run(args: &SnapshotDownload, session: &Session<'_>) -> Result<Outcome, CommandError> {
    if args.file.exists() {
        return Err(CommandError::usage_error(
            format!("{} exists", args.file.display()),
            "choose another file",
        ));
    }
    let backups = BackupStore::open(args.store.as_deref(), &args.place.etcd, session).await?;
    let manifest = backups.require_manifest(&args.snapshot).await?;
    let (packed, plain) = (beside(&args.file, "gz"), beside(&args.file, "part"));
    for left in [&packed, &plain] {
        // What an interrupted download left.
        let _ = fs::remove_file(left);
    }
    let key = data_key(&args.snapshot);
    session
        .shell
        .note(&format!("downloading {}/{key}", backups.store.url()));
    let got = backups.store.get_file(&key, &packed).await;
    let unpacked = match got {
        Ok(Some(_)) => unpack_file(&packed, &plain, manifest.bytes, &manifest.sha256).or_failed(
            format!("{}/{key} cannot be used", backups.store.url()),
            "use another snapshot, and verify this one: `kctl etcd snapshot verify`",
        ),
        Ok(None) => Err(super::refuse(format!("{key} does not exist"))),
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

/// A temporary file in the same folder.
fn beside(file: &Path, extension: &str) -> PathBuf {
    let mut name = file.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{extension}"));
    file.with_file_name(name)
}
