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

    /// Adds and removes instances as pods need them.
    pub struct ClusterAutoscalerConfig {
        /// Whether it is wanted.
        pub enabled: Option<bool>,
        /// Which group grows: `least-waste`, `most-pods`, `priority`, `random`.
        pub expander: Option<String>,
        /// True: groups with the same machines and labels grow evenly.
        pub balance_similar_node_groups: Option<bool>,
        /// True: metrics of each group.
        pub emit_per_nodegroup_metrics: Option<bool>,
        /// True: it knows the instance types of its release, and does not ask EC2.
        #[serde(rename = "awsUseStaticInstanceList")]
        pub aws_use_static_instance_list: Option<bool>,
        /// True: pods of DaemonSets do not count as usage.
        pub ignore_daemon_sets_utilization: Option<bool>,
        /// Share of a node below which it is hardly used.
        pub scale_down_utilization_threshold: Option<String>,
        /// True: nodes stay that have pods of controllers of the user's own.
        pub skip_nodes_with_custom_controller_pods: Option<bool>,
        /// True: nodes stay that have pods of `kube-system`.
        pub skip_nodes_with_system_pods: Option<bool>,
        /// True: nodes stay that have pods with local storage.
        pub skip_nodes_with_local_storage: Option<bool>,
        /// Age of a pod at which it counts.
        pub new_pod_scale_up_delay: Option<String>,
        /// How long nothing is removed after something was added.
        pub scale_down_delay_after_add: Option<String>,
        /// How long a node is hardly used before it is removed.
        pub scale_down_unneeded_time: Option<String>,
        /// The same of a node that is not ready.
        pub scale_down_unready_time: Option<String>,
        /// False: nodes are not cordoned before they are removed.
        pub cordon_node_before_terminating: Option<bool>,
        pub image: Option<String>,
        /// Memory a pod asks for.
        pub memory_request: Option<Quantity>,
        /// CPU a pod asks for.
        pub cpu_request: Option<Quantity>,
        /// How long an instance may take to become a node.
        pub max_node_provision_time: Option<String>,
        /// Annotations of its pods.
        pub pod_annotations: BTreeMap<String, String>,
        /// False: the user makes the ConfigMap with the priorities.
        pub create_priority_expander_config: Option<bool>,
        /// Expressions for names of Auto Scaling groups by priority; instead of those of instance groups.
        pub custom_priority_expander_config: BTreeMap<String, Vec<String>>,
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

    /// Makes load balancers for Ingresses and Services.
    pub struct LoadBalancerControllerSpec {
        /// Whether it is wanted.
        pub enabled: Option<bool>,
        /// Tag of its image.
        pub version: Option<String>,
        /// True: web ACLs of AWS WAF Classic.
        #[serde(rename = "enableWAF")]
        pub enable_waf: Option<bool>,
        /// True: web ACLs of AWS WAF.
        #[serde(rename = "enableWAFv2")]
        pub enable_waf_v2: Option<bool>,
        /// True: AWS Shield Advanced.
        pub enable_shield: Option<bool>,
        /// CPU a pod asks for.
        pub cpu_request: Option<Quantity>,
        /// CPU a pod may use at most.
        pub cpu_limit: Option<Quantity>,
        /// Memory a pod asks for.
        pub memory_request: Option<Quantity>,
        /// Memory a pod may use at most.
        pub memory_limit: Option<Quantity>,
    }

    /// Gives pods the AWS role of their service account.
    pub struct PodIdentityWebhookSpec {
        /// Whether it is wanted.
        pub enabled: Option<bool>,
        /// Number of its pods.
        pub replicas: Option<i32>,
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
