//! What the API says of a Node: whether there is one that is well, which decides if its machine may have a new key.

use anyhow::Context;
use futures::FutureExt;
use futures::future::BoxFuture;
use k8s_openapi::api::core::v1::Node;
use kube::{Api, Client};
use std::time::Duration;

/// An answer that takes longer is given up; workers ask again.
const TIMEOUT: Duration = Duration::from_secs(5);

/// How a Node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeState {
    /// There is none of that name.
    Absent,
    /// It is not ready, or nobody knows.
    NotReady,
    /// It is ready.
    Ready,
}

/// Who knows how Nodes are.
pub trait Nodes: Send + Sync {
    /// How the Node of that name is; an error if the API does not say.
    fn state<'a>(&'a self, node: &'a str) -> BoxFuture<'a, anyhow::Result<NodeState>>;
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

    async fn ask(&self, node: &str) -> anyhow::Result<NodeState> {
        let found = tokio::time::timeout(TIMEOUT, self.nodes.get_opt(node)).await;
        let found = found.context("the API server takes too long")?;
        Ok(match found.context("the API server could not be asked")? {
            None => NodeState::Absent,
            Some(node) if is_ready(&node) => NodeState::Ready,
            Some(_) => NodeState::NotReady,
        })
    }
}

impl Nodes for ApiNodes {
    fn state<'a>(&'a self, node: &'a str) -> BoxFuture<'a, anyhow::Result<NodeState>> {
        self.ask(node).boxed()
    }
}

fn is_ready(node: &Node) -> bool {
    let status = node.status.as_ref();
    let mut conditions = status
        .and_then(|status| status.conditions.as_ref())
        .into_iter()
        .flatten();
    conditions.any(|condition| condition.type_ == "Ready" && condition.status == "True")
}
