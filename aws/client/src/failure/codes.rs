//! What error codes mean. EC2 has no typed errors, so codes are compared as text for every service.

use engine::Class;

const THROTTLED: &[&str] = &[
    "BandwidthLimitExceeded",
    "ConcurrentModification",
    "ConcurrentModificationException",
    "EC2ThrottledException",
    "OperationAborted",
    "PriorRequestNotComplete",
    "RequestLimitExceeded",
    "RequestThrottled",
    "RequestThrottledException",
    "ResourceContention",
    "SlowDown",
    "ThrottledException",
    "Throttling",
    "ThrottlingException",
    "TooManyRequestsException",
];

const DENIED: &[&str] = &[
    "AccessDenied",
    "AccessDeniedException",
    "AuthFailure",
    "AuthorizationError",
    "ExpiredToken",
    "ExpiredTokenException",
    "Forbidden",
    "InvalidAccessKeyId",
    "InvalidClientTokenId",
    "MissingAuthenticationToken",
    "NotAuthorized",
    "OptInRequired",
    "RequestExpired",
    "RequestTimeTooSkewed",
    "SignatureDoesNotMatch",
    "UnauthorizedOperation",
    "UnrecognizedClientException",
];

const BLOCKED: &[&str] = &[
    "DeleteConflict",
    "DependencyViolation",
    "IncorrectState",
    "InvalidGroup.InUse",
    "InvalidIPAddress.InUse",
    "ResourceInUse",
    "ResourceInUseException",
    "ScalingActivityInProgress",
    "VolumeInUse",
];

/// Call, code and part of the message of errors that only mean: something still uses it, or did a moment ago.
const IN_USE: &[(&str, &str, &str)] = &[
    // While a NAT gateway or a load balancer holds the address and for some seconds after it is gone:
    // kubernetes/kops#938, eformat/sno-for-100#5 and #9, hashicorp/terraform-provider-aws#4675. Who really may not is
    // told so with UnauthorizedOperation.
    (
        "ec2:ReleaseAddress",
        "AuthFailure",
        "You do not have permission to access the specified resource",
    ),
    // For some time after RemoveTargets: Terraform repeats it for five minutes
    // (terraform-provider-aws, internal/service/events/rule.go).
    (
        "events:DeleteRule",
        "ValidationException",
        "Rule can't be deleted since it has targets",
    ),
];

const UNKNOWN: &[&str] = &[
    "InternalError",
    "InternalFailure",
    "InternalServerError",
    "RequestTimeout",
    "RequestTimeoutException",
    "ServiceUnavailable",
    "ServiceUnavailableException",
    "Unavailable",
    // Of an item of a batch, in EC2.
    "unexpectedError",
];

/// Codes of "not there" that do not say "NotFound".
const NOT_FOUND: &[&str] = &[
    "AWS.SimpleQueueService.NonExistentQueue",
    "QueueDoesNotExist",
];

/// Codes of "taken" that say neither "AlreadyExists" nor "Duplicate".
const EXISTS: &[&str] = &[
    // The client token is that of a call with other arguments: what it made is there.
    "IdempotentParameterMismatch",
    "InvalidSubnet.Conflict",
    "QueueNameExists",
    "Resource.AlreadyAssociated",
];

