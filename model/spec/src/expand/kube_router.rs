//! `spec.networking.kuberouter`.

use crate::api::cluster::ClusterSpec;
use full::KubeRouter;

/// The release of kOps 1.37.
const IMAGE: &str = "docker.io/cloudnativelabs/kube-router:v2.11.1";

/// kube-router of a completed spec; `None` where another network plugin is chosen.
pub(super) fn full_kube_router(spec: &ClusterSpec) -> Option<KubeRouter> {
    let router = spec.networking.as_ref()?.kuberouter.as_ref()?;
    let containerd = spec.containerd.as_ref();
    Some(KubeRouter {
        image: IMAGE.to_owned(),
        nftables: router.use_nftables_for_netpol == Some(true),
        selinux: containerd.and_then(|containerd| containerd.selinux_enabled) == Some(true),
    })
}
