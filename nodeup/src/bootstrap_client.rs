//! Client of the bootstrap endpoint. It connects by address, verifies the server's name against the authorities in user data only,
//! and sends an identity that is signed for one request.

use crate::retry::AttemptError;
use anyhow::{Context, Error, anyhow};
use aws_client::ec2_query::Ec2QueryClient;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use node::bootstrap::{Binding, IDENTITY_HEADER, RefusalReply, SignedIdentity};
use node::config::BootConfig;
use node::names::dns;
use reqwest::{Certificate, Client, StatusCode, Url, redirect};
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, SystemTime};

/// Timeout of a connection attempt.
const CONNECT: Duration = Duration::from_secs(5);

/// Timeout of a request; the endpoint calls STS and EC2 before it responds.
const ANSWER: Duration = Duration::from_mins(1);

/// A worker's connection to the bootstrap endpoint.
#[derive(Debug)]
pub(crate) struct BootstrapClient<'a> {
    /// BootConfig from user data.
    pub boot: &'a BootConfig,
    /// Signs with the instance's role.
    pub ec2: &'a Ec2QueryClient,
    pub clock: fn() -> SystemTime,
}

impl BootstrapClient<'_> {
    /// Posts a body to each server in turn until one responds. A refusal is a response.
    pub(crate) async fn post_body(&self, path: &str, body: &[u8]) -> Result<Vec<u8>, AttemptError> {
        let mut causes = Vec::new();
        for server in &self.boot.bootstrap_servers {
            match self.post_to(server, path, body).await {
                Ok(answer) => return Ok(answer),
                Err(AttemptError::Final(error)) => return Err(AttemptError::Final(error)),
                Err(AttemptError::Passing(error)) => causes.push(format!("{error:#}")),
            }
        }
        if causes.is_empty() {
            return Err(AttemptError::Final(anyhow!(
                "user data has no bootstrap server"
            )));
        }
        Err(AttemptError::Passing(anyhow!(causes.join("; "))))
    }

    async fn post_to(
        &self,
        server: &str,
        path: &str,
        body: &[u8],
    ) -> Result<Vec<u8>, AttemptError> {
        let (url, host, port) = self
            .parse_target(server, path)
            .map_err(AttemptError::Final)?;
        let unreachable = |error: Error| {
            AttemptError::Passing(
                error.context(format!("could not reach the control plane at {server}")),
            )
        };
        let known_addresses = self.boot.addresses();
        let addresses = if known_addresses.is_empty() {
            resolve_host(&host, port).await.map_err(unreachable)?
        } else {
            parse_addresses(&known_addresses, port).map_err(AttemptError::Final)?
        };
        let client = self
            .build_client(&url, &addresses)
            .map_err(AttemptError::Final)?;
        let identity = self
            .identity_header(body)
            .await
            .map_err(AttemptError::Passing)?;
        let sent = client
            .post(url)
            .header(IDENTITY_HEADER, identity)
            .header("content-type", "application/json")
            .body(body.to_vec())
            .send()
            .await;
        let answer = sent.map_err(|error| unreachable(with_addresses(error, &addresses)))?;
        let status = answer.status();
        let text = answer.bytes().await;
        let text = text.map_err(|error| unreachable(with_addresses(error, &addresses)))?;
        if status.is_success() {
            return Ok(text.to_vec());
        }
        Err(interpret_refusal(server, status, &text))
    }

    /// The URL with the name in the endpoint's certificate, and the host and port to connect to.
    fn parse_target(&self, server: &str, path: &str) -> anyhow::Result<(Url, String, u16)> {
        let wrong = || format!("user data has an invalid bootstrap server {server:?}");
        let given = Url::parse(server).with_context(wrong)?;
        let host = given.host_str().with_context(wrong)?;
        let host = host.trim_matches(['[', ']']).to_owned();
        let port = given.port_or_known_default().with_context(wrong)?;
        let name = dns::bootstrap_name(&self.boot.cluster);
        let url = Url::parse(&format!("https://{name}:{port}{path}")).with_context(wrong)?;
        Ok((url, host, port))
    }

    /// An HTTP client for these addresses that trusts only the cluster's authority.
    fn build_client(&self, url: &Url, addresses: &[SocketAddr]) -> anyhow::Result<Client> {
        let trusted = self.boot.ca_certificates.as_deref().unwrap_or_default();
        let trusted = Certificate::from_pem_bundle(trusted.as_bytes())
            .context("the CA certificates in user data are invalid")?;
        Client::builder()
            .user_agent(concat!("kctl-nodeup/", env!("CARGO_PKG_VERSION")))
            .tls_certs_only(trusted)
            .resolve_to_addrs(url.host_str().unwrap_or_default(), addresses)
            .https_only(true)
            .no_proxy()
            .redirect(redirect::Policy::none())
            .connect_timeout(CONNECT)
            .timeout(ANSWER)
            .build()
            .context("could not prepare the connection to the control plane")
    }

    /// The identity header, valid only for this body, cluster and authority.
    async fn identity_header(&self, body: &[u8]) -> anyhow::Result<String> {
        let trusted = self.boot.ca_certificates.as_deref().unwrap_or_default();
        let binding = Binding::for_request(body, &self.boot.cluster, trusted);
        let signed = self
            .ec2
            .sign_identity(&binding.headers(), (self.clock)())
            .await
            .context("could not sign with the role of the instance")?;
        let identity = SignedIdentity {
            headers: signed.headers,
        };
        Ok(STANDARD.encode(serde_json::to_vec(&identity)?))
    }
}

/// Parses the addresses in user data.
fn parse_addresses(addresses: &[String], port: u16) -> anyhow::Result<Vec<SocketAddr>> {
    let one = |address: &String| {
        let ip = address.parse::<IpAddr>();
        let ip = ip.with_context(|| format!("user data has an invalid address {address:?}"))?;
        Ok(SocketAddr::new(ip, port))
    };
    addresses.iter().map(one).collect()
}

async fn resolve_host(host: &str, port: u16) -> anyhow::Result<Vec<SocketAddr>> {
    let found = tokio::net::lookup_host((host, port)).await;
    let found: Vec<SocketAddr> = found
        .with_context(|| format!("{host} has no address"))?
        .collect();
    if found.is_empty() {
        return Err(anyhow!("{host} has no address"));
    }
    Ok(found)
}

/// Adds the addresses to an error, because a name may still resolve to the placeholder.
fn with_addresses(error: reqwest::Error, addresses: &[SocketAddr]) -> Error {
    let addresses: Vec<String> = addresses.iter().map(ToString::to_string).collect();
    let timeout = error.is_timeout();
    let error = Error::new(error.without_url());
    let error = if timeout {
        error.context("timed out")
    } else {
        error
    };
    error.context(addresses.join(", "))
}

/// Interprets a response that is not a success. A body of another format comes from something in between, such as a proxy.
fn interpret_refusal(server: &str, status: StatusCode, text: &[u8]) -> AttemptError {
    match serde_json::from_slice::<RefusalReply>(text) {
        Ok(refused) => {
            let error = anyhow!("{server} refused: {}", refused.error);
            if refused.retry {
                AttemptError::Passing(error)
            } else {
                AttemptError::Final(error)
            }
        }
        Err(_) => AttemptError::Passing(anyhow!("{server} returned {status}")),
    }
}
