//! Objects of the state store that instances read. What is named by its content is not read to be compared, nor
//! is what has the version that the wanted content would have.

use super::{Found, Have, Verbs, created_ready, desired_by_name, observed_item};
use crate::signing::{has_signature, put_signed};
use crate::world::AwsWorld;
use aws_client::failure::local_failure;
use aws_client::store::{Encryption, Entry, Expect, Object, StoreError, sha256_of_file};
use cloud::{Cloud, HiddenText, ObjectContent, S3Object};
use engine::{Class, Failure, Observed, Put, Refs, Removed, error_chain};
use futures::stream::{self, StreamExt, TryStreamExt};
use node::addons::hide_secrets;
use node::backup::BACKUP_SETTINGS_KEY;
use node::digest::to_hex;
use node::signed::signature_key;
use std::collections::BTreeSet;

/// Folders and keys below the cluster's base that hold such objects. All else there is other people's: the
/// spec, secrets, backups, the journal.
const OURS: [&str; 5] = [
    "addons/",
    "assets/",
    "cluster-completed.spec",
    BACKUP_SETTINGS_KEY,
    "igconfig/",
];

/// The folder with the manifests of addons, which may have Secrets.
const MANIFESTS: &str = "addons/";

/// Objects that are read at once.
const PARALLEL_READS: usize = 50;

/// Hex digits of a sha256.
const DIGITS: usize = 64;

/// The cluster's objects: two lists that go around its backups, and the content of those whose version
/// does not already say that they are as wanted.
pub(crate) async fn fetch(world: &AwsWorld) -> Result<Vec<Observed<Cloud>>, Failure> {
    let base = &world.scope.base;
    let key = |key: &str| format!("{base}/{key}");
    let prefix = key("");
    let (until, after, last) = (key("assets~"), key("backups~"), key("igconfig~"));
    let (first, second) = futures::try_join!(
        world.store.list_until(&prefix, None, Some(&until)),
        world.store.list_until(&prefix, Some(&after), Some(&last))
    )
    .map_err(store_failure)?;
    let ours = first.into_iter().chain(second).filter_map(|entry| {
        let key = entry.key.strip_prefix(&prefix)?.to_owned();
        let ours = OURS.iter().any(|one| key.starts_with(one));
        // They say which backups there are besides those in the cluster's folder: a deletion that was interrupted needs them again. They go
        // with the folder.
        let stays = world.scope.is_deletion() && key.starts_with(BACKUP_SETTINGS_KEY);
        (ours && !stays).then_some((key, entry))
    });
    let ours: Vec<_> = ours.collect();
    let keys: BTreeSet<String> = ours.iter().map(|(key, _)| key.clone()).collect();
    let keys = &keys;
    let observed = stream::iter(ours)
        .map(|(key, entry)| async move { observe(world, key, entry, keys).await });
    let found: Vec<_> = observed.buffered(PARALLEL_READS).try_collect().await?;
    Ok(found.into_iter().flatten().collect())
}

/// What is named by its content and not wanted is kept for the instances that still name it, and seen only
/// when the cluster goes. `keys`: those of all objects that were listed.
async fn observe(
    world: &AwsWorld,
    key: String,
    entry: Entry,
    keys: &BTreeSet<String>,
) -> Result<Option<Observed<Cloud>>, Failure> {
    let wanted = desired_by_name::<S3Object>(world, &key);
    let content = match (wanted.map(|one| &one.content), digest_in_key(&key)) {
        (Some(ObjectContent::Sha256(wanted)), _) => ObjectContent::Sha256(wanted.clone()),
        (Some(ObjectContent::Text(wanted)), _)
            if world.store.surely_holds(&entry, wanted.as_bytes()) =>
        {
            ObjectContent::Text(wanted.clone())
        }
        (Some(ObjectContent::Hidden(wanted)), _)
            if world.store.surely_holds(&entry, wanted.reveal().as_bytes()) =>
        {
            ObjectContent::Hidden(wanted.clone())
        }
        (Some(ObjectContent::Signed(wanted)), _)
            if !world.scope.refresh
                && keys.contains(&signature_key(&key, wanted))
                && world.store.surely_holds(&entry, wanted.as_bytes()) =>
        {
            ObjectContent::Signed(wanted.clone())
        }
        (None, Some(_)) if !world.scope.is_deletion() => return Ok(None),
        (None, Some(digest)) => ObjectContent::Sha256(digest),
        // Nobody compares it.
        (None, None) => ObjectContent::Text("".into()),
        (
            Some(
                wanted @ (ObjectContent::Text(_)
                | ObjectContent::Signed(_)
                | ObjectContent::Hidden(_)),
            ),
            _,
        ) => match world.store.get(&entry.key).await.map_err(store_failure)? {
            Some(object) => {
                let (version, bytes) = (&object.version, &object.bytes);
                world.store.learn_content(&entry.key, version, bytes);
                read_content(world, &key, wanted, &object).await?
            }
            None => return Ok(None),
        },
    };
    let physical = key.clone();
    Ok(Some(observed_item(S3Object { key, content }, physical)))
}

/// The content of an object that was read whole. A signature is looked for only if one is wanted. A manifest with Secrets is hidden, also if
/// the wanted one has none any more.
async fn read_content(
    world: &AwsWorld,
    key: &str,
    wanted: &ObjectContent,
    object: &Object,
) -> Result<ObjectContent, Failure> {
    let text = String::from_utf8_lossy(&object.bytes).into_owned();
    Ok(match wanted {
        ObjectContent::Signed(_) if has_signature(world, key, &text).await? => {
            ObjectContent::Signed(text.into())
        }
        ObjectContent::Text(_) | ObjectContent::Hidden(_) if key.starts_with(MANIFESTS) => {
            match hide_secrets(&text) {
                Some(shown) => ObjectContent::Hidden(HiddenText::new(&text, &shown)),
                None => ObjectContent::Text(text.into()),
            }
        }
        _ => ObjectContent::Text(text.into()),
    })
}

