//! What must be asked of AWS before expansion.

use super::full_group::profile_name;
use super::machine_type::usual_machine_types;
use super::machines::first_type;
use super::{dns, network};
use crate::api::{Cluster, InstanceGroup, InstanceGroupRole};
use crate::catalog::default_image;
use crate::validate::subnets::region_of;
use full::DnsKind;
use node::config::Arch;
use std::collections::BTreeSet;

/// What [`cloud::facts::Facts`] must hold for a cluster, besides account and partition. Hashes of
/// downloads are not among it: those that [`full::FullSpec`] lacks are asked for afterwards.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// The region to ask; `None` where the spec names no zone.
    pub region: Option<String>,
    /// Images as the spec names them.
    pub images: BTreeSet<String>,
    /// Machine types; those not offered are left out of the facts.
    pub machine_types: BTreeSet<String>,
    /// The user's VPC, by id.
    pub vpc: Option<String>,
    /// The user's subnets, by id; their VPC is wanted too.
    pub subnets: BTreeSet<String>,
    /// Elastic IPs of the user's, by public address.
    pub addresses: BTreeSet<String>,
    /// Instance profiles of the user's, by name.
    pub profiles: BTreeSet<String>,
    /// Hosted zones of the account.
    pub hosted_zones: bool,
}

/// What expansion of a cluster wants.
pub fn wanted(cluster: &Cluster, groups: &[InstanceGroup]) -> Wanted {
    let spec = &cluster.spec;
    let mut wanted = Wanted {
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
        hosted_zones: dns::kind(spec) != DnsKind::None,
        ..Wanted::default()
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
