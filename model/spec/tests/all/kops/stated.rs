//! The rows of docs/compat-cases.md.

use super::compare::Difference;
use serde_json::Value;

/// Headings of the page.
pub const REFUSED: &str = "Refused";
pub const NEW_CLUSTERS: &str = "New clusters";
pub const COMPLETED_SPECS: &str = "Completed specs";
pub const AWS_OBJECTS: &str = "AWS objects";
pub const ADDONS: &str = "Addons";

const PAGE: &str = include_str!("../../../../../docs/compat-cases.md");

/// A difference as the page states it.
pub struct Row {
    pub line: &'static str,
    /// The heading that it is below.
    section: &'static str,
    /// A case has to show it.
    pub is_shown: bool,
    place: &'static str,
    ours: &'static str,
    theirs: &'static str,
    /// The row of docs/compat.md that explains it.
    pub topic: &'static str,
}

/// All rows, in their order. Below a heading of the third level are those that no case has to show.
pub fn read_rows() -> Vec<Row> {
    let (mut section, mut is_shown) = ("", true);
    let mut rows = Vec::new();
    for line in PAGE.lines() {
        if let Some(heading) = line.strip_prefix("## ") {
            (section, is_shown) = (heading, true);
        } else if line.starts_with("### ") {
            is_shown = false;
        }
        let cells = line.strip_prefix("| `");
        let Some(cells) = cells.and_then(|cells| cells.strip_suffix("` |")) else {
            continue;
        };
        let cells: Vec<&'static str> = cells.split("` | `").collect();
        let [place, ours, theirs, topic] = cells[..] else {
            panic!("this row does not have four cells: {line}");
        };
        rows.push(Row {
            line,
            section,
            is_shown,
            place,
            ours,
            theirs,
            topic,
        });
    }
    rows
}

/// The first row that states the difference.
pub fn find_row<'a>(rows: &'a [Row], section: &str, one: &Difference) -> Option<&'a Row> {
    rows.iter().find(|row| {
        row.section == section
            && fits(row.place, &one.place)
            && fits_value(row.ours, one.ours.as_ref())
            && fits_value(row.theirs, one.theirs.as_ref())
    })
}

fn fits_value(pattern: &str, value: Option<&Value>) -> bool {
    match value {
        Some(value) => pattern != "-" && fits(pattern, &value.to_string()),
        None => pattern == "-",
    }
}

/// True if the text is the pattern, whose `*` stand for anything.
fn fits(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = text.strip_prefix(parts.next().unwrap_or_default()) else {
        return false;
    };
    let Some(last) = parts.next_back() else {
        return rest.is_empty();
    };
    for part in parts {
        match rest.split_once(part) {
            Some((_, after)) => rest = after,
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[test]
fn a_star_stands_for_anything_and_all_else_for_itself() {
    for (pattern, text, fit) in [
        ("a", "a", true),
        ("a", "ab", false),
        ("a*", "ab", true),
        ("*b*d", "abcd", true),
        ("*b*d", "abc", false),
        ("a*a", "a", false),
        ("*", "", true),
    ] {
        assert_eq!(fits(pattern, text), fit, "{pattern} {text}");
    }
}
