//! The documents of the issuer of service accounts' tokens, in a bucket of the user's: those of every issuer that the cluster has had.

use super::s3_object::store_failure;
use super::{Found, Have, Verbs, created_ready, desired_by_name, observed_item};
use crate::world::AwsWorld;
use aws_client::failure::local_failure;
use aws_client::store::{Expect, Store};
use cloud::{Cloud, DiscoveryDocument, Kind};
use engine::{Class, Failure, Observed, Put, Refs, Removed};
use futures::future::try_join_all;
use serde_json::Value;

/// What is in the store of an issuer of the cluster.
pub(crate) struct DiscoveryStore {
    pub(crate) issuer: String,
    documents: Vec<DiscoveryDocument>,
    is_others: bool,
}

/// The stores of the cluster's issuers, but for those in which somebody else publishes keys: nothing there is the cluster's, nor what AWS has
/// of that issuer, whatever its tags say.
pub(crate) async fn fetch(world: &AwsWorld) -> Result<Vec<DiscoveryStore>, Failure> {
    let stores = world.scope.issuers.iter();
    let asked = stores.map(|(issuer, store)| fetch_store(world, issuer, store));
    let mut found = try_join_all(asked).await?;
    found.retain(|store| !store.is_others);
    Ok(found)
}

pub(crate) fn observe_store(store: &DiscoveryStore) -> impl Iterator<Item = Observed<Cloud>> {
    store.documents.iter().cloned().map(observe)
}

async fn fetch_store(
    world: &AwsWorld,
    issuer: &str,
    store: &str,
) -> Result<DiscoveryStore, Failure> {
    let keys = [DiscoveryDocument::CONFIGURATION, DiscoveryDocument::KEYS];
    let found = try_join_all(keys.map(|key| fetch_one(world, store, key))).await?;
    let documents: Vec<DiscoveryDocument> = found.into_iter().flatten().collect();
    let is_others = documents
        .iter()
        .any(|one| belongs_to_another(world, issuer, one));
    Ok(DiscoveryStore {
        issuer: issuer.to_owned(),
        documents,
        is_others,
    })
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
        // The bucket of a former store is gone, or by now somebody else's: and what was in it with that.
        Err(error) if error.is_no_bucket_of_ours() && !is_wanted(world, store, key) => None,
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

/// True of keys of which the cluster has none, and of a configuration with keys elsewhere: whoever replaces or deletes them takes another
/// cluster's pods their roles.
fn belongs_to_another(world: &AwsWorld, issuer: &str, document: &DiscoveryDocument) -> bool {
    let Ok(read) = serde_json::from_str::<Value>(&document.content) else {
        // What is no JSON, nobody uses.
        return false;
    };
    if document.key == DiscoveryDocument::CONFIGURATION {
        let own = format!("{issuer}/{}", DiscoveryDocument::KEYS);
        let keys = read.get("jwks_uri").and_then(Value::as_str);
        return keys.is_some_and(|keys| keys != own);
    }
    let there = read.get("keys").and_then(Value::as_array);
    let mut ids = there
        .into_iter()
        .flatten()
        .map(|key| key.get("kid").and_then(Value::as_str));
    let own = world.scope.token_keys.as_ref();
    let is_own = |id: Option<&str>| {
        let id = id.unwrap_or_default();
        own.is_some_and(|own| own.has_key(id))
    };
    there.is_some_and(|there| !there.is_empty()) && !ids.any(is_own)
}

/// A bucket's policy may be public, and its or the account's Block Public Access keep everybody out all the same (S3 User Guide, "Blocking
/// public access": RestrictPublicBuckets, IgnorePublicAcls), or the policy may be about other objects.
fn not_public(document: &DiscoveryDocument) -> Failure {
    let message = format!("AWS cannot read {}: it is not public", document.name());
    let mut failure = local_failure(Class::Invalid, "s3:GetObject", message);
    failure.hint = Some(
        "let everybody s3:GetObject there in the bucket's policy; turn off RestrictPublicBuckets (IgnorePublicAcls for a bucket with access control lists) in Block Public Access of the bucket, and of the account if it is on there; repeat the command"
            .to_owned(),
    );
    failure
}

/// An error if somebody else publishes keys in that store.
async fn check_nobody_elses(world: &AwsWorld, store: &str) -> Result<(), Failure> {
    let mut issuers = world.scope.issuers.iter();
    let issuer = issuers.find(|(_, other)| **other == store);
    let issuer = issuer.map_or("", |(issuer, _)| issuer.as_str());
    if fetch_store(world, issuer, store).await?.is_others {
        let message = format!("{store} has the keys of another issuer");
        let mut failure = local_failure(Class::Invalid, "s3:GetObject", message);
        failure.hint = Some(
            "give each cluster a discoveryStore of its own; if that cluster is gone, delete the documents there"
                .to_owned(),
        );
        return Err(failure);
    }
    Ok(())
}

impl Verbs for DiscoveryDocument {
    async fn find(world: &AwsWorld, want: &Self, _refs: &Refs) -> Found {
        check_nobody_elses(world, &want.store).await?;
        let found = fetch_one(world, &want.store, &want.key).await?;
        Ok(found.map(observe))
    }

    async fn put(
        world: &AwsWorld,
        want: &Self,
        have: Option<Have<'_, Self>>,
        _refs: &Refs,
    ) -> Result<Put, Failure> {
        if have.is_none() {
            check_nobody_elses(world, &want.store).await?;
        }
        let store = open(world, &want.store)?;
        let content = want.content.clone().into_bytes();
        let done = store.put_public(&want.key, content).await;
        done.map_err(store_failure)?;
        if !store.is_public(&want.key).await.map_err(store_failure)? {
            if have.is_none() {
                // What is not there, the next update writes and reads again. What was there may be read from elsewhere.
                let done = store.delete(&want.key, Expect::Any).await;
                done.map_err(store_failure)?;
            }
            return Err(not_public(want));
        }
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
