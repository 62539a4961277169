//! BootConfig: what user data passes to nodeup. It names NodeConfig, which holds everything else, by its sha256.

use super::Error;
use super::node_config::read_formatted;
use crate::config::Role;
use serde::{Deserialize, Serialize};

/// Format that this release writes. Readers accept this one and the one before.
pub const BOOT_FORMAT: u32 = 1;

/// What user data passes to nodeup. Contains no secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BootConfig {
    /// [`BOOT_FORMAT`].
    pub format: u32,
    /// Name of the cluster.
    pub cluster: String,
    /// Name of the instance group.
    pub group: String,
    /// Role of the instance group.
    pub role: Role,
    /// sha256 (hex) of the group's NodeConfig.
    pub node_config: String,
    /// Control planes only: the cluster's base in the state store, from which they read NodeConfig and keysets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config_base: Option<String>,
    /// Control planes only: account that owns the bucket of the state store and those of backups. They use no bucket of another account.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state_owner: Option<String>,
    /// Workers only: bootstrap endpoints (`https://HOST:3988`), tried in turn, which provide NodeConfig and certificates. Workers
    /// read only binaries from the state store.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bootstrap_servers: Vec<String>,
    /// Workers of clusters without DNS: private addresses of the API and the bootstrap servers, separated by commas. They override
    /// name resolution.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control_plane_addresses: Option<String>,
    /// Workers only: authorities of the bootstrap servers' certificates, PEM.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca_certificates: Option<String>,
}

impl BootConfig {
    /// [`BootConfig::control_plane_addresses`] as a list; empty if not set.
    pub fn addresses(&self) -> Vec<String> {
        let addresses = self.control_plane_addresses.iter();
        let addresses = addresses.flat_map(|addresses| addresses.split(','));
        addresses.map(str::to_owned).collect()
    }
}

/// Parses a BootConfig. Fails for formats that this release does not know.
pub fn read_boot_config(text: &str) -> Result<BootConfig, Error> {
    read_formatted(text, "BootConfig", BOOT_FORMAT)
}
