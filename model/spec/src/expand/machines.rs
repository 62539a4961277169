//! What a group's machines are: image and machine type as EC2 knows them.

use super::{Found, Known};
use crate::api::InstanceGroup;
use crate::api::instance_group::InstanceGroupSpec;
use cloud::facts::{Facts, Image};
use cloud::machine_image;
use node::config::Arch;

/// The AMI of images that nobody could look up.
pub const STAND_IN_IMAGE: &str = "ami-00000000000000000";
/// The root device of images that nobody could look up.
pub const STAND_IN_ROOT_DEVICE: &str = "/dev/xvda";

/// A group's machines, resolved.
pub(super) struct Machine {
    pub image_id: String,
    pub root_device: String,
    pub arch: Arch,
    pub instance_store_disks: u32,
}

/// The architecture of a machine type: as EC2 says, else by the letter after the generation.
pub(crate) fn arch_of_type(machine_type: &str, facts: &Facts) -> Arch {
    if let Some(known) = facts.instance_types.get(machine_type) {
        return known.arch;
    }
    let family = machine_type.split('.').next().unwrap_or_default();
    let after = family.find(|c: char| c.is_ascii_digit());
    let suffix = after
        .and_then(|start| family.get(start..))
        .unwrap_or_default();
    if suffix.contains('g') || family == "a1" {
        Arch::Arm64
    } else {
        Arch::Amd64
    }
}

/// The architecture of an image: as EC2 says, else by its name.
pub(crate) fn arch_of_image(image: &str, facts: &Facts) -> Arch {
    match facts.images.get(image) {
        Some(known) => known.arch,
        None if image.contains("arm64") || image.contains("aarch64") => Arch::Arm64,
        None => Arch::Amd64,
    }
}

/// The machine type; the first one of a list with commas, as old specs of mixed groups have it.
pub(super) fn first_type(said: &InstanceGroupSpec) -> Option<&str> {
    said.machine_type.as_deref()?.split(',').next()
}

/// Image and machine type of a completed group. Without anybody to ask, stand-ins.
pub(super) fn machine(
    group: &InstanceGroup,
    zones: &[&str],
    known: &Known,
    found: &mut Found,
) -> Option<Machine> {
    let machine_type = first_type(&group.spec)?;
    let instance_store_disks = disks(group, machine_type, zones, known, found);
    let image = image(group, machine_type, known, found)?;
    let arch = arch_of_type(machine_type, known.facts);
    if image.arch != arch {
        found.group_error(
            group,
            "spec.image",
            format!(
                "the image is for {}, and {machine_type} is {}",
                image.arch.as_str(),
                arch.as_str()
            ),
            "choose image and machine type of the same architecture",
        );
    }
    Some(Machine {
        instance_store_disks: instance_store_disks?,
        ..image
    })
}

fn disks(
    group: &InstanceGroup,
    machine_type: &str,
    zones: &[&str],
    known: &Known,
    found: &mut Found,
) -> Option<u32> {
    const PATH: &str = "spec.machineType";
    const HINT: &str = "choose a machine type that all zones of the group offer";
    match known.facts.instance_types.get(machine_type) {
        Some(kind) => {
            let offered = |zone: &&&str| kind.zones.iter().any(|offering| offering == **zone);
            let lacking = zones
                .iter()
                .find(|zone| !kind.zones.is_empty() && !offered(zone));
            if let Some(zone) = lacking {
                let message = format!("{zone} does not offer {machine_type}");
                found.group_error(group, PATH, message, HINT);
            }
            Some(kind.instance_store_disks)
        }
        None if known.facts.stand_in => Some(0),
        None => {
            let message = format!("this region does not offer {machine_type}");
            found.group_error(group, PATH, message, HINT);
            None
        }
    }
}

fn image(
    group: &InstanceGroup,
    machine_type: &str,
    known: &Known,
    found: &mut Found,
) -> Option<Machine> {
    let name = group.spec.image.as_deref()?;
    let facts = known.facts;
    match facts.images.get(name) {
        Some(Image {
            unfit: Some(system),
            ..
        }) => {
            found.group_error(
                group,
                "spec.image",
                format!("nodeup makes no node of {system}, and {name} is that"),
                &format!("choose one of {}", machine_image::KNOWN),
            );
            None
        }
        Some(image) => Some(Machine {
            image_id: image.id.clone(),
            root_device: image.root_device.clone(),
            arch: image.arch,
            instance_store_disks: 0,
        }),
        None if facts.stand_in => {
            let own = name.starts_with("ami-");
            Some(Machine {
                image_id: if own { name } else { STAND_IN_IMAGE }.to_owned(),
                root_device: STAND_IN_ROOT_DEVICE.to_owned(),
                // Names such as ami-123 say nothing of it.
                arch: arch_of_type(machine_type, facts),
                instance_store_disks: 0,
            })
        }
        None => {
            found.group_error(
                group,
                "spec.image",
                format!("this region has no image {name}"),
                &format!(
                    "name it as ami-ID or OWNER/NAME{}",
                    elsewhere(&facts.partition)
                ),
            );
            None
        }
    }
}

/// Ubuntu's publisher has another account in other partitions (Canonical's page "Find Ubuntu images on AWS").
fn elsewhere(partition: &str) -> &'static str {
    match partition {
        "aws-cn" => "; Ubuntu is 837727238323/NAME in aws-cn",
        "aws-us-gov" => "; Ubuntu is 513442679011/NAME in aws-us-gov",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::arch_of_type;
    use cloud::facts::Facts;
    use node::config::Arch;

    #[test]
    fn the_letter_after_the_generation_tells_arm() {
        let arch = |name| arch_of_type(name, &Facts::default());
        for name in [
            "t4g.medium",
            "m6g.xlarge",
            "c7gn.large",
            "im4gn.large",
            "g5g.xlarge",
            "a1.large",
        ] {
            assert_eq!(arch(name), Arch::Arm64, "{name}");
        }
        for name in [
            "t3.medium",
            "m5.large",
            "g4dn.xlarge",
            "m3.medium",
            "p4d.24xlarge",
            "odd",
        ] {
            assert_eq!(arch(name), Arch::Amd64, "{name}");
        }
    }
}
