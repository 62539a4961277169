//! Determines which facts the expansion of a cluster needs.

use super::full_group::user_profile_name;
use super::instances::first_machine_type;
use super::machine_type::candidate_machine_types;
use super::{dns, network, pod_identity};
use crate::api::cluster::ClusterSpec;
use crate::api::{Cluster, InstanceGroup, InstanceGroupRole};
use crate::catalog::default_image;
use crate::validate::subnets::region_of;
use cloud::facts::FactsWanted;
use full::DnsKind;
use node::config::Arch;

/// The region of a cluster's zones; `None` if it has no zone.
pub(super) fn cluster_region(spec: &ClusterSpec) -> Option<&str> {
    let mut zones = spec.subnets.iter();
    zones.find_map(|subnet| region_of(&subnet.zone))
}

/// The facts that the expansion of a cluster needs.
pub fn wanted_facts(cluster: &Cluster, groups: &[InstanceGroup]) -> FactsWanted {
    let spec = &cluster.spec;
    let mut wanted = FactsWanted {
        region: cluster_region(spec).map(str::to_owned),
        discovery_store: pod_identity::discovery_store(spec).map(str::to_owned),
        vpc: spec.network_id.clone(),
        egress_only_internet_gateway: spec.is_ipv6(),
        subnets: spec
            .subnets
            .iter()
            .filter_map(|subnet| subnet.id.clone())
            .collect(),
        addresses: spec
            .subnets
            .iter()
            .filter_map(network::nat_address)
            .cloned()
            .collect(),
        hosted_zones: dns::dns_kind(spec) != DnsKind::None,
        ..FactsWanted::default()
    };
    for group in groups {
        let role = group.spec.role.unwrap_or(InstanceGroupRole::Node);
        match first_machine_type(&group.spec) {
            Some(name) => wanted.machine_types.extend([name.to_owned()]),
            None => wanted.machine_types.extend(candidate_machine_types(role)),
        }
        let mixed = group.spec.mixed_instances_policy.iter();
        let mixed = mixed.flat_map(|policy| policy.instances.iter().cloned());
        wanted.machine_types.extend(mixed);
        wanted.profiles.extend(user_profile_name(&group.spec));
        match &group.spec.image {
            Some(image) => wanted.images.extend([image.clone()]),
            None => wanted
                .images
                .extend([Arch::Amd64, Arch::Arm64].map(default_image)),
        }
    }
    wanted
}
