//! The documents by which others than the API server verify tokens of service accounts: who issues them, and with which keys.

use crate::FullSpec;
use cloud::DiscoveryDocument;
use node::pki::JsonWebKeySet;
use serde_json::{Value, json};

/// The documents of the cluster's issuer, with these keys.
pub fn discovery_documents(full: &FullSpec, keys: &JsonWebKeySet) -> Vec<DiscoveryDocument> {
    let Some(identity) = &full.pod_identity else {
        return Vec::new();
    };
    let issuer = &identity.issuer;
    let keys_url = format!("{issuer}/{}", DiscoveryDocument::KEYS);
    let configuration = json!({
        "issuer": issuer,
        "jwks_uri": keys_url,
        // kube-apiserver has no such endpoint, and the standard demands a value.
        "authorization_endpoint": "urn:kubernetes:programmatic_authorization",
        "response_types_supported": ["id_token"],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": keys.algorithms(),
        "claims_supported": ["sub", "iss"],
    });
    let document = |key: &str, content: &Value| DiscoveryDocument {
        store: identity.discovery_store.clone(),
        key: key.to_owned(),
        content: format!("{content:#}\n"),
    };
    let keys = json!(keys);
    vec![
        document(DiscoveryDocument::CONFIGURATION, &configuration),
        document(DiscoveryDocument::KEYS, &keys),
    ]
}
