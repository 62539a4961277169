//! The SSH bastion.

use crate::api::InstanceGroupRole;
use crate::read::Problem;

use super::ClusterInput;
use super::text::is_dns_name;

pub fn check(input: &ClusterInput<'_>, problems: &mut Vec<Problem>) {
    let spec = &input.cluster.spec;
    let Some(bastion) = spec
        .topology
        .as_ref()
        .and_then(|topology| topology.bastion.as_ref())
    else {
        return;
    };
    let path = "spec.topology.bastion";
    if !spec
        .subnets
        .iter()
        .any(|subnet| subnet.subnet_type().is_private())
    {
        let problem = Problem::error(path, "a bastion has no use without private subnets");
        problems.push(problem.hint("remove it, or make the subnets of the instances private"));
    }
    if !input
        .instance_groups
        .iter()
        .any(|group| group.spec.role == Some(InstanceGroupRole::Bastion))
    {
        let problem = Problem::warning(path, "the cluster has no group of role Bastion");
        problems.push(problem.hint("add one, in a utility subnet"));
    }
    if let Some(name) = bastion
        .bastion_public_name
        .as_deref()
        .filter(|name| !is_dns_name(name))
    {
        let problem = Problem::error(
            format!("{path}.bastionPublicName"),
            format!("\"{name}\" is not a DNS name"),
        );
        problems.push(problem.hint("use lowercase letters, digits, dashes and dots"));
    }
    let groups = bastion
        .load_balancer
        .iter()
        .flat_map(|balancer| balancer.additional_security_groups.iter().enumerate());
    for (index, id) in groups {
        super::instances::check_security_group(
            format!("{path}.loadBalancer.additionalSecurityGroups[{index}]"),
            id,
            problems,
        );
    }
}
