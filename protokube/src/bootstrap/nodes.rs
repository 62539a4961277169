//! Looks Nodes up in the API: while an instance has no Node, it may join with a new key.

use crate::api::ApiAccess;
use anyhow::Context;
use futures::FutureExt;
use futures::future::BoxFuture;
use k8s_openapi::api::core::v1::Node;
use kube::Api;
use std::time::Duration;

/// Timeout of a look-up; workers retry.
const TIMEOUT: Duration = Duration::from_secs(5);

pub trait NodeLookup: Send + Sync {
    /// True if a Node of this name exists, ready or not. Fails if the API is not available.
    fn node_exists<'a>(&'a self, node: &'a str) -> BoxFuture<'a, anyhow::Result<bool>>;
}

/// Looks Nodes up in the API server.
pub struct ApiNodes {
    access: ApiAccess,
}

impl ApiNodes {
    /// Makes no call: workers may ask before the API server runs.
    pub fn new(access: impl Into<ApiAccess>) -> Self {
        Self {
            access: access.into(),
        }
    }

    async fn ask_api(&self, node: &str) -> anyhow::Result<bool> {
        let found = tokio::time::timeout(TIMEOUT, self.find_node(node)).await;
        found.context("the API server timed out")?
    }

    async fn find_node(&self, node: &str) -> anyhow::Result<bool> {
        let nodes: Api<Node> = Api::all(self.access.client().await?.client);
        let found = nodes.get_metadata_opt(node).await;
        let found = found.context("could not look up the Node in the API server")?;
        Ok(found.is_some())
    }
}

impl NodeLookup for ApiNodes {
    fn node_exists<'a>(&'a self, node: &'a str) -> BoxFuture<'a, anyhow::Result<bool>> {
        self.ask_api(node).boxed()
    }
}
