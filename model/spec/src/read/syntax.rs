//! Why a text is no YAML, in words for its author.

use serde_saphyr::budget::BudgetBreach;
use serde_saphyr::{Error, MessageFormatter, UserMessageFormatter};

use super::problem::Problem;

/// The finding, without its place.
pub(crate) fn explain_error(error: &Error) -> Problem {
    match error.without_snippet() {
        Error::AliasError { error, .. } => explain_error(error),
        Error::Budget {
            breach: BudgetBreach::Depth { .. },
            ..
        } => too_deep(),
        Error::Budget {
            breach:
                BudgetBreach::Documents { .. }
                | BudgetBreach::Nodes { .. }
                | BudgetBreach::Events { .. }
                | BudgetBreach::ScalarBytes { .. },
            ..
        } => Problem::error("", "the file is larger than any spec")
            .hint("pass the objects of one cluster alone; of anchors (&) and aliases (*) in each other, use fewer"),
        Error::Budget { .. }
        | Error::AliasReplayLimitExceeded { .. }
        | Error::AliasReplayStackDepthExceeded { .. }
        | Error::AliasExpansionLimitExceeded { .. } => Problem::error(
            "",
            "the file is larger than any spec, once its aliases are written out",
        )
        .hint("use fewer anchors (&) and aliases (*) inside each other"),
        Error::UnknownAnchor { .. } => {
            Problem::error("", "there is no anchor of this name before the alias")
                .hint("put text that begins with * in quotes")
        }
        error => {
            let text = UserMessageFormatter.format_message(error);
            // The scanner's own limit, which it meets before the budget is asked.
            if text.contains("recursion limit") {
                return too_deep();
            }
            Problem::error("", format!("not valid YAML: {text}")).hint(syntax_hint(&text))
        }
    }
}

fn too_deep() -> Problem {
    Problem::error("", "the file is nested deeper than any spec")
        .hint("look for brackets that are not closed")
}

fn syntax_hint(text: &str) -> &'static str {
    if text.contains("tab") {
        return "indent with spaces, not with tabs";
    }
    if text.contains("quote") || text.contains("scalar") {
        return "close the quotes, and put text that holds \": \" or \" #\" in quotes";
    }
    "check the indentation of this line and of the line above it"
}
