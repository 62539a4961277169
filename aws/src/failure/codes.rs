//! What error codes mean. EC2 has no typed errors, so codes are compared as text for every service.

use model::engine::Class;

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

/// The class of an error.
pub(super) fn classify(code: &str, message: &str, status: u16) -> Class {
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

#[cfg(test)]
mod tests {
    use super::{Class, classify};

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
}
