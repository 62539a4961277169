//! The part of Kubernetes' Pod that static pods use. A field that is not here is refused when a manifest is read
//! back, so that nothing is written that this type does not know.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A Pod.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Pod {
    /// `v1`.
    pub api_version: String,
    /// `Pod`.
    pub kind: String,
    /// Name and labels.
    pub metadata: Metadata,
    /// What runs.
    pub spec: PodSpec,
}

/// A Pod's metadata.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Metadata {
    /// Annotations.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
    /// Labels.
    pub labels: BTreeMap<String, String>,
    /// Name; kubelet appends the Node's.
    pub name: String,
    /// `kube-system`.
    pub namespace: String,
}

/// What a Pod runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PodSpec {
    /// Containers.
    pub containers: Vec<Container>,
    /// On the host's network.
    pub host_network: bool,
    /// `system-cluster-critical`, `system-node-critical`.
    pub priority_class_name: String,
    /// Tolerations.
    pub tolerations: Vec<Toleration>,
    /// Volumes.
    pub volumes: Vec<Volume>,
}

/// A container.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Container {
    /// Arguments.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// Command.
    pub command: Vec<String>,
    /// Environment.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<EnvVar>,
    /// Image.
    pub image: String,
    /// When it is restarted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub liveness_probe: Option<Probe>,
    /// Name.
    pub name: String,
    /// Ports, for the reader: the network is the host's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<Port>,
    /// When it is ready.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub readiness_probe: Option<Probe>,
    /// Requests and limits.
    pub resources: Resources,
    /// Privileges.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub security_context: Option<SecurityContext>,
    /// When it has started: before that it is not restarted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub startup_probe: Option<Probe>,
    /// Where volumes are.
    pub volume_mounts: Vec<VolumeMount>,
}

/// An environment variable.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EnvVar {
    /// Name.
    pub name: String,
    /// Value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// Where the value comes from, as the user wrote it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value_from: Option<serde_json::Value>,
}

/// A probe by HTTP. Times in seconds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Probe {
    /// Failures in a row that count.
    pub failure_threshold: i32,
    /// What is asked.
    pub http_get: HttpGet,
    /// Before the first.
    pub initial_delay_seconds: i32,
    /// Between two.
    pub period_seconds: i32,
    /// For one.
    pub timeout_seconds: i32,
}

/// What a probe asks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct HttpGet {
    /// Address.
    pub host: String,
    /// Path.
    pub path: String,
    /// Port.
    pub port: u16,
    /// `HTTP`, `HTTPS` (unverified).
    pub scheme: String,
}

/// A port.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Port {
    /// On the host.
    pub container_port: u16,
    /// The same: the scheduler counts it.
    pub host_port: u16,
    /// Name.
    pub name: String,
}

/// Requests and limits: `cpu`, `memory`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Resources {
    /// At most.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub limits: BTreeMap<String, String>,
    /// At least.
    pub requests: BTreeMap<String, String>,
}

/// Privileges.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SecurityContext {
    /// All of the host's.
    pub privileged: bool,
}

/// A toleration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Toleration {
    /// Taint.
    pub key: String,
    /// `Exists`.
    pub operator: String,
}

/// A volume: a path of the host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Volume {
    /// The path.
    pub host_path: HostPath,
    /// Name.
    pub name: String,
}

/// A path of the host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct HostPath {
    /// The path.
    pub path: String,
    /// `Directory` and `File` must exist; `DirectoryOrCreate`, `FileOrCreate`; `None`: not looked at.
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
}

/// Where a volume is in a container.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct VolumeMount {
    /// Where.
    pub mount_path: String,
    /// The volume's name.
    pub name: String,
    /// Not to be written.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub read_only: bool,
}
