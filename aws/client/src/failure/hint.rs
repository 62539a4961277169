//! The next step for every class of failure, in words that fit what the engine does by itself.

use super::denial::{Denial, encoded_part};
use super::quota;
use engine::Class;

/// What to do about a failure; `message` is AWS' own, with its encoded part.
pub(super) fn failure_hint(class: Class, call: &str, code: &str, message: &str) -> String {
    match class {
        Class::Denied => denied_hint(call, code, message),
        Class::Quota => quota::quota_hint(code, message),
        Class::Throttled => {
            let service = service_name(call);
            format!(
                "{service} takes no more calls of this account and region for now; kctl waits and tries again by itself. If it gave \
                 up, run it again later, or find out what else calls {service} that often"
            )
        }
        Class::NotYet => "AWS did not see yet what was made a moment ago; kctl waits for that by itself. If it gave up, run it \
                          again: it goes on where it ended"
            .to_owned(),
        Class::Exists => "the name is taken: kctl looks whether what has it is the cluster's. If it is not, remove or rename it, \
                          then run this again"
            .to_owned(),
        Class::Gone => "somebody else removed it in the meantime: run this again, which looks first".to_owned(),
        Class::Blocked => "something still uses it; kctl tries again by itself. If it gave up, remove what uses it, then run this \
                           again"
            .to_owned(),
        Class::Invalid => invalid_request_hint(code).to_owned(),
        Class::Unknown => "nobody knows whether the call took effect; kctl looks before it tries again. If it gave up, run it \
                           again: it finds what was made and makes nothing twice"
            .to_owned(),
    }
}

/// `EC2` of `ec2:CreateVpc`.
fn service_name(call: &str) -> String {
    call.split(':').next().unwrap_or_default().to_uppercase()
}

fn denied_hint(call: &str, code: &str, message: &str) -> String {
    let known = match code {
        "ExpiredToken" | "ExpiredTokenException" | "RequestExpired" | "RequestTimeTooSkewed" => {
            "the credentials have expired, or this machine's clock is wrong: sign in again"
        }
        // EC2 uses the code for images of others' as well, and says so.
        "AuthFailure" if !message.is_empty() && !message.contains("credentials") => {
            return format!("allow {call} to the credentials, or name an object that they may use");
        }
        "AuthFailure"
        | "InvalidAccessKeyId"
        | "InvalidClientTokenId"
        | "SignatureDoesNotMatch"
        | "UnrecognizedClientException" => {
            "AWS does not accept these credentials: check AWS_PROFILE and the AWS_* variables"
        }
        "OptInRequired" => "this account has not opted in to the service or region",
        _ => {
            return match (Denial::parse_message(message), encoded_part(message)) {
                (Some(denial), _) => denial.hint(),
                (None, None) => format!(
                    "allow the IAM action {call} to the user or role of these credentials, or choose others with AWS_PROFILE"
                ),
                (None, Some(encoded)) => format!(
                    "the credentials need the IAM action {call}; why they lack it tells `aws sts decode-authorization-message \
                     --encoded-message {encoded}`"
                ),
            };
        }
    };
    known.to_owned()
}

fn invalid_request_hint(code: &str) -> &'static str {
    match code {
        "InvalidAMIID.NotFound" => {
            "the image is not in this region or was withdrawn: set spec.image to one that exists"
        }
        // Announced on 2026-01-15: four changes in 24 hours, the next as soon as the last has ended.
        "VolumeModificationRateExceeded" | "IncorrectModificationState" => {
            "AWS changes a volume at most four times in 24 hours, and one change after the other: run this again later, it \
             goes on where it ended"
        }
        "OperationNotPermitted" => {
            "what the message names is protected against this: switch the protection off, then run this again"
        }
        _ => {
            "AWS takes no such request: correct what its message names in the spec; if the spec does not say it, report this \
             with the request id"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::failure_hint;
    use engine::Class;

    #[test]
    fn every_class_has_a_next_step() {
        for (class, code, said) in [
            (
                Class::Throttled,
                "RequestLimitExceeded",
                "EC2 takes no more calls",
            ),
            (
                Class::NotYet,
                "Gateway.NotAttached",
                "goes on where it ended",
            ),
            (Class::Exists, "InvalidGroup.Duplicate", "the name is taken"),
            (Class::Gone, "InvalidVpcID.NotFound", "run this again"),
            (Class::Blocked, "DependencyViolation", "remove what uses it"),
            (
                Class::Denied,
                "UnauthorizedOperation",
                "the IAM action ec2:CreateVpc",
            ),
            (Class::Denied, "RequestExpired", "clock"),
            (Class::Denied, "AuthFailure", "AWS_PROFILE"),
            (Class::Denied, "OptInRequired", "opted in"),
            (
                Class::Quota,
                "VpcLimitExceeded",
                "\"VPCs per Region\" (L-F678F1CE)",
            ),
            (
                Class::Quota,
                "TooManyListeners",
                "\"Listeners per Network Load Balancer\" is used up",
            ),
            (
                Class::Quota,
                "SomeLimitExceeded",
                "behind SomeLimitExceeded",
            ),
            (Class::Quota, "OperationNotPermitted", "AWS Support"),
            (
                Class::Invalid,
                "OperationNotPermitted",
                "switch the protection off",
            ),
            (Class::Invalid, "InvalidAMIID.NotFound", "spec.image"),
            (Class::Invalid, "ValidationError", "request id"),
            (
                Class::Invalid,
                "VolumeModificationRateExceeded",
                "four times in 24 hours",
            ),
            (Class::Unknown, "InternalError", "makes nothing twice"),
        ] {
            let hint = failure_hint(class, "ec2:CreateVpc", code, "");
            assert!(hint.contains(said), "{class:?} {code}: {hint}");
        }
    }

    #[test]
    fn iam_names_its_quota_in_the_message() {
        let message = "Cannot exceed quota for RolesPerAccount: 1000";
        let hint = failure_hint(Class::Quota, "iam:CreateRole", "LimitExceeded", message);
        assert!(
            hint.contains("\"Roles per account\" (L-FE177D64)"),
            "{hint}"
        );
    }

    #[test]
    fn an_encoded_denial_is_handed_on_where_nothing_else_is_known() {
        let message = "You are not authorized. Encoded authorization failure message: AQ0xyz";
        let hint = failure_hint(
            Class::Denied,
            "ec2:CreateVpc",
            "UnauthorizedOperation",
            message,
        );
        assert!(hint.contains("ec2:CreateVpc"), "{hint}");
        assert!(hint.contains("--encoded-message AQ0xyz"), "{hint}");
    }
}
