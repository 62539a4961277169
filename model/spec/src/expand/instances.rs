//! Resolves the image and instance type of a group with the facts from EC2.

use super::{Context, Findings};
use crate::api::InstanceGroup;
use crate::api::instance_group::InstanceGroupSpec;
use cloud::facts::Facts;
use cloud::supported_image;
use node::config::Arch;

/// Placeholder for an AMI if AWS was not queried.
pub const STAND_IN_IMAGE: &str = "ami-00000000000000000";
/// Placeholder for an image's root device if AWS was not queried.
pub const STAND_IN_ROOT_DEVICE: &str = "/dev/xvda";

/// What is known of a group's instances after the lookup of image and instance type.
pub(super) struct ResolvedInstance {
    pub image_id: String,
    pub root_device: String,
    pub arch: Arch,
    pub instance_store_disks: u32,
}

/// The architecture of an instance type: from the facts, else from the letter after the generation (`g`: Arm).
pub(crate) fn arch_of_type(machine_type: &str, facts: &Facts) -> Arch {
    if let Some(offered_type) = facts.instance_types.get(machine_type) {
        return offered_type.arch;
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

/// The architecture of an image: from the facts, else from its name.
pub(crate) fn arch_of_image(image: &str, facts: &Facts) -> Arch {
    match facts.images.get(image) {
        Some(offered_type) => offered_type.arch,
        None if image.contains("arm64") || image.contains("aarch64") => Arch::Arm64,
        None => Arch::Amd64,
    }
}

/// True if instances of a type have a GPU of NVIDIA's: from the facts, else from the family, of which only g4ad has others.
pub(super) fn has_nvidia_gpu(machine_type: &str, facts: &Facts) -> bool {
    if let Some(offered_type) = facts.instance_types.get(machine_type) {
        return offered_type.nvidia_gpu;
    }
    let family = machine_type.split('.').next().unwrap_or_default();
    // G, Gr and P.
    let mut letters = ["gr", "g", "p"].into_iter();
    let generation = letters.find_map(|letters| family.strip_prefix(letters));
    let generation = generation.unwrap_or_default();
    generation.starts_with(|c: char| c.is_ascii_digit()) && family != "g4ad"
}

/// The group's instance type. Old specs of mixed groups have a comma-separated list: the first one counts.
pub(super) fn first_machine_type(said: &InstanceGroupSpec) -> Option<&str> {
    said.machine_type.as_deref()?.split(',').next()
}

/// Image and instance type of a completed group; placeholders if AWS was not queried.
pub(super) fn resolve_instance(
    group: &InstanceGroup,
    zones: &[&str],
    context: &Context,
    findings: &mut Findings,
) -> Option<ResolvedInstance> {
    let machine_type = first_machine_type(&group.spec)?;
    let instance_store_disks = instance_store_disks(group, machine_type, zones, context, findings);
    let image = resolve_image(group, machine_type, context, findings)?;
    let arch = arch_of_type(machine_type, context.facts);
    if image.arch != arch {
        findings.add_group_error(
            group,
            "spec.image",
            format!(
                "the image is for {}, and {machine_type} is {}",
                image.arch.as_str(),
                arch.as_str()
            ),
            "choose image and instance type of the same architecture",
        );
    }
    Some(ResolvedInstance {
        instance_store_disks: instance_store_disks?,
        ..image
    })
}

fn instance_store_disks(
    group: &InstanceGroup,
    machine_type: &str,
    zones: &[&str],
    context: &Context,
    findings: &mut Findings,
) -> Option<u32> {
    const PATH: &str = "spec.machineType";
    const HINT: &str = "choose an instance type that all zones of the group offer";
    match context.facts.instance_types.get(machine_type) {
        Some(kind) => {
            let offered = |zone: &&&str| kind.zones.iter().any(|offering| offering == **zone);
            let lacking = zones
                .iter()
                .find(|zone| !kind.zones.is_empty() && !offered(zone));
            if let Some(zone) = lacking {
                let message = format!("{zone} does not offer {machine_type}");
                findings.add_group_error(group, PATH, message, HINT);
            }
            Some(kind.instance_store_disks)
        }
        None if context.facts.stand_in => Some(0),
        None => {
            let message = format!("this region does not offer {machine_type}");
            findings.add_group_error(group, PATH, message, HINT);
            None
        }
    }
}

fn resolve_image(
    group: &InstanceGroup,
    machine_type: &str,
    context: &Context,
    findings: &mut Findings,
) -> Option<ResolvedInstance> {
    let name = group.spec.image.as_deref()?;
    let facts = context.facts;
    if let Some(system) = unfit_system(name, facts) {
        findings.add_group_error(
            group,
            "spec.image",
            format!("nodeup does not support {system}, the system of image {name}"),
            &format!("choose one of {}", supported_image::KNOWN),
        );
        return None;
    }
    match facts.images.get(name) {
        Some(image) => Some(ResolvedInstance {
            image_id: image.id.clone(),
            root_device: image.root_device.clone(),
            arch: image.arch,
            instance_store_disks: 0,
        }),
        None if facts.stand_in => {
            let own = name.starts_with("ami-");
            Some(ResolvedInstance {
                image_id: if own { name } else { STAND_IN_IMAGE }.to_owned(),
                root_device: STAND_IN_ROOT_DEVICE.to_owned(),
                // A name such as ami-123 does not tell the architecture.
                arch: arch_of_type(machine_type, facts),
                instance_store_disks: 0,
            })
        }
        None => {
            findings.add_group_error(
                group,
                "spec.image",
                format!("this region has no image {name}"),
                &format!(
                    "name it as ami-ID or OWNER/NAME{}",
                    ubuntu_owner_hint(&facts.partition)
                ),
            );
            None
        }
    }
}

/// The system in an image of which nodeup makes no node; if nobody was asked, owner and name may tell it.
fn unfit_system(image: &str, facts: &Facts) -> Option<String> {
    match facts.images.get(image) {
        Some(known) => known.unfit.clone(),
        None => {
            let (owner, name) = image.split_once('/').unwrap_or(("", image));
            supported_image::unsupported_system(owner, name, "")
        }
    }
}

/// Canonical's account in other partitions, as part of a hint (Canonical's page "Find Ubuntu images on AWS").
fn ubuntu_owner_hint(partition: &str) -> &'static str {
    match partition {
        "aws-cn" => "; Ubuntu is 837727238323/NAME in aws-cn",
        "aws-us-gov" => "; Ubuntu is 513442679011/NAME in aws-us-gov",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::{arch_of_type, has_nvidia_gpu};
    use cloud::facts::Facts;
    use node::config::Arch;

    #[test]
    fn the_family_tells_gpus_of_nvidia() {
        let has = |name| has_nvidia_gpu(name, &Facts::default());
        for name in ["g4dn.xlarge", "g5g.xlarge", "g6.2xlarge", "p4d.24xlarge"] {
            assert!(has(name), "{name}");
        }
        for name in ["g4ad.xlarge", "m5.large", "t4g.medium", "odd"] {
            assert!(!has(name), "{name}");
        }
    }

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
