//! The cluster's certificate authorities: keysets in the state store, as in kOps, and certificates issued from them, which are not
//! stored.

mod brought;
mod csr;
mod error;
mod file;
mod issue;
mod jwks;
mod keyset;
mod kubeconfig;
mod message;
mod mint;
mod public;
mod request;
mod rotate;
mod source;

pub use brought::{
    Refused, check_brought, check_own_key, count_certificates, is_self_issued, private_key_block,
};
pub use csr::{Malformed, SigningRequest, alternative_name_text};
pub use error::Error;
pub use file::{read_keyset, write_keyset};
pub use issue::{IssuedCertificate, LEAF_VALIDITY, Leaf, Usage, issue_certificate};
pub use jwks::{JsonWebKey, JsonWebKeySet, KeyMaterial};
pub use keyset::{Keyset, KeysetItem, trust_bundle};
pub use kubeconfig::{ClientCredentials, Kubeconfig, render_kubeconfig};
pub use message::{sign_message, verify_message};
pub use mint::{mint_further, mint_keyset};
pub use public::{certificate_id, public_key, public_keys};
pub use request::{create_request, request_for_key, sign_request};
pub use source::{KeyAlgorithm, KeySource, SystemKeys};

/// Signs the API server, its clients, kubelets and administrators.
pub const KUBERNETES_CA: &str = "kubernetes-ca";
/// Signs the client with which the API server calls aggregated API servers.
pub const AGGREGATOR_CA: &str = "apiserver-aggregator-ca";
/// Signs etcd's clients; one for all etcd clusters.
pub const ETCD_CLIENTS_CA: &str = "etcd-clients-ca";
/// Signs service account tokens; its certificate only carries the key.
pub const SERVICE_ACCOUNT: &str = "service-account";
/// Signs the objects of the state store that protokube obeys. No authority: its certificate only carries the key, no instance trusts it for
/// a connection, and no agent writes it to a disk.
pub const STATE_SIGNER: &str = "state-signer";

/// Names of every keyset that control planes issue certificates and tokens from, in a cluster with the named etcd clusters (`main`,
/// `events`), sorted.
pub fn keyset_names<'a>(etcd_clusters: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let shared = [
        KUBERNETES_CA,
        AGGREGATOR_CA,
        ETCD_CLIENTS_CA,
        SERVICE_ACCOUNT,
    ];
    let mut names: Vec<String> = shared.map(str::to_owned).to_vec();
    for cluster in etcd_clusters {
        names.push(format!("etcd-manager-ca-{cluster}"));
        names.push(format!("etcd-peers-ca-{cluster}"));
    }
    names.sort();
    names
}

/// True for keysets whose keys can be rotated: authorities, and those that sign tokens and objects of the state store. kOps knows them by
/// the same rule, but for [`STATE_SIGNER`], which it does not have.
pub fn is_rotatable(name: &str) -> bool {
    name.contains("-ca") || [SERVICE_ACCOUNT, STATE_SIGNER].contains(&name)
}

/// Key of a keyset's file, relative to the cluster's base in the state store.
pub fn keyset_path(name: &str) -> String {
    format!("pki/private/{name}/keyset.yaml")
}
