//! Signs objects of the state store that protokube obeys. The private key is read only when one is written: a preview needs none.

use crate::kinds::s3_object::{store_failure, write_text};
use crate::world::AwsWorld;
use aws_client::failure::local_failure;
use aws_client::store::Expect;
use engine::{Class, Failure, error_chain};
use node::config::KeysetIds;
use node::pki::{Keyset, STATE_SIGNER, keyset_path, read_keyset};
use node::signed::{
    SIGNATURE_LIMIT, SignedPlace, is_from_future, sign_text, signature_key, signature_prefix,
    verify_text,
};
use time::OffsetDateTime;

/// Whether the text at this key has a valid signature of the key that signs now. One of a former key is replaced, so that it can be
/// distrusted; protokube does not use one that is from the future.
pub(crate) async fn has_signature(
    world: &AwsWorld,
    key: &str,
    text: &str,
) -> Result<bool, Failure> {
    match &world.scope.signer {
        Some(signer) => {
            let newest = signer.clone().as_of(&KeysetIds {
                primary: signer.primary.clone(),
                trusted: Vec::new(),
            });
            let serial = read_serial(world, &newest, key, text).await?;
            let now = OffsetDateTime::now_utc();
            Ok(serial.is_some_and(|serial| !is_from_future(serial, now)))
        }
        None => Ok(false),
    }
}

/// Writes a text: first its signature, then the text, and removes the signatures of former texts. The serial is the time, and greater than
/// that of the stored text, whatever the clock of its writer. Fails if that is far in the future: protokube would use nothing that is signed
/// with a greater one.
pub(crate) async fn put_signed(world: &AwsWorld, key: &str, text: &str) -> Result<(), Failure> {
    let signer = read_private_keyset(world).await?;
    let path = below_base(world, key);
    let stored = world.store.get(&path).await.map_err(store_failure)?;
    let now = OffsetDateTime::now_utc();
    let next = match stored {
        Some(object) => {
            let stored = String::from_utf8_lossy(&object.bytes);
            let serial = read_serial(world, &signer, key, &stored).await?;
            if serial.is_some_and(|serial| is_from_future(serial, now)) {
                return Err(future_failure(&path));
            }
            serial.map_or(0, |serial| serial.saturating_add(1))
        }
        None => 0,
    };
    let now = u64::try_from(now.unix_timestamp()).unwrap_or_default();
    let signature = sign_text(&signer, place(world, key), text, now.max(next));
    let signature = signature.map_err(|error| keyset_failure(&error))?;
    let own = below_base(world, &signature_key(key, text));
    write_text(world, &own, &signature).await?;
    write_text(world, &path, text).await?;
    let prefix = below_base(world, &signature_prefix(key));
    let listed = world.store.list(&prefix, None).await;
    for entry in listed.map_err(store_failure)? {
        if entry.key != own {
            let deleted = world.store.delete(&entry.key, Expect::Any).await;
            deleted.map_err(store_failure)?;
        }
    }
    Ok(())
}

/// The serial of the signature of this text, if it is valid.
async fn read_serial(
    world: &AwsWorld,
    signer: &Keyset,
    key: &str,
    text: &str,
) -> Result<Option<u64>, Failure> {
    let path = below_base(world, &signature_key(key, text));
    let read = world.store.get_first(&path, SIGNATURE_LIMIT).await;
    let Some(bytes) = read.map_err(store_failure)? else {
        return Ok(None);
    };
    let signature = String::from_utf8_lossy(&bytes);
    Ok(verify_text(signer, place(world, key), text, &signature).ok())
}

fn place<'a>(world: &'a AwsWorld, key: &'a str) -> SignedPlace<'a> {
    let cluster = &world.scope.cluster;
    SignedPlace { cluster, key }
}

fn below_base(world: &AwsWorld, key: &str) -> String {
    format!("{}/{key}", world.scope.base)
}

async fn read_private_keyset(world: &AwsWorld) -> Result<Keyset, Failure> {
    let path = below_base(world, &keyset_path(STATE_SIGNER));
    let object = world.store.get(&path).await.map_err(store_failure)?;
    let object = object.ok_or_else(|| {
        let message = format!("the state store has no {path}");
        let mut failure = local_failure(Class::Invalid, "keyset", message);
        failure.hint = Some("run the update again: it makes the keyset".to_owned());
        failure
    })?;
    let text = String::from_utf8_lossy(&object.bytes);
    read_keyset(STATE_SIGNER, &text).map_err(|error| keyset_failure(&error))
}

fn future_failure(path: &str) -> Failure {
    let message = format!(
        "{path} has a valid signature that is dated more than a day in the future: this clock is slow, or somebody else had a key of {STATE_SIGNER}"
    );
    let mut failure = local_failure(Class::Invalid, "signature", message);
    failure.hint = Some(format!(
        "set the clock; if it is right, `kctl create keypair {STATE_SIGNER}`, `kctl promote keypair {STATE_SIGNER}`, `kctl distrust keypair {STATE_SIGNER} --force`, and the update again with --refresh"
    ));
    failure
}

fn keyset_failure(error: &node::pki::Error) -> Failure {
    let mut failure = local_failure(Class::Invalid, "keyset", error_chain(error));
    failure.hint = Some("restore the keyset from the bucket's versions".to_owned());
    failure
}
