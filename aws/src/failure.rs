//! Errors of AWS, classified once. What a code means is a table here and nowhere else; EC2 has no
//! typed errors, so codes are compared as text for every service.

use aws_credential_types::provider::error::CredentialsError;
use aws_smithy_runtime_api::client::orchestrator::HttpResponse;
use aws_smithy_runtime_api::client::result::SdkError;
use aws_smithy_types::error::metadata::ProvideErrorMetadata;
use model::engine::{Class, Failure};
use std::error::Error;

/// The services' answers as [`Failure`]s.
pub(crate) trait Classify<T> {
    /// A look-up, a change or a removal of `call` (`ec2:DeleteSubnet`): what is not found is gone.
    fn called(self, call: &str) -> Result<T, Failure>;

    /// A call that names objects made a moment ago: what is not found is not visible yet.
    fn creating(self, call: &str) -> Result<T, Failure>;
}

impl<T, E> Classify<T> for Result<T, SdkError<E, HttpResponse>>
where
    E: ProvideErrorMetadata + Error + 'static,
{
    fn called(self, call: &str) -> Result<T, Failure> {
        self.map_err(|error| failure(call, &error))
    }

    fn creating(self, call: &str) -> Result<T, Failure> {
        self.called(call).map_err(|mut failure| {
            if failure.class == Class::Gone {
                failure.class = Class::NotYet;
            }
            failure
        })
    }
}

/// `Ok(None)` in the place of "it is not there".
pub(crate) fn absent<T>(result: Result<T, Failure>) -> Result<Option<T>, Failure> {
    match result {
        Ok(found) => Ok(Some(found)),
        Err(failure) if failure.class == Class::Gone => Ok(None),
        Err(failure) => Err(failure),
    }
}

/// A failure that no service reported: an answer without what it must have, a file that cannot be read.
pub(crate) fn own(class: Class, call: &str, message: impl Into<String>) -> Failure {
    Failure {
        class,
        call: call.to_owned(),
        code: String::new(),
        message: message.into(),
        hint: None,
        request_id: None,
    }
}

/// What a creating call answered with, or the failure that it lacks it.
pub(crate) fn answered<T>(value: Option<T>, call: &str) -> Result<T, Failure> {
    value.ok_or_else(|| own(Class::Unknown, call, "the answer lacks the object it made"))
}

/// One error of the SDK, classified.
pub(crate) fn failure<E>(call: &str, error: &SdkError<E, HttpResponse>) -> Failure
where
    E: ProvideErrorMetadata + Error + 'static,
{
    let Some(service) = error.as_service_error() else {
        return unanswered(call, error);
    };
    let code = service.code().unwrap_or_default().to_owned();
    let message = readable(service.message().unwrap_or_default());
    let status = error
        .raw_response()
        .map_or(0, |response| response.status().as_u16());
    let class = classify(&code, &message, status);
    Failure {
        class,
        call: call.to_owned(),
        hint: hint(class, call, &code),
        code,
        message,
        request_id: service
            .meta()
            .extra("aws_request_id")
            .map(ToOwned::to_owned),
    }
}

/// No answer of the service: the connection, a timeout, or nobody to sign the request.
fn unanswered<E>(call: &str, error: &SdkError<E, HttpResponse>) -> Failure
where
    E: Error + 'static,
{
    let causes = causes(error);
    let unsigned = causes.iter().any(|cause| cause.is::<CredentialsError>());
    let message = causes
        .last()
        .map_or_else(|| error.to_string(), ToString::to_string);
    let mut failure = own(Class::Unknown, call, message);
    if unsigned {
        failure.class = Class::Denied;
        failure.hint = Some("no AWS credentials were found: set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or run `aws sso login`".to_owned());
    } else if matches!(error, SdkError::ConstructionFailure(_)) {
        failure.class = Class::Invalid;
    }
    failure
}

