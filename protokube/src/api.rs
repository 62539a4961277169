//! The way to this machine's API server, with a client certificate that is issued in memory and never written.

use crate::keysets::keyset;
use anyhow::Context;
use aws_client::store::Store;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use kube::{Client, Config};
use node::config::NodeConfig;
use node::pki::{KUBERNETES_CA, Leaf, SystemKeys, Usage, issue, trust_bundle};
use std::time::Duration;
use time::OffsetDateTime;
use x509_parser::pem::Pem;

/// As long as nodeup's certificates. A role with a client is started again long before, and gets another.
const VALIDITY: time::Duration = time::Duration::days(455);

/// How long a role keeps its client.
pub const CLIENT_LIFE: Duration = Duration::from_hours(90 * 24);

/// A call that cannot connect is given up.
const CONNECT: Duration = Duration::from_secs(10);

/// Where this machine's API server answers, `https://127.0.0.1:PORT`.
pub fn url(config: &NodeConfig) -> String {
    let pods = config.control_plane.as_ref();
    let pod = pods.and_then(|of| of.static_pods.get("kube-apiserver"));
    let ports = pod.into_iter().flat_map(|pod| &pod.spec.containers);
    let port = ports
        .flat_map(|container| &container.ports)
        .map(|port| port.host_port)
        .next();
    format!("https://127.0.0.1:{}", port.unwrap_or(node::ports::API))
}

/// A client of the API server at `url` as `protokube` of `system:masters`, with a new certificate of the cluster's authority.
pub async fn client(store: &Store, url: &str, now: OffsetDateTime) -> anyhow::Result<Client> {
    let authority = keyset(store, KUBERNETES_CA).await?;
    let leaf = Leaf {
        common_name: "protokube".to_owned(),
        organization: Some("system:masters".to_owned()),
        usage: Usage::Client,
        names: Vec::new(),
        validity: VALIDITY,
    };
    let issued = issue(&authority, &leaf, &mut SystemKeys::at(now))?;
    let address = url
        .parse()
        .with_context(|| format!("{url} is no address of an API server"))?;
    let mut config = Config::new(address);
    config.root_cert = Some(certificates(&trust_bundle(&authority))?);
    config.connect_timeout = Some(CONNECT);
    config.auth_info.client_certificate_data = Some(STANDARD.encode(&issued.certificate));
    config.auth_info.client_key_data = Some(STANDARD.encode(issued.key.reveal()).into());
    Client::try_from(config).context("could not make a client of the API server")
}

/// The certificates of a PEM bundle, DER.
fn certificates(bundle: &str) -> anyhow::Result<Vec<Vec<u8>>> {
    let read = Pem::iter_from_buffer(bundle.as_bytes()).map(|pem| Ok(pem?.contents));
    read.collect::<anyhow::Result<_>>()
        .context("the authority's certificates are not PEM")
}
