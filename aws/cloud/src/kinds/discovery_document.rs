//! The documents of the issuer of service accounts' tokens, in a bucket of the user's: those of every issuer that the cluster has had.

use super::s3_object::store_failure;
use super::{Found, Have, Verbs, created_ready, desired_by_name, observed_item};
use crate::world::AwsWorld;
use aws_client::failure::local_failure;
use aws_client::store::{Expect, Store};
use cloud::{Cloud, DiscoveryDocument, Kind};
use engine::{Class, Failure, Observed, Put, Refs, Removed};
use futures::future::try_join_all;
use node::pki::JsonWebKeySet;

/// The documents of all issuers of the cluster that are there.
pub(crate) async fn fetch(world: &AwsWorld) -> Result<Vec<Observed<Cloud>>, Failure> {
    let stores = world.scope.issuers.values();
    let asked = stores.flat_map(|store| {
        [DiscoveryDocument::CONFIGURATION, DiscoveryDocument::KEYS]
            .map(|key| fetch_one(world, store, key))
    });
    let found = try_join_all(asked).await?;
    let found: Vec<DiscoveryDocument> = found.into_iter().flatten().collect();
    // Of a store in which another cluster publishes its keys, nothing is ours.
    let is_others = |store: &str| {
        let mut keys = found.iter();
        keys.any(|one| one.store == store && belongs_to_another(world, one))
    };
    let ours = found.iter().filter(|one| !is_others(&one.store));
    Ok(ours.cloned().map(observe).collect())
}

fn observe(document: DiscoveryDocument) -> Observed<Cloud> {
    let name = document.name();
    observed_item(document, name)
}

async fn fetch_one(
    world: &AwsWorld,
    store: &str,
    key: &str,
) -> Result<Option<DiscoveryDocument>, Failure> {
    let object = match open(world, store)?.get(key).await {
        Ok(object) => object,
        // Its bucket is gone, and it with that.
        Err(error) if error.is_no_bucket() && !is_wanted(world, store, key) => None,
        Err(error) => return Err(store_failure(error)),
    };
    Ok(object.map(|object| DiscoveryDocument {
        store: store.to_owned(),
        key: key.to_owned(),
        content: String::from_utf8_lossy(&object.bytes).into_owned(),
    }))
}

fn is_wanted(world: &AwsWorld, store: &str, key: &str) -> bool {
    desired_by_name::<DiscoveryDocument>(world, &format!("{store}/{key}")).is_some()
}

/// The store of the documents. Whose bucket it is the user says: it is no bucket of the cluster's.
fn open(world: &AwsWorld, store: &str) -> Result<Store, Failure> {
    Store::open(store, world.clients.shared_clients()).map_err(store_failure)
}

/// True of keys of which the cluster has none: whoever replaces or deletes them takes another cluster's pods their roles.
fn belongs_to_another(world: &AwsWorld, document: &DiscoveryDocument) -> bool {
    if document.key != DiscoveryDocument::KEYS {
        return false;
    }
    let there = serde_json::from_str::<JsonWebKeySet>(&document.content);
    match (there, &world.scope.token_keys) {
        (Ok(there), Some(own)) => !there.keys.is_empty() && !there.shares_key(own),
        // What is no list of keys, nobody uses.
        (Err(_), Some(_)) => false,
        (_, None) => true,
    }
}

impl Verbs for DiscoveryDocument {
    async fn find(world: &AwsWorld, want: &Self, _refs: &Refs) -> Found {
        let keys = fetch_one(world, &want.store, Self::KEYS).await?;
        if keys.is_some_and(|keys| belongs_to_another(world, &keys)) {
            let message = format!("{} has the keys of another cluster", want.store);
            let mut failure = local_failure(Class::Invalid, "s3:GetObject", message);
            failure.hint = Some(
                "give each cluster a discoveryStore of its own; if that cluster is gone, delete the documents there"
                    .to_owned(),
            );
            return Err(failure);
        }
        let found = fetch_one(world, &want.store, &want.key).await?;
        Ok(found.map(observe))
    }

    async fn put(
        world: &AwsWorld,
        want: &Self,
        _have: Option<Have<'_, Self>>,
        _refs: &Refs,
    ) -> Result<Put, Failure> {
        let store = open(world, &want.store)?;
        let content = want.content.clone().into_bytes();
        let done = store.put_public(&want.key, content).await;
        done.map_err(store_failure)?;
        Ok(created_ready(want.name()))
    }

    async fn remove(world: &AwsWorld, have: Have<'_, Self>) -> Result<Removed, Failure> {
        let document = have.resource;
        let store = open(world, &document.store)?;
        let done = store.delete(&document.key, Expect::Any).await;
        done.map_err(store_failure)?;
        Ok(Removed::Done)
    }
}
