//! BootConfig: what user data tells nodeup. Everything else is in NodeConfig, which it names by its sha256.

use super::Error;
use super::node_config::read_formatted;
use crate::config::Role;
use serde::{Deserialize, Serialize};

/// The format that this release writes; a reader takes this one and the one before.
pub const BOOT_FORMAT: u32 = 1;

/// What user data tells nodeup. Holds no secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BootConfig {
    /// [`BOOT_FORMAT`].
    pub format: u32,
    /// The cluster's name.
    pub cluster: String,
    /// The instance group's name.
    pub group: String,
    /// The group's role.
    pub role: Role,
    /// sha256 (hex) of the group's NodeConfig.
    pub node_config: String,
    /// Control planes: the cluster's base in the state store, from which they read NodeConfig and keysets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config_base: Option<String>,
    /// Workers: who hands them NodeConfig and certificates, `https://HOST:3988`, tried in turn. They read nothing
    /// of the store but binaries.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bootstrap_servers: Vec<String>,
    /// Workers of clusters without DNS: private addresses, with commas between, at which the API and the bootstrap servers answer
    /// whatever their names mean elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control_plane_addresses: Option<String>,
    /// Workers: who may have signed the servers' certificates, PEM.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca_certificates: Option<String>,
}

impl BootConfig {
    /// The control plane's private addresses, for workers of clusters without DNS.
    pub fn addresses(&self) -> Vec<String> {
        let addresses = self.control_plane_addresses.iter();
        let addresses = addresses.flat_map(|addresses| addresses.split(','));
        addresses.map(str::to_owned).collect()
    }
}

/// Reads a BootConfig; refuses formats this release does not know.
pub fn read_boot_config(text: &str) -> Result<BootConfig, Error> {
    read_formatted(text, "BootConfig", BOOT_FORMAT)
}
