//! kube-proxy's flags.

use super::Error;
use super::naming::{Naming, collect_flags};
use crate::api::kube_proxy::KubeProxyConfig;
use node::components::{Flags, component_kubeconfig};

const COMPONENT: &str = "kube-proxy";

/// Fields whose flags differ from the naming rule, as in kOps.
pub(super) const NAMING: Naming = Naming {
    component: COMPONENT,
    named: &[
        ("ipvsExcludeCidrs", "ipvs-exclude-cidrs"),
        ("logLevel", "v"),
    ],
    none: &[
        "cpuLimit",
        "cpuRequest",
        "enabled",
        "hostnameOverride",
        "image",
        "memoryLimit",
        "memoryRequest",
    ],
    empty: &[],
    repeated: &[],
};

/// Flags of kube-proxy. The instance adds `--master` and `--hostname-override`.
pub(in crate::expand) fn kube_proxy_flags(config: &KubeProxyConfig) -> Result<Flags, Error> {
    let mut flags = collect_flags(config, &NAMING)?;
    flags.set_if_missing("kubeconfig", component_kubeconfig(COMPONENT));
    flags.set_if_missing("oom-score-adj", "-998");
    Ok(flags)
}
