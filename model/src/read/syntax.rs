//! Why a text is no YAML, in words for its author.

use serde_saphyr::{Error, MessageFormatter, UserMessageFormatter};

use super::problem::Problem;

/// The finding, without its place.
pub(crate) fn explain(error: &Error) -> Problem {
    let error = error.without_snippet();
    let text = UserMessageFormatter.format_message(error);
    match error {
        Error::Budget { .. } => Problem::error(
            "",
            format!("the file is larger or deeper than any spec: {text}"),
        )
        .hint("write the values out instead of nesting anchors and aliases"),
        Error::AliasReplayLimitExceeded { .. }
        | Error::AliasReplayStackDepthExceeded { .. }
        | Error::AliasExpansionLimitExceeded { .. } => Problem::error(
            "",
            format!("aliases expand to more than any spec needs: {text}"),
        )
        .hint("write the values out instead of nesting anchors and aliases"),
        Error::UnknownAnchor { .. } => Problem::error("", format!("not valid YAML: {text}"))
            .hint("a value that begins with * needs quotes, unless it names an anchor"),
        _ => Problem::error("", format!("not valid YAML: {text}")).hint(hint(&text)),
    }
}

fn hint(text: &str) -> &'static str {
    if text.contains("tab") {
        return "indent with spaces, not with tabs";
    }
    if text.contains("quote") || text.contains("scalar") {
        return "close the quotes, and put text that holds \": \" or \" #\" in quotes";
    }
    "check the indentation of this line and of the line above it"
}
