//! `kctl etcd snapshot import`: a snapshot of etcdctl, of etcd-manager or of RKE becomes one of the backup store.

use super::{BackupStore, refuse};
use crate::args::SnapshotImport;
use crate::commands::session::Session;
use crate::error::{CommandError, ErrorContext, Outcome};
use crate::state::{store_error, user_at_host};
use aws_client::packed::{FileDigest, pack_file, unpack_any};
use aws_client::store::{Encryption, Expect, StoreError, sha256_of_file};
use etcd_rules::backup::{
    IMPORTED, MANIFEST_FORMAT, MOST_BYTES, SnapshotManifest, StoredSnapshot, check_asked_name,
    data_key, manifest_key,
};
use node::formatted::UnknownFields;
use sha2::{Digest, Sha256};
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use zip::ZipArchive;
use zip::result::ZipError;

/// Length of the hash at the end of a snapshot.
const HASH: usize = 32;

/// A database has whole pages, so its size is a multiple of this (etcd: `etcdutl/snapshot/v3_snapshot.go`, `saveDB`).
const PAGE: u64 = 512;

const HINT: &str =
    "name a file of `etcdctl snapshot save`, an etcd.backup.gz of etcd-manager, or a zip of RKE";

/// First bytes of a file of gzip, and of a zip.
const GZIP: [u8; 2] = [0x1f, 0x8b];
const ZIP: [u8; 2] = *b"PK";

/// Stores a snapshot from a file.
pub async fn run(args: &SnapshotImport, session: &Session<'_>) -> Result<Outcome, CommandError> {
    check_asked_name(&args.snapshot).map_err(refuse)?;
    let name = session.cluster_name(None).await?;
    let etcd = &args.place.etcd;
    let backups = BackupStore::to_change(&name, etcd, session).await?;
    // What an interrupted import left is gone on with.
    let is_complete = |one: &StoredSnapshot| one.has_manifest || one.has_meta;
    let all = backups.list().await?;
    let mut there = all.iter().filter(|one| one.name == args.snapshot);
    if there.any(is_complete) {
        return Err(refuse(format!(
            "there is a snapshot {} already",
            args.snapshot
        )));
    }
    let folder = tempfile::tempdir().or_failed("no folder for temporary files", "set TMPDIR")?;
    let (plain, packed) = (folder.path().join("plain"), folder.path().join("packed"));
    let unusable = |error: io::Error| {
        let sentence = match error.kind() {
            io::ErrorKind::InvalidData => "is no snapshot of etcd",
            io::ErrorKind::StorageFull => "cannot be unpacked: set TMPDIR to a folder with room",
            _ => "cannot be read",
        };
        Err(error).or_failed(format!("{} {sentence}", args.file.display()), HINT)
    };
    let source = find_plain(&args.file, &plain).or_else(unusable)?;
    check_hash(&source).or_else(|error| unusable(error).map(drop))?;
    let (whole, compressed) = pack_file(&source, &packed).or_failed(
        format!("{} cannot be compressed", args.file.display()),
        "set TMPDIR to a folder with room for it",
    )?;
    let key = data_key(&args.snapshot);
    session
        .shell
        .note(&format!("uploading {}/{key}", backups.store.url()));
    let sha256 = sha256_of_file(&packed).await;
    let sha256 = sha256.or_failed("the compressed file cannot be read", "try again")?;
    let put = backups
        .store
        .put_same_file(&key, &packed, &sha256, Encryption::Bucket)
        .await;
    put.map_err(|error| match error {
        StoreError::Conflict { .. } => refuse(format!(
            "{}/{key} has other content, and no manifest: an import of another file was interrupted",
            backups.store.url()
        ))
        .with_hint(format!(
            "delete it: `kctl etcd snapshot delete {} --etcd {etcd} --yes`, or choose another name",
            args.snapshot
        )),
        error => store_error(error),
    })?;
    let manifest = describe(args, (&name, etcd), whole, compressed);
    let text = manifest.to_json().into_bytes();
    let key = manifest_key(&args.snapshot);
    let put = backups.store.put(&key, text, Expect::Absent);
    put.await.map_err(store_error)?;
    session.shell.print_done(&format!(
        "imported {} ({} bytes); nobody has read it yet",
        args.snapshot, manifest.bytes
    ));
    session.shell.hint(&format!(
        "kctl etcd snapshot verify {} --etcd {etcd} --name {name}    lets a scratch etcd read it",
        args.snapshot
    ));
    Ok(Outcome::Fine)
}

