//! Joins a worker to the cluster: creates keys, requests configuration and certificates from protokube, and repeats the request
//! until the answer is final.

use crate::bootstrap_client::BootstrapClient;
use crate::retry::{AttemptError, AttemptLog, repeat_until_final};
use anyhow::{Context, anyhow, bail};
use host::{read_text_file, write_secret_file};
use node::bootstrap::{
    CertificateKind, FORMAT, JOIN_PATH, JoinReply, JoinRequest, certificate_leaf,
};
use node::config::InstanceFacts;
use node::pki::{IssuedCertificate, Leaf, SystemKeys, create_request, request_for_key};
use node::secret::Secret;
use rustls::crypto::aws_lc_rs::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use std::collections::BTreeMap;
use std::path::Path;
use time::{Duration, OffsetDateTime};

/// Result of joining. NodeConfig is not verified yet.
#[derive(Debug)]
pub(crate) struct JoinResult {
    pub node_config: String,
    /// Certificates with their keys.
    pub certificates: BTreeMap<CertificateKind, IssuedCertificate>,
    /// Passwords of image registries.
    pub docker_config: Option<Secret>,
}

/// Requests until the answer is final. Keys are stored in the folder `keys` before the first request, so that an interrupted run
/// continues with the same keys: once the Node exists, another key of kubelet would be refused. With `force`, kube-proxy gets another one.
pub(crate) async fn join_cluster(
    endpoint: &BootstrapClient<'_>,
    host: &InstanceFacts,
    keys: &Path,
    force: bool,
    pace: backon::ExponentialBuilder,
    attempt_log: AttemptLog<'_>,
) -> anyhow::Result<JoinResult> {
    let (mut private, mut requests) = (BTreeMap::new(), BTreeMap::new());
    for kind in [CertificateKind::Kubelet, CertificateKind::KubeProxy] {
        // The signer determines the validity.
        let leaf = certificate_leaf(kind, &host.instance_id, Duration::ZERO);
        let path = keys.join(key_file_name(kind));
        let kept = match kind {
            CertificateKind::KubeProxy if force => None,
            _ => read_text_file(&path)?,
        };
        let (request, key) = key_and_request(&path, kept, &leaf, (endpoint.clock)().into())?;
        requests.insert(kind, request);
        private.insert(kind, key);
    }
    let body = serde_json::to_vec(&JoinRequest {
        format: FORMAT,
        group: endpoint.boot.group.clone(),
        node_config: endpoint.boot.node_config.clone(),
        requests,
    })?;
    let joined =
        repeat_until_final(pace, attempt_log, || request_membership(endpoint, &body)).await?;
    let certificates = joined
        .certificates
        .into_iter()
        .filter_map(|(kind, certificate)| {
            let key = private.remove(&kind)?;
            Some(check_certificate(kind, certificate, key))
        });
    Ok(JoinResult {
        certificates: certificates.collect::<anyhow::Result<_>>()?,
        node_config: joined.node_config,
        docker_config: joined.docker_config,
    })
}

async fn request_membership(
    endpoint: &BootstrapClient<'_>,
    body: &[u8],
) -> Result<JoinReply, AttemptError> {
    let answer = endpoint.post_body(JOIN_PATH, body).await?;
    let joined: JoinReply = serde_json::from_slice(&answer)
        .context("the control plane's reply cannot be parsed; it may run another release")
        .map_err(AttemptError::Passing)?;
    if joined.format != FORMAT {
        let error = anyhow!(
            "the control plane's reply has format {}, but this nodeup reads only {FORMAT}",
            joined.format
        );
        return Err(AttemptError::Final(error));
    }
    Ok(joined)
}

fn key_file_name(kind: CertificateKind) -> &'static str {
    match kind {
        CertificateKind::Kubelet => "kubelet.key",
        CertificateKind::KubeProxy => "kube-proxy.key",
    }
}

/// Returns a certificate request and its key: the one that was kept, or a new one that is stored in the file.
fn key_and_request(
    path: &Path,
    kept: Option<String>,
    leaf: &Leaf,
    now: OffsetDateTime,
) -> anyhow::Result<(String, Secret)> {
    if let Some(text) = kept {
        let key = Secret::new(text);
        // An unusable key is replaced; no certificate can exist for it.
        if let Ok(request) = request_for_key(leaf, &key) {
            return Ok((request, key));
        }
    }
    let (request, key) = create_request(leaf, &mut SystemKeys::issuing_at(now))?;
    write_secret_file(path, key.reveal().as_bytes())?;
    Ok((request, key))
}

/// Checks that a certificate matches its key. Its authority is checked when it is installed.
fn check_certificate(
    kind: CertificateKind,
    certificate: String,
    key: Secret,
) -> anyhow::Result<(CertificateKind, IssuedCertificate)> {
    let subject = || format!("the control plane's certificate for {kind:?}");
    let chain = CertificateDer::pem_slice_iter(certificate.as_bytes())
        .collect::<Result<Vec<_>, _>>()
        .with_context(subject)?;
    if chain.is_empty() {
        bail!("{} is empty", subject());
    }
    let private = PrivateKeyDer::from_pem_slice(key.reveal().as_bytes()).with_context(subject)?;
    CertifiedKey::from_der(chain, private, &default_provider()).with_context(subject)?;
    Ok((kind, IssuedCertificate { certificate, key }))
}
