//! The type of every text of a spec, and of numbers that are more than a count.
//!
//! A test holds that every field of the types in `api` has one: who adds a field says here how it is read.

mod calico;
mod cilium;

/// How a value is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueType {
    /// Content, as many lines as one likes.
    Text,
    /// One line; a rule of its own reads it, or AWS and Kubernetes say what is possible.
    Line,
    /// One line without blanks and quotes.
    Word,
    /// `true` or `false`.
    Switch,
    OneOf(&'static [&'static str]),
    /// Kubernetes' quantity, which may be negative.
    Quantity,
    /// A quantity that is not negative.
    Amount,
    Duration,
    Decimal,
    /// kubelet's eviction thresholds.
    Evictions,
    /// What kubelet reclaims at least.
    Reclaims,
    /// How long thresholds are tolerated.
    GracePeriods,
    DnsName,
    /// Name or address.
    Host,
    /// What is reached without the proxy: names, suffixes, addresses and ranges with commas between them.
    ProxyExcludes,
    Address,
    /// Addresses with commas between them.
    Addresses,
    /// Address with a port.
    Endpoint,
    /// CIDR ranges with commas between them.
    Ranges,
    /// `http://` or `https://`.
    Url,
    SecureUrl,
    /// `s3://` and the stores of tests.
    Store,
    Image,
    RegistryPrefix,
    /// Tag of an image.
    Tag,
    /// A regular expression.
    Pattern,
    /// Path of a file.
    File,
    /// The same; empty says nothing, as in kOps.
    FileIfAny,
    /// The same; `-` is the output of the process.
    FileOrOutput,
    Folder,
    /// A folder on which a volume can be mounted.
    MountPoint,
    /// Mode of a file; empty says nothing, as in kOps.
    ModeIfAny,
    /// One value, and why no other works.
    Only(&'static str, &'static str),
    /// Name of a Node.
    NodeName,
    /// Name of an environment variable.
    VariableName,
    /// Package of the distribution.
    Package,
    /// Kernel parameters.
    Parameters,
    /// A whole `config.toml`.
    ContainerdConfig,
    Sha256,
    /// Names of other units.
    Units,
    CipherSuite,
    /// Port; 0 for none.
    PortOrNone,
    /// The port of the API, which cannot be chosen.
    ApiPort,
    /// A number that may be negative.
    AnyNumber,
}

/// Of the files of certificates that kctl issues. kOps overwrites these fields too (its nodeup writes them for each instance).
const ISSUED: &str = "kctl issues this certificate and puts it there";

const TLS_VERSIONS: &[&str] = &[
    "VersionTLS10",
    "VersionTLS11",
    "VersionTLS12",
    "VersionTLS13",
];

/// How the cluster autoscaler chooses a group; `price` exists on Google Cloud only.
const EXPANDERS: &[&str] = &["least-waste", "most-pods", "priority", "random"];

/// Effects of taints.
const EFFECTS: &[&str] = &["NoExecute", "NoSchedule", "PreferNoSchedule"];

