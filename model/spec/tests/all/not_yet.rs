//! Each function that is missing so far is reported in one line, and its page has a workaround.
use serde_json::{Value, json};
use spec::not_yet::{NotYet, PAGE, not_yet};
use std::collections::BTreeSet;
use test_support::expanded_with;

/// Of a spec with these settings of the autoscaler and a group that has its fields.
fn warnings_with(autoscaler: &Value) -> Vec<NotYet> {
    let expanded = expanded_with(|cluster, groups| {
        cluster.spec.cluster_autoscaler = serde_json::from_value(autoscaler.clone()).unwrap();
        groups[2].spec.autoscale = Some(true);
        groups[2].spec.autoscale_priority = Some(7);
    });
    not_yet(&expanded.cluster.spec, &expanded.groups)
}

fn documented_topics(found: &[NotYet]) -> Vec<&str> {
    found.iter().map(|one| one.topic).collect()
}

#[test]
fn what_a_spec_asks_for_is_told_and_what_it_declines_is_not() {
    let expanded = expanded_with(|_, _| ());
    assert_eq!(not_yet(&expanded.cluster.spec, &expanded.groups), []);
    for (settings, wanted) in [
        (json!(null), &["autoscale", "autoscalePriority"][..]),
        (
            json!({"enabled": false}),
            &["autoscale", "autoscalePriority"],
        ),
        (json!({"enabled": true}), &["autoscalePriority"]),
        (json!({"enabled": true, "expander": "priority"}), &[]),
        (
            json!({"enabled": true, "expander": "priority", "createPriorityExpanderConfig": false}),
            &["autoscalePriority"],
        ),
        (
            json!({"enabled": true, "expander": "priority", "customPriorityExpanderConfig": {"1": ["a"]}}),
            &["autoscalePriority"],
        ),
    ] {
        let warnings = warnings_with(&settings);
        let topics = documented_topics(&warnings);
        assert!(topics.iter().all(|topic| *topic == "autoscaling"));
        let fields = warnings
            .iter()
            .filter_map(|one| one.message.split(' ').next());
        assert_eq!(fields.collect::<Vec<_>>(), wanted, "{settings}");
        for one in &warnings {
            assert!(one.message.contains("nodes-eu-west-1a"), "{one:?}");
        }
    }
}

#[test]
fn each_is_a_line_and_a_heading_of_the_page() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../");
    let page = std::fs::read_to_string(format!("{page}{PAGE}")).unwrap();
    let warnings = warnings_with(&json!(null));
    for one in &warnings {
        assert!(one.message.len() <= 120, "{one:?}");
        assert!(page.contains(&format!("\n## {}\n", one.topic)), "{one:?}");
    }
    let headings = page.lines().filter(|line| line.starts_with("## ")).count();
    let topics: BTreeSet<_> = warnings.iter().map(|one| one.topic).collect();
    assert_eq!(headings, topics.len(), "no more headings than topics");
}
