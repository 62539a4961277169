//! What a user changes in the pods of addons (`spec.addonValues`), and parts of pods that several fields have, as in Kubernetes.

use std::collections::BTreeMap;

use serde_json::Value;

use super::fields::spec;
use super::scalars::Quantity;

spec! {
    /// Changes of one workload of an addon. kctl's own field.
    pub struct AddonValues {
        /// Name of the addon, as `kctl get addons` shows it.
        pub addon: String,
        /// Name of its Deployment or DaemonSet; needed if it has several.
        pub workload: Option<String>,
        /// Name of the container that `resources` and `args` are for; default the first.
        pub container: Option<String>,
        /// Number of pods of a Deployment.
        pub replicas: Option<i32>,
        /// What a container asks for and may use at most; values that are not named stay.
        pub resources: Option<ContainerResources>,
        /// Labels of the nodes that the pods may run on, instead of those of the manifest.
        pub node_selector: BTreeMap<String, String>,
        /// Taints that the pods tolerate beside those of the manifest.
        pub tolerations: Vec<Toleration>,
        /// Affinity of the pods, as in Kubernetes, instead of that of the manifest.
        pub affinity: Option<Value>,
        /// Priority class of the pods.
        pub priority_class_name: Option<String>,
        /// Arguments after those of the manifest. Of most programs the last one of a name counts.
        pub args: Vec<String>,
    }

    /// Quantities by resource: `cpu`, `memory`.
    pub struct ContainerResources {
        pub requests: BTreeMap<String, Quantity>,
        pub limits: BTreeMap<String, Quantity>,
    }

    /// A toleration of pods, as in Kubernetes.
    pub struct Toleration {
        /// Key of the taint; without it all taints, with `operator: Exists`.
        pub key: Option<String>,
        /// `Equal`, the default, or `Exists`.
        pub operator: Option<String>,
        pub value: Option<String>,
        /// Without it, all effects.
        pub effect: Option<String>,
        /// With `NoExecute`: so long the pod stays.
        pub toleration_seconds: Option<i64>,
    }
}
