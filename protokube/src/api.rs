//! Client of this instance's API server, with a client certificate that is issued in memory and never stored.

use crate::keysets::read_keyset_object;
use anyhow::Context;
use aws_client::store::Store;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use kube::{Client, Config};
use node::config::NodeConfig;
use node::pki::{KUBERNETES_CA, Leaf, SystemKeys, Usage, issue_certificate, trust_bundle};
use std::time::Duration;
use time::OffsetDateTime;
use x509_parser::pem::Pem;

/// Validity of the client certificate, the same as of nodeup's. Roles restart long before and get a new one.
const VALIDITY: time::Duration = time::Duration::days(455);

/// Time after which a role restarts with a new client.
pub(crate) const CLIENT_LIFE: Duration = Duration::from_hours(90 * 24);

/// Timeout of a connection attempt.
const CONNECT: Duration = Duration::from_secs(10);

/// URL of this instance's API server, `https://127.0.0.1:PORT`.
pub(crate) fn api_server_url(config: &NodeConfig) -> String {
    let pods = config.control_plane.as_ref();
    let pod = pods.and_then(|control_plane| control_plane.static_pods.get("kube-apiserver"));
    let ports = pod.into_iter().flat_map(|pod| &pod.spec.containers);
    let port = ports
        .flat_map(|container| &container.ports)
        .map(|port| port.host_port)
        .next();
    format!("https://127.0.0.1:{}", port.unwrap_or(node::ports::API))
}

/// A client of the API server at `url` as user `protokube` in the group `system:masters`, with a newly issued certificate.
pub(crate) async fn build_client(
    store: &Store,
    url: &str,
    now: OffsetDateTime,
) -> anyhow::Result<Client> {
    let authority = read_keyset_object(store, KUBERNETES_CA).await?;
    let leaf = Leaf {
        common_name: "protokube".to_owned(),
        organization: Some("system:masters".to_owned()),
        usage: Usage::Client,
        names: Vec::new(),
        validity: VALIDITY,
    };
    let issued = issue_certificate(&authority, &leaf, &mut SystemKeys::issuing_at(now))?;
    let address = url
        .parse()
        .with_context(|| format!("{url} is not a valid URL of an API server"))?;
    let mut config = Config::new(address);
    config.root_cert = Some(parse_certificates(&trust_bundle(&authority))?);
    config.connect_timeout = Some(CONNECT);
    // Roles repeat what failed. The client would do so for minutes, also an eviction that a budget refuses (429).
    config.default_retry = false;
    config.auth_info.client_certificate_data = Some(STANDARD.encode(&issued.certificate));
    config.auth_info.client_key_data = Some(STANDARD.encode(issued.key.reveal()).into());
    Client::try_from(config).context("could not create a client of the API server")
}

/// Parses a PEM bundle into DER certificates.
fn parse_certificates(bundle: &str) -> anyhow::Result<Vec<Vec<u8>>> {
    let read = Pem::iter_from_buffer(bundle.as_bytes()).map(|pem| Ok(pem?.contents));
    read.collect::<anyhow::Result<_>>()
        .context("the certificates of kubernetes-ca are not valid PEM")
}
