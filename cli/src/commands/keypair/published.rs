//! Whether the documents of the issuer have the key that is to sign: AWS verifies tokens of pods by them, not by what instances have.

use super::super::existing_cluster::ExistingCluster;
use crate::error::{CommandError, ErrorContext};
use crate::state::store_error;
use aws_client::store::Store;
use cloud::DiscoveryDocument;
use node::pki::{JsonWebKeySet, Keyset};

/// One line if the cluster's issuer does not publish the key that signs in this keyset of service accounts' keys. `update` writes the
/// documents and what instances are launched with in one run, and a run that fails may have done the one without the other.
pub async fn find_unpublished(
    keyset: &Keyset,
    cluster: &ExistingCluster,
) -> Result<Vec<String>, CommandError> {
    let discovery = &cluster.spec.spec.service_account_issuer_discovery;
    let discovery = discovery.as_ref();
    let Some(url) = discovery.and_then(|one| one.discovery_store.as_deref()) else {
        return Ok(Vec::new());
    };
    let mut signs = keyset.clone();
    signs.items.retain(|item| item.id == keyset.primary);
    let signs = JsonWebKeySet::ever_trusted(&signs).or_failed(
        "the key cannot be published",
        "bring a certificate with an RSA or ECDSA key",
    )?;
    let clients = cluster.clients.shared_clients();
    let store = Store::open(url, clients).map_err(store_error)?;
    let published = store.get(DiscoveryDocument::KEYS).await;
    let published = published.map_err(store_error)?;
    let published = published
        .and_then(|object| serde_json::from_slice::<JsonWebKeySet>(&object.bytes).ok())
        .unwrap_or(JsonWebKeySet { keys: Vec::new() });
    let missing = signs.keys.iter().any(|key| !published.has_key(&key.kid));
    Ok(missing
        .then(|| {
            let (id, keys) = (&keyset.primary, DiscoveryDocument::KEYS);
            format!("{url}/{keys} does not have {id}: AWS would refuse tokens that it signs")
        })
        .into_iter()
        .collect())
}
