//! Restores a snapshot from a backup store as the log of a new etcd cluster, beside the data of a member that may still run. Nothing is
//! believed: size and SHA-256 are those in the record, etcdutl checks the hash at the end of the file, and a scratch etcd reads what it
//! holds, and replays the changes after it that the record names.

use super::EtcdDisk;
use super::disk_worker::DiskWorker;
use super::restored_log::{
    LOG_FILE, RestoreRequest, Restored, find_restored, keep_restored, restore_log,
};
use super::scratch::{ALL_KEYS, EtcdContainers, ScratchGateway, WORK};
use super::unusable::{UnusableSnapshot, judge_snapshot};
use super::volumes::AttachedVolume;
use crate::backup::read_secrets;
use crate::changes::{
    Chain, ReplayInput, describe_replayed, new_part_channel, replay_parts, send_parts,
};
use anyhow::{Context, anyhow};
use aws_client::packed::{packed_limit, unpack_file};
use aws_client::store::Store;
use etcd_rules::backup::{MOST_BYTES, data_key};
use etcd_rules::{LogIdentity, RestoredChanges, RestoredSnapshot};
use etcd_store::read_manifest;
use host::Host;

/// Names of the files in the scratch folder.
const PACKED: &str = "snapshot.gz";
const FILE: &str = "snapshot.db";

/// The database of the scratch etcd in the scratch folder.
const DATABASE: &str = "data/member/snap/db";

/// Restores the snapshot beside the data on this disk. What was restored before with this token is used again. The error is an
/// [`UnusableSnapshot`] if to try again finds the same.
pub(super) async fn restore_snapshot(
    disk: &DiskWorker,
    store: &Store,
    request: &RestoreRequest,
    snapshot: &RestoredSnapshot,
) -> anyhow::Result<Restored> {
    let restored = download_and_restore(disk, store, request, snapshot).await;
    restored.map_err(|error| judge_snapshot(error, &snapshot.name))
}

async fn download_and_restore(
    disk: &DiskWorker,
    store: &Store,
    request: &RestoreRequest,
    snapshot: &RestoredSnapshot,
) -> anyhow::Result<Restored> {
    if snapshot.bytes > MOST_BYTES {
        let why = anyhow!(
            "it is said to have {} bytes, and no database of etcd has so many",
            snapshot.bytes
        );
        return Err(why.context(UnusableSnapshot(snapshot.name.clone())));
    }
    let (own, wanted) = (request.clone(), snapshot.clone());
    let begin = move |host: &Host, disk: &EtcdDisk<'_>, _: &AttachedVolume| {
        let found = find_restored(host, disk, &own.token, &describe_source(&wanted))?;
        match &found {
            // What a run left that died before it had removed it.
            Some(_) => host.remove_folder(&disk.scratch_path())?,
            None => prepare_scratch(host, disk, &own, &wanted)?,
        }
        let folder = host.path_below_root(&disk.scratch_path());
        Ok((found, folder))
    };
    let (found, folder) = disk.run_on_disk(begin).await?;
    if let Some(log) = found {
        return Ok(Restored { log, content: None });
    }
    let key = data_key(&snapshot.name);
    let address = format!("{}/{key}", snapshot.store);
    let most = packed_limit(snapshot.bytes);
    let got = store
        .get_file_within(&key, &folder.join(PACKED), most)
        .await;
    let got = got.with_context(|| format!("could not read {address}"))?;
    if got.is_none() {
        return Err(
            anyhow!("{address} does not exist").context(UnusableSnapshot(snapshot.name.clone()))
        );
    }
    restore_downloaded((disk, store), request, snapshot, address).await
}

/// Restores the compressed snapshot in the scratch folder. `address`: where it was downloaded from.
async fn restore_downloaded(
    (disk, store): (&DiskWorker, &Store),
    request: &RestoreRequest,
    snapshot: &RestoredSnapshot,
    address: String,
) -> anyhow::Result<Restored> {
    let chain = match &snapshot.changes {
        Some(changes) => Some(find_chain(disk, store, snapshot, changes).await?),
        None => None,
    };
    let (to, parts) = new_part_channel();
    let changes = chain.as_ref().map(|chain| chain.to_replay(parts));
    let (own, wanted) = (request.clone(), snapshot.clone());
    let restore = move |host: &Host, disk: &EtcdDisk<'_>, _: &AttachedVolume| {
        let scratch = disk.scratch_path();
        let containers = new_containers(host, &own, &scratch);
        unpack(host, &scratch, &wanted).context(address)?;
        let content = prove_and_restore((host, disk), &containers, &own, (&wanted, changes));
        let content = content.inspect_err(|_| containers.remove_all())?;
        let log: LogIdentity = keep_restored(host, disk, &own.token, &describe_source(&wanted))?;
        let content = Some(content);
        Ok(Restored { log, content })
    };
    let send = async {
        if let (Some(chain), Some(changes)) = (&chain, &snapshot.changes) {
            let last = (&*changes.sha256, changes.revision);
            send_parts(store, chain, Some(last), to).await;
        }
    };
    let (restored, ()) = tokio::join!(disk.run_on_disk(restore), send);
    restored
}

