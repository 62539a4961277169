//! Signs objects of the state store that protokube obeys. The private key is read only when one is written: a preview needs none.

use crate::kinds::s3_object::{store_failure, write_text};
use crate::world::AwsWorld;
use aws_client::failure::local_failure;
use aws_client::store::Expect;
use engine::{Class, Failure, error_chain};
use node::config::KeysetIds;
use node::pki::{Keyset, STATE_SIGNER, keyset_path, read_keyset};
use node::signed::{
    SIGNATURE_LIMIT, SignedPlace, sign_text, signature_key, signature_prefix, verify_text,
};
use time::OffsetDateTime;

/// Whether the text at this key has a valid signature of the key that signs now. One of a former key is replaced, so that it can be
/// distrusted.
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
            Ok(read_serial(world, &newest, key, text).await?.is_some())
        }
        None => Ok(false),
    }
}

/// Writes a text: first its signature, then the text, and removes the signatures of former texts. The serial is the time, and greater than
/// that of the stored text, whatever the clock of its writer.
pub(crate) async fn put_signed(world: &AwsWorld, key: &str, text: &str) -> Result<(), Failure> {
    let signer = read_private_keyset(world).await?;
    let path = below_base(world, key);
    let stored = world.store.get(&path).await.map_err(store_failure)?;
    let next = match stored {
        Some(object) => {
            let stored = String::from_utf8_lossy(&object.bytes);
            let serial = read_serial(world, &signer, key, &stored).await?;
            serial.map_or(0, |serial| serial.saturating_add(1))
        }
        None => 0,
    };
    let now = u64::try_from(OffsetDateTime::now_utc().unix_timestamp()).unwrap_or_default();
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

fn keyset_failure(error: &node::pki::Error) -> Failure {
    let mut failure = local_failure(Class::Invalid, "keyset", error_chain(error));
    failure.hint = Some("restore the keyset from the bucket's versions".to_owned());
    failure
}
