//! Errors of the machine as failures of the engine.

use engine::{Class, Failure};
use host::Error;

/// A failure to do something with a file. The file is named once.
pub(super) fn file_failure<'a>(doing: &'a str, path: &'a str) -> impl Fn(Error) -> Failure + 'a {
    move |error| {
        let call = format!("{doing} {path}");
        match &error {
            Error::File {
                path: named,
                source,
                ..
            } if named.ends_with(path.trim_start_matches('/')) => {
                invalid(&call, &source.to_string())
            }
            _ => failed(&call)(error),
        }
    }
}

/// A failure of a call that names the program that it runs.
pub(super) fn failed(call: impl Into<String>) -> impl Fn(Error) -> Failure {
    let call = call.into();
    move |error| {
        let message = match &error {
            Error::Start { source, .. } => source.to_string(),
            error => with_causes(error),
        };
        invalid(&call, &message)
    }
}

/// A failure that trying again does not mend.
pub(super) fn invalid(call: &str, message: &str) -> Failure {
    Failure {
        class: Class::Invalid,
        call: call.to_owned(),
        code: String::new(),
        message: message.to_owned(),
        hint: None,
        request_id: None,
    }
}

/// An error with its causes.
pub(super) fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(&format!(": {error}"));
        cause = error.source();
    }
    text
}
