//! NodeConfig: everything that makes an instance a node of its group. It is stored under its own sha256, which user data names, so
//! an instance gets another NodeConfig only by being replaced. It contains no secret of the cluster.

use super::{Agents, Containerd, Error, File, KeysetIds, Termination, UnitFile};
use crate::components::{Component, Flags};
use crate::config::{Asset, ImageArchive, Networking, Role};
use crate::digest::sha256_hex;
use crate::manifests::Pod;
use crate::yaml::{MAX_BYTES, read_as, to_yaml};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// Format that this release writes. Readers accept this one and the one before.
pub const NODE_FORMAT: u32 = 1;

/// The configuration of all instances of one group.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NodeConfig {
    /// [`NODE_FORMAT`].
    pub format: u32,
    /// Name of the cluster.
    pub cluster: String,
    /// Name of the instance group.
    pub group: String,
    /// Role of the instance group.
    pub role: Role,
    /// IAM role of the group's instances, if the spec gives them an existing instance profile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iam_role: Option<String>,
    /// Kubernetes version of the node without `v`.
    pub kubernetes_version: String,
    /// Downloads for the group's architecture, sorted by name.
    pub assets: Vec<Asset>,
    /// Images that are imported before kubelet starts, so that nothing pulls them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<ImageArchive>,
    /// The binaries of nodeup and protokube.
    pub agents: Agents,
    /// URL of the API for components: `https://127.0.0.1`, `https://api.internal.NAME`.
    pub api_server: String,
    /// The proxy of the API on loopback; `None`: the instance has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_proxy: Option<ApiProxy>,
    /// Certificates of `kubernetes-ca`, PEM.
    pub ca_certificates: String,
    /// Keys of the keysets that were rotated, by name: a new stage of a rotation is a new NodeConfig.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub keysets: BTreeMap<String, KeysetIds>,
    pub kubelet: Kubelet,
    /// kube-proxy; `None` if another component replaces it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kube_proxy: Option<Component>,
    pub containerd: Containerd,
    pub networking: Networking,
    /// True if Nodes, pods and Services have IPv6 addresses.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ipv6: bool,
    /// Settings of control planes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control_plane: Option<ControlPlane>,
    /// Files that are the same on every instance of the group, sorted by path.
    pub files: Vec<File>,
    /// Units that are the same on every instance of the group, sorted by name.
    pub units: Vec<UnitFile>,
    /// Kernel parameters, each `name=value`; later ones win.
    pub sysctls: Vec<String>,
    /// Packages of the distribution from the spec.
    pub packages: Vec<String>,
    /// File systems on additional volumes.
    pub volume_mounts: Vec<VolumeMount>,
    /// True if chrony synchronises the clock.
    pub ntp: bool,
    /// True if the distribution installs security updates automatically.
    pub automatic_updates: bool,
    /// True if the state store has passwords of image registries for kubelet.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub docker_config: bool,
    /// The group has a warm pool: an instance may have to prepare for it before it joins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warm_pool: Option<WarmPool>,
}

/// The proxy of the API on an instance, at [`crate::ports::API_PROXY`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ApiProxy {
    /// Name of the API servers, which their certificate has: `api.internal.NAME`. The proxy connects to its addresses while it knows no
    /// API server that is ready. On control planes 127.0.0.1: the proxy uses no other API server than that of the instance.
    pub server: String,
}

/// What the instances of a group with a warm pool do besides.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WarmPool {
    /// How many seconds Auto Scaling waits at a lifecycle hook until an instance says that it is ready; `None`: there is no hook.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hook_seconds: Option<u64>,
    /// Images that an instance pulls while it prepares, sorted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Kubelet {
    /// Flags, except those that depend on the instance.
    pub flags: Flags,
    /// KubeletConfiguration, without fields that depend on the instance.
    pub config: Value,
}

/// Settings that only control planes have.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ControlPlane {
    /// Static pods by name. protokube starts each as soon as its dependencies are healthy.
    pub static_pods: BTreeMap<String, Pod>,
    /// The etcd clusters `main` and `events`.
    pub etcd: Vec<EtcdCluster>,
    /// Names and addresses in the API server's certificate.
    pub api_names: Vec<String>,
    /// How instances that AWS is about to end are handled; `None`: not at all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub termination: Option<Termination>,
    /// The API server asks the AWS IAM authenticator of the instance who sent a token.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub aws_iam_authenticator: bool,
}

impl NodeConfig {
    /// True if an AWS IAM authenticator runs beside the instance's API server.
    pub fn has_authenticator(&self) -> bool {
        let control_plane = self.control_plane.as_ref();
        control_plane.is_some_and(|of| of.aws_iam_authenticator)
    }
}

/// An etcd cluster as its members run it. Settings of volumes and backups are not included, because a change of those must not
/// replace instances.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EtcdCluster {
    /// `main` or `events`.
    pub name: String,
    /// etcd version without `v`.
    pub version: String,
    pub image: String,
    /// All members, of all instance groups.
    pub members: Vec<EtcdMember>,
    /// CPU request of a member.
    pub cpu_request: String,
    /// Memory request of a member.
    pub memory_request: String,
    /// Settings of the members, as environment variables.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub environment: BTreeMap<String, String>,
}

