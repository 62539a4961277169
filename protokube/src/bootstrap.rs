//! The endpoint where workers become nodes: on port 3988 they get their configuration and certificates, and leave the
//! report of their start. Whoever asks proves with its role's signature which instance it is, and EC2 says the rest.

mod answer;
mod caller;
mod connections;
mod endpoint;
mod instances;
mod join;
mod nodes;
mod reject;
mod report;
mod server;
mod turns;

pub use nodes::{ApiNodes, Nodes};

use crate::identity::Clock;
use crate::log::Log;
use anyhow::Context as _;
use aws_client::machine::Machine;
use aws_client::store::Store;
use node::pki::Keyset;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::SystemTime;
use time::Duration;
use tokio::net::TcpListener;
use tokio::sync::watch;

/// How protokube's lines call this part.
const STAGE: &str = "bootstrap";

/// Between two lines of one cause, as everybody can cause some.
pub const TOLD: std::time::Duration = std::time::Duration::from_secs(5);

/// Between two requests of one instance, and between two look-ups in EC2.
pub const PAUSE: std::time::Duration = std::time::Duration::from_secs(1);

/// What the endpoint works with.
pub struct Context {
    /// Where it listens: every address, port [`node::ports::BOOTSTRAP`].
    pub listen: SocketAddr,
    /// The cluster's name.
    pub cluster: String,
    /// The cluster's AWS account: twelve digits; [`account`] asks for it.
    pub account: String,
    /// Certificates of `kubernetes-ca` that are not distrusted, PEM, as NodeConfig has them.
    pub trust_bundle: String,
    /// `kubernetes-ca`, which signs.
    pub authority: Arc<Keyset>,
    /// The way to STS and EC2.
    pub machine: Machine,
    /// The cluster's folder of the state store.
    pub store: Store,
    /// What the API says of Nodes.
    pub nodes: Arc<dyn Nodes>,
    /// The time.
    pub clock: Clock,
    /// How long kubelets' first certificates are valid.
    pub signing: Duration,
    /// Whether this machine's API server is ready.
    pub ready: watch::Receiver<bool>,
    /// Where refusals are told.
    pub log: Log,
    /// Between two lines of one cause: further ones are counted.
    pub told: std::time::Duration,
    /// Between two requests of one instance, which has to ask again, and between two look-ups in EC2, which wait.
    pub pause: std::time::Duration,
}

/// Serves for ever; what ends it is that it cannot listen or has no certificate.
pub async fn serve(context: Arc<Context>) -> anyhow::Result<()> {
    let listener = TcpListener::bind(context.listen).await;
    let listener = listener.with_context(|| format!("could not listen on {}", context.listen))?;
    serve_on(context, listener).await
}

/// The same on a socket that listens already.
pub async fn serve_on(context: Arc<Context>, listener: TcpListener) -> anyhow::Result<()> {
    server::serve(context, listener).await
}

/// The account that this machine belongs to, as STS says.
pub async fn account(machine: &Machine) -> anyhow::Result<String> {
    let signed = machine.sign_identity(&[], SystemTime::now()).await?;
    Ok(machine.identify(&signed.headers).await?.account)
}
