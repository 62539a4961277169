//! Flags of the AWS cloud controller manager: `spec.cloudControllerManager`.

use super::fields::spec;
use super::kube_controller_manager::LeaderElectionConfiguration;
use super::scalars::{Duration, Quantity};

spec! {
    /// The AWS cloud controller manager.
    pub struct CloudControllerManagerConfig {
        /// `--master`.
        pub master: Option<String>,
        /// `--v`.
        pub log_level: Option<i32>,
        /// Image to run instead of the one of the Kubernetes version.
        pub image: Option<String>,
        /// `--cloud-provider`.
        pub cloud_provider: Option<String>,
        /// `--cluster-name`.
        pub cluster_name: Option<String>,
        /// `--allow-untagged-cloud`.
        pub allow_untagged_cloud: Option<bool>,
        /// `--cluster-cidr`.
        #[serde(rename = "clusterCIDR")]
        pub cluster_cidr: Option<String>,
        /// `--allocate-node-cidrs`.
        #[serde(rename = "allocateNodeCIDRs")]
        pub allocate_node_cidrs: Option<bool>,
        /// `--configure-cloud-routes`.
        pub configure_cloud_routes: Option<bool>,
        /// `--controllers`.
        pub controllers: Vec<String>,
        /// `--cidr-allocator-type`.
        pub cidr_allocator_type: Option<String>,
        /// How replicas agree which of them acts.
        pub leader_election: Option<LeaderElectionConfiguration>,
        /// `--use-service-account-credentials`.
        pub use_service_account_credentials: Option<bool>,
        /// `--enable-leader-migration`.
        pub enable_leader_migration: Option<bool>,
        /// CPU the pod asks for.
        pub cpu_request: Option<Quantity>,
        /// `--node-status-update-frequency`.
        pub node_status_update_frequency: Option<Duration>,
        /// `--concurrent-node-syncs`.
        pub concurrent_node_syncs: Option<i32>,
        /// Azure only.
        pub azure_node_manager_image: Option<String>,
    }
}
