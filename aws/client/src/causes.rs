//! Walks the chain of causes of an error.

use std::error::Error;

/// The causes of `error`, nearest first, without `error` itself.
pub(crate) fn error_causes<'a>(error: &'a (dyn Error + 'static)) -> Vec<&'a (dyn Error + 'static)> {
    std::iter::successors(error.source(), |&cause| cause.source()).collect()
}

/// The message of the deepest cause. For a call without a response it is that of the operating system.
pub(crate) fn deepest_cause(error: &(dyn Error + 'static)) -> String {
    let causes = error_causes(error);
    causes.last().copied().unwrap_or(error).to_string()
}
