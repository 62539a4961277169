//! kube-proxy's flags.

use super::Error;
use super::naming::{Naming, flags};
use crate::api::kube_proxy::KubeProxyConfig;
use node::components::{Flags, component_kubeconfig};

const COMPONENT: &str = "kube-proxy";

/// kOps' exceptions.
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
        "image",
        "memoryLimit",
        "memoryRequest",
    ],
    empty: &[],
    repeated: &[],
};

/// Flags of kube-proxy. `--master` and `--hostname-override` are the machine's to add.
pub(in crate::expand) fn proxy(config: &KubeProxyConfig) -> Result<Flags, Error> {
    let mut flags = flags(config, &NAMING)?;
    flags.set_if_missing("kubeconfig", component_kubeconfig(COMPONENT));
    flags.set_if_missing("oom-score-adj", "-998");
    Ok(flags)
}
