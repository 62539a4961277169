//! `spec.awsLoadBalancerController`.

use crate::api::addons::LoadBalancerControllerSpec;
use crate::api::cluster::ClusterSpec;
use full::LoadBalancerController;

/// The AWS load balancer controller of a completed spec; `None` if it is off.
pub(super) fn full_load_balancer_controller(spec: &ClusterSpec) -> Option<LoadBalancerController> {
    let LoadBalancerControllerSpec {
        enabled,
        version,
        enable_waf,
        enable_waf_v2,
        enable_shield,
        cpu_request,
        cpu_limit,
        memory_request,
        memory_limit,
    } = spec.aws_load_balancer_controller.clone()?;
    (enabled == Some(true)).then_some(LoadBalancerController {
        version,
        waf: enable_waf == Some(true),
        waf_v2: enable_waf_v2 == Some(true),
        shield: enable_shield == Some(true),
        cpu_request,
        cpu_limit,
        memory_request,
        memory_limit,
    })
}
