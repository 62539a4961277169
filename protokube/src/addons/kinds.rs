//! Discovers the kinds of the API server: once per API version, and again when a kind is missing.

use super::object::ObjectId;
use kube::Client;
use kube::core::GroupVersion;
use kube::discovery::{ApiCapabilities, ApiResource, Scope, pinned_group};
use std::collections::BTreeMap;

/// Cache of discovered API versions.
#[derive(Debug, Default)]
pub(super) struct KindCache {
    known: BTreeMap<String, Vec<(ApiResource, ApiCapabilities)>>,
}

/// The API resource of a kind.
#[derive(Clone, Debug)]
pub(super) struct KindResource {
    pub resource: ApiResource,
    pub namespaced: bool,
}

impl KindCache {
    /// The API resource for an object; `None` if the API server does not have its kind.
    pub(crate) async fn find_resource(
        &mut self,
        client: &Client,
        id: &ObjectId,
    ) -> Result<Option<KindResource>, kube::Error> {
        if !self.known.contains_key(&id.api_version) {
            let Some(resources) = discover_resources(client, &id.api_version).await? else {
                return Ok(None);
            };
            self.known.insert(id.api_version.clone(), resources);
        }
        let resources = self.known.get(&id.api_version).into_iter().flatten();
        let mut of_kind = resources.filter(|(resource, _)| resource.kind == id.kind);
        Ok(of_kind.next().map(|(resource, capabilities)| KindResource {
            resource: resource.clone(),
            namespaced: matches!(capabilities.scope, Scope::Namespaced),
        }))
    }

    /// Forgets an API version, so that the next look-up discovers it again.
    pub(crate) fn forget_version(&mut self, api_version: &str) {
        self.known.remove(api_version);
    }
}

async fn discover_resources(
    client: &Client,
    api_version: &str,
) -> Result<Option<Vec<(ApiResource, ApiCapabilities)>>, kube::Error> {
    let Ok(version) = api_version.parse::<GroupVersion>() else {
        return Ok(None);
    };
    match pinned_group(client, &version).await {
        Ok(group) => Ok(Some(group.versioned_resources(&version.version))),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
        Err(error) => Err(error),
    }
}
