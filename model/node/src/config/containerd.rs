//! containerd's settings in NodeConfig.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::ops::Not;

/// How containerd runs. What is `None` is containerd's own choice. Fields that this release does not know are passed over:
/// the NodeConfig of a worker that joins again is as old as the worker.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Containerd {
    /// Its version; `None`: the image brings it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The image brings containerd with its configuration.
    #[serde(skip_serializing_if = "Not::not")]
    pub skip_install: bool,
    /// A whole `config.toml` in the place of kctl's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub config_override: Option<String>,
    /// Entries added to `config.toml`, by dotted path: numbers and text.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub config_additions: BTreeMap<String, Value>,
    /// Mirrors (URLs, tried in order) by registry; `*` for all.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub registry_mirrors: BTreeMap<String, Vec<String>>,
    /// kubelet sends ECR's credentials to the mirrored registries too.
    #[serde(
        rename = "useECRCredentialsForMirrors",
        skip_serializing_if = "Not::not"
    )]
    pub use_ecr_credentials_for_mirrors: bool,
    /// The pause image.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sandbox_image: Option<String>,
    /// SELinux labels containers.
    #[serde(skip_serializing_if = "Not::not")]
    pub selinux_enabled: bool,
    /// `--address`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// `--log-level`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log_level: Option<String>,
    /// `--root`: data that outlives a boot.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub root: Option<String>,
    /// `--state`: data that does not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::Containerd;

    /// As NodeConfigs had it while they held all of `spec.containerd`.
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