/// Code and part of the message of errors that only mean: made a moment ago, not visible yet. The engine believes
/// them for a while only, for they are also said of what does not exist at all.
const NOT_YET: &[(&str, &str)] = &[
    ("AWS.SimpleQueueService.QueueDeletedRecently", ""),
    ("Gateway.NotAttached", ""),
    ("InvalidParameterValue", "IAM Instance Profile"),
    ("InvalidParameterValue", "iamInstanceProfile"),
    ("InvalidSubnet", "internet gateway"),
    // Elastic Load Balancing on a security group: `InvalidSecurityGroupException` of its model has a code without "NotFound".
    ("InvalidSecurityGroup", ""),
    // Route 53 on the VPC of a private zone.
    ("InvalidVPCId", ""),
    ("QueueDeletedRecently", ""),
    // Elastic Load Balancing on the VPC of a target group (ansible/ansible#31919, hashicorp/terraform-provider-aws#20454), Auto
    // Scaling on a group's subnets.
    ("ValidationError", "The VPC ID '"),
    ("ValidationError", "The subnet ID '"),
    // Auto Scaling on what a group names. "You must use a valid fully-formed launch template." comes before EC2's own
    // words, and also before what is plainly wrong, so that it is EC2's words that count:
    // a profile, of EC2 RunInstances;
    ("ValidationError", "IAM Instance Profile"),
    ("ValidationError", "iamInstanceProfile"),
    // a version or a template, of DescribeLaunchTemplateVersions (both recorded from AWS by public tests that are
    // marked `aws_verified`, test_launch_templates.py);
    ("ValidationError", "Could not find the specified version"),
    (
        "ValidationError",
        "The specified launch template, with template ID",
    ),
    // a key (eksctl-io/eksctl#1989, Guimove/terraform-aws-bastion#173) or a security group (EC2's error codes,
    // InvalidGroup.NotFound);
    ("ValidationError", "The key pair '"),
    ("ValidationError", "The security group '"),
    // a target group, in Auto Scaling's own words (hashicorp/terraform-provider-aws, aws_autoscaling_attachment).
    (
        "ValidationError",
        "Provided Target Groups may not be valid. Please ensure they exist and try again",
    ),
];

/// Call and code of "this account may have no more of it" that say neither "Limit" nor "Quota".
const UNSUPPORTED_ACCOUNT: &[(&str, &str)] = &[
    // How many new accounts begin: "This AWS account currently does not support creating load balancers". Of other calls the code
    // means that something is protected.
    (
        "elasticloadbalancing:CreateLoadBalancer",
        "OperationNotPermitted",
    ),
];

/// The class of an error of a call such as `ec2:CreateVpc`.
pub(crate) fn classify_error(call: &str, code: &str, message: &str, status: u16) -> Class {
    let said = |(of, part): &(&str, &str)| code == *of && contains_ignoring_case(message, part);
    let in_use = IN_USE
        .iter()
        .any(|(by, of, part)| call == *by && said(&(of, part)));
    if THROTTLED.contains(&code) || status == 429 {
        Class::Throttled
    } else if NOT_YET.iter().any(said) {
        Class::NotYet
    } else if in_use {
        Class::Blocked
    } else if DENIED.contains(&code) {
        Class::Denied
    } else if BLOCKED.contains(&code) {
        Class::Blocked
    } else if is_quota(call, code) {
        Class::Quota
    } else if EXISTS.contains(&code) || code.contains("AlreadyExists") || code.contains("Duplicate")
    {
        Class::Exists
    } else if is_not_found(code) {
        Class::Gone
    } else if status >= 500 || UNKNOWN.contains(&code) {
        Class::Unknown
    } else if matches!(status, 401 | 403) {
        Class::Denied
    } else if status == 404 {
        Class::Gone
    } else {
        Class::Invalid
    }
}

fn contains_ignoring_case(text: &str, part: &str) -> bool {
    text.to_lowercase().contains(&part.to_lowercase())
}

fn is_quota(call: &str, code: &str) -> bool {
    UNSUPPORTED_ACCOUNT.contains(&(call, code))
        || code == "PendingVerification"
        || code.contains("LimitExceeded")
        || code.contains("QuotaExceeded")
        || code.starts_with("TooMany")
}

/// An image is the user's choice and never appears later, so its absence is an error of the spec.
fn is_not_found(code: &str) -> bool {
    let absent =
        code.contains("NotFound") || code.starts_with("NoSuch") || NOT_FOUND.contains(&code);
    absent && !code.starts_with("InvalidAMIID")
}

#[cfg(test)]
mod tests {
    use super::{Class, classify_error};