/// The chain of changes that the record names, if the disk has room to replay it.
async fn find_chain(
    disk: &DiskWorker,
    store: &Store,
    snapshot: &RestoredSnapshot,
    changes: &RestoredChanges,
) -> anyhow::Result<Chain> {
    let unusable = || UnusableSnapshot(snapshot.name.clone());
    let manifest = read_manifest(store, &snapshot.name).await?;
    let manifest = manifest.with_context(|| format!("{} has no manifest of it", snapshot.store));
    let manifest = manifest.with_context(unusable)?;
    if manifest.sha256 != snapshot.sha256 {
        let why = "it is another snapshot than the one whose changes were chosen";
        return Err(anyhow!(why).context(unusable()));
    }
    let chain = Chain::find_first(store, &manifest, changes.parts).await?;
    let chain = chain.with_context(|| {
        format!(
            "{} has no changes after it that could be replayed: nobody has verified it, or the record names no part",
            snapshot.store
        )
    });
    let chain = chain.with_context(unusable)?;
    // What is unpacked and what the scratch etcd makes of it are not there yet.
    let needed = snapshot.bytes.saturating_mul(2);
    let needed = needed.saturating_add(chain.needed_bytes());
    let check_room = move |host: &Host, disk: &EtcdDisk<'_>, _: &AttachedVolume| {
        check_room_for_changes(host, disk, needed)
    };
    disk.run_on_disk(check_room).await?;
    Ok(chain)
}

/// Checks that the disk has room for so many bytes of changes, and then for the copy that etcdutl makes of the scratch etcd's database: a
/// member that still serves from it ends when it is full.
fn check_room_for_changes(host: &Host, disk: &EtcdDisk<'_>, bytes: u64) -> anyhow::Result<()> {
    let database = format!("{}/{DATABASE}", disk.scratch_path());
    let database = host.path_below_root(&database).metadata();
    // There is none yet before the snapshot is unpacked, and its room was looked for.
    let copy = database.map_or(0, |database| database.len());
    let needed = bytes.saturating_add(copy).saturating_add(2 * LOG_FILE);
    let what = "the replay of the changes after the snapshot";
    disk.require_room(host, needed, what)
}

fn new_containers<'a>(
    host: &'a Host,
    request: &'a RestoreRequest,
    scratch: &str,
) -> EtcdContainers<'a> {
    let names = (&*request.image, &*request.etcd);
    EtcdContainers::new(host, names, request.interval, scratch)
}

/// What the restored folder was made from.
fn describe_source(snapshot: &RestoredSnapshot) -> String {
    let RestoredSnapshot {
        name, sha256, bump, ..
    } = snapshot;
    let changes = snapshot.changes.as_ref().map(|changes| {
        let RestoredChanges { parts, sha256, .. } = changes;
        format!(" with {parts} parts up to {sha256}")
    });
    let changes = changes.unwrap_or_default();
    format!("snapshot {name} {sha256}{changes} raised by {bump}\n")
}

/// Removes what an interrupted or another restore left, and makes an empty scratch folder.
fn prepare_scratch(
    host: &Host,
    disk: &EtcdDisk<'_>,
    request: &RestoreRequest,
    snapshot: &RestoredSnapshot,
) -> anyhow::Result<()> {
    let scratch = disk.scratch_path();
    let containers = new_containers(host, request, &scratch);
    containers.remove_all();
    host.remove_folder(&scratch)?;
    disk.remove_restored(host)?;
    // The compressed file, the file itself, and what etcdutl makes of it; the member's own data stays.
    let needed = snapshot.bytes.saturating_mul(3);
    let needed = needed.saturating_add(2 * LOG_FILE);
    let what = format!("the restore of {} beside its data", snapshot.name);
    disk.require_room(host, needed, &what)?;
    containers.provide_image()?;
    host.make_folder(&scratch, 0o700)?;
    Ok(())
}