fn describe(
    args: &SnapshotImport,
    (cluster, etcd): (&str, &str),
    plain: FileDigest,
    packed: FileDigest,
) -> SnapshotManifest {
    let now = OffsetDateTime::now_utc();
    SnapshotManifest {
        format: MANIFEST_FORMAT,
        name: args.snapshot.clone(),
        cluster: cluster.to_owned(),
        etcd: etcd.to_owned(),
        reason: format!(
            "{IMPORTED}{} from {}",
            user_at_host(),
            args.file.file_name().unwrap_or_default().to_string_lossy()
        ),
        taken_at: now.format(&Rfc3339).unwrap_or_default(),
        instance: None,
        member: None,
        cluster_id: None,
        etcd_version: None,
        kubernetes_version: None,
        bytes: plain.bytes,
        sha256: plain.sha256,
        compressed_bytes: packed.bytes,
        compressed_sha256: packed.sha256,
        verified: None,
        cluster_state: None,
        cluster_state_problem: None,
        kctl_version: env!("CARGO_PKG_VERSION").to_owned(),
        unknown: UnknownFields::new(),
    }
}

/// The snapshot itself: the file, or what is unpacked from it. What is wrong with its content is `InvalidData`.
fn find_plain(file: &Path, to: &Path) -> io::Result<PathBuf> {
    let mut first = Vec::new();
    let opened = File::open(file)?;
    if !opened.metadata()?.is_file() {
        return damaged("it is no file");
    }
    opened.take(2).read_to_end(&mut first)?;
    match <[u8; 2]>::try_from(first.as_slice()) {
        Ok(GZIP) => drop(
            unpack_any(file, to, MOST_BYTES).map_err(|error| match error.kind() {
                io::ErrorKind::UnexpectedEof => {
                    invalid("it is compressed with gzip, and is cut off")
                }
                io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData => invalid(&format!(
                    "it is compressed with gzip, and is damaged: {error}"
                )),
                _ => error,
            })?,
        ),
        Ok(ZIP) => unzip_snapshot(file, to)?,
        _ if first.is_empty() => return damaged("it is empty"),
        _ => return Ok(file.to_owned()),
    }
    Ok(to.to_owned())
}

fn invalid(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}

fn damaged<T>(why: &str) -> io::Result<T> {
    Err(invalid(why))
}

/// RKE's zips have the snapshot under an absolute name, `/backup/NAME`, and perhaps the state of the cluster beside it, `NAME.rkestate`.
fn unzip_snapshot(file: &Path, to: &Path) -> io::Result<()> {
    let broken = |error: ZipError| match error {
        ZipError::Io(error) if error.kind() != io::ErrorKind::UnexpectedEof => error,
        error => invalid(&format!("it is a zip, and is cut off or damaged: {error}")),
    };
    let mut archive = ZipArchive::new(File::open(file)?).map_err(broken)?;
    let mut found = Vec::new();
    for index in 0..archive.len() {
        let entry = archive.by_index(index).map_err(broken)?;
        if entry.is_file() && !entry.name().map_err(broken)?.ends_with(".rkestate") {
            found.push(index);
        }
    }
    let [index] = found.as_slice() else {
        return damaged(&format!(
            "the zip has {} files that may be a snapshot, not one",
            found.len()
        ));
    };
    // Its name is used for nothing.
    let mut entry = archive.by_index(*index).map_err(broken)?.take(MOST_BYTES);
    let copied = io::copy(&mut entry, &mut File::create_new(to)?);
    copied.map(drop).map_err(|error| match error.kind() {
        io::ErrorKind::StorageFull => error,
        _ => invalid(&format!("it is a zip, and its file is damaged: {error}")),
    })
}

/// etcd writes the SHA-256 of the database behind it.
fn check_hash(file: &Path) -> io::Result<()> {
    let bytes = fs::metadata(file)?.len();
    if bytes <= HASH as u64 || bytes % PAGE != HASH as u64 {
        return damaged(&format!(
            "it was cut off, or has no hash at its end: {bytes} bytes are not whole pages and a hash"
        ));
    }
    let mut opened = File::open(file)?;
    let mut hasher = Sha256::new();
    io::copy(
        &mut Read::by_ref(&mut opened).take(bytes - HASH as u64),
        &mut hasher,
    )?;
    let mut hash = [0; HASH];
    opened.seek(SeekFrom::Start(bytes - HASH as u64))?;
    opened.read_exact(&mut hash)?;
    if hash[..] != hasher.finalize()[..] {
        return damaged("its content does not match the hash at its end: it is damaged");
    }
    Ok(())
}
