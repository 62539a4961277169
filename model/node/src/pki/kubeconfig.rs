//! kubeconfig files: for administrators (credentials inside) and for components (credentials beside).

use super::Error;
use crate::secret::Secret;
use crate::yaml::to_yaml;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, json};

/// What a kubeconfig says: one cluster, one user, one context, all of one name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kubeconfig {
    /// Name of cluster, user and context.
    pub name: String,
    /// `https://api.NAME`.
    pub server: String,
    /// The name that the server's certificate has, where it is not the URL's: a load balancer's own name is in no
    /// certificate.
    pub tls_server_name: Option<String>,
    /// Trusted certificates, PEM; `None`: the system's (a load balancer with a public certificate).
    pub trust_bundle: Option<String>,
    /// Who it is.
    pub credentials: Option<ClientCredentials>,
}

/// A user's credentials.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientCredentials {
    /// Certificate and key in the file, PEM.
    Inside {
        /// Certificate.
        certificate: String,
        /// Private key.
        key: Secret,
    },
    /// Paths of files with certificate and key.
    Files {
        /// Certificate.
        certificate: String,
        /// Private key.
        key: String,
    },
}

/// The file's YAML. Secret: it may hold a private key.
pub fn kubeconfig(config: &Kubeconfig) -> Result<Secret, Error> {
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
