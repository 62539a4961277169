//! Certificate authorities that HTTPS servers are verified with: those that `SSL_CERT_FILE` and `SSL_CERT_DIR` name, else those
//! of the system. A slim image may have none: plain http works without them, and https is refused with the reason.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls_native_certs::{CertificateResult, load_certs_from_paths, load_native_certs};
use std::sync::LazyLock;

/// Variables that name other authorities than those of the system (OpenSSL's names, which Go and Python read too).
const VARIABLES: [&str; 2] = ["SSL_CERT_FILE", "SSL_CERT_DIR"];

/// There is nothing to verify an HTTPS server with.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "there are no CA certificates to verify the server of {address} with ({cause}): install the package ca-certificates, or name a file of CA certificates in SSL_CERT_FILE"
)]
pub struct NoAuthorities {
    address: String,
    cause: String,
}

/// Certificates of authorities, all of which TLS can use.
#[derive(Clone, Debug)]
pub struct Authorities {
    certificates: Vec<CertificateDer<'static>>,
    /// Why there are none, or why those that the environment names are not used.
    problem: Option<String>,
}

impl Authorities {
    /// Those of the environment or the system, read once. Variables that lead to no certificate are passed over, as OpenSSL and
    /// Go do, which then look into the folder of the system.
    pub fn of_system() -> &'static Self {
        static SYSTEM: LazyLock<Authorities> = LazyLock::new(read_system);
        &SYSTEM
    }

    /// Those in a PEM text.
    pub fn from_pem(pem: &[u8]) -> Self {
        let certificates = CertificateDer::pem_slice_iter(pem).filter_map(Result::ok);
        let certificates = keep_usable(certificates.collect());
        let problem = certificates
            .is_empty()
            .then(|| "the given file has none".to_owned());
        Self {
            certificates,
            problem,
        }
    }

    /// The certificates, DER.
    pub fn certificates(&self) -> impl Iterator<Item = &[u8]> {
        self.certificates.iter().map(AsRef::as_ref)
    }

    /// The certificates as PEM.
    pub(crate) fn to_pem(&self) -> String {
        let pem = |der: &[u8]| {
            let body = STANDARD.encode(der);
            format!("-----BEGIN CERTIFICATE-----\n{body}\n-----END CERTIFICATE-----\n")
        };
        self.certificates().map(pem).collect()
    }

    /// Fails for an https address if there is no authority.
    pub fn check_address(&self, url: &str) -> Result<(), NoAuthorities> {
        let (scheme, rest) = url.split_once("://").unwrap_or_default();
        if !self.certificates.is_empty() || !scheme.eq_ignore_ascii_case("https") {
            return Ok(());
        }
        Err(NoAuthorities {
            address: rest.split('/').next().unwrap_or_default().to_owned(),
            cause: self.problem.clone().unwrap_or_default(),
        })
    }

    /// What to tell of authorities that the environment names and that are passed over.
    pub fn warning(&self) -> Option<String> {
        let problem = self.problem.as_ref()?;
        let others = !self.certificates.is_empty();
        others.then(|| format!("{problem}; the CA certificates of the system are used instead"))
    }
}

fn read_system() -> Authorities {
    let named = load_native_certs();
    let errors = error_text(&named);
    let certificates = keep_usable(named.certs);
    if !certificates.is_empty() {
        return Authorities {
            certificates,
            problem: None,
        };
    }
    let variables: Vec<String> = VARIABLES
        .iter()
        .filter_map(|name| {
            let value = std::env::var_os(name)?;
            Some(format!("{name}={}", value.display()))
        })
        .collect();
    if variables.is_empty() {
        return Authorities {
            certificates,
            problem: Some(format!("the system has none{errors}")),
        };
    }
    let problem = format!("{} leads to no CA certificate{errors}", variables.join(" "));
    Authorities {
        certificates: keep_usable(load_of_system()),
        problem: Some(problem),
    }
}

/// Those of the system, whatever the environment says.
fn load_of_system() -> Vec<CertificateDer<'static>> {
    let folders = openssl_probe::candidate_cert_dirs();
    folders
        .flat_map(|folder| load_certs_from_paths(None, Some(folder)).certs)
        .collect()
}

/// `: CAUSE; CAUSE`, or nothing.
fn error_text(loaded: &CertificateResult) -> String {
    let mut errors: Vec<String> = loaded.errors.iter().map(ToString::to_string).collect();
    // A folder may have many files that are unreadable for the same reason.
    errors.truncate(2);
    if errors.is_empty() {
        return String::new();
    }
    format!(": {}", errors.join("; "))
}

/// The certificates that TLS can use. The SDK panics for others.
fn keep_usable(certificates: Vec<CertificateDer<'static>>) -> Vec<CertificateDer<'static>> {
    let usable = |certificate: &CertificateDer<'static>| {
        RootCertStore::empty().add(certificate.clone()).is_ok()
    };
    certificates.into_iter().filter(usable).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_an_authority_https_is_refused_by_name_and_http_is_not() {
        for text in [
            "",
            "garbage",
            "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
            "-----BEGIN CERTIFICATE-----\nhalf",
        ] {
            let none = Authorities::from_pem(text.as_bytes());
            assert_eq!(none.certificates().count(), 0, "{text}");
            assert_eq!(none.to_pem(), "");
            assert_eq!(none.check_address("http://169.254.169.254/latest"), Ok(()));
            let refused = none
                .check_address("HTTPS://s3.example.com:8443/a?b")
                .unwrap_err();
            let refused = refused.to_string();
            assert!(refused.contains("s3.example.com:8443"), "{refused}");
            assert!(refused.contains("SSL_CERT_FILE"), "{refused}");
        }
    }
}