/// A member of an etcd cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EtcdMember {
    /// Short name: `a`.
    pub name: String,
    /// The instance group whose instances run it.
    pub group: String,
}

/// A file system on an additional volume.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct VolumeMount {
    /// Device name under which the volume is attached.
    pub device: String,
    /// File system type: `ext4`, `xfs` or another that mkfs supports.
    pub filesystem: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub format_options: Vec<String>,
    /// Options for mount(8).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mount_options: Vec<String>,
    pub path: String,
}

impl NodeConfig {
    /// Writes YAML with sorted keys, so that equal configurations have equal texts.
    pub fn to_yaml(&self) -> Result<String, Error> {
        Ok(to_yaml(self)?)
    }
}

/// A NodeConfig as it is stored: its text and the text's sha256.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredNodeConfig {
    /// The YAML text.
    pub text: String,
    /// sha256 of the text, hex.
    pub sha256: String,
    /// Keys of the two objects with this text, relative to the cluster's base: the one by hash, which instances read, and the one
    /// of the last update, which kOps has too.
    pub keys: [String; 2],
}

/// Prepares a NodeConfig for the state store.
pub fn to_stored(config: &NodeConfig) -> Result<StoredNodeConfig, Error> {
    let text = config.to_yaml()?;
    let sha256 = sha256_hex(&text);
    let by_hash = node_config_key(config.role, &config.group, &sha256);
    let plain = newest_node_config_key(config.role, &config.group);
    Ok(StoredNodeConfig {
        keys: [by_hash, plain],
        sha256,
        text,
    })
}

/// Key of a NodeConfig by its sha256, relative to the cluster's base in the state store.
pub fn node_config_key(role: Role, group: &str, sha256: &str) -> String {
    format!("{}/nodeupconfig-{sha256}.yaml", group_folder(role, group))
}

/// Key of the NodeConfig that the last update wrote for a group.
pub fn newest_node_config_key(role: Role, group: &str) -> String {
    format!("{}/nodeupconfig.yaml", group_folder(role, group))
}

/// Parses the NodeConfig that the last update wrote for a group. Its hash is not checked.
pub fn read_newest_node_config(text: &str) -> Result<NodeConfig, Error> {
    read_formatted(text, "NodeConfig", NODE_FORMAT)
}

fn group_folder(role: Role, group: &str) -> String {
    let role = match role {
        Role::ControlPlane => "control-plane",
        Role::Node => "node",
        Role::Bastion => "bastion",
    };
    format!("igconfig/{role}/{group}")
}

/// Parses a NodeConfig. Fails if the text does not have the sha256 that user data names, and for formats that this release does
/// not know.
pub fn read_node_config(text: &str, expected: &str) -> Result<NodeConfig, Error> {
    let found = sha256_hex(text);
    if found != expected {
        return Err(Error::WrongHash {
            expected: expected.to_owned(),
            found,
        });
    }
    read_formatted(text, "NodeConfig", NODE_FORMAT)
}

/// The Kubernetes version in a NodeConfig of any format; `None` if it has none.
pub fn kubernetes_version_of(text: &str) -> Option<String> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Versioned {
        kubernetes_version: String,
    }
    let read: Result<Versioned, _> = read_as(text);
    read.ok().map(|read| read.kubernetes_version)
}

/// The version of each etcd cluster in a control plane's NodeConfig of any format; clusters without a version are left out.
pub fn etcd_versions_of(text: &str) -> BTreeMap<String, String> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Versioned {
        control_plane: Clusters,
    }
    #[derive(Deserialize)]
    struct Clusters {
        etcd: Vec<Etcd>,
    }
    #[derive(Deserialize)]
    struct Etcd {
        name: String,
        version: Option<String>,
    }
    let read: Result<Versioned, _> = read_as(text);
    let clusters = read.map_or_else(|_| Vec::new(), |read| read.control_plane.etcd);
    let bare = |version: String| version.trim_start_matches('v').to_owned();
    let versions = clusters
        .into_iter()
        .filter_map(|etcd| Some((etcd.name, bare(etcd.version?))));
    versions.collect()
}

/// Parses YAML with a field `format`, which is checked first: an unknown format would fail with a misleading error otherwise.
pub(super) fn read_formatted<T: serde::de::DeserializeOwned>(
    text: &str,
    what: &'static str,
    format: u32,
) -> Result<T, Error> {
    #[derive(Deserialize)]
    struct Formatted {
        format: u32,
    }
    let unreadable = |source: serde_saphyr::Error| Error::Unreadable {
        what,
        source: source.into(),
    };
    if text.len() > MAX_BYTES {
        return Err(Error::TooLong {
            what,
            bytes: text.len(),
        });
    }
    let found: Formatted = read_as(text).map_err(unreadable)?;
    if found.format > format || found.format + 1 < format {
        return Err(Error::Format {
            what,
            found: found.format,
            known: format,
        });
    }
    read_as(text).map_err(unreadable)
}
