//! Addons of the cluster that have a section of their own.

use std::collections::BTreeMap;

use super::fields::spec;
use super::scalars::Quantity;

spec! {
    /// Drains instances that AWS is about to stop.
    pub struct NodeTerminationHandlerSpec {
        /// True: forgets events of unknown instances.
        #[serde(rename = "deleteSQSMsgIfNodeNotFound")]
        pub delete_sqs_msg_if_node_not_found: Option<bool>,
        /// Whether it is wanted; default true.
        pub enabled: Option<bool>,
        /// Drains at spot interruptions.
        pub enable_spot_interruption_draining: Option<bool>,
        /// Drains at scheduled events.
        pub enable_scheduled_event_draining: Option<bool>,
        /// Cordons at rebalance recommendations.
        pub enable_rebalance_monitoring: Option<bool>,
        /// Drains at rebalance recommendations.
        pub enable_rebalance_draining: Option<bool>,
        /// Taints instances that are gone.
        pub enable_out_of_service_taint: Option<bool>,
        pub prometheus_enable: Option<bool>,
        /// Listens to a queue; default true.
        #[serde(rename = "enableSQSTerminationDraining")]
        pub enable_sqs_termination_draining: Option<bool>,
        /// Labels Nodes so that load balancers leave them.
        pub exclude_from_load_balancers: Option<bool>,
        /// Tag of the groups it cares for.
        #[serde(rename = "managedASGTag")]
        pub managed_asg_tag: Option<String>,
        /// Seconds pods have; -1: their own.
        pub pod_termination_grace_period: Option<i32>,
        /// Taints instances at interruptions.
        pub taint_node: Option<bool>,
        /// Memory a pod may use at most.
        pub memory_limit: Option<Quantity>,
        /// Memory a pod asks for.
        pub memory_request: Option<Quantity>,
        /// CPU a pod asks for.
        pub cpu_request: Option<Quantity>,
        pub version: Option<String>,
        /// Body posted at events.
        pub webhook_template: Option<String>,
        /// Where events are posted.
        #[serde(rename = "webhookURL")]
        pub webhook_url: Option<String>,
    }

    /// Reads from kubelets what nodes and pods use.
    pub struct MetricsServerConfig {
        /// Whether it is wanted.
        pub enabled: Option<bool>,
        pub image: Option<String>,
        /// True: API servers do not verify its certificate. False: cert-manager issues one.
        pub insecure: Option<bool>,
    }

    /// Issues certificates that are objects of Kubernetes.
    pub struct CertManagerConfig {
        /// Whether it is wanted.
        pub enabled: Option<bool>,
        /// False: the user installs it.
        pub managed: Option<bool>,
        /// Image of its controller.
        pub image: Option<String>,
        /// The ClusterIssuer of Ingresses that name no issuer.
        pub default_issuer: Option<String>,
        /// Name servers of its controller.
        pub nameservers: Vec<String>,
        /// Hosted zones in which it may answer challenges.
        #[serde(rename = "hostedZoneIDs")]
        pub hosted_zone_ids: Vec<String>,
        pub feature_gates: BTreeMap<String, bool>,
    }

    /// Reports what is wrong with a node.
    pub struct NodeProblemDetectorConfig {
        /// Whether it is wanted.
        pub enabled: Option<bool>,
        pub image: Option<String>,
        /// Memory a pod asks for.
        pub memory_request: Option<Quantity>,
        /// CPU a pod asks for.
        pub cpu_request: Option<Quantity>,
        /// Memory a pod may use at most.
        pub memory_limit: Option<Quantity>,
        /// CPU a pod may use at most.
        pub cpu_limit: Option<Quantity>,
    }

    /// Makes snapshots of volumes for objects of Kubernetes.
    pub struct SnapshotControllerConfig {
        /// Whether it is wanted.
        pub enabled: Option<bool>,
        /// True: there is a default VolumeSnapshotClass.
        pub install_default_class: Option<bool>,
    }
}