fn causes<'a>(error: &'a (dyn Error + 'static)) -> Vec<&'a (dyn Error + 'static)> {
    let mut causes = Vec::new();
    let mut next = error.source();
    while let Some(cause) = next {
        causes.push(cause);
        next = cause.source();
    }
    causes
}

/// Without the encoded authorization message: a kilobyte that only `sts:DecodeAuthorizationMessage` reads.
fn readable(message: &str) -> String {
    message
        .split("Encoded authorization failure message")
        .next()
        .unwrap_or_default()
        .trim_end()
        .to_owned()
}

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

const UNKNOWN: &[&str] = &[
    "InternalError",
    "InternalFailure",
    "InternalServerError",
    "RequestTimeout",
    "RequestTimeoutException",
    "ServiceUnavailable",
    "ServiceUnavailableException",
    "Unavailable",
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

/// Code and part of the message of errors that only mean: made a moment ago, not visible yet.
const NOT_YET: &[(&str, &str)] = &[
    ("AWS.SimpleQueueService.QueueDeletedRecently", ""),
    ("Gateway.NotAttached", ""),
    ("InvalidParameterValue", "IAM Instance Profile"),
    ("InvalidParameterValue", "iamInstanceProfile"),
    ("InvalidSubnet", "internet gateway"),
    ("QueueDeletedRecently", ""),
    ("ValidationError", "IAM Instance Profile"),
    ("ValidationError", "iamInstanceProfile"),
    ("ValidationError", "launch template version"),
    ("ValidationError", "target groups not found"),
];

fn classify(code: &str, message: &str, status: u16) -> Class {
    let said = |(of, part): &(&str, &str)| code == *of && contains_ignoring_case(message, part);
    if THROTTLED.contains(&code) {
        Class::Throttled
    } else if NOT_YET.iter().any(said) {
        Class::NotYet
    } else if DENIED.contains(&code) {
        Class::Denied
    } else if BLOCKED.contains(&code) {
        Class::Blocked
    } else if is_quota(code) {
        Class::Quota
    } else if EXISTS.contains(&code) || code.contains("AlreadyExists") || code.contains("Duplicate")
    {
        Class::Exists
    } else if is_not_found(code) {
        Class::Gone
    } else if status >= 500 || UNKNOWN.contains(&code) {
        Class::Unknown
    } else if status == 403 {
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

fn is_quota(code: &str) -> bool {
    code.contains("LimitExceeded") || code.contains("QuotaExceeded") || code.starts_with("TooMany")
}

/// An image is the user's choice and never appears later, so its absence is an error of the spec.
fn is_not_found(code: &str) -> bool {
    let absent =
        code.contains("NotFound") || code.starts_with("NoSuch") || NOT_FOUND.contains(&code);
    absent && !code.starts_with("InvalidAMIID")
}

fn hint(class: Class, call: &str, code: &str) -> Option<String> {
    match (class, code) {
        (Class::Denied, "ExpiredToken" | "ExpiredTokenException" | "RequestExpired") => Some(
            "the credentials have expired, or this machine's clock is wrong: sign in again"
                .to_owned(),
        ),
        (
            Class::Denied,
            "AuthFailure"
            | "InvalidAccessKeyId"
            | "InvalidClientTokenId"
            | "SignatureDoesNotMatch"
            | "UnrecognizedClientException",
        ) => Some(
            "AWS does not accept these credentials: check AWS_PROFILE and the AWS_* variables"
                .to_owned(),
        ),
        (Class::Denied, _) => Some(format!("the credentials need the IAM action {call}")),
        (Class::Quota, _) => Some(format!(
            "the quota {} is used up: delete what is not needed, or ask for more in Service Quotas",
            quota(code).map_or_else(|| format!("behind {code}"), |name| format!("{name:?}"))
        )),
        (_, "OptInRequired") => {
            Some("this account has not opted in to the service or region".to_owned())
        }
        (_, "InvalidAMIID.NotFound") => Some(
            "the image is not in this region or was withdrawn: set spec.image to one that exists"
                .to_owned(),
        ),
        _ => None,
    }
}

/// The name under which Service Quotas lists the limit.
fn quota(code: &str) -> Option<&'static str> {
    Some(match code {
        "AddressLimitExceeded" => "EC2-VPC Elastic IPs",
        "InternetGatewayLimitExceeded" => "Internet gateways per Region",
        "NatGatewayLimitExceeded" => "NAT gateways per Availability Zone",
        "RouteLimitExceeded" => "Routes per route table",
        "RouteTableLimitExceeded" => "Route tables per VPC",
        "RulesPerSecurityGroupLimitExceeded" => "Inbound or outbound rules per security group",
        "SecurityGroupLimitExceeded" => "VPC security groups per Region",
        "SubnetLimitExceeded" => "Subnets per VPC",
        "TooManyListeners" => "Listeners per Network Load Balancer",
        "TooManyLoadBalancers" => "Network Load Balancers per Region",
        "TooManyTargetGroups" => "Target Groups per Region",
        "VolumeLimitExceeded" => "Storage for EBS volumes, in TiB",
        "VpcLimitExceeded" => "VPCs per Region",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::{Class, classify, hint, readable};

    #[test]
    fn every_code_has_the_class_that_makes_the_engine_do_the_right_thing() {
        for (code, message, status, class) in [
            ("RequestLimitExceeded", "", 503, Class::Throttled),
            ("PriorRequestNotComplete", "", 400, Class::Throttled),
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
            ("UnauthorizedOperation", "", 403, Class::Denied),
            ("SomethingNew", "", 403, Class::Denied),
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
        ] {
            assert_eq!(
                classify(code, message, status),
                class,
                "{code} {message} {status}"
            );
        }
    }

    #[test]
    fn a_denied_call_names_its_iam_action() {
        let said = hint(Class::Denied, "ec2:CreateVpc", "UnauthorizedOperation");
        assert!(said.is_some_and(|hint| hint.contains("ec2:CreateVpc")));
    }

    #[test]
    fn the_encoded_authorization_message_is_not_shown() {
        let message = "You are not authorized. Encoded authorization failure message: AQ0xyz";
        assert_eq!(readable(message), "You are not authorized.");
    }
}
