//! Addons of the cluster that have a section of their own.

use std::collections::BTreeMap;

use super::fields::spec;
use super::scalars::Quantity;

spec! {
    /// Drains Nodes before AWS ends their instances. protokube does this; there are no pods of the node termination handler.
    pub struct NodeTerminationHandlerSpec {
        /// True: messages about instances that are not in the cluster are deleted from the queue. kctl always deletes them, so
        /// the field has no effect.
        #[serde(rename = "deleteSQSMsgIfNodeNotFound")]
        pub delete_sqs_msg_if_node_not_found: Option<bool>,
        /// Whether Nodes are drained before AWS ends their instances. Default true.
        pub enabled: Option<bool>,
        /// Drains a Node when AWS announces that it interrupts the spot instance. Default true.
        pub enable_spot_interruption_draining: Option<bool>,
        /// Drains a Node before scheduled maintenance of its instance. Default true.
        pub enable_scheduled_event_draining: Option<bool>,
        /// Cordons a Node when AWS recommends to replace its spot instance. Default false.
        pub enable_rebalance_monitoring: Option<bool>,
        /// Drains a Node when AWS recommends to replace its spot instance. Default false.
        pub enable_rebalance_draining: Option<bool>,
        /// Taints Nodes whose instance is gone, so that their volumes are detached at once.
        pub enable_out_of_service_taint: Option<bool>,
        /// Serves metrics of the node termination handler.
        pub prometheus_enable: Option<bool>,
        /// Learns from an SQS queue which instances end. Default true.
        #[serde(rename = "enableSQSTerminationDraining")]
        pub enable_sqs_termination_draining: Option<bool>,
        /// Labels Nodes that are drained, so that load balancers of Services leave them. Default true.
        pub exclude_from_load_balancers: Option<bool>,
        /// Tag of the Auto Scaling groups whose instances are drained. Default `aws-node-termination-handler/managed`.
        #[serde(rename = "managedASGTag")]
        pub managed_asg_tag: Option<String>,
        /// Seconds that each pod has to end. Default -1: the pod's own grace period.
        pub pod_termination_grace_period: Option<i32>,
        /// Taints a Node when its instance is about to end, beside the cordon. Default false.
        pub taint_node: Option<bool>,
        /// Memory that a pod of the handler may use at most. There are no such pods: no effect.
        pub memory_limit: Option<Quantity>,
        /// Memory that a pod of the handler asks for. There are no such pods: no effect.
        pub memory_request: Option<Quantity>,
        /// CPU that a pod of the handler asks for. There are no such pods: no effect.
        pub cpu_request: Option<Quantity>,
        /// Version of the handler. There are no pods of it: no effect.
        pub version: Option<String>,
        /// Body that is posted to `webhookURL` at each event.
        pub webhook_template: Option<String>,
        /// URL to which events are posted.
        #[serde(rename = "webhookURL")]
        pub webhook_url: Option<String>,
    }

    /// metrics-server, which reads from kubelets what nodes and pods use. `kubectl top` and HorizontalPodAutoscalers need it.
    pub struct MetricsServerConfig {
        /// Installs metrics-server. Default false.
        pub enabled: Option<bool>,
        /// Image of metrics-server. Default that of the release.
        pub image: Option<String>,
        /// True: API servers do not verify the certificate of metrics-server. False: cert-manager issues it. Without
        /// `spec.certManager.enabled` it must be true.
        pub insecure: Option<bool>,
    }

    /// The cluster autoscaler, which adds and removes instances of groups of nodes as pods need them.
    pub struct ClusterAutoscalerConfig {
        /// Installs the cluster autoscaler. Default false.
        pub enabled: Option<bool>,
        /// How it chooses the group that grows: `least-waste`, `most-pods`, `priority` or `random`. Default `random`.
        pub expander: Option<String>,
        /// Keeps groups with the same machines and labels at the same size. Default false.
        pub balance_similar_node_groups: Option<bool>,
        /// Serves metrics of each group. Default false.
        pub emit_per_nodegroup_metrics: Option<bool>,
        /// Uses the instance types that its release knows, and does not ask EC2 for them. Default false.
        #[serde(rename = "awsUseStaticInstanceList")]
        pub aws_use_static_instance_list: Option<bool>,
        /// Leaves out the pods of DaemonSets when it computes how much of a node is used. Default false.
        pub ignore_daemon_sets_utilization: Option<bool>,
        /// Share of a node's resources, 0 to 1, below which the node can be removed. Default 0.5.
        pub scale_down_utilization_threshold: Option<String>,
        /// Keeps nodes that have pods of controllers which are not part of Kubernetes. Default true.
        pub skip_nodes_with_custom_controller_pods: Option<bool>,
        /// Keeps nodes that have pods of `kube-system`, except mirror pods and those of DaemonSets. Default true.
        pub skip_nodes_with_system_pods: Option<bool>,
        /// Keeps nodes that have pods with local storage. Default true.
        pub skip_nodes_with_local_storage: Option<bool>,
        /// Age that a pod must have before an instance is added for it. Default 0s.
        pub new_pod_scale_up_delay: Option<String>,
        /// How long no node is removed after one was added. Default 10m0s.
        pub scale_down_delay_after_add: Option<String>,
        /// How long a node must be hardly used before it is removed. Default 10m0s.
        pub scale_down_unneeded_time: Option<String>,
        /// How long a node that is not ready must be hardly used before it is removed. Default 20m0s.
        pub scale_down_unready_time: Option<String>,
        /// Cordons a node before it is removed. Default true.
        pub cordon_node_before_terminating: Option<bool>,
        /// Image of the autoscaler. Default the release for the minor version of Kubernetes.
        pub image: Option<String>,
        /// Memory that a pod asks for. Default 300Mi.
        pub memory_request: Option<Quantity>,
        /// CPU that a pod asks for. Default 100m.
        pub cpu_request: Option<Quantity>,
        /// How long an instance may take to become a node before another group is tried. Default 15m0s.
        pub max_node_provision_time: Option<String>,
        /// Annotations of its pods.
        pub pod_annotations: BTreeMap<String, String>,
        /// With the expander `priority`: writes the ConfigMap with the priorities. False leaves it to you. Default true.
        pub create_priority_expander_config: Option<bool>,
        /// With the expander `priority`: regular expressions for names of Auto Scaling groups, by priority. They take the place
        /// of `autoscalePriority` of the instance groups.
        pub custom_priority_expander_config: BTreeMap<String, Vec<String>>,
    }

    /// cert-manager, which issues certificates for objects of Kubernetes.
    pub struct CertManagerConfig {
        /// The cluster has cert-manager; kctl installs it unless `managed` is false. Default false.
        pub enabled: Option<bool>,
        /// False: you install cert-manager yourself. Default true.
        pub managed: Option<bool>,
        /// Image of cert-manager's controller. Default that of the release.
        pub image: Option<String>,
        /// Name of the ClusterIssuer for Ingresses that name no issuer. Default none.
        pub default_issuer: Option<String>,
        /// Addresses of the name servers with which it checks DNS challenges. Default those of the instance.
        pub nameservers: Vec<String>,
        /// IDs of the hosted zones in which it may answer DNS challenges, such as `Z0123456789ABC`. Default none.
        #[serde(rename = "hostedZoneIDs")]
        pub hosted_zone_ids: Vec<String>,
        /// Feature gates of its controller.
        pub feature_gates: BTreeMap<String, bool>,
    }

    /// The AWS load balancer controller, which makes load balancers for Ingresses and Services. It needs cert-manager.
    pub struct LoadBalancerControllerSpec {
        /// Installs the AWS load balancer controller. Default false.
        pub enabled: Option<bool>,
        /// Tag of its image. Default that of the release.
        pub version: Option<String>,
        /// Lets Ingresses name web ACLs of AWS WAF Classic. Default false.
        #[serde(rename = "enableWAF")]
        pub enable_waf: Option<bool>,
        /// Lets Ingresses name web ACLs of AWS WAF. Default false.
        #[serde(rename = "enableWAFv2")]
        pub enable_waf_v2: Option<bool>,
        /// Lets Ingresses turn on AWS Shield Advanced. Default false.
        pub enable_shield: Option<bool>,
        /// CPU that a pod asks for. Default 100m.
        pub cpu_request: Option<Quantity>,
        /// CPU that a pod may use at most. Default 200m.
        pub cpu_limit: Option<Quantity>,
        /// Memory that a pod asks for. Default 200Mi.
        pub memory_request: Option<Quantity>,
        /// Memory that a pod may use at most. Default 500Mi.
        pub memory_limit: Option<Quantity>,
    }

    /// Changes pods so that they get the AWS role of their service account. It needs cert-manager.
    pub struct PodIdentityWebhookSpec {
        /// Installs the pod identity webhook. Default false.
        pub enabled: Option<bool>,
        /// Number of its pods, at least 1. Default 2, or 1 with a single control plane.
        pub replicas: Option<i32>,
    }

    /// The node problem detector, which reports what is wrong with a node as conditions and events.
    pub struct NodeProblemDetectorConfig {
        /// Installs the node problem detector. Default false.
        pub enabled: Option<bool>,
        /// Image of the detector. Default that of the release.
        pub image: Option<String>,
        /// Memory that a pod asks for. Default 100Mi.
        pub memory_request: Option<Quantity>,
        /// CPU that a pod asks for. Default 20m.
        pub cpu_request: Option<Quantity>,
        /// Memory that a pod may use at most. Default 100Mi.
        pub memory_limit: Option<Quantity>,
        /// CPU that a pod may use at most. Default 200m.
        pub cpu_limit: Option<Quantity>,
    }

    /// The snapshot controller, which makes snapshots of volumes for objects of Kubernetes. It needs cert-manager.
    pub struct SnapshotControllerConfig {
        /// Installs the snapshot controller, and lets the EBS CSI driver take snapshots. Default false.
        pub enabled: Option<bool>,
        /// Makes a default VolumeSnapshotClass. Default false.
        pub install_default_class: Option<bool>,
    }
}
