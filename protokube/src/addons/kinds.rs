//! Which resources the API server has: asked once for each API version, and again when something is missing.

use super::object::ObjectId;
use kube::Client;
use kube::core::GroupVersion;
use kube::discovery::{ApiCapabilities, ApiResource, Scope, pinned_group};
use std::collections::BTreeMap;

/// The API versions that were asked for.
#[derive(Debug, Default)]
pub(super) struct Kinds {
    known: BTreeMap<String, Vec<(ApiResource, ApiCapabilities)>>,
}

/// Where objects of a kind are.
#[derive(Clone, Debug)]
pub(super) struct Found {
    pub resource: ApiResource,
    pub namespaced: bool,
}

impl Kinds {
    /// The resource of an object; `None` if the API server has no such kind.
    pub async fn find(
        &mut self,
        client: &Client,
        id: &ObjectId,
    ) -> Result<Option<Found>, kube::Error> {
        if !self.known.contains_key(&id.api_version) {
            let Some(resources) = ask(client, &id.api_version).await? else {
                return Ok(None);
            };
            self.known.insert(id.api_version.clone(), resources);
        }
        let resources = self.known.get(&id.api_version).into_iter().flatten();
        let mut of_kind = resources.filter(|(resource, _)| resource.kind == id.kind);
        Ok(of_kind.next().map(|(resource, capabilities)| Found {
            resource: resource.clone(),
            namespaced: matches!(capabilities.scope, Scope::Namespaced),
        }))
    }

    /// Asks again the next time: a kind may have come or gone.
    pub fn forget(&mut self, api_version: &str) {
        self.known.remove(api_version);
    }
}

async fn ask(
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
