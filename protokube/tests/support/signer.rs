//! Signs objects of the state store as kctl does.

use aws_client::store::{Expect, Store};
use node::pki::{
    KeyAlgorithm, Keyset, STATE_SIGNER, SystemKeys, keyset_path, mint_keyset, read_keyset,
    write_keyset,
};
use node::signed::{SignedPlace, sign_text, signature_key, verify_text};
use time::OffsetDateTime;

/// The keyset in the store, made if there is none.
pub(crate) async fn signer_in(store: &Store) -> Keyset {
    let key = keyset_path(STATE_SIGNER);
    if let Some(object) = store.get(&key).await.unwrap() {
        return read_keyset(STATE_SIGNER, &String::from_utf8(object.bytes).unwrap()).unwrap();
    }
    let mut keys = SystemKeys::issuing_at(OffsetDateTime::now_utc());
    let keyset = mint_keyset(STATE_SIGNER, KeyAlgorithm::EcdsaP256, &mut keys).unwrap();
    let text = write_keyset(&keyset).unwrap();
    let bytes = text.reveal().as_bytes().to_vec();
    store.put(&key, bytes, Expect::Absent).await.unwrap();
    keyset
}

/// Stores a text with a signature whose serial is one more than that of the stored text.
pub(crate) async fn put_signed(store: &Store, cluster: &str, key: &str, text: &str) {
    let keyset = signer_in(store).await;
    let place = SignedPlace { cluster, key };
    let serial = match read_text(store, key).await {
        Some(stored) => {
            let signature = read_text(store, &signature_key(key, &stored)).await;
            let signature = signature.unwrap_or_default();
            verify_text(&keyset, place, &stored, &signature).unwrap_or_default()
        }
        None => 0,
    };
    let signature = sign_text(&keyset, place, text, serial + 1).unwrap();
    put_text(store, &signature_key(key, text), &signature).await;
    put_text(store, key, text).await;
}

async fn read_text(store: &Store, key: &str) -> Option<String> {
    let object = store.get(key).await.unwrap()?;
    Some(String::from_utf8(object.bytes).unwrap())
}

async fn put_text(store: &Store, key: &str, text: &str) {
    let put = store.put(key, text.as_bytes().to_vec(), Expect::Any);
    put.await.unwrap();
}
