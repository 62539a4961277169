//! The machine type of groups that name none.

use crate::api::InstanceGroupRole;
use cloud::facts::Facts;
use node::config::Arch;

/// What is taken, first choice first: kOps' order, then types of regions that have nothing newer.
fn candidates(role: InstanceGroupRole) -> &'static [(&'static str, Arch)] {
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

/// Machine types that groups of a role may get, first choice first.
pub fn usual_machine_types(role: InstanceGroupRole) -> impl Iterator<Item = String> {
    candidates(role).iter().map(|(name, _)| (*name).to_owned())
}

/// The first candidate of a role that has the architecture and is offered in all zones. Without
/// any machine types in the facts, the first of that architecture. `None`: none is offered.
pub fn default_machine_type(
    role: InstanceGroupRole,
    arch: Arch,
    zones: &[&str],
    facts: &Facts,
) -> Option<String> {
    let offered = |name: &str| {
        let Some(known) = facts.instance_types.get(name) else {
            return facts.instance_types.is_empty();
        };
        let everywhere = known.zones.is_empty();
        everywhere
            || zones
                .iter()
                .all(|zone| known.zones.iter().any(|offer| offer == zone))
    };
    candidates(role)
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

    fn offering(types: &[(&str, Arch, &[&str])]) -> Facts {
        let types = types.iter().map(|(name, arch, zones)| {
            let kind = InstanceType {
                arch: *arch,
                instance_store_disks: 0,
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
        let facts = offering(&[
            ("t3.medium", Amd64, &["a"]),
            ("c4.large", Amd64, &["a", "b"]),
            ("t4g.medium", Arm64, &[]),
        ]);
        let of = |arch, zones: &[&str]| default_machine_type(Node, arch, zones, &facts);
        assert_eq!(of(Amd64, &["a"]).unwrap(), "t3.medium");
        assert_eq!(of(Amd64, &["a", "b"]).unwrap(), "c4.large");
        assert_eq!(of(Arm64, &["a", "b"]).unwrap(), "t4g.medium");
        assert_eq!(of(Amd64, &["c"]), None);
    }

    #[test]
    fn without_anybody_to_ask_the_first_one_is_taken() {
        let of = |role, arch| default_machine_type(role, arch, &["a"], &Facts::default());
        assert_eq!(of(ControlPlane, Amd64).unwrap(), "t3.medium");
        assert_eq!(of(Node, Arm64).unwrap(), "t4g.medium");
        assert_eq!(of(Bastion, Amd64).unwrap(), "t3.micro");
    }
}
