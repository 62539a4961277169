//! Fields that change nothing that is rendered, each with the reason.

const ADDON: &str = "settings of an addon: protokube takes them from the completed spec";
const FOLLOWED: &str = "protokube follows it in the completed spec while it runs, so that no machine is replaced for it";
const NAMED: &str = "others refer to it by this name: changing it alone is an error";
const ROLLING: &str = "how machines are replaced, not what they are";
const STORE: &str = "validation takes only the place below configBase";

/// Kind, path (everything below it too), reason.
pub const BY_DESIGN: &[(&str, &str, &str)] = &[
    (
        "Cluster",
        "spec.channel",
        "versions and images come with kctl",
    ),
    ("Cluster", "spec.cloudProvider", "validation takes only aws"),
    ("Cluster", "spec.subnets[].name", NAMED),
    (
        "Cluster",
        "spec.topology.masters",
        "the types of subnets say it",
    ),
    (
        "Cluster",
        "spec.topology.nodes",
        "the types of subnets say it",
    ),
    ("Cluster", "spec.secretStore", STORE),
    ("Cluster", "spec.keyStore", STORE),
    ("Cluster", "spec.configStore", STORE),
    (
        "Cluster",
        "spec.etcdClusters[].etcdMembers[].instanceGroup",
        NAMED,
    ),
    (
        "Cluster",
        "spec.etcdClusters[].backups.backupStore",
        FOLLOWED,
    ),
    (
        "Cluster",
        "spec.etcdClusters[].manager.backupInterval",
        FOLLOWED,
    ),
    (
        "Cluster",
        "spec.etcdClusters[].manager.backupRetentionDays",
        FOLLOWED,
    ),
    (
        "Cluster",
        "spec.etcdClusters[].manager.discoveryPollInterval",
        FOLLOWED,
    ),
    (
        "Cluster",
        "spec.etcdClusters[].manager.logLevel",
        "etcd-manager's own log; there is no etcd-manager",
    ),
    (
        "Cluster",
        "spec.containerd.installCriCtl",
        "crictl is always installed",
    ),
    (
        "InstanceGroup",
        "spec.containerd.installCriCtl",
        "crictl is always installed",
    ),
    ("Cluster", "spec.kubeDNS.cacheMaxSize", ADDON),
    ("Cluster", "spec.kubeDNS.cacheMaxConcurrent", ADDON),
    ("Cluster", "spec.kubeDNS.tolerations", ADDON),
    ("Cluster", "spec.kubeDNS.affinity", ADDON),
    ("Cluster", "spec.kubeDNS.coreDNSImage", ADDON),
    ("Cluster", "spec.kubeDNS.cpaImage", ADDON),
    ("Cluster", "spec.kubeDNS.domain", ADDON),
    ("Cluster", "spec.kubeDNS.externalCoreFile", ADDON),
    ("Cluster", "spec.kubeDNS.image", ADDON),
    ("Cluster", "spec.kubeDNS.replicas", ADDON),
    ("Cluster", "spec.kubeDNS.stubDomains", ADDON),
    ("Cluster", "spec.kubeDNS.upstreamNameservers", ADDON),
    ("Cluster", "spec.kubeDNS.memoryRequest", ADDON),
    ("Cluster", "spec.kubeDNS.cpuRequest", ADDON),
    ("Cluster", "spec.kubeDNS.memoryLimit", ADDON),
    ("Cluster", "spec.kubeDNS.podAnnotations", ADDON),
    ("Cluster", "spec.cloudControllerManager", ADDON),
    (
        "Cluster",
        "spec.cloudConfig.disableSecurityGroupIngress",
        ADDON,
    ),
    ("Cluster", "spec.cloudConfig.elbSecurityGroup", ADDON),
    ("Cluster", "spec.cloudConfig.nlbSecurityGroupMode", ADDON),
    (
        "Cluster",
        "spec.nodeTerminationHandler.deleteSQSMsgIfNodeNotFound",
        ADDON,
    ),
    (
        "Cluster",
        "spec.nodeTerminationHandler.enableSpotInterruptionDraining",
        ADDON,
    ),
    (
        "Cluster",
        "spec.nodeTerminationHandler.enableScheduledEventDraining",
        ADDON,
    ),
    (
        "Cluster",
        "spec.nodeTerminationHandler.enableOutOfServiceTaint",
        ADDON,
    ),
    (
        "Cluster",
        "spec.nodeTerminationHandler.prometheusEnable",
        ADDON,
    ),
    (
        "Cluster",
        "spec.nodeTerminationHandler.excludeFromLoadBalancers",
        ADDON,
    ),
    (
        "Cluster",
        "spec.nodeTerminationHandler.podTerminationGracePeriod",
        ADDON,
    ),
    ("Cluster", "spec.nodeTerminationHandler.taintNode", ADDON),
    ("Cluster", "spec.nodeTerminationHandler.memoryLimit", ADDON),
    (
        "Cluster",
        "spec.nodeTerminationHandler.memoryRequest",
        ADDON,
    ),
    ("Cluster", "spec.nodeTerminationHandler.cpuRequest", ADDON),
    ("Cluster", "spec.nodeTerminationHandler.version", ADDON),
    (
        "Cluster",
        "spec.nodeTerminationHandler.webhookTemplate",
        ADDON,
    ),
    ("Cluster", "spec.nodeTerminationHandler.webhookURL", ADDON),
    (
        "Cluster",
        "spec.kubeAPIServer.disableBasicAuth",
        "no version that kctl installs has basic authentication",
    ),
    (
        "Cluster",
        "spec.kubelet.podInfraContainerImage",
        "containerd.sandboxImage names it: kubelet has no such flag any more",
    ),
    (
        "Cluster",
        "spec.masterKubelet.podInfraContainerImage",
        "as kubelet's",
    ),
    (
        "InstanceGroup",
        "spec.kubelet.podInfraContainerImage",
        "as the cluster's",
    ),
    (
        "Cluster",
        "spec.networking.external",
        "a network plugin is chosen by being the only one, and the samples have one",
    ),
    (
        "Cluster",
        "spec.api.dns",
        "what the API has without a load balancer",
    ),
    ("Cluster", "spec.authorization.rbac", "the default"),
    (
        "Cluster",
        "spec.assets.catalog",
        "kctl reads it before it expands the spec",
    ),
    (
        "Cluster",
        "spec.assets.catalogSHA256",
        "kctl reads it before it expands the spec",
    ),
    ("Cluster", "spec.rollingUpdate", ROLLING),
    ("InstanceGroup", "spec.rollingUpdate", ROLLING),
    (
        "InstanceGroup",
        "spec.autoscale",
        "of the cluster-autoscaler addon, which is refused: nothing else scales the group",
    ),
];
