//! Fields that change nothing that is rendered, each with the reason. Of those that will act one day (`not yet:`) `kctl update` and
//! `kctl validate` say that they do not.

const DNSMASQ: &str = "kube-dns had it, with dnsmasq; CoreDNS has neither in kOps";
const ETCD_MANAGER: &str = "etcd-manager's own; there is no etcd-manager";
const GONE_FROM_CILIUM: &str = "cilium 1.20 does not have it; validation warns";
const NAMED: &str = "others refer to it by this name: changing it alone is an error";
const NODE_NAME: &str =
    "a Node has the id of its instance as its name: validation takes kOps' placeholders only";
const NO_TERRAFORM: &str = "kctl has no Terraform output; validation warns";

const NO_HANDLER: &str = "there are no pods of the node termination handler; validation warns";
const ROLLING: &str = "limits of `kctl rolling-update`, which reads them from the spec: nothing is rendered from them";
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
    (
        "Cluster",
        "spec.addons",
        "`kctl update` reads the lists and what they name: nothing is rendered without them",
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
        "spec.etcdClusters[].manager.discoveryPollInterval",
        ETCD_MANAGER,
    ),
    ("Cluster", "spec.etcdClusters[].manager.image", ETCD_MANAGER),
    (
        "Cluster",
        "spec.etcdClusters[].manager.logLevel",
        ETCD_MANAGER,
    ),
    (
        "Cluster",
        "spec.containerd.installCriCtl",
        "crictl is always installed",
    ),
    (
        "Cluster",
        "spec.useHostCertificates",
        "what kOps runs in containers with these certificates are programs of the instance",
    ),
    (
        "Cluster",
        "spec.kubeAPIServer.serviceClusterIPRange",
        "expansion takes only the range of spec.serviceClusterIPRange",
    ),
    (
        "InstanceGroup",
        "spec.rootVolumeDeleteOnTermination",
        "kOps does not read it; validation warns",
    ),
    (
        "InstanceGroup",
        "spec.manager",
        "validation takes only CloudGroup",
    ),
    (
        "InstanceGroup",
        "spec.containerd.installCriCtl",
        "crictl is always installed",
    ),
    (
        "Cluster",
        "spec.networking.cilium.disableCNPStatusUpdates",
        GONE_FROM_CILIUM,
    ),
    (
        "Cluster",
        "spec.networking.cilium.enableRemoteNodeIdentity",
        GONE_FROM_CILIUM,
    ),
    (
        "Cluster",
        "spec.networking.cilium.sidecarIstioProxyImage",
        GONE_FROM_CILIUM,
    ),
    (
        "Cluster",
        "spec.networking.flannel.disableTxChecksumOffloading",
        "every system that nodeup supports has a kernel without the bug; validation warns",
    ),
    ("Cluster", "spec.kubeDNS.cacheMaxSize", DNSMASQ),
    ("Cluster", "spec.kubeDNS.cacheMaxConcurrent", DNSMASQ),
    ("Cluster", "spec.kubeDNS.image", DNSMASQ),
    (
        "Cluster",
        "spec.nodeTerminationHandler.deleteSQSMsgIfNodeNotFound",
        "messages about instances of others are always deleted",
    ),
    (
        "Cluster",
        "spec.nodeTerminationHandler.cpuRequest",
        NO_HANDLER,
    ),
    (
        "Cluster",
        "spec.nodeTerminationHandler.memoryLimit",
        NO_HANDLER,
    ),
    (
        "Cluster",
        "spec.nodeTerminationHandler.memoryRequest",
        NO_HANDLER,
    ),
    ("Cluster", "spec.nodeTerminationHandler.version", NO_HANDLER),
    (
        "Cluster",
        "spec.target.terraform.filesProviderExtraConfig.*",
        NO_TERRAFORM,
    ),
    (
        "Cluster",
        "spec.target.terraform.providerExtraConfig.*",
        NO_TERRAFORM,
    ),
    (
        "Cluster",
        "spec.api.loadBalancer.accessLog.interval",
        "network load balancers have one interval; validation warns",
    ),
    (
        "Cluster",
        "spec.api.loadBalancer.class",
        "validation takes only Network",
    ),
    (
        "Cluster",
        "spec.api.loadBalancer.idleTimeoutSeconds",
        "for classic load balancers, which validation refuses; it warns",
    ),
    (
        "Cluster",
        "spec.topology.bastion.idleTimeoutSeconds",
        "network load balancers have none; validation warns",
    ),
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
    (
        "Cluster",
        "spec.assets.bundle",
        "kctl reads it before it expands the spec",
    ),
    ("Cluster", "spec.kubelet.hostnameOverride", NODE_NAME),
    ("Cluster", "spec.masterKubelet.hostnameOverride", NODE_NAME),
    ("Cluster", "spec.kubeProxy.hostnameOverride", NODE_NAME),
    ("InstanceGroup", "spec.kubelet.hostnameOverride", NODE_NAME),
    ("Cluster", "spec.rollingUpdate", ROLLING),
    ("InstanceGroup", "spec.rollingUpdate", ROLLING),
];
