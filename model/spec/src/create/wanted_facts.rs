//! Which facts the creation of a cluster needs.

use super::CreateOptions;
use crate::api::InstanceGroupRole;
use crate::expand::candidate_machine_types;
use crate::validate::subnets::region_of;
use cloud::facts::FactsWanted;
use std::collections::BTreeSet;

/// The facts that the creation of a cluster needs: its zones must exist and offer its instance types.
pub fn wanted_facts(options: &CreateOptions) -> FactsWanted {
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
            machine_types.extend(candidate_machine_types(role));
        }
        machine_types.extend(said.iter().cloned());
    }
    if options.bastion {
        machine_types.extend(candidate_machine_types(InstanceGroupRole::Bastion));
    }
    let images = [
        &options.image,
        &options.control_plane_image,
        &options.node_image,
        &options.bastion_image,
    ];
    let subnets = options.subnets.iter().chain(&options.utility_subnets);
    FactsWanted {
        region: options
            .zones
            .iter()
            .find_map(|zone| region_of(zone))
            .map(str::to_owned),
        images: images.into_iter().flatten().cloned().collect(),
        machine_types,
        vpc: options.network_id.clone(),
        subnets: subnets.cloned().collect(),
        offered_in: options.all_zones().into_iter().map(str::to_owned).collect(),
        ..FactsWanted::default()
    }
}
