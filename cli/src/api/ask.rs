//! Asks the API for what the health of a cluster rests on.

use super::Server;
use super::error::{no_name, read_client_error, unusable_addresses};
use fleet::ApiError;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::ListParams;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config};
use node::secret::Secret;
use serde::de::DeserializeOwned;
use std::fmt::Debug;
use std::time::Duration;

/// A control plane that does not take a connection by then is not there.
const CONNECT: Duration = Duration::from_secs(5);

/// The longest that an answer may take: a list of thousands of nodes comes in pages.
const ANSWER: Duration = Duration::from_secs(20);

/// Objects in a page.
const PAGE: u32 = 500;

/// What to ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Question {
    /// Nodes.
    Nodes,
    /// Nodes, and the pods of kube-system.
    NodesAndPods,
}

/// What the API says.
#[derive(Clone, Debug, Default)]
pub struct Answer {
    /// All nodes.
    pub nodes: Vec<Node>,
    /// The pods of kube-system, if they were asked for.
    pub pods: Vec<Pod>,
}

/// A client that reaches the API with a kubeconfig. Calls nothing yet.
pub async fn client(kubeconfig: &Secret) -> Result<Client, anyhow::Error> {
    let config = Kubeconfig::from_yaml(kubeconfig.reveal())?;
    let mut config = Config::from_custom_kubeconfig(config, &KubeConfigOptions::default()).await?;
    config.connect_timeout = Some(CONNECT);
    config.read_timeout = Some(ANSWER);
    // Whoever waits for a cluster looks again by itself, and says meanwhile what it saw.
    config.default_retry = false;
    Ok(Client::try_from(config)?)
}

/// Asks it.
pub async fn ask(
    client: &Client,
    server: &Server,
    cluster: &str,
    question: Question,
) -> Result<Answer, ApiError> {
    addresses(server, cluster).await?;
    let api_error = |error| read_client_error(server, cluster, &error);
    let nodes = all(Api::<Node>::all(client.clone())).await;
    let nodes = nodes.map_err(api_error)?;
    let pods = match question {
        Question::Nodes => Vec::new(),
        Question::NodesAndPods => {
            let pods = Api::<Pod>::namespaced(client.clone(), "kube-system");
            all(pods).await.map_err(api_error)?
        }
    };
    Ok(Answer { nodes, pods })
}

/// Looks the name up first: the address that stands for "not yet" would only time out.
async fn addresses(server: &Server, cluster: &str) -> Result<(), ApiError> {
    let looked = tokio::net::lookup_host((server.host.as_str(), server.port));
    let found = match tokio::time::timeout(CONNECT, looked).await {
        Ok(Ok(found)) => found.map(|address| address.ip()).collect::<Vec<_>>(),
        Ok(Err(error)) => return Err(no_name(server, &error.to_string())),
        Err(_) => return Err(no_name(server, "the DNS server does not answer")),
    };
    unusable_addresses(server, cluster, &found).map_or(Ok(()), Err)
}

/// Everything of a kind, page by page.
async fn all<K>(api: Api<K>) -> Result<Vec<K>, kube::Error>
where
    K: Clone + DeserializeOwned + Debug,
{
    let mut found = Vec::new();
    let mut page = ListParams::default().limit(PAGE);
    loop {
        let list = api.list(&page).await?;
        found.extend(list.items);
        match list.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => page = page.continue_token(&token),
            None => return Ok(found),
        }
    }
}
