//! The mixed instances policy of an Auto Scaling group, between our form and AWS'.

use aws_sdk_autoscaling::types as asg;
use cloud::{
    AmountRange, InstanceRequirements, InstancesDistribution, LOWEST_PRICE, LaunchOverride,
    MixedInstancesPolicy, canonical_price,
};

pub(super) fn read(raw: &asg::MixedInstancesPolicy) -> MixedInstancesPolicy {
    let template = raw.launch_template();
    let overrides = template.map(asg::LaunchTemplate::overrides);
    let overrides = overrides.unwrap_or_default().iter();
    MixedInstancesPolicy {
        instances_distribution: read_distribution(raw.instances_distribution()),
        overrides: overrides.filter_map(read_override).collect(),
    }
}

fn read_distribution(raw: Option<&asg::InstancesDistribution>) -> InstancesDistribution {
    let text = |value: Option<&str>| value.unwrap_or_default().to_owned();
    let spot = text(raw.and_then(|one| one.spot_allocation_strategy()));
    let pools = raw.and_then(asg::InstancesDistribution::spot_instance_pools);
    let price = raw.and_then(|one| one.spot_max_price());
    InstancesDistribution {
        on_demand_allocation_strategy: text(
            raw.and_then(|one| one.on_demand_allocation_strategy()),
        ),
        on_demand_base_capacity: raw
            .and_then(asg::InstancesDistribution::on_demand_base_capacity)
            .unwrap_or_default(),
        on_demand_percentage_above_base_capacity: raw
            .and_then(asg::InstancesDistribution::on_demand_percentage_above_base_capacity)
            .unwrap_or_default(),
        // Of another strategy it means nothing.
        spot_instance_pools: pools.filter(|_| spot == LOWEST_PRICE),
        spot_allocation_strategy: spot,
        spot_max_price: price.filter(|price| !price.is_empty()).map(canonical_price),
    }
}

/// An override of somebody else's that has neither is none of ours: the policies then differ in their number.
fn read_override(raw: &asg::LaunchTemplateOverrides) -> Option<LaunchOverride> {
    let requirements = raw.instance_requirements().map(read_requirements);
    let requirements = requirements.map(LaunchOverride::InstanceRequirements);
    let named = raw.instance_type().map(str::to_owned);
    requirements.or_else(|| named.map(LaunchOverride::InstanceType))
}

fn read_requirements(raw: &asg::InstanceRequirements) -> InstanceRequirements {
    let range = |min: Option<i32>, max: Option<i32>| AmountRange {
        min: min.unwrap_or_default(),
        max,
    };
    let (cpu, memory) = (raw.v_cpu_count(), raw.memory_mib());
    InstanceRequirements {
        vcpu_count: range(
            cpu.and_then(asg::VCpuCountRequest::min),
            cpu.and_then(asg::VCpuCountRequest::max),
        ),
        memory_mib: range(
            memory.and_then(asg::MemoryMiBRequest::min),
            memory.and_then(asg::MemoryMiBRequest::max),
        ),
        burstable_performance: raw
            .burstable_performance()
            .map_or_else(String::new, |one| one.as_str().to_owned()),
        excluded_instance_types: raw.excluded_instance_types().to_vec(),
    }
}

/// The policy with the template that it launches from. An update keeps what it leaves out, and an empty price means none
/// (<https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_InstancesDistribution.html>).
pub(super) fn write(
    want: &MixedInstancesPolicy,
    template: asg::LaunchTemplateSpecification,
) -> asg::MixedInstancesPolicy {
    let of = &want.instances_distribution;
    let price = of.spot_max_price.as_deref().unwrap_or_default();
    let distribution = asg::InstancesDistribution::builder()
        .on_demand_allocation_strategy(&of.on_demand_allocation_strategy)
        .on_demand_base_capacity(of.on_demand_base_capacity)
        .on_demand_percentage_above_base_capacity(of.on_demand_percentage_above_base_capacity)
        .spot_allocation_strategy(&of.spot_allocation_strategy)
        .set_spot_instance_pools(of.spot_instance_pools)
        .spot_max_price(price);
    let launched = asg::LaunchTemplate::builder()
        .launch_template_specification(template)
        .set_overrides(Some(want.overrides.iter().map(write_override).collect()));
    asg::MixedInstancesPolicy::builder()
        .instances_distribution(distribution.build())
        .launch_template(launched.build())
        .build()
}

fn write_override(want: &LaunchOverride) -> asg::LaunchTemplateOverrides {
    let call = asg::LaunchTemplateOverrides::builder();
    match want {
        LaunchOverride::InstanceType(name) => call.instance_type(name),
        LaunchOverride::InstanceRequirements(of) => {
            call.instance_requirements(write_requirements(of))
        }
    }
    .build()
}

fn write_requirements(of: &InstanceRequirements) -> asg::InstanceRequirements {
    let cpu = asg::VCpuCountRequest::builder()
        .min(of.vcpu_count.min)
        .set_max(of.vcpu_count.max);
    let memory = asg::MemoryMiBRequest::builder()
        .min(of.memory_mib.min)
        .set_max(of.memory_mib.max);
    let excluded = Some(of.excluded_instance_types.clone());
    asg::InstanceRequirements::builder()
        .v_cpu_count(cpu.build())
        .memory_mib(memory.build())
        .burstable_performance(of.burstable_performance.as_str().into())
        .set_excluded_instance_types(excluded.filter(|types| !types.is_empty()))
        .build()
}