/// Unpacks the file of the snapshot, and checks that it is the one in the record.
fn unpack(host: &Host, scratch: &str, snapshot: &RestoredSnapshot) -> anyhow::Result<()> {
    let path = |name: &str| host.path_below_root(&format!("{scratch}/{name}"));
    let (bytes, sha256) = (snapshot.bytes, &snapshot.sha256);
    unpack_file(&path(PACKED), &path(FILE), bytes, sha256)?;
    // Room for what etcdutl makes of it.
    Ok(host.remove_file(&format!("{scratch}/{PACKED}"))?)
}

/// How Secrets can be read with the keys that the API server on this instance has, or why some cannot.
fn find_secret(
    host: &Host,
    gateway: &ScratchGateway<'_>,
    request: &RestoreRequest,
) -> anyhow::Result<Result<String, String>> {
    let path = request.encryption_config.as_ref();
    let configuration = path.map(|path| host.read_text(path)).transpose()?.flatten();
    read_secrets(gateway, configuration.as_deref())
}

/// Checks what a scratch etcd found at the revision of the snapshot.
fn check_counts(snapshot: &RestoredSnapshot, keys: u64, revision: u64) -> anyhow::Result<()> {
    let expected = (snapshot.keys, snapshot.revision);
    for (what, found, expected) in [
        ("keys", keys, expected.0),
        ("as its revision", revision, expected.1),
    ] {
        if expected.is_some_and(|expected| expected != found) {
            let why = anyhow!(
                "a scratch etcd finds {found} {what}, not {}: the snapshot is not what its manifest says",
                expected.unwrap_or_default()
            );
            return Err(why.context(UnusableSnapshot(snapshot.name.clone())));
        }
    }
    Ok(())
}

/// Lets a scratch etcd read the snapshot, and replay the changes after it, then makes the log of the new cluster from it.
fn prove_and_restore(
    (host, disk): (&Host, &EtcdDisk<'_>),
    containers: &EtcdContainers<'_>,
    request: &RestoreRequest,
    (snapshot, changes): (&RestoredSnapshot, Option<ReplayInput>),
) -> anyhow::Result<String> {
    let file = format!("{WORK}/{FILE}");
    containers.unpack_snapshot(&file)?;
    // Leases end in a scratch etcd too, and what they end is at a higher revision.
    let known = snapshot.revision;
    let is_changed = changes.is_some();
    let ask = |gateway: &ScratchGateway<'_>| {
        let check_room = |bytes: u64| check_room_for_changes(host, disk, bytes);
        let replay = |changes| replay_parts(gateway, changes, &check_room);
        let replayed = changes.map(replay).transpose()?;
        let content = gateway.count_keys(ALL_KEYS, None)?;
        let keys = match known.filter(|known| *known < content.revision) {
            Some(known) => gateway.count_keys(ALL_KEYS, Some(known))?.keys,
            None => content.keys,
        };
        let secret = find_secret(host, gateway, request)?;
        let is_as_in_file = replayed.is_none() && !gateway.had_alarms;
        anyhow::Ok((replayed, is_as_in_file, content, keys, secret))
    };
    let (replayed, is_as_in_file, content, keys, secret) = containers.inspect(is_changed, ask)?;
    if let Err(why) = secret
        && !snapshot.unreadable_secrets
    {
        let why = anyhow!(
            "{why}: no API server could read its Secrets. Put the key back into the secret encryptionconfig (`kctl create secret`), update and \
             replace this control plane; or restore it nevertheless with --unreadable-secrets"
        );
        return Err(why.context(UnusableSnapshot(snapshot.name.clone())));
    }
    let revision = known.map_or(content.revision, |known| known.min(content.revision));
    check_counts(snapshot, keys, revision)?;
    let text = match replayed {
        Some(replayed) => format!("{}: {}", content.text(), describe_replayed(replayed)),
        None => content.text(),
    };
    if !is_as_in_file {
        // The file has the alarms, and etcdutl keeps them: NOSPACE would refuse the first writes, and CORRUPT everything. The database of the scratch
        // etcd, which has just read it, has none, and it has the changes that were replayed; nobody wrote a hash at its end.
        let database = format!("{WORK}/{DATABASE}");
        restore_log(
            containers,
            &database,
            request,
            snapshot.bump,
            &["--skip-hash-check"],
        )?;
        return Ok(text);
    }
    host.remove_folder(containers.data_folder())?;
    restore_log(containers, &file, request, snapshot.bump, &[])?;
    Ok(text)
}
