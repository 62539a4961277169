//! Objects in the cluster: applied by the server, and removed if they are ours.

use super::kinds::{Found, Kinds};
use super::object::ObjectId;
use anyhow::{Context, anyhow};
use kube::Client;
use kube::api::{Api, DeleteParams, DynamicObject, Patch, PatchParams, Preconditions};
use node::addons::{ADDON_LABEL, MANAGED_BY_LABEL, MANAGER};
use serde_json::Value;

/// The cluster's API, with what it has.
pub(super) struct Cluster {
    pub client: Client,
    kinds: Kinds,
}

/// What became of an object that is not wanted any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Removal {
    /// It is being removed.
    Removed,
    /// It was not there.
    Gone,
    /// It does not say that it is this addon's and ours: it was left alone.
    NotOurs,
}

impl Cluster {
    pub fn new(client: Client) -> Self {
        Self {
            client,
            kinds: Kinds::default(),
        }
    }

    /// Makes the fields that an object has be so, whoever set them before. A kind that is missing is looked for once more.
    pub async fn apply(&mut self, object: &Value) -> anyhow::Result<()> {
        let id = ObjectId::of(object)?;
        let mut done = self.patch(&id, object).await;
        if matches!(&done, Ok(None))
            || matches!(&done, Err(kube::Error::Api(status)) if status.code == 404)
        {
            self.kinds.forget(&id.api_version);
            done = self.patch(&id, object).await;
        }
        let failed = || format!("could not apply {id}");
        match done {
            Ok(Some(())) => Ok(()),
            Ok(None) => {
                self.kinds.forget(&id.api_version);
                let missing = anyhow!("the API server has no {} of {}", id.kind, id.api_version);
                Err(missing).with_context(failed)
            }
            Err(error) => Err(readable(error)).with_context(failed),
        }
    }

    /// `None`: there is no such kind.
    async fn patch(&mut self, id: &ObjectId, object: &Value) -> Result<Option<()>, kube::Error> {
        let Some(api) = self.api(id).await? else {
            return Ok(None);
        };
        let how = PatchParams::apply(MANAGER).force();
        api.patch(&id.name, &how, &Patch::Apply(object)).await?;
        Ok(Some(()))
    }

    /// Removes an object of an addon, if it says that it is that addon's and ours, as it was when it was looked at.
    pub async fn remove(&mut self, id: &ObjectId, addon: &str) -> anyhow::Result<Removal> {
        let removed = self.try_remove(id, addon).await;
        removed
            .map_err(readable)
            .with_context(|| format!("could not remove {id}"))
    }

    async fn try_remove(&mut self, id: &ObjectId, addon: &str) -> Result<Removal, kube::Error> {
        // A kind that went took its objects along; one that came back since it was asked for would have them.
        self.kinds.forget(&id.api_version);
        let Some(api) = self.api(id).await? else {
            return Ok(Removal::Gone);
        };
        let Some(found) = api.get_metadata_opt(&id.name).await? else {
            return Ok(Removal::Gone);
        };
        let labels = found.metadata.labels.unwrap_or_default();
        let says = |key: &str, value: &str| labels.get(key).is_some_and(|said| said == value);
        if !says(ADDON_LABEL, addon) || !says(MANAGED_BY_LABEL, MANAGER) {
            return Ok(Removal::NotOurs);
        }
        let how = DeleteParams::background().preconditions(Preconditions {
            uid: found.metadata.uid,
            resource_version: found.metadata.resource_version,
        });
        match api.delete(&id.name, &how).await {
            Ok(_) => Ok(Removal::Removed),
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(Removal::Gone),
            Err(error) => Err(error),
        }
    }

    async fn api(&mut self, id: &ObjectId) -> Result<Option<Api<DynamicObject>>, kube::Error> {
        let found = self.kinds.find(&self.client, id).await?;
        let client = self.client.clone();
        Ok(found.map(
            |Found {
                 resource,
                 namespaced,
             }| {
                if namespaced {
                    Api::namespaced_with(client, id.namespace(), &resource)
                } else {
                    Api::all_with(client, &resource)
                }
            },
        ))
    }
}

/// What the API server said, without the form it said it in.
pub(super) fn readable(error: kube::Error) -> anyhow::Error {
    match error {
        kube::Error::Api(status) => anyhow!("{} (status {})", status.message, status.code),
        other => other.into(),
    }
}
