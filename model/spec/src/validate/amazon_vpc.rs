//! Rules of the Amazon VPC CNI.

use crate::api::amazon_vpc::AmazonVPCNetworkingSpec;
use crate::api::cluster::ClusterSpec;
use crate::read::{Problem, path};
use full::{FORCED_VPC_VARIABLES, RESERVED_VPC_VARIABLES};

pub fn check(spec: &ClusterSpec, problems: &mut Vec<Problem>) {
    let networking = spec.networking.as_ref();
    let Some(plugin) = networking.and_then(|networking| networking.amazonvpc.as_ref()) else {
        return;
    };
    check_variables(plugin, problems);
    let iam = spec.iam.as_ref();
    let may_pull = iam.and_then(|iam| iam.allow_container_registry) == Some(true);
    let images = [
        &plugin.image_name,
        &plugin.init_image_name,
        &plugin.network_policy_agent_image,
    ];
    if !may_pull && images.into_iter().any(Option::is_none) {
        let problem = Problem::warning(
            "spec.networking.amazonvpc",
            "its images are in Amazon ECR, from which instances may not pull",
        );
        problems.push(problem.hint("set spec.iam.allowContainerRegistry: true"));
    }
}

fn check_variables(plugin: &AmazonVPCNetworkingSpec, problems: &mut Vec<Problem>) {
    for (index, variable) in plugin.env.iter().enumerate() {
        let at = path::element_path("spec.networking.amazonvpc.env", index);
        let name = variable.name.as_str();
        if RESERVED_VPC_VARIABLES.contains(&name) {
            let problem = Problem::error(format!("{at}.name"), format!("kctl sets {name} itself"));
            problems.push(problem.hint("remove it"));
        } else if FORCED_VPC_VARIABLES.contains(&name) {
            let problem = Problem::warning(
                format!("{at}.name"),
                format!("{name} has one value in all clusters, in kOps too"),
            );
            problems.push(problem.hint("remove it: it does nothing"));
        }
    }
}
