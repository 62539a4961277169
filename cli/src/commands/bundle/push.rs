//! `kctl bundle push`.

use super::{DAMAGED, beside, open_checked};
use crate::args::BundlePush;
use crate::bundle::{BundleFile, INDEX, NotWritten};
use crate::commands::session::Session;
use crate::downloads::NO_TEMPORARY_ROOM;
use crate::error::{CommandError, ErrorContext, ErrorKind, Outcome};
use crate::moment;
use crate::state::{StoreKeys, load_keyset, store_error};
use aws_client::store::{Encryption, Expect, StoreError, sha256_of_file};
use node::digest::is_sha256;
use node::pki::{Keyset, STATE_SIGNER};
use node::signed::{SignedPlace, is_from_future, verify_text};
use spec::bundle::bundle_key;
use std::collections::BTreeMap;
use std::path::Path;
use time::OffsetDateTime;

/// Where the newest bundle that was stored is named: its sha256, then its signature. Not below `assets/`: an update deletes there what its plan
/// does not want.
const NEWEST: &str = "newest-bundle.sig";

/// The signature of a bundle by the cluster's key.
struct Signed {
    signer: Keyset,
    signature: String,
    /// When it was made, Unix seconds.
    at: u64,
}

/// The bundle that was signed last, of those that were stored.
struct NewestBundle {
    sha256: String,
    /// Unix seconds.
    signed_at: u64,
}

/// Stores a bundle in the cluster's folder, its index behind its files.
pub async fn push(args: &BundlePush, session: &Session<'_>) -> Result<Outcome, CommandError> {
    let name = session.cluster_name(args.cluster.as_deref()).await?;
    session.check_cluster_exists(&name).await?;
    let keys = StoreKeys::new(&name);
    let file = open_checked(&args.file)?;
    let signed = check_signature(&file, &args.file, &keys, session).await?;
    session.shell.note(&format!(
        "the bundle is for Kubernetes {}, and was signed at {}",
        file.bundle.kubernetes_version,
        time_text(signed.at)
    ));
    let sha256 = file.sha256();
    if !args.allow_older {
        let (newest, _) = read_newest(&signed.signer, &keys, session).await?;
        check_not_older(&sha256, signed.at, newest.as_ref())?;
    }
    let stored = store_files(&file, &keys, session).await?;
    let key = keys.key_below(&bundle_key(&sha256));
    let index = file.text.clone().into_bytes();
    let put = session.store.put(&key, index, Expect::Any).await;
    put.map_err(store_error)?;
    record_newest(&sha256, &signed, &keys, session).await?;
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

fn time_text(seconds: u64) -> String {
    moment::text(i64::try_from(seconds).unwrap_or(i64::MAX))
}

/// Fails unless the cluster's key has signed the bundle: who carries it could have changed it, hashes included.
async fn check_signature(
    file: &BundleFile,
    path: &Path,
    keys: &StoreKeys,
    session: &Session<'_>,
) -> Result<Signed, CommandError> {
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
    let at = verify_text(&signer, place_of_index(keys), &file.text, &signature).map_err(|_| {
        CommandError::from_message(
            ErrorKind::Failed,
            format!(
                "{} is no signature of the keyset {STATE_SIGNER} of {cluster} for this bundle: somebody has changed it, or its key is no longer trusted",
                path.display()
            ),
            DAMAGED,
        )
    })?;
    if is_from_future(at, OffsetDateTime::now_utc()) {
        return Err(CommandError::from_message(
            ErrorKind::Precondition,
            format!(
                "{} says that the bundle was signed at {}, more than a day from now: nobody could tell which bundles are older",
                path.display(),
                time_text(at)
            ),
            "if the clock of this computer is right, set that of the one that made the bundle, and make it again: `kctl bundle create`",
        ));
    }
    Ok(Signed {
        signer,
        signature,
        at,
    })
}

fn place_of_index(keys: &StoreKeys) -> SignedPlace<'_> {
    SignedPlace {
        cluster: keys.cluster(),
        key: INDEX,
    }
}

