//! Instance types that can be Nodes of an IPv6 cluster: those of the Nitro System. AWS gives others no ranges of IPv6 addresses, and
//! launches none of them in a subnet with IPv6 alone (EC2 user guide, "Prefix delegation for Amazon EC2 network interfaces").

use super::instances::first_machine_type;
use super::{Context, Findings};
use crate::api::cluster::ClusterSpec;
use crate::api::{InstanceGroup, InstanceGroupRole};

/// Adds an error for each type of a group that is known to be another one.
pub(super) fn check_types(
    group: &InstanceGroup,
    spec: &ClusterSpec,
    context: &Context,
    findings: &mut Findings,
) {
    if !spec.is_ipv6() || group.spec.role == Some(InstanceGroupRole::Bastion) {
        return;
    }
    let policy = group.spec.mixed_instances_policy.as_ref();
    let named = policy.map_or(&[][..], |policy| &policy.instances);
    let own = first_machine_type(&group.spec).filter(|_| named.is_empty());
    let own = own.map(|name| ("spec.machineType".to_owned(), name));
    let named = named.iter().enumerate().map(|(index, name)| {
        let path = format!("spec.mixedInstancesPolicy.instances[{index}]");
        (path, name.as_str())
    });
    for (path, name) in own.into_iter().chain(named) {
        let kind = context.facts.instance_types.get(name);
        if kind.is_some_and(|kind| kind.xen) {
            let message = format!("AWS gives a {name} no range of IPv6 addresses for pods");
            let hint = "choose a type of the Nitro System, such as t3.medium";
            findings.add_group_error(group, path, message, hint);
        }
    }
}
