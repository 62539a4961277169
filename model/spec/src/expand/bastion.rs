//! The load balancer before bastions.

use crate::api::LoadBalancerType;
use crate::api::cluster::ClusterSpec;
use full::Bastion;

/// What the spec says of it; nothing said: public, with no name of its own.
pub(super) fn full(spec: &ClusterSpec) -> Bastion {
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
