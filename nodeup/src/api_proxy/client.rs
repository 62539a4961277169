//! Asks API servers as kubelet: with its certificate, which kubelet renews.

use super::ProxyContext;
use anyhow::{Context as _, ensure};
use node::config::KUBELET_CLIENT;
use reqwest::{Certificate, Client, Identity, StatusCode, redirect};
use std::net::SocketAddr;
use std::time::Duration;

/// A client that keeps its connection to one address.
pub(super) struct ApiClient {
    address: SocketAddr,
    /// With the content of kubelet's file with which it was made.
    made: Option<(Vec<u8>, Client)>,
}

impl ApiClient {
    pub(super) fn new(address: SocketAddr) -> Self {
        Self {
            address,
            made: None,
        }
    }

    /// The body of a successful answer.
    pub(super) async fn get(
        &mut self,
        context: &ProxyContext,
        path: &str,
        timeout: Duration,
    ) -> anyhow::Result<String> {
        let name = &context.server.0;
        let url = format!("https://{name}:{}{path}", self.address.port());
        let request = self.client(context)?.get(url).timeout(timeout);
        let answer = request.send().await.map_err(reqwest::Error::without_url)?;
        let status = answer.status();
        let text = answer.text().await.map_err(reqwest::Error::without_url)?;
        let first = text.lines().find(|line| line.contains("failed"));
        let first = first.or(text.lines().next()).unwrap_or_default();
        ensure!(
            status == StatusCode::OK,
            "{path} returned {status}: {first}"
        );
        Ok(text)
    }

    fn client(&mut self, context: &ProxyContext) -> anyhow::Result<Client> {
        let pem = context.host.read_bytes(KUBELET_CLIENT)?;
        let pem = pem.context("kubelet has no certificate yet")?;
        if let Some((of, client)) = &self.made
            && *of == pem
        {
            return Ok(client.clone());
        }
        let unusable = "could not create a client of the API";
        let trusted = Certificate::from_pem_bundle(context.trust_bundle.as_bytes());
        let client = Client::builder()
            .user_agent(concat!("kctl-nodeup/", env!("CARGO_PKG_VERSION")))
            .tls_certs_only(trusted.context(unusable)?)
            .identity(Identity::from_pem(&pem).context(unusable)?)
            .resolve(&context.server.0, self.address)
            // A request that is given up ends its connection, so that the next one is not sent into a dead one.
            .http1_only()
            .https_only(true)
            .no_proxy()
            .redirect(redirect::Policy::none())
            .build()
            .context(unusable)?;
        self.made = Some((pem, client.clone()));
        Ok(client)
    }
}
