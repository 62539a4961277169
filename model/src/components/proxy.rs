//! kube-proxy's flags.

use super::Error;
use super::flags::{Flags, Naming, flags};
use super::paths::component_kubeconfig;
use crate::api::kube_proxy::KubeProxyConfig;

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
pub fn proxy(config: &KubeProxyConfig) -> Result<Flags, Error> {
    let mut flags = flags(config, &NAMING)?;
    flags.fill("kubeconfig", component_kubeconfig(COMPONENT));
    flags.fill("oom-score-adj", "-998");
    Ok(flags)
}
