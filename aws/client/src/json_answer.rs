//! Answers of the JSON protocol, and their errors.

use crate::failure::{classify_error, local_failure};
use engine::{Class, Failure};
use serde_json::Value;

/// The document of a good answer in the JSON protocol; else what went wrong. An error has `__type` with a name space before `#`.
pub(crate) fn parse_json_answer(
    call: &str,
    (status, text): (u16, String),
) -> Result<Value, Failure> {
    let parsed = serde_json::from_str::<Value>(&text);
    if (200..300).contains(&status) {
        // An action without an answer may have an empty body.
        return match parsed {
            _ if text.trim().is_empty() => Ok(Value::Null),
            parsed => {
                parsed.map_err(|error| local_failure(Class::Unknown, call, error.to_string()))
            }
        };
    }
    let error = parsed.unwrap_or_default();
    let part = |name: &str| Some(error.get(name)?.as_str()?.to_owned());
    let code = part("__type").map(|name| name.rsplit('#').next().unwrap_or_default().to_owned());
    let code = code.unwrap_or_else(|| format!("HTTP {status}"));
    let message = part("message").or_else(|| part("Message"));
    Err(service_failure(
        call,
        status,
        code,
        message.unwrap_or_default(),
    ))
}

/// What a service says of a call that failed.
pub(crate) fn service_failure(call: &str, status: u16, code: String, message: String) -> Failure {
    let class = classify_error(call, &code, &message, status);
    Failure {
        code,
        ..local_failure(class, call, message)
    }
}
