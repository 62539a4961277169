//! A group's mixed instances policy: what Auto Scaling takes, and what a group can be.

use crate::api::instance::{InstanceRequirementsSpec, MinMaxSpec, MixedInstancesPolicySpec};
use crate::api::instance_group::InstanceGroupSpec;
use crate::quantity::{self, MIB};
use crate::read::Problem;
use cloud::LOWEST_PRICE;

use super::text::{check_one_of, check_unique};

const AT: &str = "spec.mixedInstancesPolicy";

/// Instance types of a policy that AWS takes at most
/// (<https://docs.aws.amazon.com/autoscaling/ec2/userguide/ec2-auto-scaling-quotas.html>).
const MOST_TYPES: usize = 40;

/// The other limits are those of the API's types
/// (<https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_InstanceRequirements.html>).
const MOST_EXCLUDED: usize = 400;
const LONGEST_EXCLUDED: usize = 30;

const ON_DEMAND: &[&str] = &["prioritized", LOWEST_PRICE];
const SPOT: &[&str] = &[
    LOWEST_PRICE,
    "capacity-optimized",
    "capacity-optimized-prioritized",
    "price-capacity-optimized",
];
/// Strategies that need an order of types, which requirements do not have.
const ORDERED: &[&str] = &["prioritized", "capacity-optimized-prioritized"];

pub fn check(spec: &InstanceGroupSpec, problems: &mut Vec<Problem>) {
    let Some(policy) = &spec.mixed_instances_policy else {
        return;
    };
    check_types(policy, problems);
    check_distribution(policy, problems);
    check_strategies(policy, problems);
    if let Some(requirements) = &policy.instance_requirements {
        check_requirements(requirements, problems);
    }
    check_credits(spec, policy, problems);
    if spec.instance_interruption_behavior.is_some() {
        let problem = Problem::error(
            "spec.instanceInterruptionBehavior",
            "a group with a mixed instances policy always terminates interrupted spot instances",
        );
        problems.push(problem.hint("remove it"));
    }
}

/// EC2 launches no other type with credits: "The m5.large instance type does not support T2 Unlimited"
/// (hashicorp/terraform-provider-aws#5067).
fn check_credits(
    spec: &InstanceGroupSpec,
    policy: &MixedInstancesPolicySpec,
    problems: &mut Vec<Problem>,
) {
    if spec.cpu_credits.is_none() {
        return;
    }
    let mut types = policy.instances.iter();
    let other = types.find(|name| !name.starts_with('t'));
    let why = match (&policy.instance_requirements, other) {
        (Some(_), _) => "AWS may choose types without CPU credits".to_owned(),
        (None, Some(other)) => format!("{other} has no CPU credits, and would never be launched"),
        (None, None) => return,
    };
    let problem = Problem::error("spec.cpuCredits", why);
    problems.push(problem.hint("remove it, or name only types whose names begin with t"));
}

fn check_types(policy: &MixedInstancesPolicySpec, problems: &mut Vec<Problem>) {
    let path = |index: usize| format!("{AT}.instances[{index}]");
    for (index, name) in policy.instances.iter().enumerate() {
        let fits = |c: char| c.is_ascii_alphanumeric() || c == '.' || c == '-';
        if !name.contains('.') || !name.chars().all(fits) {
            let message = format!("\"{name}\" is not an instance type");
            let problem = Problem::error(path(index), message);
            problems.push(problem.hint("write one type for each entry, such as m5.large"));
        }
    }
    let named = policy.instances.iter().enumerate();
    check_unique(
        named.map(|(index, name)| (path(index), name.as_str())),
        problems,
    );
    if policy.instances.len() > MOST_TYPES {
        let count = policy.instances.len();
        let message = format!("AWS takes {MOST_TYPES} instance types for a group, not {count}");
        let problem = Problem::error(format!("{AT}.instances"), message);
        problems.push(problem.hint("keep the types that fit best, or use instanceRequirements"));
    }
    if policy.instance_requirements.is_some() && !policy.instances.is_empty() {
        let problem = Problem::error(
            format!("{AT}.instanceRequirements"),
            "a group has either instance types or requirements",
        );
        problems.push(problem.hint("remove instances or instanceRequirements"));
    }
}