/// Types by name of the field, or by its parent and its name where another field has the same name.
const TYPES: &[(ValueType, &[&str])] = &[
    (
        ValueType::Text,
        &[
            "additionalConfig",
            "additionalPolicies.*",
            "additionalUserData.content",
            "agentPodAnnotations.*",
            "command",
            "configAdditions.*",
            "env.value",
            "environment.*",
            "externalCoreFile",
            "fileAssets.content",
            "filesProviderExtraConfig.*",
            "hooks.manifest",
            "inlinePolicy",
            "operatorPodAnnotations.*",
            "podAnnotations.*",
            "providerExtraConfig.*",
            "webhookTemplate",
        ],
    ),
    (
        ValueType::Line,
        &[
            "accessLog.bucket",
            "accessLog.bucketPrefix",
            "additionalAudiences",
            "additionalNetworkCIDRs",
            "additionalRoutes.cidr",
            "additionalSans",
            "additionalSecurityGroups",
            "additionalUserData.name",
            "additionalUserData.type",
            "addons.manifest",
            "addonValues.args",
            "allocationId",
            "assets.catalog",
            "authorizationMode",
            "backendMode",
            "backups.image",
            "channel",
            "cloudLabels.*",
            "spec.cloudProvider",
            "configBase",
            "configStore",
            "containerRuntime",
            "controllers",
            "customPriorityExpanderConfig.*",
            "cpuCredits",
            "device",
            "dnsZone",
            "egress",
            "elbSecurityGroup",
            "etcdClusters.name",
            "etcdClusters.version",
            "etcdMembers.name",
            "excludedInstanceTypes",
            "externalPolicies.*",
            "fileAssets.name",
            "filesystem",
            "formatOptions",
            "gcpProvisioningModel",
            "gceServiceAccount",
            "hooks.name",
            "identityMappings.arn",
            "identityMappings.groups",
            "identityMappings.username",
            "hostedZoneIDs",
            "httpTokens",
            "iam.profile",
            "instanceGroup",
            "instanceInterruptionBehavior",
            "instances",
            "ipv6CIDR",
            "keyStore",
            "kmsKeyId",
            "kubeDNS.image",
            "kubernetesApiAccess",
            "kubernetesUpgrade.from",
            "kubernetesVersion",
            "loadBalancerName",
            "logFormat",
            "machineType",
            "managedASGTag",
            "manager",
            "manager.image",
            "nvidiaGPU.image",
            "masters",
            "networkCIDR",
            "networkID",
            "nlbSecurityGroupMode",
            "nodeIPFamilies",
            "nodeInstancePrefix",
            "nodeLabels.*",
            "nodeSelector.*",
            "nodePortAccess",
            "nodeTags",
            "nodes",
            "nonMasqueradeCIDR",
            "oidcClientID",
            "oidcGroupsClaim",
            "oidcGroupsPrefix",
            "oidcRequiredClaim",
            "oidcUsernameClaim",
            "oidcUsernamePrefix",
            "onDemandAllocationStrategy",
            "permissionsBoundary",
            "policyARNs",
            "podCIDR",
            "podInfraContainerImage",
            "project",
            "provider",
            "publicIP",
            "region",
            "requestheaderAllowedNames",
            "rootVolumeEncryptionKey",
            "rootVolumeType",
            "secretStore",
            "securityGroupOverride",
            "serviceAccountExternalPermissions.name",
            "serviceAccountExternalPermissions.namespace",
            "serviceClusterIPRange",
            "serviceNodePortRange",
            "spec.image",
            "spotAllocationStrategy",
            "spotinstOrientation",
            "spotinstProduct",
            "sshAccess",
            "sshKeyName",
            "sslCertificate",
            "sslPolicy",
            "strictTransportSecurityDirectives",
            "subnets",
            "subnets.cidr",
            "subnets.id",
            "subnets.name",
            "subnets.type",
            "suspendProcesses",
            "taints",
            "target",
            "targetGroupArn",
            "tenancy",
            "updatePolicy",
            "vSphereCoreDNSServer",
            "vSphereDatacenter",
            "vSphereDatastore",
            "vSpherePassword",
            "vSphereResourcePool",
            "vSphereServer",
            "vSphereUsername",
            "volumeType",
            "volumes.key",
            "volumes.type",
            "zone",
            "zones",
            "nodeTerminationHandler.version",
            "azureNodeManagerImage",
            "privateIPv4Address",
            "registryMirrors.*",
            "containerd.version",
            "runc.version",
            "additionalImages",
            "flannel.backend",
            "proxyMode",
            "stubDomains.*",
            "upstreamNameservers",
            "serverIP",
            "containerd.logLevel",
            "fileRepository",
            "tolerations.key",
            "tolerations.value",
        ],
    ),
    (
        ValueType::Word,
        &[
            "addonValues.addon",
            "addonValues.container",
            "addonValues.workload",
            "admissionControl",
            "allowedUnsafeSysctls",
            "apiAudiences",
            "apiServers",
            "appendAdmissionPlugins",
            "auditLogFormat",
            "auditWebhookMode",
            "authorizationAlwaysAllowPaths",
            "authorizationRbacSuperUser",
            "cgroupDriver",
            "cgroupRoot",
            "cidrAllocatorType",
            "clusterID",
            "clusterName",
            "cpuManagerPolicy",
            "disableAdmissionPlugins",
            "enableAdmissionPlugins",
            "enforceNodeAllocatable",
            "experimentalAllowedUnsafeSysctls",
            "externalCloudVolumePlugin",
            "hairpinMode",
            "ipvsScheduler",
            "kubeReservedCgroup",
            "kubeletCgroups",
            "kubeletPreferredAddressTypes",
            "leaderElectResourceLock",
            "leaderElectResourceName",
            "leaderElectResourceNamespace",
            "master",
            "memorySwapBehavior",
            "mountOptions",
            "networkPluginName",
            "priorityClassName",
            "requestheaderExtraHeaderPrefixes",
            "requestheaderGroupHeaders",
            "requestheaderUsernameHeaders",
            "runtimeCgroups",
            "runtimeConfig.*",
            "serviceAccountIssuer",
            "additionalServiceAccountIssuers",
            "storageBackend",
            "systemCgroups",
            "systemReservedCgroup",
            "topologyManagerPolicy",
            "watchCacheSizes",
            "watchNamespace",
        ],
    ),
    (
        ValueType::Tag,
        &[
            "awsEBSCSIDriver.version",
            "awsLoadBalancerController.version",
            "kindnet.version",
        ],
    ),
    (ValueType::Decimal, &["awsEBSCSIDriver.kubeAPIQPS"]),
    (ValueType::Switch, &["featureGates.*"]),
    (
        ValueType::OneOf(&["", "external"]),
        &[
            "kubeAPIServer.cloudProvider",
            "kubeControllerManager.cloudProvider",
            "kubelet.cloudProvider",
            "masterKubelet.cloudProvider",
        ],
    ),
    (
        ValueType::OneOf(&["", "aws"]),
        &["cloudControllerManager.cloudProvider"],
    ),
    (ValueType::OneOf(EXPANDERS), &["expander"]),
    (ValueType::OneOf(&["cis"]), &["spec.profile"]),
    (ValueType::OneOf(&["kvm", "systrap"]), &["gvisor.platform"]),
    (
        ValueType::OneOf(&["Equal", "Exists"]),
        &["tolerations.operator"],
    ),
    (ValueType::OneOf(EFFECTS), &["tolerations.effect"]),
    (ValueType::OneOf(TLS_VERSIONS), &["tlsMinVersion"]),
    (ValueType::CipherSuite, &["tlsCipherSuites"]),
    (
        // Negative ones turn a limit off.
        ValueType::Quantity,
        &["kubeAPIQPS", "qps"],
    ),
    (
        ValueType::Amount,
        &[
            "auditWebhookBatchThrottleQps",
            "containerLogMaxSize",
            "cpu.max",
            "cpu.min",
            "cpuLimit",
            "cpuRequest",
            "horizontalPodAutoscalerTolerance",
            "kubeReserved.*",
            "limits.*",
            "memory.max",
            "memory.min",
            "memoryLimit",
            "memoryRequest",
            "requests.*",
            "systemReserved.*",
        ],
    ),
    (
        ValueType::Duration,
        &[
            "ClusterSigningDuration",
            "attachDetachReconcileSyncPeriod",
            "auditWebhookBatchMaxWait",
            "auditWebhookInitialBackoff",
            "authenticationTokenWebhookCacheTtl",
            "authorizationWebhookCacheAuthorizedTtl",
            "authorizationWebhookCacheUnauthorizedTtl",
            "backupInterval",
            "compactionInterval",
            "cpuCFSQuotaPeriod",
            "crashLoopBackOffMaxContainerRestartPeriod",
            "discoveryPollInterval",
            "endpointSliceUpdatesBatchPeriod",
            "endpointUpdatesBatchPeriod",
            "eventTTL",
            "evictionPressureTransitionPeriod",
            "experimentalClusterSigningDuration",
            "heartbeatInterval",
            "horizontalPodAutoscalerCpuInitializationPeriod",
            "horizontalPodAutoscalerDownscaleDelay",
            "horizontalPodAutoscalerDownscaleStabilization",
            "horizontalPodAutoscalerInitialReadinessDelay",
            "horizontalPodAutoscalerSyncPeriod",
            "horizontalPodAutoscalerUpscaleDelay",
            "housekeepingInterval",
            "imageMaximumGCAge",
            "imageMinimumGCAge",
            "imagePullProgressDeadline",
            "ipvsMinSyncPeriod",
            "ipvsSyncPeriod",
            "leaderElectLeaseDuration",
            "leaderElectRenewDeadlineDuration",
            "leaderElectRetryPeriod",
            "leaderElectionTimeout",
            "maxInstanceLifetime",
            "maxNodeProvisionTime",
            "minResyncPeriod",
            "newPodScaleUpDelay",
            "nodeMonitorGracePeriod",
            "nodeMonitorPeriod",
            "nodeStatusUpdateFrequency",
            "pluginRegistrationTimeout",
            "pluginRequestTimeout",
            "podEvictionTimeout",
            "requestTimeout",
            "runtimeRequestTimeout",
            "scaleDownDelayAfterAdd",
            "scaleDownUnneededTime",
            "scaleDownUnreadyTime",
            "shutdownGracePeriod",
            "shutdownGracePeriodCriticalPods",
            "storageInitializationTimeout",
            "streamingConnectionIdleTimeout",
            "volumeStatsAggPeriod",
        ],
    ),
    (
        ValueType::Decimal,
        &["goawayChance", "maxPrice", "scaleDownUtilizationThreshold"],
    ),
    (ValueType::Evictions, &["evictionHard", "evictionSoft"]),
    (ValueType::Reclaims, &["evictionMinimumReclaim"]),
    (ValueType::GracePeriods, &["evictionSoftGracePeriod"]),
    (
        ValueType::DnsName,
        &[
            "bastionPublicName",
            "clusterDNSDomain",
            "clusterDomain",
            "defaultIssuer",
            "kubeDNS.domain",
            "masterInternalName",
            "masterPublicName",
        ],
    ),
    (ValueType::Host, &["httpProxy.host"]),
    (ValueType::ProxyExcludes, &["excludes"]),
    (
        ValueType::Address,
        &[
            "address",
            "advertiseAddress",
            "bindAddress",
            "insecureBindAddress",
            "localIP",
            "nameservers",
        ],
    ),
    (ValueType::Addresses, &["clusterDNS"]),
    (ValueType::Endpoint, &["metricsBindAddress"]),
    (
        ValueType::Ranges,
        &[
            "clusterCIDR",
            "ipvsExcludeCidrs",
            "kubeAPIServer.serviceClusterIPRange",
            "kubelet.nonMasqueradeCIDR",
            "kubelet.podCIDR",
            "masquerade.nonMasqueradeCIDRs",
            "masterKubelet.nonMasqueradeCIDR",
            "masterKubelet.podCIDR",
        ],
    ),
    (
        ValueType::Url,
        &[
            "listenClientHTTPURLs",
            "listenMetricsURLs",
            "packages.urlAmd64",
            "packages.urlArm64",
            "webhookURL",
        ],
    ),
    (
        ValueType::SecureUrl,
        &["oidcIssuerURL", "serviceAccountJWKSURI"],
    ),
    (ValueType::Store, &["backupStore", "discoveryStore"]),
    (
        ValueType::Image,
        &[
            "aws.image",
            "certManager.image",
            "cloudControllerManager.image",
            "clusterAutoscaler.image",
            "coreDNSImage",
            "cpaImage",
            "etcdClusters.image",
            "execContainer.image",
            "imageName",
            "initImageName",
            "kubeAPIServer.image",
            "kubeControllerManager.image",
            "kubeProxy.image",
            "kubeScheduler.image",
            "metricsServer.image",
            "networkPolicyAgentImage",
            "nodeLocalDNS.image",
            "nodeProblemDetector.image",
            "sandboxImage",
        ],
    ),
    (
        ValueType::RegistryPrefix,
        &["containerProxy", "containerRegistry"],
    ),
    (
        ValueType::File,
        &[
            "admissionControlConfigFile",
            "auditPolicyFile",
            "auditWebhookConfigFile",
            "authenticationConfigFile",
            "authenticationKubeconfig",
            "authenticationTokenWebhookConfigFile",
            "authorizationKubeconfig",
            "authorizationWebhookConfigFile",
            "basicAuthFile",
            "bootstrapKubeconfig",
            "clientCAFile",
            "clientCaFile",
            "encryptionProviderConfig",
            "experimentalEncryptionProviderConfig",
            "kubeconfigPath",
            "kubeletCertificateAuthority",
            "oidcCAFile",
            "proxyClientCertFile",
            "proxyClientKeyFile",
            "requestheaderClientCAFile",
            "rootCAFile",
            "serviceAccountKeyFile",
            "serviceAccountPrivateKeyFile",
            "serviceAccountSigningKeyFile",
            "tlsCertFile",
            "tlsPrivateKeyFile",
            "tokenAuthFile",
        ],
    ),
    (ValueType::FileIfAny, &["fileAssets.path", "resolvConf"]),
    (ValueType::FileOrOutput, &["auditLogPath"]),
    (
        ValueType::Folder,
        &[
            "containerd.root",
            "containerd.state",
            "rootDir",
            "seccompProfileRoot",
            "volumePluginDirectory",
        ],
    ),
    (ValueType::MountPoint, &["volumeMounts.path"]),
    (ValueType::ModeIfAny, &["fileAssets.mode"]),
    (
        ValueType::Only(
            "/etc/kubernetes/manifests",
            "kctl writes the manifests of static pods there",
        ),
        &["podManifestPath"],
    ),
    (
        ValueType::Only(
            "/run/containerd/containerd.sock",
            "kubelet and crictl use this socket",
        ),
        &["containerd.address"],
    ),
    (
        ValueType::Only(
            "https://127.0.0.1:4001",
            "the API server uses the member of etcd on its own instance",
        ),
        &["etcdServers"],
    ),
    (
        ValueType::Only(
            "/events#https://127.0.0.1:4002",
            "events are in an etcd cluster of their own, on the same instance",
        ),
        &["etcdServersOverrides"],
    ),
    (
        ValueType::Only("/srv/kubernetes/kube-apiserver/etcd-ca.crt", ISSUED),
        &["etcdCaFile"],
    ),
    (
        ValueType::Only("/srv/kubernetes/kube-apiserver/etcd-client.crt", ISSUED),
        &["etcdCertFile"],
    ),
    (
        ValueType::Only("/srv/kubernetes/kube-apiserver/etcd-client.key", ISSUED),
        &["etcdKeyFile"],
    ),
    (
        ValueType::Only("/srv/kubernetes/kube-apiserver/kubelet-api.crt", ISSUED),
        &["kubeletClientCertificate"],
    ),
    (
        ValueType::Only("/srv/kubernetes/kube-apiserver/kubelet-api.key", ISSUED),
        &["kubeletClientKey"],
    ),
    (ValueType::Pattern, &["corsAllowedOrigins"]),
    (ValueType::NodeName, &["hostnameOverride"]),
    (ValueType::VariableName, &["env.name"]),
    (ValueType::Package, &["nvidiaGPU.package", "packages"]),
    (ValueType::Parameters, &["sysctlParameters"]),
    (ValueType::ContainerdConfig, &["configOverride"]),
    (
        ValueType::Sha256,
        &[
            "assets.bundle",
            "catalogSHA256",
            "packages.hashAmd64",
            "packages.hashArm64",
        ],
    ),
    (ValueType::Units, &["before", "requires"]),
    (
        ValueType::PortOrNone,
        &["httpProxy.port", "insecurePort", "readOnlyPort"],
    ),
    (ValueType::ApiPort, &["securePort"]),
    (
        ValueType::AnyNumber,
        &[
            "autoscalePriority",
            "evictionMaxPodGracePeriod",
            "podPidsLimit",
            "podTerminationGracePeriod",
            "rollingUpdate.maxSurge",
            "rollingUpdate.maxUnavailable",
            "terminatedPodGCThreshold",
        ],
    ),
];

