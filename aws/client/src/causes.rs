//! What an error was caused by, from the nearest to the deepest.

use std::error::Error;

/// The causes of `error`, without itself.
pub(crate) fn causes<'a>(error: &'a (dyn Error + 'static)) -> Vec<&'a (dyn Error + 'static)> {
    std::iter::successors(error.source(), |&cause| cause.source()).collect()
}

/// What the deepest cause says: of a call that nobody answered, the operating system's words.
pub(crate) fn deepest(error: &(dyn Error + 'static)) -> String {
    let causes = causes(error);
    causes.last().copied().unwrap_or(error).to_string()
}
