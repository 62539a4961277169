//! Flags of the AWS cloud controller manager: `spec.cloudControllerManager`.

use super::fields::spec;
use super::kube_controller_manager::LeaderElectionConfiguration;
use super::scalars::{Duration, Quantity};

spec! {
    /// The AWS cloud controller manager, which initializes Nodes and makes load balancers of Services. The flag that a field
    /// becomes is in parentheses.
    pub struct CloudControllerManagerConfig {
        /// Address of the API server (`--master`). Default that of the pod's own cluster.
        pub master: Option<String>,
        /// How much it logs (`--v`). Default 2.
        pub log_level: Option<i32>,
        /// Image of it. Default that of the release.
        pub image: Option<String>,
        /// Name of the cloud (`--cloud-provider`); only `aws` is possible.
        pub cloud_provider: Option<String>,
        /// Name of the cluster in tags of AWS objects (`--cluster-name`). Default the name of the cluster.
        pub cluster_name: Option<String>,
        /// Starts also where instances have no tag of a cluster (`--allow-untagged-cloud`). Default false.
        pub allow_untagged_cloud: Option<bool>,
        /// Range of the addresses of pods (`--cluster-cidr`). Default `spec.podCIDR`, on IPv6 none.
        #[serde(rename = "clusterCIDR")]
        pub cluster_cidr: Option<String>,
        /// Gives each Node a range for its pods (`--allocate-node-cidrs`). Default true, on IPv6 false.
        #[serde(rename = "allocateNodeCIDRs")]
        pub allocate_node_cidrs: Option<bool>,
        /// Makes a route in the VPC to the pods of each Node (`--configure-cloud-routes`). Default true with kubenet, else
        /// false.
        pub configure_cloud_routes: Option<bool>,
        /// Controllers that run (`--controllers`): names, `-NAME` for all but one, `*` for the usual ones. Default the usual
        /// ones.
        pub controllers: Vec<String>,
        /// Who gives ranges to Nodes (`--cidr-allocator-type`), such as `RangeAllocator`. Default the program's own.
        pub cidr_allocator_type: Option<String>,
        /// How replicas agree which of them acts.
        pub leader_election: Option<LeaderElectionConfiguration>,
        /// Each controller has a service account of its own (`--use-service-account-credentials`). Default true.
        pub use_service_account_credentials: Option<bool>,
        /// Takes over controllers from kube-controller-manager without both running them (`--enable-leader-migration`). Default
        /// false.
        pub enable_leader_migration: Option<bool>,
        /// CPU that its pod asks for. Default 200m.
        pub cpu_request: Option<Quantity>,
        /// How often it updates the status of Nodes (`--node-status-update-frequency`). Default the program's own.
        pub node_status_update_frequency: Option<Duration>,
        /// How many Nodes it initializes at a time (`--concurrent-node-syncs`). Default the program's own.
        pub concurrent_node_syncs: Option<i32>,
        /// Azure only.
        pub azure_node_manager_image: Option<String>,
    }
}
