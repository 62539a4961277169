//! Settings of containerd in NodeConfig.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::ops::Not;

/// Settings of containerd; `None` means containerd's default. Unknown fields are ignored: a worker that joins again may have a
/// NodeConfig of another release.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Containerd {
    /// Version; `None` if the image contains containerd.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// True if the image contains containerd and its configuration.
    #[serde(skip_serializing_if = "Not::not")]
    pub skip_install: bool,
    /// Complete `config.toml` that replaces kctl's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub config_override: Option<String>,
    /// Additions to `config.toml`, by dotted path: numbers and texts.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub config_additions: BTreeMap<String, Value>,
    /// Mirrors (URLs, tried in order) by registry; `*` for all registries.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub registry_mirrors: BTreeMap<String, Vec<String>>,
    /// True if kubelet sends ECR credentials to mirrored registries too.
    #[serde(
        rename = "useECRCredentialsForMirrors",
        skip_serializing_if = "Not::not"
    )]
    pub use_ecr_credentials_for_mirrors: bool,
    /// Image of the pause container.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sandbox_image: Option<String>,
    /// True if containers get SELinux labels.
    #[serde(skip_serializing_if = "Not::not")]
    pub selinux_enabled: bool,
    /// Plugins of the Node Resource Interface; `None`: as containerd has them by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nri: Option<Nri>,
    /// gVisor's runtime is configured, with this platform: `systrap` or `kvm`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gvisor: Option<String>,
    /// True if NVIDIA's runtime is configured.
    #[serde(skip_serializing_if = "Not::not")]
    pub nvidia: bool,
    /// Flag `--address`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// Flag `--log-level`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log_level: Option<String>,
    /// Flag `--root`: folder for persistent data.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub root: Option<String>,
    /// Flag `--state`: folder for data of the current boot.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
}

impl Containerd {
    /// True for a registry whose images kubelet pulls with a password of ECR, and nobody without one.
    pub fn wants_ecr_password(&self, registry: &str) -> bool {
        let mirrored = || self.registry_mirrors.contains_key(registry);
        registry.contains(".dkr.ecr") || (self.use_ecr_credentials_for_mirrors && mirrored())
    }
}

#[cfg(test)]
mod tests {
    use super::Containerd;

    /// Older NodeConfigs contained all of `spec.containerd`.
    #[test]
    fn the_settings_of_an_older_node_config_are_read() {
        let older = r#"{"installCriCtl": true, "logLevel": "info", "runc": {"version": "1.3.4"}, "skipInstall": false,
                        "useECRCredentialsForMirrors": true, "version": "2.2.1"}"#;
        let read: Containerd = serde_json::from_str(older).unwrap();
        let expected = Containerd {
            version: Some("2.2.1".into()),
            log_level: Some("info".into()),
            use_ecr_credentials_for_mirrors: true,
            ..Containerd::default()
        };
        assert_eq!(read, expected);
    }
}

/// Settings of the Node Resource Interface: programs that see and change containers as they are made.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Nri {
    /// True if containerd takes plugins.
    pub enabled: bool,
    /// How long a plugin may take to register, as Go writes durations.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub registration_timeout: Option<String>,
    /// How long a plugin may take to answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_timeout: Option<String>,
}
