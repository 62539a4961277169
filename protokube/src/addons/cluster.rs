//! Applies addon objects with server-side apply, and removes objects that belong to kctl.

use super::kinds::{KindCache, KindResource};
use super::object::ObjectId;
use anyhow::{Context, anyhow};
use kube::Client;
use kube::api::{Api, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, Preconditions};
use node::addons::{ADDON_LABEL, MANAGED_BY_LABEL, MANAGER};
use serde_json::Value;

/// Client of the cluster's API with a cache of its kinds.
pub(super) struct ApiCluster {
    pub client: Client,
    kinds: KindCache,
}

/// Result of removing an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RemovalResult {
    /// The API server is removing it.
    Removed,
    /// It did not exist.
    Gone,
    /// Its labels do not say that it belongs to this addon and to kctl, so it was not removed.
    NotOurs,
}

impl ApiCluster {
    pub(crate) fn new(client: Client, kinds: KindCache) -> Self {
        Self { client, kinds }
    }

    /// The kinds that are known now.
    pub(crate) fn into_kinds(self) -> KindCache {
        self.kinds
    }

    /// Applies an object with force, taking over fields from other managers. If the kind is missing, discovers the API once more.
    pub(crate) async fn apply_object(&mut self, object: &Value) -> anyhow::Result<()> {
        let id = ObjectId::from_object(object)?;
        let mut done = self.patch_object(&id, object).await;
        if matches!(&done, Ok(None))
            || matches!(&done, Err(kube::Error::Api(status)) if status.code == 404)
        {
            self.kinds.forget_version(&id.api_version);
            done = self.patch_object(&id, object).await;
        }
        let failed = || format!("could not apply {id}");
        match done {
            Ok(Some(())) => Ok(()),
            Ok(None) => {
                self.kinds.forget_version(&id.api_version);
                let missing = anyhow!("the API server has no {} of {}", id.kind, id.api_version);
                Err(missing).with_context(failed)
            }
            Err(error) => Err(simplify_error(error)).with_context(failed),
        }
    }

    /// Applies an object; `None` if the API server does not have its kind.
    async fn patch_object(
        &mut self,
        id: &ObjectId,
        object: &Value,
    ) -> Result<Option<()>, kube::Error> {
        let Some(api) = self.object_api(id).await? else {
            return Ok(None);
        };
        let how = PatchParams::apply(MANAGER).force();
        api.patch(&id.name, &how, &Patch::Apply(object)).await?;
        Ok(Some(()))
    }

    /// Removes an object if its labels say that it belongs to this addon and to kctl. The removal fails if the object changes in
    /// between.
    pub(crate) async fn remove_object(
        &mut self,
        id: &ObjectId,
        addon: &str,
    ) -> anyhow::Result<RemovalResult> {
        let removed = self.try_remove(id, addon).await;
        removed
            .map_err(simplify_error)
            .with_context(|| format!("could not remove {id}"))
    }

    async fn try_remove(
        &mut self,
        id: &ObjectId,
        addon: &str,
    ) -> Result<RemovalResult, kube::Error> {
        // Without its kind an object cannot exist, but the kind may have come back since the last discovery.
        self.kinds.forget_version(&id.api_version);
        let Some(api) = self.object_api(id).await? else {
            return Ok(RemovalResult::Gone);
        };
        let Some(found) = api.get_metadata_opt(&id.name).await? else {
            return Ok(RemovalResult::Gone);
        };
        let labels = found.metadata.labels.unwrap_or_default();
        let says = |key: &str, value: &str| labels.get(key).is_some_and(|said| said == value);
        if !says(ADDON_LABEL, addon) || !says(MANAGED_BY_LABEL, MANAGER) {
            return Ok(RemovalResult::NotOurs);
        }
        let how = DeleteParams::background().preconditions(Preconditions {
            uid: found.metadata.uid,
            resource_version: found.metadata.resource_version,
        });
        match api.delete(&id.name, &how).await {
            Ok(_) => Ok(RemovalResult::Removed),
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(RemovalResult::Gone),
            Err(error) => Err(error),
        }
    }

    /// The first object of a kind in any namespace, `NAMESPACE/NAME`; `None`: there is none, or no such kind.
    pub(crate) async fn find_any(
        &mut self,
        api_version: &str,
        kind: &str,
    ) -> anyhow::Result<Option<String>> {
        let found = self.try_find_any(api_version, kind).await;
        found
            .map_err(simplify_error)
            .with_context(|| format!("could not list objects of the kind {kind}"))
    }

    async fn try_find_any(
        &mut self,
        api_version: &str,
        kind: &str,
    ) -> Result<Option<String>, kube::Error> {
        let id = ObjectId {
            api_version: api_version.to_owned(),
            kind: kind.to_owned(),
            namespace: String::new(),
            name: String::new(),
        };
        self.kinds.forget_version(api_version);
        let found = self.kinds.find_resource(&self.client, &id).await?;
        let Some(KindResource { resource, .. }) = found else {
            return Ok(None);
        };
        let api: Api<DynamicObject> = Api::all_with(self.client.clone(), &resource);
        let listed = api.list(&ListParams::default().limit(1)).await?;
        Ok(listed.items.first().map(|object| {
            let name = object.metadata.name.as_deref().unwrap_or_default();
            let namespace = object.metadata.namespace.as_deref();
            format!("{}/{name}", namespace.unwrap_or_default())
        }))
    }

    async fn object_api(
        &mut self,
        id: &ObjectId,
    ) -> Result<Option<Api<DynamicObject>>, kube::Error> {
        let found = self.kinds.find_resource(&self.client, id).await?;
        let client = self.client.clone();
        Ok(found.map(
            |KindResource {
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

/// Reduces an API error to its message and status.
pub(super) fn simplify_error(error: kube::Error) -> anyhow::Error {
    match error {
        kube::Error::Api(status) => anyhow!("{} (status {})", status.message, status.code),
        other => other.into(),
    }
}
