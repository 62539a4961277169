//! The fields of Kubernetes' Pod that static pods use. Unknown fields are refused when a manifest is read back, so that no field
//! is lost.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Pod {
    /// Always `v1`.
    pub api_version: String,
    /// Always `Pod`.
    pub kind: String,
    /// Name, labels and annotations.
    pub metadata: Metadata,
    /// Specification of the pod.
    pub spec: PodSpec,
}

/// Metadata of a Pod.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Metadata {
    /// Annotations, which publish DNS names among others.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
    /// Labels of the Pod.
    pub labels: BTreeMap<String, String>,
    /// Name; kubelet appends the name of the Node.
    pub name: String,
    /// Namespace: `kube-system`.
    pub namespace: String,
}

/// Specification of a Pod.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PodSpec {
    /// Containers of the Pod.
    pub containers: Vec<Container>,
    /// True if the Pod uses the host's network.
    pub host_network: bool,
    /// Priority class: `system-cluster-critical` or `system-node-critical`.
    pub priority_class_name: String,
    /// Tolerations of the Pod.
    pub tolerations: Vec<Toleration>,
    /// Volumes of the Pod.
    pub volumes: Vec<Volume>,
}

/// A container of a Pod.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Container {
    /// Arguments of the command.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// Command with fixed arguments.
    pub command: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<EnvVar>,
    pub image: String,
    /// Probe whose failure restarts the container.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub liveness_probe: Option<Probe>,
    /// Name of the container.
    pub name: String,
    /// Ports; for information only, because the container uses the host's network.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<Port>,
    /// Probe that determines readiness.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub readiness_probe: Option<Probe>,
    /// Resource requests and limits.
    pub resources: Resources,
    /// Privileges of the container.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub security_context: Option<SecurityContext>,
    /// Probe that must succeed before the liveness probe begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub startup_probe: Option<Probe>,
    pub volume_mounts: Vec<VolumeMount>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EnvVar {
    /// Name of the variable.
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// Source of the value, as in the spec.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value_from: Option<serde_json::Value>,
}

/// An HTTP probe. Times are in seconds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Probe {
    /// Consecutive failures after which the probe fails.
    pub failure_threshold: i32,
    pub http_get: HttpGet,
    /// Delay before the first request.
    pub initial_delay_seconds: i32,
    pub period_seconds: i32,
    /// Timeout of a request.
    pub timeout_seconds: i32,
}

/// The request of a probe.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct HttpGet {
    /// Address to connect to.
    pub host: String,
    pub path: String,
    /// Port to connect to.
    pub port: u16,
    /// `HTTP` or `HTTPS`; kubelet does not verify certificates.
    pub scheme: String,
}

/// A port of a container.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Port {
    /// Port on the host's network.
    pub container_port: u16,
    /// The same number; the scheduler uses it.
    pub host_port: u16,
    /// Name of the port.
    pub name: String,
}

/// Resource quantities by name: `cpu`, `memory`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Resources {
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub limits: BTreeMap<String, String>,
    pub requests: BTreeMap<String, String>,
}

/// Privileges of a container.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SecurityContext {
    /// True for all privileges of the host.
    pub privileged: bool,
}

/// A toleration of a taint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Toleration {
    /// Key of the taint.
    pub key: String,
    /// Operator: `Exists`.
    pub operator: String,
}

/// A volume with a path of the host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Volume {
    /// Path on the host.
    pub host_path: HostPath,
    /// Name of the volume.
    pub name: String,
}

/// A path of the host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct HostPath {
    /// Absolute path.
    pub path: String,
    /// `Directory` and `File` must exist; `DirectoryOrCreate` and `FileOrCreate` are created if missing; `None` is not checked.
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
}

/// A mount of a volume in a container.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct VolumeMount {
    /// Path in the container.
    pub mount_path: String,
    /// Name of the volume.
    pub name: String,
    /// True for a read-only mount.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub read_only: bool,
}
