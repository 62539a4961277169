//! protokube's bootstrap endpoint as workers reach it: dialed by address, verified by name against the authorities in
//! user data and no others, with an identity that is signed for one request.

use crate::retry::Trouble;
use anyhow::{Context, Error, anyhow};
use aws_client::machine::Machine;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use node::bootstrap::{Binding, IDENTITY_HEADER, Refused, SignedIdentity};
use node::config::BootConfig;
use node::names::dns;
use reqwest::{Certificate, Client, StatusCode, Url, redirect};
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, SystemTime};

/// A control plane that does not answer by then is not there.
const CONNECT: Duration = Duration::from_secs(5);

/// It asks STS and EC2 before it answers.
const ANSWER: Duration = Duration::from_mins(1);

/// A worker's way to its cluster's bootstrap endpoint.
#[derive(Debug)]
pub struct Endpoint<'a> {
    /// What user data says.
    pub boot: &'a BootConfig,
    /// Who signs.
    pub machine: &'a Machine,
    /// The time under the signature.
    pub clock: fn() -> SystemTime,
}

impl Endpoint<'_> {
    /// Posts a body to one server after the other, until one answers. A refusal is an answer.
    pub async fn post(&self, path: &str, body: &[u8]) -> Result<Vec<u8>, Trouble> {
        let mut causes = Vec::new();
        for server in &self.boot.bootstrap_servers {
            match self.post_to(server, path, body).await {
                Ok(answer) => return Ok(answer),
                Err(Trouble::Final(error)) => return Err(Trouble::Final(error)),
                Err(Trouble::Passing(error)) => causes.push(format!("{error:#}")),
            }
        }
        if causes.is_empty() {
            return Err(Trouble::Final(anyhow!(
                "user data names no bootstrap server"
            )));
        }
        Err(Trouble::Passing(anyhow!(causes.join("; "))))
    }

    async fn post_to(&self, server: &str, path: &str, body: &[u8]) -> Result<Vec<u8>, Trouble> {
        let (url, host, port) = self.target(server, path).map_err(Trouble::Final)?;
        let unreachable = |error: Error| {
            Trouble::Passing(
                error.context(format!("could not reach the control plane at {server}")),
            )
        };
        let told = self.boot.addresses();
        let addresses = if told.is_empty() {
            addresses(&host, port).await.map_err(unreachable)?
        } else {
            given(&told, port).map_err(Trouble::Final)?
        };
        let client = self.client(&url, &addresses).map_err(Trouble::Final)?;
        let identity = self.identity(body).await.map_err(Trouble::Passing)?;
        let sent = client
            .post(url)
            .header(IDENTITY_HEADER, identity)
            .header("content-type", "application/json")
            .body(body.to_vec())
            .send()
            .await;
        let answer = sent.map_err(|error| unreachable(at(error, &addresses)))?;
        let status = answer.status();
        let text = answer.bytes().await;
        let text = text.map_err(|error| unreachable(at(error, &addresses)))?;
        if status.is_success() {
            return Ok(text.to_vec());
        }
        Err(refusal(server, status, &text))
    }

    /// The URL by the name in the endpoint's certificate, and the host and port that are dialed.
    fn target(&self, server: &str, path: &str) -> anyhow::Result<(Url, String, u16)> {
        let wrong = || format!("user data names {server:?} as bootstrap server");
        let given = Url::parse(server).with_context(wrong)?;
        let host = given.host_str().with_context(wrong)?;
        let host = host.trim_matches(['[', ']']).to_owned();
        let port = given.port_or_known_default().with_context(wrong)?;
        let name = dns::bootstrap(&self.boot.cluster);
        let url = Url::parse(&format!("https://{name}:{port}{path}")).with_context(wrong)?;
        Ok((url, host, port))
    }

    /// A client for these addresses, that trusts nobody but the cluster's authority.
    fn client(&self, url: &Url, addresses: &[SocketAddr]) -> anyhow::Result<Client> {
        let trusted = self.boot.ca_certificates.as_deref().unwrap_or_default();
        let trusted = Certificate::from_pem_bundle(trusted.as_bytes())
            .context("the certificates in user data cannot be read")?;
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

    /// Who we are, good for this body, this cluster and its authority only.
    async fn identity(&self, body: &[u8]) -> anyhow::Result<String> {
        let trusted = self.boot.ca_certificates.as_deref().unwrap_or_default();
        let binding = Binding::of(body, &self.boot.cluster, trusted);
        let signed = self
            .machine
            .sign_identity(&binding.headers(), (self.clock)())
            .await
            .context("could not sign with the machine's role")?;
        let identity = SignedIdentity {
            headers: signed.headers,
        };
        Ok(STANDARD.encode(serde_json::to_vec(&identity)?))
    }
}

/// Addresses that user data names.
fn given(addresses: &[String], port: u16) -> anyhow::Result<Vec<SocketAddr>> {
    let one = |address: &String| {
        let ip = address.parse::<IpAddr>();
        let ip = ip.with_context(|| format!("user data names {address:?} as an address"))?;
        Ok(SocketAddr::new(ip, port))
    };
    addresses.iter().map(one).collect()
}

async fn addresses(host: &str, port: u16) -> anyhow::Result<Vec<SocketAddr>> {
    let found = tokio::net::lookup_host((host, port)).await;
    let found: Vec<SocketAddr> = found
        .with_context(|| format!("{host} has no address"))?
        .collect();
    if found.is_empty() {
        return Err(anyhow!("{host} has no address"));
    }
    Ok(found)
}

/// What went wrong, and at which addresses: a name may still mean a placeholder.
fn at(error: reqwest::Error, addresses: &[SocketAddr]) -> Error {
    let addresses: Vec<String> = addresses.iter().map(ToString::to_string).collect();
    let timeout = error.is_timeout();
    let error = Error::new(error.without_url());
    let error = if timeout {
        error.context("it did not answer in time")
    } else {
        error
    };
    error.context(addresses.join(", "))
}

/// What an answer that is no success means. One without our words comes from something in between.
fn refusal(server: &str, status: StatusCode, text: &[u8]) -> Trouble {
    match serde_json::from_slice::<Refused>(text) {
        Ok(refused) => {
            let error = anyhow!("{server} refused: {}", refused.error);
            if refused.retry {
                Trouble::Passing(error)
            } else {
                Trouble::Final(error)
            }
        }
        Err(_) => Trouble::Passing(anyhow!("{server} answered {status}")),
    }
}