/// Maps, whose keys are the user's.
const MAPS: &[&str] = &[
    "additionalPolicies",
    "agentPodAnnotations",
    "cloudLabels",
    "configAdditions",
    "customPriorityExpanderConfig",
    "environment",
    "externalPolicies",
    "extraConfig",
    "featureGates",
    "filesProviderExtraConfig",
    "kubeReserved",
    "limits",
    "nodeLabels",
    "nodeSelector",
    "operatorPodAnnotations",
    "podAnnotations",
    "providerExtraConfig",
    "registryMirrors",
    "requests",
    "runtimeConfig",
    "stubDomains",
    "systemReserved",
];

/// Maps of which kubelet takes no other keys (`parseResourceList` in its `server.go`).
const KEYS: &[(&str, &[&str])] = &[("kubeReserved", RESERVABLE), ("systemReserved", RESERVABLE)];

const RESERVABLE: &[&str] = &["cpu", "memory", "ephemeral-storage", "pid"];

/// Sections in the form of Kubernetes, and those of features that kctl does not have.
const OPAQUE: &[&str] = &[
    "affinity",
    "azure",
    "canal",
    "classic",
    "discoveryService",
    "dnsControllerGossipConfig",
    "docker",
    "gcpPDCSIDriver",
    "gce",
    "gossipConfig",
    "guestAccelerators",
    "karpenter",
    "kopeio",
    "lyftvpc",
    "nodeAuthorization",
    "openstack",
    "romana",
    "valueFrom",
    "weave",
];

