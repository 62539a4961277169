//! The default instance type of groups.

use crate::api::InstanceGroupRole;
use cloud::facts::Facts;
use node::config::Arch;

/// Candidates in order of preference: kOps' order, then types for regions without newer ones.
fn default_candidates(role: InstanceGroupRole) -> &'static [(&'static str, Arch)] {
    const AMD64: Arch = Arch::Amd64;
    const ARM64: Arch = Arch::Arm64;
    match role {
        InstanceGroupRole::ControlPlane | InstanceGroupRole::ApiServer => &[
            ("t3.medium", AMD64),
            ("c5.large", AMD64),
            ("c4.large", AMD64),
            ("t4g.medium", ARM64),
            ("m3.medium", AMD64),
        ],
        InstanceGroupRole::Node => &[
            ("t3.medium", AMD64),
            ("c5.large", AMD64),
            ("c4.large", AMD64),
            ("t4g.medium", ARM64),
            ("t2.medium", AMD64),
        ],
        InstanceGroupRole::Bastion => &[
            ("t3.micro", AMD64),
            ("t2.micro", AMD64),
            ("t4g.micro", ARM64),
        ],
    }
}

/// The instance types that a group of this role can get by default, first choice first.
pub fn candidate_machine_types(role: InstanceGroupRole) -> impl Iterator<Item = String> {
    default_candidates(role)
        .iter()
        .map(|(name, _)| (*name).to_owned())
}

/// The first candidate of a role that has the architecture and is offered in all zones. If the
/// facts contain no instance types, the first of that architecture. `None`: none is offered.
pub fn default_machine_type(
    role: InstanceGroupRole,
    arch: Arch,
    zones: &[&str],
    facts: &Facts,
) -> Option<String> {
    let offered = |name: &str| {
        let Some(offered_type) = facts.instance_types.get(name) else {
            return facts.instance_types.is_empty();
        };
        let everywhere = offered_type.zones.is_empty();
        everywhere
            || zones
                .iter()
                .all(|zone| offered_type.zones.iter().any(|offer| offer == zone))
    };
    default_candidates(role)
        .iter()
        .find(|(name, of)| *of == arch && offered(name))
        .map(|(name, _)| (*name).to_owned())
}

#[cfg(test)]
mod tests {
    use super::default_machine_type;
    use crate::api::InstanceGroupRole::{Bastion, ControlPlane, Node};
    use cloud::facts::{Facts, InstanceType};
    use node::config::Arch::{self, Amd64, Arm64};

    fn facts_offering(types: &[(&str, Arch, &[&str])]) -> Facts {
        let types = types.iter().map(|(name, arch, zones)| {
            let kind = InstanceType {
                arch: *arch,
                instance_store_disks: 0,
                gpu: false,
                nvidia_gpu: false,
                xen: false,
                max_interfaces: None,
                addresses_per_interface: None,
                zones: zones.iter().map(|zone| (*zone).to_owned()).collect(),
            };
            ((*name).to_owned(), kind)
        });
        Facts {
            instance_types: types.collect(),
            ..Facts::default()
        }
    }

    #[test]
    fn the_first_candidate_offered_in_all_zones_is_taken() {
        let facts = facts_offering(&[
            ("t3.medium", Amd64, &["a"]),
            ("c4.large", Amd64, &["a", "b"]),
            ("t4g.medium", Arm64, &[]),
        ]);
        let default_type = |arch, zones: &[&str]| default_machine_type(Node, arch, zones, &facts);
        assert_eq!(default_type(Amd64, &["a"]).unwrap(), "t3.medium");
        assert_eq!(default_type(Amd64, &["a", "b"]).unwrap(), "c4.large");
        assert_eq!(default_type(Arm64, &["a", "b"]).unwrap(), "t4g.medium");
        assert_eq!(default_type(Amd64, &["c"]), None);
    }

    #[test]
    fn without_anybody_to_ask_the_first_one_is_taken() {
        let default_type = |role, arch| default_machine_type(role, arch, &["a"], &Facts::default());
        assert_eq!(default_type(ControlPlane, Amd64).unwrap(), "t3.medium");
        assert_eq!(default_type(Node, Arm64).unwrap(), "t4g.medium");
        assert_eq!(default_type(Bastion, Amd64).unwrap(), "t3.micro");
    }
}
