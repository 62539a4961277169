//! Looks Nodes up in the API: while an instance has no Node, it may join with a new key.

use anyhow::Context;
use futures::FutureExt;
use futures::future::BoxFuture;
use k8s_openapi::api::core::v1::Node;
use kube::{Api, Client};
use std::time::Duration;

/// Timeout of a look-up; workers retry.
const TIMEOUT: Duration = Duration::from_secs(5);

pub trait NodeLookup: Send + Sync {
    /// True if a Node of this name exists, ready or not. Fails if the API is not available.
    fn node_exists<'a>(&'a self, node: &'a str) -> BoxFuture<'a, anyhow::Result<bool>>;
}

/// Looks Nodes up in the API server.
pub struct ApiNodes {
    nodes: Api<Node>,
}

impl ApiNodes {
    pub fn new(client: Client) -> Self {
        Self {
            nodes: Api::all(client),
        }
    }

    async fn ask_api(&self, node: &str) -> anyhow::Result<bool> {
        let found = tokio::time::timeout(TIMEOUT, self.nodes.get_metadata_opt(node)).await;
        let found = found.context("the API server timed out")?;
        let found = found.context("could not look up the Node in the API server")?;
        Ok(found.is_some())
    }
}

impl NodeLookup for ApiNodes {
    fn node_exists<'a>(&'a self, node: &'a str) -> BoxFuture<'a, anyhow::Result<bool>> {
        self.ask_api(node).boxed()
    }
}