/// The type of a field by its path: `spec.kubelet.featureGates.*`, `spec.hooks[].name`.
pub fn value_type(pattern: &str) -> Option<ValueType> {
    let (qualified, name) = last_names(pattern);
    let named = |wanted: &str| {
        let mut rows = TYPES.iter().chain(calico::TYPES).chain(cilium::TYPES);
        let row = rows.find(|(_, names)| names.contains(&wanted));
        row.map(|(kind, _)| *kind)
    };
    named(&qualified).or_else(|| named(name))
}

/// True if the keys of what is at this path are the user's.
pub fn is_map(pattern: &str) -> bool {
    MAPS.contains(&last_names(pattern).1)
}

/// The keys that a map at this path may have; `None` if any.
pub fn known_keys(pattern: &str) -> Option<&'static [&'static str]> {
    let name = last_names(pattern).1;
    let row = KEYS.iter().find(|(map, _)| *map == name);
    row.map(|(_, keys)| *keys)
}

/// True if nothing below this path is read here.
pub fn is_opaque(pattern: &str) -> bool {
    let (qualified, name) = last_names(pattern);
    OPAQUE.contains(&name) || OPAQUE.contains(&qualified.as_str())
}

/// The last two names of a path, and the last.
fn last_names(pattern: &str) -> (String, &str) {
    let bare = |name: &'_ str| name.trim_end_matches("[]").to_owned();
    let (before, name) = pattern.rsplit_once('.').unwrap_or(("", pattern));
    let parent = before.rsplit_once('.').map_or(before, |(_, parent)| parent);
    let name = name.trim_end_matches("[]");
    (format!("{}.{name}", bare(parent)), name)
}
