//! Another control plane that serves a snapshot. Both sides show the certificate of their member for etcd's peers, and check that the
//! other one's names a member of the same etcd cluster.

use crate::certificates::{client_builder, read_certificate};
use anyhow::{Context, anyhow, bail};
use host::Host;
use node::components::EtcdMemberNames;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio_rustls::TlsAcceptor;
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::{FromDer, X509Certificate};

/// Port on which a control plane serves a snapshot. Control planes reach each other on all ports.
pub const SNAPSHOT_PORT: u16 = 3994;

/// Timeout of a connection's start.
const CONNECT: Duration = Duration::from_secs(5);

/// A peer that sends nothing for so long is gone.
const SILENCE: Duration = Duration::from_secs(30);

/// The certificates of this instance's member, and the names of all members.
#[derive(Clone, Debug)]
pub struct PeerAccess {
    /// Access to certificate files.
    pub host: Host,
    /// Folder with `peer.crt`, `peer.key` and `peers-ca.crt`.
    pub certificates: String,
    pub names: EtcdMemberNames,
}

/// A connection to the control plane of a member.
#[derive(Clone, Debug)]
pub struct SnapshotPeer {
    pub(super) client: reqwest::Client,
    /// `https://etcd-b.internal.NAME:3994`.
    pub(super) url: String,
}

impl PeerAccess {
    /// Access to the control plane of the member of this short name. `address`: where it is, if its name is not to be looked up.
    pub fn connect(
        &self,
        member: &str,
        address: Option<SocketAddr>,
    ) -> anyhow::Result<SnapshotPeer> {
        if !self.names.members.iter().any(|one| one == member) {
            bail!(
                "etcd has no member {member}; its members are {}",
                self.names.members.join(", ")
            );
        }
        let name = self.names.member_host(member);
        let client = client_builder(&self.host, &self.certificates, ("peer", "peers-ca"))?;
        let client = client.connect_timeout(CONNECT).read_timeout(SILENCE);
        let client = match address {
            Some(address) => client.resolve(&name, address),
            None => client,
        };
        let port = address.map_or(SNAPSHOT_PORT, |address| address.port());
        Ok(SnapshotPeer {
            client: client
                .build()
                .context("could not create a client for the other control plane")?,
            url: format!("https://{name}:{port}"),
        })
    }

    /// What accepts connections of members only.
    pub(super) fn build_acceptor(&self) -> anyhow::Result<TlsAcceptor> {
        const UNUSABLE: &str = "the certificate of the member cannot be used";
        let mut roots = RootCertStore::empty();
        for authority in CertificateDer::pem_slice_iter(self.read("peers-ca.crt")?.as_bytes()) {
            let authority = authority.map_err(|error| anyhow!(describe_pem_error(&error)));
            roots.add(authority.context(UNUSABLE)?).context(UNUSABLE)?;
        }
        let provider = Arc::new(aws_lc_rs::default_provider());
        let clients =
            WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider));
        let own = self.read("peer.crt")?;
        let chain = CertificateDer::pem_slice_iter(own.as_bytes());
        let chain: Result<Vec<_>, _> = chain
            .map(|one| one.map_err(|error| anyhow!(describe_pem_error(&error))))
            .collect();
        let key = PrivateKeyDer::from_pem_slice(self.read("peer.key")?.as_bytes());
        let key = key.map_err(|error| anyhow!(describe_pem_error(&error)));
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .context(UNUSABLE)?
            .with_client_cert_verifier(clients.build().context(UNUSABLE)?)
            .with_single_cert(chain.context(UNUSABLE)?, key.context(UNUSABLE)?)
            .context(UNUSABLE)?;
        Ok(TlsAcceptor::from(Arc::new(config)))
    }

    /// The member that a certificate names, which the authority of the peers signed.
    pub(super) fn name_member(&self, certificate: &CertificateDer<'_>) -> anyhow::Result<String> {
        let (_, parsed) = X509Certificate::from_der(certificate).map_err(|why| anyhow!("{why}"))?;
        let names = parsed.subject_alternative_name()?;
        let names = names
            .map(|names| names.value.general_names.clone())
            .unwrap_or_default();
        let members = &self.names.members;
        let found = members.iter().find(|member| {
            let host = self.names.member_host(member);
            names
                .iter()
                .any(|name| matches!(name, GeneralName::DNSName(name) if *name == host))
        });
        found
            .cloned()
            .context("its certificate names no member of this etcd cluster")
    }

    fn read(&self, file: &str) -> anyhow::Result<String> {
        read_certificate(&self.host, &self.certificates, file)
    }
}

/// What is wrong with a PEM file. The parser's own text shows bytes.
pub fn describe_pem_error(error: &pem::Error) -> String {
    match error {
        pem::Error::MissingSectionEnd { .. } => {
            "it is cut off: a certificate begins in it and does not end".to_owned()
        }
        pem::Error::IllegalSectionStart { .. } => {
            "it has a line that begins with -----BEGIN, and is damaged".to_owned()
        }
        pem::Error::Base64Decode(_) => {
            "it is damaged: a certificate in it is not base64".to_owned()
        }
        pem::Error::NoItemsFound => "it has none".to_owned(),
        other => other.to_string(),
    }
}
