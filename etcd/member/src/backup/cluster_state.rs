//! The objects of the state store without which a cluster cannot be created again, its private keys among them, as a zip that is sealed
//! with age for those whom the spec names. Nobody else can read it, protokube neither.

use anyhow::{Context, bail, ensure};
use aws_client::fips;
use aws_client::store::Store;
use etcd_rules::backup::{CLUSTER_STATE_KEYS, SealedClusterState};
use node::digest::sha256_hex;
use node::formatted::UnknownFields;
use std::io::{Cursor, Read, Write};
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

/// Limit of all objects together, bytes: a cluster has some hundred KiB of them.
const LIMIT: usize = 32 << 20;

/// Reads the objects and seals them.
pub(super) async fn seal_cluster_state(
    store: &Store,
    recipients: &[String],
) -> anyhow::Result<(Vec<u8>, SealedClusterState)> {
    ensure!(
        !fips::is_running(),
        "they would be sealed with age, which is not of the FIPS module that this protokube runs with: remove KCTL_ETCD_BACKUP_AGE_RECIPIENTS from the spec"
    );
    let parsed = recipients.iter().map(|one| {
        let key = one.parse::<age::x25519::Recipient>();
        key.map_err(|why| anyhow::anyhow!("{one} is not a public key of age: {why}"))
    });
    let parsed: Vec<age::x25519::Recipient> = parsed.collect::<anyhow::Result<_>>()?;
    let (zip, objects) = pack_objects(store).await?;
    let keys = parsed.iter().map(|one| one as &dyn age::Recipient);
    let mut sealed = Vec::new();
    let mut writer = age::Encryptor::with_recipients(keys)?.wrap_output(&mut sealed)?;
    writer.write_all(&zip)?;
    writer.finish()?;
    let state = SealedClusterState {
        bytes: sealed.len() as u64,
        sha256: sha256_hex(&sealed),
        objects,
        recipients: recipients.to_vec(),
        unknown: UnknownFields::new(),
    };
    Ok((sealed, state))
}

/// A zip with the objects under their keys, and how many there are.
async fn pack_objects(store: &Store) -> anyhow::Result<(Vec<u8>, usize)> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    let (mut objects, mut bytes) = (0, 0);
    for prefix in CLUSTER_STATE_KEYS {
        let listed = store.list(prefix, None).await;
        for entry in listed.with_context(|| format!("could not list {prefix}"))? {
            // `config` is a whole key.
            if !prefix.ends_with('/') && entry.key != prefix {
                continue;
            }
            let read = store.get(&entry.key).await;
            let read = read.with_context(|| format!("could not read {}", entry.key))?;
            let Some(object) = read else { continue };
            bytes += object.bytes.len();
            if bytes > LIMIT {
                bail!("the spec and the keys of the cluster have more than {LIMIT} bytes");
            }
            zip.start_file(
                entry.key,
                SimpleFileOptions::default().unix_permissions(0o600),
            )?;
            zip.write_all(&object.bytes)?;
            objects += 1;
        }
    }
    if objects == 0 {
        bail!("{} has no spec and no keys", store.url());
    }
    Ok((zip.finish()?.into_inner(), objects))
}

/// Decrypts what was sealed. `identities`: the content of a file of `age-keygen`. Returns the zip.
pub(crate) fn unseal_cluster_state(sealed: &[u8], identities: &str) -> anyhow::Result<Vec<u8>> {
    ensure!(
        !fips::is_running(),
        "age is not of the FIPS module that this protokube runs with: decrypt the file with `age --decrypt`"
    );
    let lines = identities.lines().map(str::trim);
    let lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
    // The line is a secret, and stands in no error.
    let keys = lines.map(|line| {
        let key = line.parse::<age::x25519::Identity>();
        key.map_err(|why| anyhow::anyhow!("it has a line that is no private key of age: {why}"))
    });
    let keys: Vec<age::x25519::Identity> = keys.collect::<anyhow::Result<_>>()?;
    let keys = keys.iter().map(|one| one as &dyn age::Identity);
    let mut opened = age::Decryptor::new(sealed)?.decrypt(keys)?;
    let mut zip = Vec::new();
    opened.read_to_end(&mut zip)?;
    Ok(zip)
}
