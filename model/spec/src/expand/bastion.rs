//! The load balancer in front of bastions.

use crate::api::LoadBalancerType;
use crate::api::cluster::ClusterSpec;
use full::Bastion;

/// The bastion load balancer of the spec. The default is a public one without a DNS name.
pub(super) fn full_bastion(spec: &ClusterSpec) -> Bastion {
    let bastion = spec
        .topology
        .as_ref()
        .and_then(|topology| topology.bastion.as_ref());
    let balancer = bastion.and_then(|bastion| bastion.load_balancer.as_ref());
    let groups = balancer.map(|balancer| balancer.additional_security_groups.clone());
    Bastion {
        internal: balancer.and_then(|balancer| balancer.type_) == Some(LoadBalancerType::Internal),
        additional_security_groups: groups.unwrap_or_default(),
        public_name: bastion.and_then(|bastion| bastion.bastion_public_name.clone()),
    }
}
