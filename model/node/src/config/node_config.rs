//! NodeConfig: everything that makes a machine a node of its group. It is stored under its own sha256, which user
//! data names: a machine gets another one only by being replaced. It holds no secret of the cluster's.

use super::{Agents, Containerd, Error, File, Unit};
use crate::components::{Component, Flags};
use crate::config::{Asset, Networking, Role};
use crate::manifests::Pod;
use crate::yaml::{MAX_BYTES, read_as, to_yaml};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;

/// The format that this release writes; a reader takes this one and the one before.
pub const NODE_FORMAT: u32 = 1;

/// What the machines of one group get.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NodeConfig {
    /// [`NODE_FORMAT`].
    pub format: u32,
    /// The cluster's name.
    pub cluster: String,
    /// The instance group's name.
    pub group: String,
    /// The group's role.
    pub role: Role,
    /// The role of the group's machines, where it has an instance profile of the user's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iam_role: Option<String>,
    /// Without `v`.
    pub kubernetes_version: String,
    /// Downloads for the group's architecture, sorted by name.
    pub assets: Vec<Asset>,
    /// Our own binaries.
    pub agents: Agents,
    /// Where components find the API: `https://127.0.0.1`, `https://api.internal.NAME`.
    pub api_server: String,
    /// Certificates of `kubernetes-ca`, PEM.
    pub ca_certificates: String,
    /// kubelet.
    pub kubelet: Kubelet,
    /// kube-proxy, unless something else does its work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kube_proxy: Option<Component>,
    /// containerd.
    pub containerd: Containerd,
    /// The CNI.
    pub networking: Networking,
    /// Control planes: what else they run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control_plane: Option<ControlPlane>,
    /// Files that are the same on every machine of the group, sorted by path.
    pub files: Vec<File>,
    /// Units that are the same on every machine of the group, sorted by name.
    pub units: Vec<Unit>,
    /// Kernel parameters, each `name=value`; later ones win.
    pub sysctls: Vec<String>,
    /// Packages of the distribution that the user wants.
    pub packages: Vec<String>,
    /// File systems on further volumes.
    pub volume_mounts: Vec<VolumeMount>,
    /// The machine's time is kept by chrony.
    pub ntp: bool,
    /// The distribution installs its security updates by itself.
    pub automatic_updates: bool,
    /// The state store has passwords of image registries for kubelet.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub docker_config: bool,
}

/// How kubelet runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Kubelet {
    /// Flags, without those of the machine.
    pub flags: Flags,
    /// KubeletConfiguration, without what depends on the machine.
    pub config: Value,
}

/// What control planes run besides.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ControlPlane {
    /// Static pods by name. protokube starts them in the order in which they can.
    pub static_pods: BTreeMap<String, Pod>,
    /// The etcd clusters.
    pub etcd: Vec<EtcdCluster>,
    /// Names and addresses in the API server's certificate, besides those of load balancers.
    pub api_names: Vec<String>,
}

/// An etcd cluster as its members run it. Volumes and backups are left out: a change of those must not replace instances.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EtcdCluster {
    /// `main` or `events`.
    pub name: String,
    /// Without `v`.
    pub version: String,
    /// Image.
    pub image: String,
    /// All its members.
    pub members: Vec<EtcdMember>,
    /// CPU request of a member.
    pub cpu_request: String,
    /// Memory request of a member.
    pub memory_request: String,
    /// Settings that tune its members, as variables of their environment.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub environment: BTreeMap<String, String>,
}

/// A member of an etcd cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EtcdMember {
    /// `a`.
    pub name: String,
    /// The instance group whose instances run it.
    pub group: String,
}

/// A file system on a further volume.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct VolumeMount {
    /// Device name of the volume.
    pub device: String,
    /// `ext4`, `xfs` or another that mkfs knows.
    pub filesystem: String,
    /// Options of mkfs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub format_options: Vec<String>,
    /// Options of mount.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mount_options: Vec<String>,
    /// Where it is mounted.
    pub path: String,
}

impl NodeConfig {
    /// Its YAML: keys sorted, so that equal configurations are equal text.
    pub fn to_yaml(&self) -> Result<String, Error> {
        Ok(to_yaml(self)?)
    }
}

/// A NodeConfig as it is stored: its text and its own sha256.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredNodeConfig {
    /// The YAML.
    pub text: String,
    /// sha256 of the text, hex.
    pub sha256: String,
    /// Keys of the two objects with this text, relative to the cluster's base: the one by its hash, which machines
    /// read, and kOps' plain one, which people read.
    pub keys: [String; 2],
}

/// A configuration ready to be stored.
pub fn stored(config: &NodeConfig) -> Result<StoredNodeConfig, Error> {
    let text = config.to_yaml()?;
    let sha256 = sha256(&text);
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
    format!("{}/nodeupconfig-{sha256}.yaml", folder(role, group))
}

/// Key of a group's NodeConfig as the last update wrote it.
pub fn newest_node_config_key(role: Role, group: &str) -> String {
    format!("{}/nodeupconfig.yaml", folder(role, group))
}

/// Reads a group's NodeConfig as the last update wrote it; no hash is known of that.
pub fn read_newest_node_config(text: &str) -> Result<NodeConfig, Error> {
    read_formatted(text, "NodeConfig", NODE_FORMAT)
}

fn folder(role: Role, group: &str) -> String {
    let role = match role {
        Role::ControlPlane => "control-plane",
        Role::Node => "node",
        Role::Bastion => "bastion",
    };
    format!("igconfig/{role}/{group}")
}

/// Reads a NodeConfig whose sha256 user data named: refuses text with another hash, and formats this release does
/// not know.
pub fn read_node_config(text: &str, expected: &str) -> Result<NodeConfig, Error> {
    let found = sha256(text);
    if found != expected {
        return Err(Error::WrongHash {
            expected: expected.to_owned(),
            found,
        });
    }
    read_formatted(text, "NodeConfig", NODE_FORMAT)
}

/// The Kubernetes version in a NodeConfig of any format; `None`: it says none.
pub fn kubernetes_version_of(text: &str) -> Option<String> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Versioned {
        kubernetes_version: String,
    }
    let read: Result<Versioned, _> = read_as(text);
    read.ok().map(|read| read.kubernetes_version)
}

/// The version of each etcd cluster in a control plane's NodeConfig of any format; those of which it says none are left out.
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

/// Reads YAML with a `format`, looking at that first: another format would fail with a misleading message.
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

/// sha256 of a text, hex.
pub fn sha256(text: &str) -> String {
    format!("{:x}", Sha256::digest(text))
}
