//! Converts errors of the crate `host` into failures of the engine.

use engine::{Class, Failure, error_chain};
use host::Error;

/// Converts an error of an operation on a file, naming the file once.
pub(super) fn file_failure<'a>(doing: &'a str, path: &'a str) -> impl Fn(Error) -> Failure + 'a {
    move |error| {
        let call = format!("{doing} {path}");
        match &error {
            Error::File {
                path: named,
                source,
                ..
            } if named.ends_with(path.trim_start_matches('/')) => {
                permanent_failure(&call, &source.to_string())
            }
            _ => call_failure(&call)(error),
        }
    }
}

/// Converts an error of a call whose text names the program.
pub(super) fn call_failure(call: impl Into<String>) -> impl Fn(Error) -> Failure {
    let call = call.into();
    move |error| {
        let message = match &error {
            Error::Start { source, .. } => source.to_string(),
            error => error_chain(error),
        };
        permanent_failure(&call, &message)
    }
}

/// A failure that a retry does not help.
pub(super) fn permanent_failure(call: &str, message: &str) -> Failure {
    Failure {
        class: Class::Invalid,
        call: call.to_owned(),
        code: String::new(),
        message: message.to_owned(),
        hint: None,
        request_id: None,
    }
}
