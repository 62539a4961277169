//! How a worker gets its configuration and certificates: with keys that it makes once and never shows, it asks
//! protokube until that says yes or never.

use crate::endpoint::Endpoint;
use crate::retry::{Told, Trouble, repeat};
use anyhow::{Context, anyhow, bail};
use host::{read_text_file, write_secret_file};
use node::bootstrap::{Certificate, FORMAT, JOIN_PATH, Join, Joined, leaf};
use node::config::Host;
use node::pki::{Issued, Leaf, SystemKeys, request, request_for};
use node::secret::Secret;
use rustls::crypto::aws_lc_rs::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use std::collections::BTreeMap;
use std::path::Path;
use time::{Duration, OffsetDateTime};

/// What joining gives. The configuration is not verified yet.
#[derive(Debug)]
pub struct Membership {
    /// NodeConfig's text.
    pub node_config: String,
    /// Certificates with their keys.
    pub certificates: BTreeMap<Certificate, Issued>,
    /// Passwords of image registries.
    pub docker_config: Option<Secret>,
}

/// Asks until the answer is final. Keys lie in that folder before they are asked for, so that a run that is killed
/// in between asks for the same ones again: another key would be refused once the Node is there.
pub async fn join(
    endpoint: &Endpoint<'_>,
    host: &Host,
    keys: &Path,
    pace: backon::ExponentialBuilder,
    told: Told<'_>,
) -> anyhow::Result<Membership> {
    let (mut private, mut requests) = (BTreeMap::new(), BTreeMap::new());
    for kind in [Certificate::Kubelet, Certificate::KubeProxy] {
        // Its life is the signer's matter.
        let leaf = leaf(kind, &host.instance_id, Duration::ZERO);
        let (request, key) =
            key_and_request(&keys.join(file(kind)), &leaf, (endpoint.clock)().into())?;
        requests.insert(kind, request);
        private.insert(kind, key);
    }
    let body = serde_json::to_vec(&Join {
        format: FORMAT,
        group: endpoint.boot.group.clone(),
        node_config: endpoint.boot.node_config.clone(),
        requests,
    })?;
    let joined = repeat(pace, told, || ask(endpoint, &body)).await?;
    let certificates = joined
        .certificates
        .into_iter()
        .filter_map(|(kind, certificate)| {
            let key = private.remove(&kind)?;
            Some(checked(kind, certificate, key))
        });
    Ok(Membership {
        certificates: certificates.collect::<anyhow::Result<_>>()?,
        node_config: joined.node_config,
        docker_config: joined.docker_config,
    })
}

async fn ask(endpoint: &Endpoint<'_>, body: &[u8]) -> Result<Joined, Trouble> {
    let answer = endpoint.post(JOIN_PATH, body).await?;
    let joined: Joined = serde_json::from_slice(&answer)
        .context("the control plane's answer cannot be read: is its release another?")
        .map_err(Trouble::Passing)?;
    if joined.format != FORMAT {
        let error = anyhow!(
            "the control plane answers in format {}, this nodeup knows {FORMAT}",
            joined.format
        );
        return Err(Trouble::Final(error));
    }
    Ok(joined)
}

fn file(kind: Certificate) -> &'static str {
    match kind {
        Certificate::Kubelet => "kubelet.key",
        Certificate::KubeProxy => "kube-proxy.key",
    }
}

/// The key in that file, or a new one that lies there from now on, and a request for a certificate for it.
fn key_and_request(
    path: &Path,
    leaf: &Leaf,
    now: OffsetDateTime,
) -> anyhow::Result<(String, Secret)> {
    if let Some(text) = read_text_file(path)? {
        let key = Secret::new(text);
        // One that cannot be used is replaced: nothing was issued for it.
        if let Ok(request) = request_for(leaf, &key) {
            return Ok((request, key));
        }
    }
    let (request, key) = request(leaf, &mut SystemKeys::at(now))?;
    write_secret_file(path, key.reveal().as_bytes())?;
    Ok((request, key))
}

/// A certificate that fits its key. Whether its authority is trusted is looked at where it is put in its place.
fn checked(
    kind: Certificate,
    certificate: String,
    key: Secret,
) -> anyhow::Result<(Certificate, Issued)> {
    let of = || format!("the control plane's certificate for {kind:?}");
    let chain = CertificateDer::pem_slice_iter(certificate.as_bytes())
        .collect::<Result<Vec<_>, _>>()
        .with_context(of)?;
    if chain.is_empty() {
        bail!("{} is empty", of());
    }
    let private = PrivateKeyDer::from_pem_slice(key.reveal().as_bytes()).with_context(of)?;
    CertifiedKey::from_der(chain, private, &default_provider()).with_context(of)?;
    Ok((kind, Issued { certificate, key }))
}
