//! What a group's launch template and Auto Scaling group say about its instances.

use crate::api::instance_group::InstanceGroupSpec;
use crate::read::Problem;

use super::text::{check_one_of, is_arn, is_id};
use full::nodes::{OWN_PART, POOL_PART};
use node::duration::parse_seconds;

/// Names of Auto Scaling processes.
const PROCESSES: &[&str] = &[
    "Launch",
    "Terminate",
    "AddToLoadBalancer",
    "AlarmNotification",
    "AZRebalance",
    "HealthCheck",
    "InstanceRefresh",
    "ReplaceUnhealthy",
    "ScheduledActions",
];

/// MIME types that cloud-init understands.
const USER_DATA_TYPES: &[&str] = &[
    "text/x-shellscript",
    "text/cloud-config",
    "text/cloud-config-archive",
    "text/cloud-boothook",
    "text/part-handler",
    "text/upstart-job",
    "text/x-include-url",
    "text/x-include-once-url",
];

pub fn check(spec: &InstanceGroupSpec, problems: &mut Vec<Problem>) {
    check_instance_types(spec, problems);
    check_one_type(spec, problems);
    check_spot(spec, problems);
    check_metadata(spec, problems);
    check_security_groups(spec, problems);
    check_user_data(spec, problems);
    check_load_balancers(spec, problems);
    check_lifetime(spec, problems);
    if let Some(arn) = spec
        .iam
        .as_ref()
        .and_then(|iam| iam.profile.as_deref())
        .filter(|arn| !is_arn("iam", arn))
    {
        let problem = Problem::error(
            "spec.iam.profile",
            format!("\"{arn}\" is not the ARN of an instance profile"),
        );
        problems.push(problem.hint("write arn:aws:iam::ACCOUNT:instance-profile/NAME"));
    }
}

/// Old specs of mixed groups have a list of types: kOps launches the first, and the others only if the policy names them.
fn check_one_type(spec: &InstanceGroupSpec, problems: &mut Vec<Problem>) {
    let types = spec.machine_type.as_deref().unwrap_or_default();
    let Some((first, others)) = types.split_once(',') else {
        return;
    };
    let policy = spec.mixed_instances_policy.iter();
    let named: Vec<&String> = policy.flat_map(|policy| &policy.instances).collect();
    if !others
        .split(',')
        .all(|kind| named.iter().any(|one| *one == kind))
    {
        let message = format!("only the first type is used: {first}");
        let problem = Problem::warning("spec.machineType", message);
        problems.push(problem.hint(format!(
            "write {first} alone; list several types in mixedInstancesPolicy.instances"
        )));
    }
}

fn check_instance_types(spec: &InstanceGroupSpec, problems: &mut Vec<Problem>) {
    let fields: [(&str, &Option<String>, &[&str]); 4] = [
        (
            "spec.tenancy",
            &spec.tenancy,
            &["default", "dedicated", "host"],
        ),
        (
            "spec.cpuCredits",
            &spec.cpu_credits,
            &["standard", "unlimited"],
        ),
        (
            "spec.instanceInterruptionBehavior",
            &spec.instance_interruption_behavior,
            &["terminate", "stop", "hibernate"],
        ),
        ("spec.manager", &spec.manager, &["CloudGroup", "Karpenter"]),
    ];
    for (path, value, values) in fields {
        if let Some(value) = value {
            check_one_of(path, value, values, problems);
        }
    }
    for (index, process) in spec.suspend_processes.iter().enumerate() {
        check_one_of(
            format!("spec.suspendProcesses[{index}]"),
            process,
            PROCESSES,
            problems,
        );
    }
}

fn check_spot(spec: &InstanceGroupSpec, problems: &mut Vec<Problem>) {
    if let Some(price) = &spec.max_price
        && !price
            .parse::<f64>()
            .is_ok_and(|price| price > 0.0 && price.is_finite())
    {
        let problem = Problem::error("spec.maxPrice", format!("\"{price}\" is not a price"));
        problems.push(problem.hint("write dollars per hour, such as 0.10"));
    }
    if let Some(minutes) = spec.spot_duration_in_minutes {
        if !(60..=360).contains(&minutes) || minutes % 60 != 0 {
            let problem = Problem::error(
                "spec.spotDurationInMinutes",
                format!("{minutes} is not a duration that AWS knew"),
            );
            problems.push(problem.hint("use 60, 120, 180, 240, 300 or 360, or remove it"));
        } else {
            let problem = Problem::warning(
                "spec.spotDurationInMinutes",
                "AWS no longer offers spot instances with a duration",
            );
            problems.push(problem.hint("remove it"));
        }
    }
    let mixed = spec.mixed_instances_policy.is_some();
    if spec.instance_interruption_behavior.is_some() && spec.max_price.is_none() && !mixed {
        let problem = Problem::warning(
            "spec.instanceInterruptionBehavior",
            "it concerns spot instances only, the group has none",
        );
        problems.push(problem.hint("add maxPrice, or remove it"));
    }
}

