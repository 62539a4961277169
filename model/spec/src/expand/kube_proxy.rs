//! Defaults of kube-proxy.

use super::Context;
use super::assets::component_image;
use super::fill::fill;
use super::pods::are_pods_in_vpc;
use crate::api::cluster::ClusterSpec;

/// Fills in kube-proxy's settings, with kOps' defaults.
pub(super) fn complete_kube_proxy(spec: &mut ClusterSpec, context: &Context) {
    let image = component_image("kube-proxy", spec, &context.version);
    // Pods have addresses of the VPC, as others have that are not in the cluster.
    let in_vpc = spec.is_ipv6() || are_pods_in_vpc(spec);
    let pods = spec.pod_cidr.clone().filter(|_| !in_vpc);
    let proxy = spec.kube_proxy.get_or_insert_default();
    fill(&mut proxy.enabled, true);
    fill(&mut proxy.image, image);
    fill(&mut proxy.log_level, 2);
    fill(&mut proxy.cpu_request, "100m");
    fill(&mut proxy.conntrack_max_per_core, 131_072);
    if let Some(pods) = pods {
        fill(&mut proxy.cluster_cidr, pods);
    }
}
