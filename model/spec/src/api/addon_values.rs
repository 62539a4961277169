//! What a user changes in the pods of addons (`spec.addonValues`), and parts of pods that several fields have, as in Kubernetes.

use std::collections::BTreeMap;

use serde_json::Value;

use super::fields::spec;
use super::scalars::Quantity;

spec! {
    /// Changes of the pods of one workload of an addon. kctl's own field.
    pub struct AddonValues {
        /// Name of the addon, as `kctl get addons` shows it.
        pub addon: String,
        /// Name of the addon's Deployment or DaemonSet. Needed if the addon has several.
        pub workload: Option<String>,
        /// Name of the container that `resources` and `args` are for. Default the first one.
        pub container: Option<String>,
        /// Number of pods, for a Deployment. Default that of the addon's manifest.
        pub replicas: Option<i32>,
        /// What the container asks for and may use at most. Quantities that are not named stay as in the manifest.
        pub resources: Option<ContainerResources>,
        /// Labels of the nodes that the pods may run on. They take the place of those in the manifest.
        pub node_selector: BTreeMap<String, String>,
        /// Taints that the pods tolerate beside those in the manifest.
        pub tolerations: Vec<Toleration>,
        /// Affinity of the pods, in the form of Kubernetes. It takes the place of that in the manifest.
        pub affinity: Option<Value>,
        /// Priority class of the pods. Default that of the manifest.
        pub priority_class_name: Option<String>,
        /// Arguments of the container, added after those of the manifest. For most programs the last argument of a name counts.
        pub args: Vec<String>,
    }

    /// Resources of a container: quantities by name, such as `cpu` and `memory`.
    pub struct ContainerResources {
        /// What the scheduler reserves for the container.
        pub requests: BTreeMap<String, Quantity>,
        /// What the container may use at most.
        pub limits: BTreeMap<String, Quantity>,
    }

    /// A toleration of pods, as in Kubernetes.
    pub struct Toleration {
        /// Key of the taint. Without a key, and with `operator: Exists`, all taints are tolerated.
        pub key: Option<String>,
        /// How the taint is compared: `Equal` with key and value, or `Exists` with the key alone. Default `Equal`.
        pub operator: Option<String>,
        /// Value of the taint, for the operator `Equal`.
        pub value: Option<String>,
        /// Effect of the taint: `NoSchedule`, `PreferNoSchedule` or `NoExecute`. Default all effects.
        pub effect: Option<String>,
        /// Seconds that a running pod stays after a taint with the effect `NoExecute` appears. Default for ever.
        pub toleration_seconds: Option<i64>,
    }
}
