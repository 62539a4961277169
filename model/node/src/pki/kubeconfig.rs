//! kubeconfig files: for administrators, with embedded credentials, and for components, with paths of credentials.

use super::Error;
use crate::secret::Secret;
use crate::yaml::to_yaml;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, json};

/// Content of a kubeconfig: one cluster, one user and one context, all with the same name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kubeconfig {
    /// Name of cluster, user and context.
    pub name: String,
    /// URL of the API: `https://api.NAME`.
    pub server: String,
    /// Name to expect in the server's certificate, if it differs from the host in the URL, as with a load balancer's own DNS name.
    pub tls_server_name: Option<String>,
    /// Trusted certificates, PEM; `None` for those of the system (a load balancer with a public certificate).
    pub trust_bundle: Option<String>,
    /// Credentials; `None` for a kubeconfig without a user.
    pub credentials: Option<ClientCredentials>,
}

/// Credentials of a user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientCredentials {
    /// Embedded certificate and key, PEM.
    Inside {
        /// Certificate, PEM.
        certificate: String,
        /// Private key, PEM.
        key: Secret,
    },
    /// Paths of files with certificate and key.
    Files {
        /// Path of the certificate.
        certificate: String,
        /// Path of the private key.
        key: String,
    },
}

/// Renders the YAML. It is secret, because it may contain a private key.
pub fn render_kubeconfig(config: &Kubeconfig) -> Result<Secret, Error> {
    let name = &config.name;
    let mut cluster = Map::from_iter([("server".to_owned(), json!(config.server))]);
    if let Some(name) = &config.tls_server_name {
        cluster.insert("tls-server-name".into(), json!(name));
    }
    if let Some(bundle) = &config.trust_bundle {
        let bundle = STANDARD.encode(bundle);
        cluster.insert("certificate-authority-data".into(), json!(bundle));
    }
    let user = match &config.credentials {
        None => json!({}),
        Some(ClientCredentials::Inside { certificate, key }) => json!({
            "client-certificate-data": STANDARD.encode(certificate),
            "client-key-data": STANDARD.encode(key.reveal()),
        }),
        Some(ClientCredentials::Files { certificate, key }) => json!({
            "client-certificate": certificate,
            "client-key": key,
        }),
    };
    let file = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{ "name": name, "cluster": cluster }],
        "contexts": [{ "name": name, "context": { "cluster": name, "user": name } }],
        "current-context": name,
        "users": [{ "name": name, "user": user }],
    });
    Ok(Secret::new(to_yaml(&file)?))
}
