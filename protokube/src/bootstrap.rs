//! The bootstrap endpoint on port 3988: workers get NodeConfig and certificates, and deliver their boot reports. A caller proves its
//! instance id with a signature of its role; EC2 confirms the rest.

mod answer;
mod caller;
mod connections;
mod instances;
mod join;
mod nodes;
mod reject;
mod request_limiter;
mod server;
mod shared_state;
mod store_report;

pub use nodes::{ApiNodes, NodeLookup};

use crate::identity::Clock;
use anyhow::Context as _;
use aws_client::ec2_query::Ec2QueryClient;
use aws_client::store::Store;
use ipnet::IpNet;
use node::config::KeysetIds;
use node::pki::Keyset;
use protokube_role::log::Log;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::SystemTime;
use time::Duration;
use tokio::net::TcpListener;
use tokio::sync::watch;

/// Name of the role in log lines.
const STAGE: &str = "bootstrap";

/// Shortest time between two log lines with the same cause, because anyone can cause them.
pub const LOG_INTERVAL: std::time::Duration = std::time::Duration::from_secs(5);

/// Shortest time between two requests of one instance, and between two calls of EC2.
pub const REQUEST_INTERVAL: std::time::Duration = std::time::Duration::from_secs(1);

/// Inputs of the endpoint.
pub struct EndpointContext {
    /// Listen address: all addresses, port [`node::ports::BOOTSTRAP`].
    pub listen: SocketAddr,
    /// Addresses of pods. Nobody who joins has one of them.
    pub pods: Option<IpNet>,
    /// Name of the cluster.
    pub cluster: String,
    /// AWS account of the cluster, twelve digits; see [`read_account`].
    pub account: String,
    /// Trusted certificates of `kubernetes-ca` from NodeConfig, PEM.
    pub trust_bundle: String,
    /// The keyset `kubernetes-ca`, which signs, as of the start.
    pub authority: Arc<Keyset>,
    /// Its keys that this instance has: one of them signs the endpoint's own certificate.
    pub own_keys: Option<KeysetIds>,
    /// Client of STS and EC2.
    pub ec2: Ec2QueryClient,
    /// State store at the cluster's base.
    pub store: Store,
    /// Looks Nodes up in the API.
    pub nodes: Arc<dyn NodeLookup>,
    pub clock: Clock,
    /// Validity of kubelets' first certificates.
    pub signing: Duration,
    /// Whether this instance's API server is ready.
    pub ready: watch::Receiver<bool>,
    /// Log for refusals and joins.
    pub log: Log,
    /// Shortest time between two log lines with the same cause; lines in between are counted.
    pub log_interval: std::time::Duration,
    /// Shortest time between two requests of one instance, which are refused in between, and between two calls of EC2, which wait.
    pub request_interval: std::time::Duration,
}

/// Serves until listening fails or no certificate can be issued.
pub async fn serve_endpoint(context: Arc<EndpointContext>) -> anyhow::Result<()> {
    let listener = TcpListener::bind(context.listen).await;
    let listener = listener.with_context(|| format!("could not listen on {}", context.listen))?;
    serve_endpoint_on(context, listener).await
}

/// Serves on an existing listener.
pub async fn serve_endpoint_on(
    context: Arc<EndpointContext>,
    listener: TcpListener,
) -> anyhow::Result<()> {
    server::accept_connections(context, listener).await
}

/// The account of this instance according to STS.
pub async fn read_account(ec2: &Ec2QueryClient) -> anyhow::Result<String> {
    let signed = ec2.sign_identity(&[], SystemTime::now()).await?;
    Ok(ec2.identify_caller(&signed.headers).await?.account)
}
