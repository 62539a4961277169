//! Each function that is missing so far is reported in one line, and its page has a workaround.
use spec::not_yet::{NotYet, PAGE, not_yet};
use test_support::expanded_with;

fn documented_topics(found: &[NotYet]) -> Vec<&str> {
    found.iter().map(|one| one.topic).collect()
}

#[test]
fn what_a_spec_asks_for_is_told_and_what_it_declines_is_not() {
    let expanded = expanded_with(|_, _| ());
    assert_eq!(not_yet(&expanded.groups), []);
    let expanded = expanded_with(|_, groups| groups[2].spec.autoscale = Some(true));
    let warnings = not_yet(&expanded.groups);
    assert_eq!(documented_topics(&warnings), ["autoscaling"]);
    assert!(
        warnings[0].message.contains("nodes-eu-west-1a"),
        "{warnings:?}"
    );
}

#[test]
fn each_is_a_line_and_a_heading_of_the_page() {
    let expanded = expanded_with(|_, groups| {
        groups[2].spec.autoscale = Some(true);
    });
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../");
    let page = std::fs::read_to_string(format!("{page}{PAGE}")).unwrap();
    let warnings = not_yet(&expanded.groups);
    for one in &warnings {
        assert!(one.message.len() <= 120, "{one:?}");
        assert!(page.contains(&format!("\n## {}\n", one.topic)), "{one:?}");
    }
    let headings = page.lines().filter(|line| line.starts_with("## ")).count();
    assert_eq!(headings, warnings.len(), "no more headings than topics");
}
