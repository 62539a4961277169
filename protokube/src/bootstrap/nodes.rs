//! What the API says of a Node: whether there is one, which decides if its machine may have a new key.

use anyhow::Context;
use futures::FutureExt;
use futures::future::BoxFuture;
use k8s_openapi::api::core::v1::Node;
use kube::{Api, Client};
use std::time::Duration;

/// An answer that takes longer is given up; workers ask again.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Who knows which Nodes there are.
pub trait Nodes: Send + Sync {
    /// Whether there is a Node of that name, ready or not; an error if the API does not say.
    fn exists<'a>(&'a self, node: &'a str) -> BoxFuture<'a, anyhow::Result<bool>>;
}

/// The API server.
pub struct ApiNodes {
    nodes: Api<Node>,
}

impl ApiNodes {
    /// Of that client.
    pub fn new(client: Client) -> Self {
        Self {
            nodes: Api::all(client),
        }
    }

    async fn ask(&self, node: &str) -> anyhow::Result<bool> {
        let found = tokio::time::timeout(TIMEOUT, self.nodes.get_metadata_opt(node)).await;
        let found = found.context("the API server takes too long")?;
        let found = found.context("the API server could not be asked")?;
        Ok(found.is_some())
    }
}

impl Nodes for ApiNodes {
    fn exists<'a>(&'a self, node: &'a str) -> BoxFuture<'a, anyhow::Result<bool>> {
        self.ask(node).boxed()
    }
}
