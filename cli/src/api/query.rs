//! Reads the Nodes and pods from which kctl judges the health of a cluster.

use super::ApiServer;
use super::error::{no_name, read_client_error, unusable_addresses};
use fleet::ApiError;
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::api::ListParams;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config};
use node::secret::Secret;
use serde::de::DeserializeOwned;
use std::fmt::Debug;
use std::time::Duration;

/// Timeout for a connection to the API.
const CONNECT: Duration = Duration::from_secs(5);

/// Timeout for one response. Long lists come in pages.
const ANSWER: Duration = Duration::from_secs(20);

/// Objects per page of a list.
const PAGE: u32 = 500;

/// Which objects to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApiQuery {
    /// Nodes only.
    Nodes,
    /// Nodes, and the pods of kube-system.
    NodesAndPods,
    /// Nodes, the pods of all namespaces, and their disruption budgets.
    Everything,
}

/// The objects that were read.
#[derive(Clone, Debug, Default)]
pub struct ApiObjects {
    pub nodes: Vec<Node>,
    /// The pods of kube-system or of all namespaces; empty for [`ApiQuery::Nodes`].
    pub pods: Vec<Pod>,
    /// Disruption budgets; empty but for [`ApiQuery::Everything`].
    pub budgets: Vec<PodDisruptionBudget>,
}

/// Makes a client from a kubeconfig. Makes no call.
pub async fn api_client(kubeconfig: &Secret) -> Result<Client, anyhow::Error> {
    let config = Kubeconfig::from_yaml(kubeconfig.reveal())?;
    let mut config = Config::from_custom_kubeconfig(config, &KubeConfigOptions::default()).await?;
    config.connect_timeout = Some(CONNECT);
    config.read_timeout = Some(ANSWER);
    // `kctl validate --wait` repeats the query itself and reports each result.
    config.default_retry = false;
    Ok(Client::try_from(config)?)
}

/// True if an API with the cluster's certificate answers, ready or not.
pub async fn answers_readyz(client: &Client) -> bool {
    let Ok(request) = http::Request::get("/readyz").body(Vec::new()) else {
        return false;
    };
    matches!(
        client.request_text(request).await,
        Ok(_) | Err(kube::Error::Api(_))
    )
}

/// Reads the objects from the API.
pub async fn query_api(
    client: &Client,
    server: &ApiServer,
    cluster: &str,
    query: ApiQuery,
) -> Result<ApiObjects, ApiError> {
    check_addresses(server, cluster).await?;
    let api_error = |error| read_client_error(server, cluster, &error);
    let nodes = list_nodes(client).await.map_err(api_error)?;
    let pods = match query {
        ApiQuery::Nodes => None,
        ApiQuery::NodesAndPods => Some(Api::<Pod>::namespaced(client.clone(), "kube-system")),
        ApiQuery::Everything => Some(Api::<Pod>::all(client.clone())),
    };
    let pods = match pods {
        None => Vec::new(),
        Some(pods) => list_all(pods).await.map_err(api_error)?,
    };
    let budgets = match query {
        ApiQuery::Nodes | ApiQuery::NodesAndPods => Vec::new(),
        ApiQuery::Everything => {
            let budgets = Api::<PodDisruptionBudget>::all(client.clone());
            list_all(budgets).await.map_err(api_error)?
        }
    };
    Ok(ApiObjects {
        nodes,
        pods,
        budgets,
    })
}

/// Resolves the name of the API first: a connection to the placeholder address would only time out.
pub async fn check_addresses(server: &ApiServer, cluster: &str) -> Result<(), ApiError> {
    let lookup = tokio::net::lookup_host((server.host.as_str(), server.port));
    let found = match tokio::time::timeout(CONNECT, lookup).await {
        Ok(Ok(found)) => found.map(|address| address.ip()).collect::<Vec<_>>(),
        Ok(Err(error)) => return Err(no_name(server, &error.to_string())),
        Err(_) => return Err(no_name(server, "the DNS server does not answer")),
    };
    unusable_addresses(server, cluster, &found).map_or(Ok(()), Err)
}

/// Reads all Nodes.
pub async fn list_nodes(client: &Client) -> Result<Vec<Node>, kube::Error> {
    list_all(Api::<Node>::all(client.clone())).await
}

/// Lists all objects of a kind, page by page.
async fn list_all<K>(api: Api<K>) -> Result<Vec<K>, kube::Error>
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
