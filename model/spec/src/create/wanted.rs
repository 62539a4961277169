//! What must be asked of AWS before the creation of a cluster.

use super::CreateOptions;
use crate::api::InstanceGroupRole;
use crate::expand::{Wanted, usual_machine_types};
use crate::validate::subnets::region_of;
use std::collections::BTreeSet;

/// What the creation of a cluster wants.
pub fn wanted(options: &CreateOptions) -> Wanted {
    let mut machine_types = BTreeSet::new();
    let roles = [
        (
            InstanceGroupRole::ControlPlane,
            &options.control_plane_sizes,
        ),
        (InstanceGroupRole::Node, &options.node_sizes),
    ];
    for (role, said) in roles {
        if said.is_empty() {
            machine_types.extend(usual_machine_types(role));
        }
        machine_types.extend(said.iter().cloned());
    }
    if options.bastion {
        machine_types.extend(usual_machine_types(InstanceGroupRole::Bastion));
    }
    let images = [
        &options.image,
        &options.control_plane_image,
        &options.node_image,
        &options.bastion_image,
    ];
    let subnets = options.subnets.iter().chain(&options.utility_subnets);
    Wanted {
        region: options
            .zones
            .iter()
            .find_map(|zone| region_of(zone))
            .map(str::to_owned),
        images: images.into_iter().flatten().cloned().collect(),
        machine_types,
        vpc: options.network_id.clone(),
        subnets: subnets.cloned().collect(),
        addresses: BTreeSet::new(),
        profiles: BTreeSet::new(),
        hosted_zones: false,
    }
}
