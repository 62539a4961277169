//! Errors of the SDK as failures of the engine's kind, classified once, here and nowhere else.

mod codes;
mod denial;
mod hint;
mod quota;

use crate::causes::{causes, deepest};
use crate::fence::Fenced;
use aws_credential_types::provider::error::CredentialsError;
use aws_smithy_runtime_api::client::orchestrator::HttpResponse;
use aws_smithy_runtime_api::client::result::SdkError;
use aws_smithy_types::error::metadata::ProvideErrorMetadata;
use engine::{Class, Failure};
use std::error::Error;

/// The code of a write that was not begun because the lock was lost.
pub(crate) const FENCED: &str = "LockLost";

/// The services' answers as [`Failure`]s.
pub trait Classify<T> {
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
        self.called(call).map_err(|failure| match failure.class {
            Class::Gone => not_yet(failure),
            _ => failure,
        })
    }
}

/// The same failure of something that was made a moment ago and will be visible soon.
pub fn not_yet(failure: Failure) -> Failure {
    let hint = hint::of(Class::NotYet, &failure.call, &failure.code, "");
    Failure {
        class: Class::NotYet,
        hint: Some(hint),
        ..failure
    }
}

/// `Ok(None)` in the place of "it is not there".
pub fn absent<T>(result: Result<T, Failure>) -> Result<Option<T>, Failure> {
    match result {
        Ok(found) => Ok(Some(found)),
        Err(failure) if failure.class == Class::Gone => Ok(None),
        Err(failure) => Err(failure),
    }
}

/// A failure that no service reported: an answer without what it must have, a file that cannot be read.
pub fn own(class: Class, call: &str, message: impl Into<String>) -> Failure {
    Failure {
        class,
        call: call.to_owned(),
        code: String::new(),
        message: message.into(),
        hint: None,
        request_id: None,
    }
}

/// What a service says of one of many things that a call was about, and did not do.
pub fn kept(call: &str, code: &str, message: Option<&str>) -> Failure {
    let message = message.unwrap_or_default();
    let class = codes::classify(code, message, 200);
    Failure {
        class,
        call: call.to_owned(),
        code: code.to_owned(),
        message: denial::readable(message),
        hint: Some(hint::of(class, call, code, message)),
        request_id: None,
    }
}

/// What a creating call answered with, or the failure that it lacks it.
pub fn answered<T>(value: Option<T>, call: &str) -> Result<T, Failure> {
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
    let whole = service.message().unwrap_or_default();
    let message = denial::readable(whole);
    let status = error
        .raw_response()
        .map_or(0, |response| response.status().as_u16());
    let class = codes::classify(&code, &message, status);
    Failure {
        class,
        call: call.to_owned(),
        hint: Some(hint::of(class, call, &code, whole)),
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
    let mut failure = own(Class::Unknown, call, deepest(error));
    if causes.iter().any(|cause| cause.is::<Fenced>()) {
        failure.class = Class::Invalid;
        FENCED.clone_into(&mut failure.code);
    } else if unsigned {
        failure.class = Class::Denied;
        failure.hint = Some("no AWS credentials were found: set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or run `aws sso login`".to_owned());
    } else {
        if matches!(error, SdkError::ConstructionFailure(_)) {
            failure.class = Class::Invalid;
        }
        failure.hint = Some(hint::of(failure.class, call, "", ""));
    }
    failure
}
