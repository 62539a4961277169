//! What of the state store only a key of `state-signer` vouches for: protokube would obey it no longer.

use super::super::session::Session;
use crate::error::CommandError;
use crate::state::{StoreKeys, store_error};
use node::addons::CHANNEL_KEY;
use node::backup::BACKUP_SETTINGS_KEY;
use node::pki::Keyset;
use node::signed::{SIGNATURE_LIMIT, SignedPlace, signature_key, verify_text};

/// One line for each signed object that the keys of this keyset do not vouch for.
pub async fn find_unsigned(
    signer: &Keyset,
    keys: &StoreKeys,
    session: &Session<'_>,
) -> Result<Vec<String>, CommandError> {
    let (store, cluster) = (&session.store, keys.cluster());
    let mut lines = Vec::new();
    for key in [CHANNEL_KEY, BACKUP_SETTINGS_KEY] {
        let object = store.get(&keys.key_below(key)).await.map_err(store_error)?;
        let Some(object) = object else { continue };
        let text = String::from_utf8_lossy(&object.bytes);
        let at = keys.key_below(&signature_key(key, &text));
        let signature = store.get_first(&at, SIGNATURE_LIMIT).await;
        let signature = signature.map_err(store_error)?.unwrap_or_default();
        let signature = String::from_utf8_lossy(&signature);
        if verify_text(signer, SignedPlace { cluster, key }, &text, &signature).is_err() {
            lines.push(format!(
                "{key} is signed with it: kctl update {cluster} --refresh --yes signs it anew"
            ));
        }
    }
    Ok(lines)
}
