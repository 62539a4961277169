//! The instance groups of a new cluster.

use super::network::{SubnetsByZone, dual_stack_name};
use super::options::{CreateOptions, Topology};
use crate::api::cluster::ClusterSpec;
use crate::api::instance::MixedInstancesPolicySpec;
use crate::api::instance_group::InstanceGroupSpec;
use crate::api::metadata::{CLUSTER_LABEL, Metadata};
use crate::api::subnet::ClusterSubnetSpec;
use crate::api::{InstanceGroup, InstanceGroupRole as Role, SubnetType};
use crate::catalog::new_group_image;
use crate::expand::{arch_of_image, arch_of_type, default_machine_type};
use crate::read::Problem;
use cloud::facts::Facts;

/// Label that carries a group's name.
const GROUP_LABEL: &str = "kops.k8s.io/instancegroup";

/// Control planes, workers and bastions.
pub(super) fn build_groups(
    options: &CreateOptions,
    facts: &Facts,
    spec: &ClusterSpec,
    placed: &SubnetsByZone,
    problems: &mut Vec<Problem>,
) -> Vec<InstanceGroup> {
    let mut groups = control_plane_groups(options, placed);
    groups.extend(node_groups(options, placed));
    if options.bastion {
        groups.push(bastion_group(options, spec));
    }
    let zones = options.control_plane_zones();
    if options.control_planes() > 1 && options.control_planes() > zones.len() {
        let problem = Problem::warning(
            "--control-plane-zones",
            "several control planes share a zone and fail with it",
        );
        problems.push(problem.hint("name as many zones as there are control planes"));
    }
    for group in &mut groups {
        set_image_and_type(group, options, facts, spec, problems);
        group.spec.associate_public_ip = options.associate_public_ip;
    }
    groups
}

/// The names of the control-plane groups, in the order they were made.
pub(super) fn control_planes(groups: &[InstanceGroup]) -> Vec<&str> {
    let control_planes = groups
        .iter()
        .filter(|group| group.spec.role == Some(Role::ControlPlane));
    control_planes.map(InstanceGroup::name).collect()
}

/// An instance group of a cluster, with the labels that every group has.
pub fn labelled_group(cluster: &str, name: &str, mut spec: InstanceGroupSpec) -> InstanceGroup {
    let mut metadata = Metadata::with_name(name);
    let label = (CLUSTER_LABEL.to_owned(), cluster.to_owned());
    metadata.labels.extend([label]);
    spec.node_labels
        .insert(GROUP_LABEL.to_owned(), name.to_owned());
    InstanceGroup {
        metadata,
        spec: Box::new(spec),
    }
}

fn new_group(name: &str, options: &CreateOptions, spec: InstanceGroupSpec) -> InstanceGroup {
    labelled_group(&options.name, name, spec)
}

/// One group of one instance for each control plane, going round the zones; a number tells those
/// that share a zone apart.
fn control_plane_groups(options: &CreateOptions, placed: &SubnetsByZone) -> Vec<InstanceGroup> {
    let zones = options.control_plane_zones();
    let shared = options.control_planes() > zones.len();
    let all = zones.iter().cycle().take(options.control_planes());
    all.enumerate()
        .map(|(index, zone)| {
            let wave = 1 + index / zones.len().max(1);
            let name = if shared {
                format!("control-plane-{zone}-{wave}")
            } else {
                format!("control-plane-{zone}")
            };
            let main = placed.get(zone).and_then(|subnets| subnets.first());
            // Load balancers reach control planes by IPv4.
            let dual_stack = options.ipv6 && options.topology == Topology::Private;
            let main = main.map(|main| {
                if dual_stack {
                    dual_stack_name(main)
                } else {
                    main.clone()
                }
            });
            new_group(
                &name,
                options,
                InstanceGroupSpec {
                    role: Some(Role::ControlPlane),
                    min_size: Some(1),
                    max_size: Some(1),
                    subnets: main.into_iter().collect(),
                    image: options.control_plane_image.clone(),
                    root_volume_size: options.control_plane_volume_size,
                    root_volume_type: options.control_plane_volume_type.clone(),
                    tenancy: options.control_plane_tenancy.clone(),
                    additional_security_groups: options.control_plane_security_groups.clone(),
                    ..group_of_sizes(&options.control_plane_sizes)
                },
            )
        })
        .collect()
}