    #[expect(clippy::too_many_lines, reason = "a table of codes")]
    #[test]
    fn every_code_has_the_class_that_makes_the_engine_do_the_right_thing() {
        for (code, message, status, class) in [
            ("RequestLimitExceeded", "", 503, Class::Throttled),
            ("PriorRequestNotComplete", "", 400, Class::Throttled),
            (
                "ValidationError",
                "The VPC ID 'vpc-0123' is not found",
                400,
                Class::NotYet,
            ),
            (
                "ValidationError",
                "The subnet ID 'subnet-0123' does not exist",
                400,
                Class::NotYet,
            ),
            ("InvalidSecurityGroup", "", 400, Class::NotYet),
            ("InvalidVPCId", "", 400, Class::NotYet),
            ("VpcLimitExceeded", "", 400, Class::Quota),
            ("LimitExceeded", "", 409, Class::Quota),
            ("TooManyTargetGroups", "", 400, Class::Quota),
            ("InvalidVpcID.NotFound", "", 400, Class::Gone),
            ("NoSuchEntity", "", 404, Class::Gone),
            ("InvalidAMIID.NotFound", "", 400, Class::Invalid),
            ("InvalidGroup.Duplicate", "", 400, Class::Exists),
            (
                "InvalidLaunchTemplateName.AlreadyExistsException",
                "",
                400,
                Class::Exists,
            ),
            ("EntityAlreadyExists", "", 409, Class::Exists),
            ("InvalidSubnet.Conflict", "", 400, Class::Exists),
            ("InvalidSubnet.Range", "", 400, Class::Invalid),
            ("DependencyViolation", "", 400, Class::Blocked),
            ("DeleteConflict", "", 409, Class::Blocked),
            (
                "AuthFailure",
                "AWS was not able to validate the provided access credentials",
                401,
                Class::Denied,
            ),
            ("UnauthorizedOperation", "", 403, Class::Denied),
            ("SomethingNew", "", 401, Class::Denied),
            ("SomethingNew", "", 403, Class::Denied),
            ("SomethingNew", "", 429, Class::Throttled),
            ("SomethingNew", "", 500, Class::Unknown),
            ("SomethingNew", "", 400, Class::Invalid),
            (
                "ValidationError",
                "Value (nodes) for parameter iamInstanceProfile.name is invalid",
                400,
                Class::NotYet,
            ),
            (
                "ValidationError",
                "MinSize is greater than MaxSize",
                400,
                Class::Invalid,
            ),
            (
                "ValidationError",
                "You must use a valid fully-formed launch template. Could not find the specified version 3 for the launch \
                 template with ID lt-0123456789abcdef0.",
                400,
                Class::NotYet,
            ),
            (
                "ValidationError",
                "You must use a valid fully-formed launch template. The security group 'sg-1' does not exist",
                400,
                Class::NotYet,
            ),
            (
                "ValidationError",
                "You must use a valid fully-formed launch template. Value () for parameter groupId is invalid. The value \
                 cannot be empty",
                400,
                Class::Invalid,
            ),
            (
                "ValidationError",
                "You must use a valid fully-formed launch template. The image id '[ami-1]' does not exist",
                400,
                Class::Invalid,
            ),
            (
                "ValidationError",
                "Provided Target Groups may not be valid. Please ensure they exist and try again.",
                400,
                Class::NotYet,
            ),
        ] {
            assert_eq!(
                classify_error("ec2:CreateVpc", code, message, status),
                class,
                "{code} {message} {status}"
            );
        }
    }

    /// A code that several calls have means what the call makes of it.
    #[test]
    fn what_a_code_means_depends_on_the_call() {
        let others = "You do not have permission to access the specified resource.";
        let targets = "Rule can't be deleted since it has targets.";
        let account = "This AWS account currently does not support creating load balancers.";
        let protected = "Load balancer cannot be deleted because deletion protection is enabled";
        for (call, code, message, class) in [
            ("ec2:ReleaseAddress", "AuthFailure", others, Class::Blocked),
            ("ec2:CreateNatGateway", "AuthFailure", others, Class::Denied),
            ("ec2:CreateRoute", "AuthFailure", others, Class::Denied),
            (
                "events:DeleteRule",
                "ValidationException",
                targets,
                Class::Blocked,
            ),
            (
                "elasticloadbalancing:CreateLoadBalancer",
                "OperationNotPermitted",
                account,
                Class::Quota,
            ),
            (
                "elasticloadbalancing:DeleteLoadBalancer",
                "OperationNotPermitted",
                protected,
                Class::Invalid,
            ),
            ("ec2:CreateVolume", "PendingVerification", "", Class::Quota),
        ] {
            assert_eq!(
                classify_error(call, code, message, 400),
                class,
                "{call} {code} {message}"
            );
        }
    }
}
