//! kube-controller-manager's flags.

use super::naming::{Naming, collect_flags};
use super::{Error, scheduler};
use crate::api::kube_controller_manager::KubeControllerManagerConfig;
use node::components::{Flags, KUBERNETES, VOLUME_PLUGINS, component_kubeconfig, component_pki};

const COMPONENT: &str = "kube-controller-manager";

/// Fields whose flags differ from the naming rule, as in kOps.
pub(super) const NAMING: Naming = Naming {
    component: COMPONENT,
    named: &[
        ("allocateNodeCIDRs", "allocate-node-cidrs"),
        (
            "concurrentHorizontalPodAustoscalerSyncs",
            "concurrent-horizontal-pod-autoscaler-syncs",
        ),
        ("enableContentionProfiling", "contention-profiling"),
        ("enableProfiling", "profiling"),
        (
            "endpointSliceUpdatesBatchPeriod",
            "endpointslice-updates-batch-period",
        ),
        ("kubeAPIQPS", "kube-api-qps"),
        ("logFormat", "logging-format"),
        ("logLevel", "v"),
    ],
    none: &[
        "cpuLimit",
        "cpuRequest",
        "image",
        "leaderElection",
        "memoryLimit",
        "memoryRequest",
    ],
    empty: &[("logFormat", "text"), ("logLevel", "0")],
    repeated: &[],
};

pub(in crate::expand) fn controller_manager_flags(
    config: &KubeControllerManagerConfig,
) -> Result<Flags, Error> {
    let mut flags = collect_flags(config, &NAMING)?;
    scheduler::add_leader_election(config.leader_election.as_ref(), COMPONENT, &mut flags)?;
    let kubeconfig = component_kubeconfig(COMPONENT);
    for flag in [
        "authentication-kubeconfig",
        "authorization-kubeconfig",
        "kubeconfig",
    ] {
        flags.set_if_missing(flag, &kubeconfig);
    }
    for (flag, file) in [
        ("cluster-signing-cert-file", "ca.crt"),
        ("cluster-signing-key-file", "ca.key"),
        ("service-account-private-key-file", "service-account.key"),
        ("tls-cert-file", "server.crt"),
        ("tls-private-key-file", "server.key"),
    ] {
        flags.set_if_missing(flag, component_pki(COMPONENT, file));
    }
    flags.set_if_missing("flex-volume-plugin-dir", VOLUME_PLUGINS);
    flags.set_if_missing("root-ca-file", format!("{KUBERNETES}/ca.crt"));
    Ok(flags)
}
