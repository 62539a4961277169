//! Bundles in the state store, in the folder of their cluster.

use crate::error::{CommandError, ErrorContext, ErrorKind};
use crate::state::{StoreKeys, store_error};
use aws_client::store::Store;
use node::digest::sha256_hex;
use spec::bundle::{Bundle, bundle_key, read_bundle};

/// Reads the index of the bundle with this sha256.
pub async fn read_stored_bundle(
    store: &Store,
    keys: &StoreKeys,
    sha256: &str,
) -> Result<Bundle, CommandError> {
    const HINT: &str = "store it with `kctl bundle push FILE`, or correct spec.assets.bundle";
    let key = keys.key_below(&bundle_key(sha256));
    let object = store.get(&key).await.map_err(store_error)?;
    let object = object.ok_or_else(|| {
        let message = format!("spec.assets.bundle: {key} is not in the state store");
        CommandError::from_message(ErrorKind::Precondition, message, HINT)
    })?;
    let text = String::from_utf8_lossy(&object.bytes);
    if sha256_hex(text.as_bytes()) != sha256 {
        let message = format!("{key} does not have the sha256 in its key");
        return Err(CommandError::from_message(ErrorKind::Failed, message, HINT));
    }
    read_bundle(&text).or_usage_error(format!("{key} cannot be used"), HINT)
}
