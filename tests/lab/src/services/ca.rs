//! The lab's certificate authority, and a server certificate for every name that a client asks for.

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, pem::PemObject};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use std::collections::HashMap;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use time::{Duration, OffsetDateTime};

const AUTHORITY_DAYS: i64 = 3650;
const SERVER_DAYS: i64 = 397;

/// Hosts' clocks may be behind ours by this.
const SKEW: Duration = Duration::DAY;

/// Names whose certificates are kept; more than any lab has.
const MOST_NAMES: usize = 4096;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{path}: {source}")]
    File { path: PathBuf, source: io::Error },
    #[error("{path} is not a certificate authority of the lab; remove it and a new one is made")]
    Unreadable {
        path: PathBuf,
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    #[error("no certificate for {name:?}")]
    Certificate {
        name: String,
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

/// The authority: issues server certificates as they are asked for.
pub struct Ca {
    issuer: Issuer<'static, KeyPair>,
    certificate: CertificateDer<'static>,
    /// PEM, for trust stores.
    pem: String,
    issued: Mutex<HashMap<String, Arc<CertifiedKey>>>,
}

impl std::fmt::Debug for Ca {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Ca").finish_non_exhaustive()
    }
}

impl Ca {
    /// The authority kept in `folder` (`ca.key`: key and certificate, mode 0600; `ca.crt`: the certificate), made when
    /// there is none. Two at once get the same one.
    pub fn open(folder: &Path) -> Result<Self, Error> {
        let kept = folder.join("ca.key");
        let file = |path: &Path| {
            let path = path.to_owned();
            move |source| Error::File { path, source }
        };
        fs::create_dir_all(folder).map_err(file(folder))?;
        if !kept.exists() {
            let bundle = new_authority().map_err(|source| Error::Certificate {
                name: "the lab's authority".to_owned(),
                source,
            })?;
            // Made with mode 0600; who comes second keeps what the first one made.
            let mut new = tempfile::NamedTempFile::new_in(folder).map_err(file(folder))?;
            new.write_all(bundle.as_bytes()).map_err(file(&kept))?;
            match new.persist_noclobber(&kept) {
                Err(error) if error.error.kind() != io::ErrorKind::AlreadyExists => {
                    return Err(file(&kept)(error.error));
                }
                _ => {}
            }
        }
        let bundle = fs::read_to_string(&kept).map_err(file(&kept))?;
        let ca = Self::read_bundle(&bundle).map_err(|source| Error::Unreadable {
            path: kept.clone(),
            source,
        })?;
        let public = folder.join("ca.crt");
        if fs::read_to_string(&public).ok().as_ref() != Some(&ca.pem) {
            fs::write(&public, &ca.pem).map_err(file(&public))?;
        }
        Ok(ca)
    }

    fn read_bundle(bundle: &str) -> Result<Self, Box<dyn std::error::Error + Send + Sync>> {
        let key = KeyPair::from_pem(bundle)?;
        let certificate = CertificateDer::from_pem_slice(bundle.as_bytes())?;
        let begin = bundle.find("-----BEGIN CERTIFICATE").unwrap_or_default();
        let pem = bundle.get(begin..).unwrap_or_default().to_owned();
        Ok(Self {
            issuer: Issuer::from_ca_cert_der(&certificate, key)?,
            certificate,
            pem,
            issued: Mutex::new(HashMap::new()),
        })
    }

    /// The authority's certificate, PEM.
    pub fn certificate_pem(&self) -> &str {
        &self.pem
    }

    /// A certificate and its key for one server name, kept until the process ends.
    pub fn server_certificate(&self, name: &str) -> Result<Arc<CertifiedKey>, Error> {
        let name = name.to_ascii_lowercase();
        let mut issued = self.issued.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(key) = issued.get(&name) {
            return Ok(Arc::clone(key));
        }
        let new = self
            .issue_certificate(&name)
            .map_err(|source| Error::Certificate {
                name: name.clone(),
                source,
            })?;
        if issued.len() >= MOST_NAMES {
            issued.clear();
        }
        issued.insert(name, Arc::clone(&new));
        Ok(new)
    }

    fn issue_certificate(
        &self,
        name: &str,
    ) -> Result<Arc<CertifiedKey>, Box<dyn std::error::Error + Send + Sync>> {
        let key = KeyPair::generate()?;
        let mut leaf = CertificateParams::new(vec![name.to_owned()])?;
        valid_for(&mut leaf, SERVER_DAYS);
        leaf.distinguished_name
            .push(DnType::CommonName, common_name(name));
        leaf.use_authority_key_identifier_extension = true;
        leaf.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        leaf.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        let certificate = leaf.signed_by(&key, &self.issuer)?;
        let private = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let chain = vec![certificate.der().clone(), self.certificate.clone()];
        let provider = aws_lc_rs::default_provider();
        Ok(Arc::new(CertifiedKey::from_der(chain, private, &provider)?))
    }

    /// TLS for any server name, HTTP/1.1.
    pub fn server_config(self: &Arc<Self>) -> Result<rustls::ServerConfig, rustls::Error> {
        let provider = Arc::new(aws_lc_rs::default_provider());
        let builder = rustls::ServerConfig::builder_with_provider(provider);
        let builder = builder.with_safe_default_protocol_versions()?;
        let by_name = Arc::new(ByName(Arc::clone(self)));
        let mut config = builder.with_no_client_auth().with_cert_resolver(by_name);
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(config)
    }
}

#[derive(Debug)]
struct ByName(Arc<Ca>);

impl ResolvesServerCert for ByName {
    /// Without a server name there is nothing to certify: the handshake fails.
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let name = hello.server_name()?;
        match self.0.server_certificate(name) {
            Ok(key) => Some(key),
            Err(error) => {
                tracing::error!(
                    name,
                    error = &error as &dyn std::error::Error,
                    "TLS: no certificate"
                );
                None
            }
        }
    }
}

/// Key and certificate, PEM.
fn new_authority() -> Result<String, Box<dyn std::error::Error + Send + Sync>> {
    let key = KeyPair::generate()?;
    let mut authority = CertificateParams::default();
    valid_for(&mut authority, AUTHORITY_DAYS);
    authority
        .distinguished_name
        .push(DnType::CommonName, "AWS lab");
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    authority.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let certificate = authority.self_signed(&key)?;
    Ok(format!("{}{}", key.serialize_pem(), certificate.pem()))
}

fn valid_for(certificate: &mut CertificateParams, days: i64) {
    let now = OffsetDateTime::now_utc();
    certificate.not_before = now - SKEW;
    certificate.not_after = now + Duration::days(days);
}

/// A common name has at most 64 characters (RFC 5280); clients look at the alternative name only.
fn common_name(name: &str) -> &str {
    name.get(..64).unwrap_or(name)
}