fn check_metadata(spec: &InstanceGroupSpec, problems: &mut Vec<Problem>) {
    let Some(options) = &spec.instance_metadata else {
        return;
    };
    if let Some(tokens) = &options.http_tokens {
        check_one_of(
            "spec.instanceMetadata.httpTokens",
            tokens,
            &["required", "optional"],
            problems,
        );
    }
    if let Some(hops) = options
        .http_put_response_hop_limit
        .filter(|hops| !(1..=64).contains(hops))
    {
        let problem = Problem::error(
            "spec.instanceMetadata.httpPutResponseHopLimit",
            format!("{hops} is not a number of hops that AWS takes"),
        );
        problems.push(problem.hint("use 1 to 64; 1 keeps pods away from it, 3 lets them in"));
    }
}

fn check_security_groups(spec: &InstanceGroupSpec, problems: &mut Vec<Problem>) {
    if let Some(id) = &spec.security_group_override {
        check_security_group("spec.securityGroupOverride".to_owned(), id, problems);
    }
    for (index, id) in spec.additional_security_groups.iter().enumerate() {
        check_security_group(
            format!("spec.additionalSecurityGroups[{index}]"),
            id,
            problems,
        );
    }
}

/// An error unless the text is an id of a security group.
pub fn check_security_group(path: String, id: &str, problems: &mut Vec<Problem>) {
    if !is_id("sg", id) {
        let problem = Problem::error(path, format!("\"{id}\" is not the id of a security group"));
        problems.push(problem.hint("write an id such as sg-0123456789abcdef0"));
    }
}

fn check_user_data(spec: &InstanceGroupSpec, problems: &mut Vec<Problem>) {
    for (index, part) in spec.additional_user_data.iter().enumerate() {
        let path = format!("spec.additionalUserData[{index}]");
        let others = spec.additional_user_data.iter().take(index);
        if let Some(why) = part_name_problem(&part.name, others.map(|other| &*other.name)) {
            let problem = Problem::error(format!("{path}.name"), why);
            problems.push(problem.hint("give the part a file name of its own, such as setup.sh"));
        }
        if part.content.is_empty() {
            let problem = Problem::error(format!("{path}.content"), "the part is empty");
            problems.push(problem.hint("add its text below \"content: |\", or remove the part"));
        }
        check_one_of(
            format!("{path}.type"),
            &part.type_,
            USER_DATA_TYPES,
            problems,
        );
    }
}

/// Why cloud-init would not keep a part under this name: it stores scripts by name, drops other characters (`FN_ALLOWED` in
/// cloudinit/util.py), and a later part replaces an earlier one.
fn part_name_problem<'a>(name: &str, mut others: impl Iterator<Item = &'a str>) -> Option<String> {
    let kept = |character: char| character.is_ascii_alphanumeric() || "_-.()".contains(character);
    if name.trim_matches('.').is_empty() || name.len() > 255 || !name.chars().all(kept) {
        return Some(format!(
            "\"{name}\" is not a file name that cloud-init keeps: it has letters, digits and _-.() only"
        ));
    }
    if [OWN_PART, POOL_PART].contains(&name) {
        return Some(format!(
            "\"{name}\" is the name of kctl's own part, which it would replace"
        ));
    }
    others.any(|other| other == name).then(|| {
        format!("another part has the name \"{name}\" too, and one would replace the other")
    })
}

fn check_load_balancers(spec: &InstanceGroupSpec, problems: &mut Vec<Problem>) {
    for (index, balancer) in spec.external_load_balancers.iter().enumerate() {
        let path = format!("spec.externalLoadBalancers[{index}]");
        match (&balancer.load_balancer_name, &balancer.target_group_arn) {
            (Some(_), Some(_)) => {
                let problem =
                    Problem::error(&path, "both loadBalancerName and targetGroupArn are given");
                problems.push(problem.hint(
                    "keep one: a name for a classic load balancer, an ARN for a target group",
                ));
            }
            (None, None) => {
                let problem = Problem::error(
                    &path,
                    "neither loadBalancerName nor targetGroupArn is given",
                );
                problems.push(
                    problem.hint(
                        "add the name of a classic load balancer or the ARN of a target group",
                    ),
                );
            }
            (Some(name), None) if name.is_empty() || name.len() > 32 => {
                let problem = Problem::error(
                    format!("{path}.loadBalancerName"),
                    format!("\"{name}\" is not the name of a load balancer"),
                );
                problems.push(problem.hint("names have 1 to 32 characters"));
            }
            (None, Some(arn)) if !is_arn("elasticloadbalancing", arn) => {
                let problem = Problem::error(
                    format!("{path}.targetGroupArn"),
                    format!("\"{arn}\" is not the ARN of a target group"),
                );
                problems.push(
                    problem.hint(
                        "write arn:aws:elasticloadbalancing:REGION:ACCOUNT:targetgroup/NAME/ID",
                    ),
                );
            }
            _ => {}
        }
    }
}

fn check_lifetime(spec: &InstanceGroupSpec, problems: &mut Vec<Problem>) {
    const DAY: f64 = 86_400.0;
    let Some(text) = &spec.max_instance_lifetime else {
        return;
    };
    if let Some(age) = parse_seconds(text)
        && age != 0.0
        && !(DAY..=365.0 * DAY).contains(&age)
    {
        let problem = Problem::error(
            "spec.maxInstanceLifetime",
            format!("{text} is not an age that AWS takes"),
        );
        problems.push(problem.hint("use 24h to 8760h, or 0 for no limit"));
    }
}
