//! The mixed instances policy of a group: what it means where it says nothing, and whether its instance types fit the image.

use super::instances::{arch_of_type, first_machine_type};
use super::{Context, Findings};
use crate::api::InstanceGroup;
use crate::api::instance::{InstanceRequirementsSpec, MinMaxSpec, MixedInstancesPolicySpec};
use crate::quantity::{self, MIB};
use cloud::{
    AmountRange, InstanceRequirements, InstancesDistribution, LOWEST_PRICE, LaunchOverride,
    MixedInstancesPolicy, canonical_price,
};
use node::config::Arch;

/// What AWS does without a number of pools
/// (<https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_InstancesDistribution.html>, as the other defaults).
const POOLS: i32 = 2;

/// The policy of a completed group; `None`: it has none, or a problem was reported.
pub(super) fn mixed_instances(
    group: &InstanceGroup,
    arch: Arch,
    zones: &[&str],
    context: &Context,
    findings: &mut Findings,
) -> Option<MixedInstancesPolicy> {
    let policy = group.spec.mixed_instances_policy.as_ref()?;
    check_base(group, policy, findings);
    for (index, name) in policy.instances.iter().enumerate() {
        let path = format!("spec.mixedInstancesPolicy.instances[{index}]");
        if let Some((message, hint)) = type_problem(group, name, arch, zones, context) {
            findings.add_group_error(group, path, message, hint);
        }
    }
    Some(MixedInstancesPolicy {
        instances_distribution: distribution(group, policy),
        overrides: overrides(group, policy),
    })
}

fn distribution(group: &InstanceGroup, policy: &MixedInstancesPolicySpec) -> InstancesDistribution {
    let ordered = policy.instance_requirements.is_none();
    let on_demand = if ordered { "prioritized" } else { LOWEST_PRICE };
    let or =
        |said: &Option<String>, default: &str| said.clone().unwrap_or_else(|| default.to_owned());
    let spot_allocation_strategy = or(&policy.spot_allocation_strategy, LOWEST_PRICE);
    let pools = policy.spot_instance_pools.unwrap_or(POOLS);
    InstancesDistribution {
        on_demand_allocation_strategy: or(&policy.on_demand_allocation_strategy, on_demand),
        on_demand_base_capacity: policy.on_demand_base.unwrap_or(0),
        on_demand_percentage_above_base_capacity: policy.on_demand_above_base.unwrap_or(100),
        spot_instance_pools: (spot_allocation_strategy == LOWEST_PRICE).then_some(pools),
        spot_allocation_strategy,
        spot_max_price: group.spec.max_price.as_deref().map(canonical_price),
    }
}

/// A policy that names no types launches the group's own.
fn overrides(group: &InstanceGroup, policy: &MixedInstancesPolicySpec) -> Vec<LaunchOverride> {
    if let Some(requirements) = &policy.instance_requirements {
        let requirements = instance_requirements(requirements);
        return vec![LaunchOverride::InstanceRequirements(requirements)];
    }
    let own = first_machine_type(&group.spec).filter(|_| policy.instances.is_empty());
    let named = policy.instances.iter().map(String::as_str).chain(own);
    named
        .map(|name| LaunchOverride::InstanceType(name.to_owned()))
        .collect()
}

/// As in kOps, types such as t3 are among those that AWS chooses from.
fn instance_requirements(said: &InstanceRequirementsSpec) -> InstanceRequirements {
    InstanceRequirements {
        vcpu_count: amounts(said.cpu.as_ref(), 1),
        memory_mib: amounts(said.memory.as_ref(), MIB),
        burstable_performance: "included".to_owned(),
        excluded_instance_types: said.excluded_instance_types.clone(),
    }
}

/// AWS wants whole numbers: those inside the range.
fn amounts(range: Option<&MinMaxSpec>, unit: u128) -> AmountRange {
    let min = range.and_then(|range| quantity::count_up(range.min.as_deref()?, unit));
    let max = range.and_then(|range| quantity::count(range.max.as_deref()?, unit));
    AmountRange {
        min: min.unwrap_or(0),
        max: max.map(|(max, _)| max),
    }
}

fn check_base(group: &InstanceGroup, policy: &MixedInstancesPolicySpec, findings: &mut Findings) {
    let base = policy.on_demand_base.unwrap_or(0);
    if let Some(max) = group.spec.max_size.filter(|max| *max < base) {
        findings.add_group_error(
            group,
            "spec.mixedInstancesPolicy.onDemandBase",
            format!("{base} is more than the group's maxSize, {max}"),
            "use 0 to maxSize",
        );
    }
}

/// Why a type cannot be in the group, and what to do.
fn type_problem(
    group: &InstanceGroup,
    name: &str,
    arch: Arch,
    zones: &[&str],
    context: &Context,
) -> Option<(String, &'static str)> {
    let types = &context.facts.instance_types;
    let own = arch_of_type(name, context.facts);
    if own != arch {
        let message = format!(
            "{name} is {}, and the group's image is for {}",
            own.as_str(),
            arch.as_str()
        );
        return Some((
            message,
            "choose types of the image's architecture; another one needs a group of its own",
        ));
    }
    const OFFERED: &str = "choose an instance type that a zone of the group offers";
    let Some(kind) = types.get(name) else {
        let asked = !context.facts.stand_in;
        return asked.then(|| (format!("this region does not offer {name}"), OFFERED));
    };
    let offered = |zone: &&str| kind.zones.iter().any(|offering| offering == zone);
    if !kind.zones.is_empty() && !zones.iter().any(offered) {
        let message = format!("{} offers no {name}", zones.join(" and "));
        return Some((message, OFFERED));
    }
    let first = types.get(first_machine_type(&group.spec)?)?;
    let mixed = (first.gpu, first.nvidia_gpu) != (kind.gpu, kind.nvidia_gpu);
    mixed.then(|| {
        (
            "the group has instance types with a GPU and without, or with different ones"
                .to_owned(),
            "make a group for each",
        )
    })
}
