//! `kctl bundle push`.

use super::{DAMAGED, beside, open_checked};
use crate::args::BundlePush;
use crate::bundle::{BundleFile, INDEX, NotWritten};
use crate::commands::session::Session;
use crate::downloads::NO_TEMPORARY_ROOM;
use crate::error::{CommandError, ErrorContext, ErrorKind, Outcome};
use crate::moment;
use crate::state::{StoreKeys, load_keyset, store_error};
use aws_client::store::{Encryption, Expect, sha256_of_file};
use node::pki::STATE_SIGNER;
use node::signed::{SignedPlace, verify_text};
use spec::bundle::bundle_key;
use std::collections::BTreeMap;
use std::path::Path;

/// Stores a bundle in the cluster's folder, its index last.
pub async fn push(args: &BundlePush, session: &Session<'_>) -> Result<Outcome, CommandError> {
    let name = session.cluster_name(args.cluster.as_deref()).await?;
    session.check_cluster_exists(&name).await?;
    let keys = StoreKeys::new(&name);
    let file = open_checked(&args.file)?;
    let signed = check_signature(&file, &args.file, &keys, session).await?;
    // An older bundle has a good signature too: whoever stores one is to see it.
    session.shell.note(&format!(
        "the bundle is for Kubernetes {}, and was signed at {}",
        file.bundle.kubernetes_version,
        moment::text(i64::try_from(signed).unwrap_or(i64::MAX))
    ));
    let stored = store_files(&file, &keys, session).await?;
    let sha256 = file.sha256();
    let key = keys.key_below(&bundle_key(&sha256));
    let index = file.text.clone().into_bytes();
    let put = session.store.put(&key, index, Expect::Any).await;
    put.map_err(store_error)?;
    let there = file.sizes().count() - stored;
    session.shell.print_done(&format!(
        "stored {stored} files of the bundle; {there} were there already, with their sizes"
    ));
    session.shell.print_result(&format!("{sha256}\n"))?;
    session.shell.hint(&format!(
        "instances use it once the spec names it: `kctl edit cluster {name} --set spec.assets.bundle={sha256}`, `kctl update {name} --yes`"
    ));
    Ok(Outcome::Fine)
}

/// Fails unless the cluster's key has signed the bundle: who carries it could have changed it, hashes included. Returns when it was signed,
/// Unix seconds.
async fn check_signature(
    file: &BundleFile,
    path: &Path,
    keys: &StoreKeys,
    session: &Session<'_>,
) -> Result<u64, CommandError> {
    let cluster = keys.cluster();
    if file.bundle.cluster != cluster {
        return Err(CommandError::usage_error(
            format!(
                "the bundle is for {}, not for {cluster}",
                file.bundle.cluster
            ),
            format!("make one with `kctl bundle create {cluster} --out FILE`"),
        ));
    }
    let path = beside(path, ".sig");
    let signature = std::fs::read_to_string(&path).or_usage_error(
        format!("could not read {}", path.display()),
        "copy the signature too: `kctl bundle create` has written it beside the bundle",
    )?;
    let signer = load_keyset(&session.store, keys, STATE_SIGNER).await?;
    let place = SignedPlace {
        cluster,
        key: INDEX,
    };
    let verified = verify_text(&signer, place, &file.text, &signature);
    verified.map_err(|_| {
        CommandError::from_message(
            ErrorKind::Failed,
            format!(
                "{} is no signature of the keyset {STATE_SIGNER} of {cluster} for this bundle: somebody has changed it, or its key is no longer trusted",
                path.display()
            ),
            DAMAGED,
        )
    })
}

/// Stores the files that are not there yet with their size. Returns how many.
async fn store_files(
    file: &BundleFile,
    keys: &StoreKeys,
    session: &Session<'_>,
) -> Result<usize, CommandError> {
    let store = &session.store;
    let listed = store.list(&keys.key_below("assets/"), None).await;
    let listed = listed.map_err(store_error)?;
    let there = listed.iter().map(|entry| (entry.key.as_str(), entry.size));
    let there: BTreeMap<&str, u64> = there.collect();
    let part = tempfile::NamedTempFile::new();
    let part = part.or_failed("could not make a temporary file", NO_TEMPORARY_ROOM)?;
    let mut stored = 0;
    let count = file.sizes().count();
    for (index, (path, size)) in file.sizes().enumerate() {
        let key = keys.key_below(path);
        // The key has the sha256: what is there under it is the same, unless it was damaged. Reading gigabytes to know it would take as long as
        // storing them, and instances check what they read.
        let found = there.get(key.as_str());
        if found == Some(&size) {
            continue;
        }
        session
            .shell
            .note(&format!("{} of {count}: {path}", index + 1));
        let extracted = file.extract(path, part.path());
        let hint = match &extracted {
            Err(error) if error.is::<NotWritten>() => NO_TEMPORARY_ROOM,
            _ => DAMAGED,
        };
        extracted.or_failed("could not take a file out of the bundle", hint)?;
        let digest = sha256_of_file(part.path()).await;
        let digest = digest.or_failed("could not read a temporary file", NO_TEMPORARY_ROOM)?;
        if found.is_some() {
            let deleted = store.delete(&key, Expect::Any).await;
            deleted.map_err(store_error)?;
        }
        let put = store.put_same_file(&key, part.path(), &digest, Encryption::S3Keys);
        Box::pin(put).await.map_err(store_error)?;
        stored += 1;
    }
    Ok(stored)
}
