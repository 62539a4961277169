//! What is wrong and what to do, as `kctl validate` finds it; then what is no problem but should be known.

use super::html::{Html, element, plain, text};
use super::table::list;
use super::{Report, count_text, folded, next_step, paragraph};
use fleet::Finding;

/// Findings that are open from the start: with 300 instances there may be hundreds that follow from the first ones.
const OPEN: usize = 20;

pub(super) fn section(report: &Report) -> Html {
    let findings = &report.health.findings;
    let (first, rest) = findings.split_at(findings.len().min(OPEN));
    let mut parts = vec![match first {
        [] => paragraph("kctl validate finds no problem."),
        first => finding_list(first),
    }];
    if !rest.is_empty() {
        let summary = format!("{} more", count_text(rest.len(), "problem"));
        parts.push(folded(
            "more-problems",
            false,
            &summary,
            [finding_list(rest)],
        ));
    }
    if !report.warnings.is_empty() {
        let warnings = report.warnings.iter();
        let warnings = warnings.map(|one| format!("{}: {}", one.topic, one.message));
        parts.extend([plain("h3", [text("Warnings")]), list(warnings)]);
    }
    if !report.gaps.is_empty() {
        let heading = plain("h3", [text("Could not be read")]);
        parts.extend([heading, list(report.gaps.iter().cloned())]);
    }
    super::section("problems", "Problems", parts)
}

fn finding_list(findings: &[Finding]) -> Html {
    let items = findings.iter().map(|found| {
        let name = format!("{}/{}", found.kind.word(), found.name);
        let name = plain("strong", [text(&name)]);
        let said = plain("p", [name, text(" "), text(&found.message)]);
        let next = found.next.as_deref().map(next_step);
        element(
            "li",
            &[("class", "problem")],
            std::iter::once(said).chain(next),
        )
    });
    plain("ol", items)
}
