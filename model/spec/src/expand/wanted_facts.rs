//! Which facts the expansion of a cluster needs.

use super::full_group::profile_name;
use super::machine_type::usual_machine_types;
use super::machines::first_type;
use super::{dns, network};
use crate::api::{Cluster, InstanceGroup, InstanceGroupRole};
use crate::catalog::default_image;
use crate::validate::subnets::region_of;
use cloud::facts::FactsWanted;
use full::DnsKind;
use node::config::Arch;

/// The facts that the expansion of a cluster needs.
pub fn wanted_facts(cluster: &Cluster, groups: &[InstanceGroup]) -> FactsWanted {
    let spec = &cluster.spec;
    let mut wanted = FactsWanted {
        region: spec
            .subnets
            .iter()
            .find_map(|subnet| region_of(&subnet.zone))
            .map(str::to_owned),
        vpc: spec.network_id.clone(),
        subnets: spec
            .subnets
            .iter()
            .filter_map(|subnet| subnet.id.clone())
            .collect(),
        addresses: spec
            .subnets
            .iter()
            .filter_map(network::wanted_address)
            .cloned()
            .collect(),
        hosted_zones: dns::dns_kind(spec) != DnsKind::None,
        ..FactsWanted::default()
    };
    for group in groups {
        let role = group.spec.role.unwrap_or(InstanceGroupRole::Node);
        match first_type(&group.spec) {
            Some(said) => wanted.machine_types.extend([said.to_owned()]),
            None => wanted.machine_types.extend(usual_machine_types(role)),
        }
        wanted.profiles.extend(profile_name(&group.spec));
        match &group.spec.image {
            Some(said) => wanted.images.extend([said.clone()]),
            None => wanted
                .images
                .extend([Arch::Amd64, Arch::Arm64].map(default_image)),
        }
    }
    wanted
}