/// Names the bundle as the newest one, unless another one that was signed later is named by then, whoever stores it meanwhile. So one that is
/// stored on purpose although it is older does not let others in.
async fn record_newest(
    sha256: &str,
    signed: &Signed,
    keys: &StoreKeys,
    session: &Session<'_>,
) -> Result<(), CommandError> {
    let key = keys.key_below(NEWEST);
    loop {
        let (newest, expect) = read_newest(&signed.signer, keys, session).await?;
        if newest.is_some_and(|newest| newest.signed_at >= signed.at) {
            return Ok(());
        }
        let record = format!("{sha256}\n{}", signed.signature).into_bytes();
        match session.store.put(&key, record, expect).await {
            Err(StoreError::Conflict { .. }) => {}
            put => return put.map(drop).map_err(store_error),
        }
    }
}

/// The newest bundle that was stored, and what the record of it must be to be replaced. None if an earlier release stored all of them, its index
/// is gone, or its key is no longer trusted; and a signature from the future, which a wrong clock makes, must not keep out all that follow.
async fn read_newest(
    signer: &Keyset,
    keys: &StoreKeys,
    session: &Session<'_>,
) -> Result<(Option<NewestBundle>, Expect), CommandError> {
    let record = session.store.get(&keys.key_below(NEWEST)).await;
    let Some(record) = record.map_err(store_error)? else {
        return Ok((None, Expect::Absent));
    };
    let expect = Expect::Version(record.version);
    let text = String::from_utf8_lossy(&record.bytes);
    let parts = text.split_once('\n');
    let Some((sha256, signature)) = parts.filter(|(sha256, _)| is_sha256(sha256)) else {
        return Ok((None, expect));
    };
    let index = read_text(&bundle_key(sha256), keys, session).await?;
    let signed_at =
        index.and_then(|index| verify_text(signer, place_of_index(keys), &index, signature).ok());
    let now = OffsetDateTime::now_utc();
    let signed_at = signed_at.filter(|signed_at| !is_from_future(*signed_at, now));
    let newest = signed_at.map(|signed_at| NewestBundle {
        sha256: sha256.to_owned(),
        signed_at,
    });
    Ok((newest, expect))
}

async fn read_text(
    key: &str,
    keys: &StoreKeys,
    session: &Session<'_>,
) -> Result<Option<String>, CommandError> {
    let object = session.store.get(&keys.key_below(key)).await;
    let object = object.map_err(store_error)?;
    Ok(object.map(|object| String::from_utf8_lossy(&object.bytes).into_owned()))
}

/// Fails if the bundle is older than the newest one: it has a good signature too, and who carries bundles could exchange them.
fn check_not_older(
    sha256: &str,
    signed_at: u64,
    newest: Option<&NewestBundle>,
) -> Result<(), CommandError> {
    let newest = newest.filter(|newest| newest.signed_at > signed_at && newest.sha256 != sha256);
    let Some(newest) = newest else {
        return Ok(());
    };
    let error = CommandError::from_message(
        ErrorKind::Precondition,
        format!(
            "the bundle was signed at {}, and {}, which is stored, at {}: somebody may have exchanged it for an older one",
            time_text(signed_at),
            newest.sha256,
            time_text(newest.signed_at)
        ),
        "copy the newer one, or make another: `kctl bundle create`",
    );
    Err(error.with_hint("--allow-older stores it nevertheless"))
}

/// Stores the files that are not there yet with their size. Returns how many.
async fn store_files(
    file: &BundleFile,
    keys: &StoreKeys,
    session: &Session<'_>,
) -> Result<usize, CommandError> {
    let store = &session.store;
    // Former bundles too: a page of a listing has a thousand objects, and to ask for each file of this one takes more calls.
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
