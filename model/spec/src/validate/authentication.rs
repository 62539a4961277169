//! Rules of the AWS IAM authenticator.

use crate::api::authentication::{AWSAuthenticationIdentityMappingSpec, AWSAuthenticationSpec};
use crate::api::cluster::ClusterSpec;
use crate::read::Problem;

const BACKENDS: [&str; 4] = ["CRD", "DynamicFile", "EKSConfigMap", "MountedFile"];

pub fn check(spec: &ClusterSpec, problems: &mut Vec<Problem>) {
    let authentication = spec.authentication.as_ref();
    let Some(aws) = authentication.and_then(|of| of.aws.as_ref()) else {
        return;
    };
    check_backends(aws, problems);
    for (index, mapping) in aws.identity_mappings.iter().enumerate() {
        let at = format!("spec.authentication.aws.identityMappings[{index}]");
        check_mapping(&at, mapping, problems);
    }
    let server = spec.kube_api_server.as_ref();
    if server.is_some_and(|server| server.authentication_token_webhook_config_file.is_some()) {
        let problem = Problem::error(
            "spec.kubeAPIServer.authenticationTokenWebhookConfigFile",
            "API servers ask one webhook, and that is the AWS IAM authenticator",
        );
        problems.push(problem.hint("remove it, or spec.authentication.aws"));
    }
}

/// As in kOps, the objects that it makes of the spec are those of the backend CRD.
fn check_backends(aws: &AWSAuthenticationSpec, problems: &mut Vec<Problem>) {
    let path = "spec.authentication.aws.backendMode";
    let said = aws.backend_mode.as_deref().unwrap_or_default();
    let backends: Vec<&str> = said.split(',').filter(|one| !one.is_empty()).collect();
    if let Some(unknown) = backends.iter().find(|one| !BACKENDS.contains(one)) {
        let problem = Problem::error(path, format!("{unknown:?} is not a backend"));
        problems.push(problem.hint(format!(
            "use some of {}, with commas between them",
            BACKENDS.join(", ")
        )));
    } else if !aws.identity_mappings.is_empty() && !backends.contains(&"CRD") {
        let problem = Problem::error(path, "only the backend CRD reads identityMappings");
        problems.push(problem.hint("write CRD, or remove identityMappings"));
    }
}

fn check_mapping(
    at: &str,
    mapping: &AWSAuthenticationIdentityMappingSpec,
    problems: &mut Vec<Problem>,
) {
    let arn = mapping.arn.as_deref().unwrap_or_default();
    if !is_identity(arn) {
        let path = format!("{at}.arn");
        let problem = Problem::error(path, format!("{arn:?} is not the ARN of a role or user"));
        problems.push(problem.hint(
            "write arn:aws:iam::ACCOUNT:role/NAME, without the path of the role, or user/NAME",
        ));
    }
    if mapping.username.as_deref().unwrap_or_default().is_empty() {
        let problem = Problem::error(format!("{at}.username"), "an identity without a name");
        problems.push(problem.hint("write the name of the user in the cluster"));
    }
}

fn is_identity(arn: &str) -> bool {
    let parts: Vec<&str> = arn.splitn(6, ':').collect();
    let [prefix, partition, service, _, account, resource] = parts.as_slice() else {
        return false;
    };
    let named = |kind| {
        let name: Option<&str> = resource.strip_prefix(kind);
        name.filter(|name| !name.is_empty())
    };
    let number = account.len() == 12 && account.bytes().all(|byte| byte.is_ascii_digit());
    *prefix == "arn"
        && partition.starts_with("aws")
        && *service == "iam"
        && number
        // Who has assumed a role is known by its name, without the path of the role (kubernetes-sigs/aws-iam-authenticator#268).
        && (named("role/").is_some_and(|name| !name.contains('/')) || named("user/").is_some())
}