fn check_distribution(policy: &MixedInstancesPolicySpec, problems: &mut Vec<Problem>) {
    if let Some(base) = policy.on_demand_base.filter(|base| *base < 0) {
        let message = format!("{base} is not a number of instances");
        let problem = Problem::error(format!("{AT}.onDemandBase"), message);
        problems.push(problem.hint("use 0 to maxSize"));
    }
    let percent = policy.on_demand_above_base;
    if let Some(percent) = percent.filter(|percent| !(0..=100).contains(percent)) {
        let message = format!("{percent} is not a percentage");
        let problem = Problem::error(format!("{AT}.onDemandAboveBase"), message);
        problems.push(problem.hint("use 0 (all spot instances above onDemandBase) to 100 (none)"));
    }
    let Some(pools) = policy.spot_instance_pools else {
        return;
    };
    let at = format!("{AT}.spotInstancePools");
    if !(1..=20).contains(&pools) {
        let problem = Problem::error(&at, format!("{pools} is not a number that AWS takes"));
        problems.push(problem.hint("use 1 to 20"));
    }
    let strategy = policy.spot_allocation_strategy.as_deref();
    if let Some(strategy) = strategy.filter(|strategy| *strategy != LOWEST_PRICE) {
        let message = format!("{strategy} does not count pools, only {LOWEST_PRICE} does");
        let hint = format!("remove it, or set spotAllocationStrategy: {LOWEST_PRICE}");
        problems.push(Problem::error(at, message).hint(hint));
    }
}

fn check_strategies(policy: &MixedInstancesPolicySpec, problems: &mut Vec<Problem>) {
    let strategies = [
        (
            "onDemandAllocationStrategy",
            &policy.on_demand_allocation_strategy,
            ON_DEMAND,
        ),
        (
            "spotAllocationStrategy",
            &policy.spot_allocation_strategy,
            SPOT,
        ),
    ];
    for (field, strategy, known) in strategies {
        let Some(strategy) = strategy else {
            continue;
        };
        let path = format!("{AT}.{field}");
        if policy.instance_requirements.is_some() && ORDERED.contains(&strategy.as_str()) {
            let message = format!("{strategy} needs an order of instance types");
            let hint = "list instances instead of instanceRequirements, or use another strategy";
            problems.push(Problem::error(&path, message).hint(hint));
        }
        check_one_of(path, strategy, known, problems);
    }
}

fn check_requirements(requirements: &InstanceRequirementsSpec, problems: &mut Vec<Problem>) {
    let at = format!("{AT}.instanceRequirements");
    check_range(&format!("{at}.cpu"), requirements.cpu.as_ref(), 1, problems);
    let memory = requirements.memory.as_ref();
    check_range(&format!("{at}.memory"), memory, MIB, problems);
    let excluded = &requirements.excluded_instance_types;
    for (index, name) in excluded.iter().enumerate() {
        let fits = |c: char| c.is_ascii_alphanumeric() || ".*-".contains(c);
        if name.is_empty() || name.len() > LONGEST_EXCLUDED || !name.chars().all(fits) {
            let path = format!("{at}.excludedInstanceTypes[{index}]");
            let problem = Problem::error(path, format!("\"{name}\" names no instance types"));
            problems.push(problem.hint("write m5.large, m5.* or m5*"));
        }
    }
    if excluded.len() > MOST_EXCLUDED {
        let count = excluded.len();
        let message = format!("AWS takes {MOST_EXCLUDED} of them, not {count}");
        let problem = Problem::error(format!("{at}.excludedInstanceTypes"), message);
        problems.push(problem.hint("exclude whole families, such as m5.*"));
    }
}

/// `unit`: what is counted.
fn check_range(path: &str, range: Option<&MinMaxSpec>, unit: u128, problems: &mut Vec<Problem>) {
    let Some(range) = range else {
        return;
    };
    let mut read = |field: &str, value: &Option<String>| {
        let text = value.as_deref()?;
        let counted = quantity::count(text, unit);
        let fits = |(_, exact): &(i32, bool)| unit != 1 || *exact;
        if counted.as_ref().is_some_and(fits) {
            return counted;
        }
        let (what, hint) = match unit {
            1 => ("a number of vCPUs", "write a whole number, such as 4"),
            _ => ("an amount of memory", "write it as 16Gi"),
        };
        let problem = Problem::error(
            format!("{path}.{field}"),
            format!("\"{text}\" is not {what}"),
        );
        problems.push(problem.hint(hint));
        None
    };
    let min = read("min", &range.min);
    let max = read("max", &range.max);
    let max = max.map(|(max, _)| max);
    if max == Some(0) {
        let problem = Problem::error(
            format!("{path}.max"),
            "no instance type has so little of it",
        );
        problems.push(problem.hint("use a higher maximum, or remove it"));
    } else if let (Some((min, _)), Some(max)) = (min, max)
        && min > max
    {
        let problem = Problem::error(format!("{path}.min"), "it is more than max");
        problems.push(problem.hint("use a minimum that is not above max"));
    }
}
