//! kubelet's flags: the few fields that are not in its configuration file.

use super::Error;
use super::naming::{Naming, collect_flags};
use crate::api::kubelet::KubeletConfigSpec;
use node::components::Flags;

/// Fields with another flag name, and fields without a flag. The latter are in the configuration file, except for the pause
/// image (containerd has it), the name of the Node (nodeup sets it) and labels (the control plane sets them: kubelet may not set role labels on its own Node).
pub(super) const NAMING: Naming = Naming {
    component: "kubelet",
    named: &[
        ("kubeAPIQPS", "kube-api-qps"),
        ("kubeconfigPath", "kubeconfig"),
        ("logLevel", "v"),
        ("networkPluginName", "network-plugin"),
        ("nvidiaGPUs", "experimental-nvidia-gpus"),
    ],
    none: &[
        "allowedUnsafeSysctls",
        "anonymousAuth",
        "authenticationTokenWebhook",
        "authorizationMode",
        "cgroupDriver",
        "cgroupRoot",
        "clientCaFile",
        "clusterDNS",
        "clusterDomain",
        "containerLogMaxFiles",
        "containerLogMaxSize",
        "cpuCFSQuota",
        "cpuCFSQuotaPeriod",
        "cpuManagerPolicy",
        "crashLoopBackOffMaxContainerRestartPeriod",
        "enableDebuggingHandlers",
        "enforceNodeAllocatable",
        "eventQPS",
        "eventRecordQPS",
        "evictionHard",
        "evictionMaxPodGracePeriod",
        "evictionMinimumReclaim",
        "evictionPressureTransitionPeriod",
        "evictionSoft",
        "evictionSoftGracePeriod",
        "experimentalAllowedUnsafeSysctls",
        "failSwapOn",
        "featureGates",
        "hairpinMode",
        "hostnameOverride",
        "imageGCHighThresholdPercent",
        "imageGCLowThresholdPercent",
        "imageMaximumGCAge",
        "imageMinimumGCAge",
        "kernelMemcgNotification",
        "kubeReserved",
        "kubeReservedCgroup",
        "kubeletCgroups",
        "logFormat",
        "maxParallelImagePulls",
        "maxPods",
        "memorySwapBehavior",
        "nodeLabels",
        "nodeLeaseDurationSeconds",
        "nodeStatusUpdateFrequency",
        "podCIDR",
        "podInfraContainerImage",
        "podManifestPath",
        "podPidsLimit",
        "protectKernelDefaults",
        "readOnlyPort",
        "registryPullQPS",
        "resolvConf",
        "rotateCertificates",
        "seccompDefault",
        "serializeImagePulls",
        "shutdownGracePeriod",
        "shutdownGracePeriodCriticalPods",
        "systemCgroups",
        "systemReserved",
        "systemReservedCgroup",
        "taints",
        "tlsCertFile",
        "tlsCipherSuites",
        "tlsMinVersion",
        "tlsPrivateKeyFile",
        "topologyManagerPolicy",
        "volumePluginDirectory",
    ],
    empty: &[("logLevel", "0"), ("nvidiaGPUs", "0")],
    repeated: &[],
};

/// Flags of kubelet. nodeup adds `--hostname-override` on the instance.
pub(in crate::expand) fn kubelet_flags(config: &KubeletConfigSpec) -> Result<Flags, Error> {
    let mut flags = collect_flags(config, &NAMING)?;
    flags.set_if_missing("config", "/var/lib/kubelet/kubelet.conf");
    flags.set_if_missing("image-credential-provider-bin-dir", "/usr/local/bin");
    flags.set_if_missing(
        "image-credential-provider-config",
        "/var/lib/kubelet/credential-provider.conf",
    );
    Ok(flags)
}