/// The sha256 in a key, if its content is named by one.
fn digest_in_key(key: &str) -> Option<String> {
    let mut words = key.split(|char: char| !char.is_ascii_hexdigit());
    words
        .find(|word| word.len() == DIGITS)
        .map(ToOwned::to_owned)
}

pub(crate) fn store_failure(error: StoreError) -> Failure {
    match error {
        StoreError::Denied { ref source, .. } | StoreError::S3 { ref source, .. } => Failure {
            message: format!("{error}: {}", source.message),
            ..source.clone()
        },
        error => {
            let mut failure = local_failure(Class::Invalid, "store", error_chain(&error));
            if matches!(error, StoreError::NoBucket { .. }) {
                failure.hint =
                    Some("create the bucket, or name another one in the spec".to_owned());
            }
            failure
        }
    }
}

/// Writes what is named by its content, unless somebody has: whoever it was wrote the same.
async fn put_file(
    world: &AwsWorld,
    key: &str,
    want: &S3Object,
    digest: &str,
) -> Result<(), Failure> {
    let unreadable = |error: std::io::Error| {
        let message = format!("{} cannot be read: {error}", want.key);
        local_failure(Class::Invalid, "assets", message)
    };
    let file = (world.scope.assets)(want).map_err(unreadable)?;
    let found = sha256_of_file(&file).await.map_err(unreadable)?;
    if to_hex(&found) != digest {
        let message = format!("{} has not the sha256 of {}", file.display(), want.key);
        let mut failure = local_failure(Class::Invalid, "assets", message);
        failure.hint = Some("it was replaced meanwhile: run the update again".to_owned());
        return Err(failure);
    }
    match world
        .store
        .put_file(key, &file, &found, Encryption::S3Keys)
        .await
    {
        Ok(()) | Err(StoreError::Conflict { .. }) => Ok(()),
        Err(error) => Err(store_failure(error)),
    }
}

pub(crate) async fn write_text(world: &AwsWorld, key: &str, text: &str) -> Result<(), Failure> {
    let done = world
        .store
        .put(key, text.as_bytes().to_vec(), Expect::Any)
        .await;
    let version = done.map_err(store_failure)?;
    world.store.learn_content(key, &version, text.as_bytes());
    Ok(())
}

impl Verbs for S3Object {
    async fn find(world: &AwsWorld, want: &Self, _refs: &Refs) -> Found {
        let key = format!("{}/{}", world.scope.base, want.key);
        let content = match &want.content {
            wanted @ (ObjectContent::Text(_)
            | ObjectContent::Signed(_)
            | ObjectContent::Hidden(_)) => {
                match world.store.get(&key).await.map_err(store_failure)? {
                    Some(object) => Some(read_content(world, &want.key, wanted, &object).await?),
                    None => None,
                }
            }
            ObjectContent::Sha256(_) => {
                let found = world.store.sha256(&key).await.map_err(store_failure)?;
                found.map(|digest| ObjectContent::Sha256(to_hex(&digest)))
            }
        };
        let key = want.key.clone();
        Ok(content.map(|content| observed_item(S3Object { key, content }, &want.key)))
    }

    async fn put(
        world: &AwsWorld,
        want: &Self,
        _have: Option<Have<'_, Self>>,
        _refs: &Refs,
    ) -> Result<Put, Failure> {
        let key = format!("{}/{}", world.scope.base, want.key);
        match &want.content {
            ObjectContent::Sha256(digest) => put_file(world, &key, want, digest).await?,
            ObjectContent::Text(text) => write_text(world, &key, text).await?,
            ObjectContent::Hidden(text) => write_text(world, &key, text.reveal()).await?,
            ObjectContent::Signed(text) => put_signed(world, &want.key, text).await?,
        }
        Ok(created_ready(&want.key))
    }

    async fn remove(world: &AwsWorld, have: Have<'_, Self>) -> Result<Removed, Failure> {
        let key = format!("{}/{}", world.scope.base, have.physical);
        let done = world.store.delete(&key, Expect::Any).await;
        done.map_err(store_failure)?;
        Ok(Removed::Done)
    }
}

/// Removes the node configurations of an instance group that none of these user data name any more. Does nothing
/// unless some of them do: then the configurations are named in a way that is not understood here.
pub(super) async fn forget_configurations(
    world: &AwsWorld,
    group: &str,
    user_data: &[String],
) -> Result<(), Failure> {
    let prefix = format!("{}/igconfig/", world.scope.base);
    let found = world
        .store
        .list(&prefix, None)
        .await
        .map_err(store_failure)?;
    let folder = format!("/{group}/");
    let of_group = found.into_iter().filter(|one| one.key.contains(&folder));
    let named = |digest: &String| user_data.iter().any(|text| text.contains(digest));
    let (kept, old): (Vec<_>, Vec<_>) = of_group
        .filter_map(|entry| Some((digest_in_key(&entry.key)?, entry)))
        .partition(|(digest, _)| named(digest));
    if kept.is_empty() {
        return Ok(());
    }
    for (_, entry) in old {
        let done = world.store.delete(&entry.key, Expect::Any).await;
        done.map_err(store_failure)?;
    }
    Ok(())
}
