//! Command-line flags of Kubernetes components.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Flags by name, with all values of each. Serialized as a list of `--name=value`, sorted by name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "Vec<String>", from = "Vec<String>")]
pub struct Flags(BTreeMap<String, Vec<String>>);

/// Flags of control-plane components whose value is the path of a file to read (from `--help` of each component).
pub const FILES: [&str; 33] = [
    "admission-control-config-file",
    "audit-policy-file",
    "audit-webhook-config-file",
    "authentication-config",
    "authentication-kubeconfig",
    "authentication-token-webhook-config-file",
    "authorization-kubeconfig",
    "authorization-webhook-config-file",
    "basic-auth-file",
    "client-ca-file",
    "cluster-signing-cert-file",
    "cluster-signing-key-file",
    "config",
    "encryption-provider-config",
    "etcd-cafile",
    "etcd-certfile",
    "etcd-keyfile",
    "experimental-encryption-provider-config",
    "kubeconfig",
    "kubelet-certificate-authority",
    "kubelet-client-certificate",
    "kubelet-client-key",
    "oidc-ca-file",
    "proxy-client-cert-file",
    "proxy-client-key-file",
    "requestheader-client-ca-file",
    "root-ca-file",
    "service-account-key-file",
    "service-account-private-key-file",
    "service-account-signing-key-file",
    "tls-cert-file",
    "tls-private-key-file",
    "token-auth-file",
];

impl Flags {
    /// Sets a flag, replacing its values.
    pub fn set(&mut self, name: &str, value: impl Into<String>) {
        self.0.insert(name.to_owned(), vec![value.into()]);
    }

    /// Sets a flag unless it is set already.
    pub fn set_if_missing(&mut self, name: &str, value: impl Into<String>) {
        self.0
            .entry(name.to_owned())
            .or_insert_with(|| vec![value.into()]);
    }

    /// Adds a value to a flag.
    pub fn add(&mut self, name: &str, value: impl Into<String>) {
        self.0
            .entry(name.to_owned())
            .or_default()
            .push(value.into());
    }

    /// The first value of a flag.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name)?.first().map(String::as_str)
    }

    /// The files that the component reads, as pairs of flag and path.
    pub fn files(&self) -> Vec<(&str, &str)> {
        let named = self
            .0
            .iter()
            .filter(|(name, _)| FILES.contains(&name.as_str()));
        named
            .flat_map(|(name, paths)| paths.iter().map(|path| (name.as_str(), path.as_str())))
            .collect()
    }

    /// The flags as `--name=value`, sorted by name.
    pub fn arguments(&self) -> Vec<String> {
        let each = |(name, values): (&String, &Vec<String>)| -> Vec<String> {
            values
                .iter()
                .map(|value| format!("--{name}={value}"))
                .collect()
        };
        self.0.iter().flat_map(each).collect()
    }
}

impl From<Flags> for Vec<String> {
    fn from(flags: Flags) -> Self {
        flags.arguments()
    }
}

impl From<Vec<String>> for Flags {
    fn from(arguments: Vec<String>) -> Self {
        let mut flags = Self::default();
        for argument in arguments {
            let bare = argument.strip_prefix("--").unwrap_or(&argument);
            let (name, value) = bare.split_once('=').unwrap_or((bare, "true"));
            flags.add(name, value);
        }
        flags
    }
}
