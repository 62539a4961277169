//! Converts SDK errors to [`engine::Failure`]. This is the only place where they are classified.

mod codes;
mod denial;
mod hint;
mod quota;

pub(crate) use codes::classify_error;

use crate::authorities::NoAuthorities;
use crate::causes::{deepest_cause, error_causes};
use crate::fence::LockLost;
use aws_credential_types::provider::error::CredentialsError;
use aws_smithy_runtime_api::client::orchestrator::HttpResponse;
use aws_smithy_runtime_api::client::result::SdkError;
use aws_smithy_types::error::metadata::ProvideErrorMetadata;
use engine::{Class, Failure};
use std::error::Error;

/// The failure code of a write that was not started because the lock was lost.
pub(crate) const FENCED: &str = "LockLost";

/// Converts results of SDK calls to results with a classified [`Failure`].
pub trait Classify<T> {
    /// For a call that reads, changes or deletes (`ec2:DeleteSubnet`): "not found" becomes [`Class::Gone`].
    fn classify_call(self, call: &str) -> Result<T, Failure>;

    /// For a call that names objects created a moment ago: "not found" becomes [`Class::NotYet`].
    fn classify_creation(self, call: &str) -> Result<T, Failure>;
}
impl<T, E> Classify<T> for Result<T, SdkError<E, HttpResponse>>
where
    E: ProvideErrorMetadata + Error + 'static,
{
    fn classify_call(self, call: &str) -> Result<T, Failure> {
        self.map_err(|error| classify_failure(call, &error))
    }
    fn classify_creation(self, call: &str) -> Result<T, Failure> {
        self.classify_call(call)
            .map_err(|failure| match failure.class {
                Class::Gone => not_yet(failure),
                _ => failure,
            })
    }
}

/// The same failure as [`Class::NotYet`]: the object was just created and is not visible yet.
pub fn not_yet(failure: Failure) -> Failure {
    let hint = hint::failure_hint(Class::NotYet, &failure.call, &failure.code, "");
    Failure {
        class: Class::NotYet,
        hint: Some(hint),
        ..failure
    }
}

/// Turns a failure of [`Class::Gone`] into `Ok(None)`.
pub fn none_if_absent<T>(result: Result<T, Failure>) -> Result<Option<T>, Failure> {
    match result {
        Ok(found) => Ok(Some(found)),
        Err(failure) if failure.class == Class::Gone => Ok(None),
        Err(failure) => Err(failure),
    }
}

/// A failure that no service reported: an incomplete response, or a file that cannot be read.
pub fn local_failure(class: Class, call: &str, message: impl Into<String>) -> Failure {
    Failure {
        class,
        call: call.to_owned(),
        code: String::new(),
        message: message.into(),
        hint: None,
        request_id: None,
    }
}

/// The failure that a service reported for one item of a batch call.
pub fn item_failure(call: &str, code: &str, message: Option<&str>) -> Failure {
    let message = message.unwrap_or_default();
    let class = classify_error(call, code, message, 200);
    Failure {
        class,
        call: call.to_owned(),
        code: code.to_owned(),
        message: denial::strip_encoded_part(message),
        hint: Some(hint::failure_hint(class, call, code, message)),
        request_id: None,
    }
}

/// The object in the response of a creating call; a failure if the response lacks it.
pub fn require_answer<T>(value: Option<T>, call: &str) -> Result<T, Failure> {
    value.ok_or_else(|| local_failure(Class::Unknown, call, "the answer lacks the object it made"))
}

/// One error of the SDK, classified.
pub(crate) fn classify_failure<E>(call: &str, error: &SdkError<E, HttpResponse>) -> Failure
where
    E: ProvideErrorMetadata + Error + 'static,
{
    let Some(service) = error.as_service_error() else {
        return classify_unanswered(call, error);
    };
    let code = service.code().unwrap_or_default().to_owned();
    let whole = service.message().unwrap_or_default();
    let message = denial::strip_encoded_part(whole);
    let status = error
        .raw_response()
        .map_or(0, |response| response.status().as_u16());
    let class = classify_error(call, &code, &message, status);
    Failure {
        class,
        call: call.to_owned(),
        hint: Some(hint::failure_hint(class, call, &code, whole)),
        code,
        message,
        request_id: service
            .meta()
            .extra("aws_request_id")
            .map(ToOwned::to_owned),
    }
}

/// Classifies a call without a response: connection error, timeout, or missing credentials.
fn classify_unanswered<E>(call: &str, error: &SdkError<E, HttpResponse>) -> Failure
where
    E: Error + 'static,
{
    let causes = error_causes(error);
    let unsigned = causes.iter().any(|cause| cause.is::<CredentialsError>());
    let mut failure = local_failure(Class::Unknown, call, deepest_cause(error));
    if causes.iter().any(|cause| cause.is::<LockLost>()) {
        failure.class = Class::Invalid;
        FENCED.clone_into(&mut failure.code);
    } else if unsigned {
        failure.class = Class::Denied;
        failure.hint = Some("no AWS credentials were found: set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or run `aws sso login`".to_owned());
    } else if let Some(none) = causes.iter().find(|cause| cause.is::<NoAuthorities>()) {
        // The cause names the next step.
        failure.class = Class::Invalid;
        failure.message = none.to_string();
    } else {
        if matches!(error, SdkError::ConstructionFailure(_)) {
            failure.class = Class::Invalid;
        }
        failure.hint = Some(hint::failure_hint(failure.class, call, "", ""));
    }
    failure
}