/// One group per zone; workers are shared out evenly, the first zones get what is left over.
fn node_groups(options: &CreateOptions, placed: &SubnetsByZone) -> Vec<InstanceGroup> {
    let zones = &options.zones;
    let count = options.node_count.unwrap_or(zones.len());
    let each = count / zones.len().max(1);
    let left_over = count % zones.len().max(1);
    zones
        .iter()
        .enumerate()
        .map(|(index, zone)| {
            let size = each + usize::from(index < left_over);
            let size = i32::try_from(size).unwrap_or(i32::MAX);
            new_group(
                &format!("nodes-{zone}"),
                options,
                InstanceGroupSpec {
                    role: Some(Role::Node),
                    min_size: Some(size),
                    max_size: Some(size),
                    subnets: node_subnets(zone, placed),
                    image: options.node_image.clone(),
                    root_volume_size: options.node_volume_size,
                    root_volume_type: options.node_volume_type.clone(),
                    tenancy: options.node_tenancy.clone(),
                    additional_security_groups: options.node_security_groups.clone(),
                    ..group_of_sizes(&options.node_sizes)
                },
            )
        })
        .collect()
}

/// The zone's subnets of further ranges if it has any: its main one is smaller, and the control
/// plane's.
fn node_subnets(zone: &str, placed: &SubnetsByZone) -> Vec<String> {
    match placed.get(zone).map(Vec::as_slice) {
        Some([_, further @ ..]) if !further.is_empty() => further.to_vec(),
        Some(only) => only.to_vec(),
        None => Vec::new(),
    }
}

fn bastion_group(options: &CreateOptions, spec: &ClusterSpec) -> InstanceGroup {
    let subnets = spec.subnets.iter();
    let dual_stack = |subnet: &ClusterSubnetSpec| subnet.type_ == Some(SubnetType::DualStack);
    let some = spec.subnets.iter().any(dual_stack);
    let own = subnets.filter(|subnet| {
        subnet.type_ != Some(SubnetType::Utility) && (!some || dual_stack(subnet))
    });
    let said = InstanceGroupSpec {
        role: Some(Role::Bastion),
        min_size: Some(1),
        max_size: Some(1),
        subnets: own.map(|subnet| subnet.name.clone()).collect(),
        image: options.bastion_image.clone(),
        ..InstanceGroupSpec::default()
    };
    new_group("bastions", options, said)
}

/// The first instance type, and all of them where there are several.
fn group_of_sizes(sizes: &[String]) -> InstanceGroupSpec {
    InstanceGroupSpec {
        machine_type: sizes.first().cloned(),
        mixed_instances_policy: (sizes.len() > 1).then(|| MixedInstancesPolicySpec {
            instances: sizes.to_vec(),
            ..MixedInstancesPolicySpec::default()
        }),
        ..InstanceGroupSpec::default()
    }
}

/// Image and instance type: the image fits the instance type that was said, then the instance type
/// fits the image.
fn set_image_and_type(
    group: &mut InstanceGroup,
    options: &CreateOptions,
    facts: &Facts,
    spec: &ClusterSpec,
    problems: &mut Vec<Problem>,
) {
    let said = group.spec.machine_type.as_deref().unwrap_or_default();
    let by_type = || new_group_image(arch_of_type(said, facts));
    let image = group.spec.image.take().or_else(|| options.image.clone());
    let image = image.unwrap_or_else(by_type);
    let arch = arch_of_image(&image, facts);
    group.spec.image = Some(image);
    if group.spec.machine_type.is_some() {
        return;
    }
    let subnets = spec.subnets.iter();
    let own = subnets.filter(|subnet| group.spec.subnets.contains(&subnet.name));
    let zones: Vec<&str> = own.map(|subnet| subnet.zone.as_str()).collect();
    let role = group.spec.role.unwrap_or(Role::Node);
    group.spec.machine_type = default_machine_type(role, arch, &zones, facts);
    if group.spec.machine_type.is_none() {
        let (flag, hint) = match role {
            Role::Bastion => ("--bastion", "create the cluster without, then add a group"),
            Role::Node => ("--node-size", "name an instance type"),
            _ => ("--control-plane-size", "name an instance type"),
        };
        let message = format!(
            "no usual {} instance type is offered in {}",
            arch.as_str(),
            zones.join(", ")
        );
        problems.push(Problem::error(flag, message).hint(hint));
    }
}
