//! What nobody does yet for a cluster is told where an operator looks, once, in a line each; and so is what a new cluster
//! leaves open.

use crate::kctl::Kctl;
use crate::plans::stored_cluster;
use crate::scenario::{NAME, kctl_with_cloud};
use crate::simulator::Simulator;
use serde_json::Value;

const WARNINGS: [&str; 1] = ["warning: autoscale of nodes-eu-west-1a has no effect"];

fn list_topics(document: &Value) -> Vec<&str> {
    let warnings = document["warnings"].as_array().expect("warnings");
    let topics = warnings.iter().filter_map(|one| one["topic"].as_str());
    // It depends on the day.
    topics.filter(|topic| *topic != "kubernetes").collect()
}

#[test]
fn update_and_validate_say_what_nobody_does_yet() {
    let simulator = Simulator::start_simulator();
    let kctl = stored_cluster(&simulator);
    let group = "nodes-eu-west-1a";
    let edit = ["edit", "ig", group, "--set", "spec.autoscale=true"];
    kctl.run(&edit).expect_success();
    for words in [
        &["update"][..],
        &["update", "--yes"],
        &["update"],
        &["validate"],
    ] {
        let ran = kctl.run(words);
        for line in WARNINGS {
            assert_eq!(ran.err.matches(line).count(), 1, "{words:?}: {}", ran.err);
        }
        assert!(ran.err.contains("docs/not-yet.md"), "{}", ran.err);
        assert!(
            !ran.out.contains("no effect"),
            "the plan is not drowned: {}",
            ran.out
        );
    }
    for words in [&["update", "-o", "json"][..], &["validate", "-o", "json"]] {
        let document: Value = serde_json::from_str(&kctl.run(words).out).expect("JSON");
        assert_eq!(list_topics(&document), ["autoscaling"]);
    }
    let events = kctl.run(&["update", "-o", "events"]).expect_success();
    let mut lines = events
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let line = lines.find(|line| line["event"] == "warnings");
    assert_eq!(list_topics(&line.expect("a line")), ["autoscaling"]);
}

#[test]
fn a_new_cluster_says_who_may_reach_it() {
    let words = [
        "create",
        "cluster",
        NAME,
        "--zones",
        "eu-west-1a",
        "--dry-run",
    ];
    let said = |more: &[&str]| Kctl::new().run(&[&words[..], more].concat()).err;
    let open = said(&[]);
    assert!(open.contains("the API is open to the internet") && open.contains("--admin-access"));
    assert!(
        open.contains("port 22 (SSH) is open to the internet") && open.contains("--ssh-access")
    );
    let narrow = said(&["--admin-access", "203.0.113.0/24"]);
    assert!(!narrow.contains("open to the internet"), "{narrow}");
    let ssh = said(&["--ssh-access", "203.0.113.0/24"]);
    assert!(
        ssh.contains("the API is open") && !ssh.contains("port 22"),
        "{ssh}"
    );

    let simulator = Simulator::start_simulator();
    let kctl = kctl_with_cloud(&simulator);
    let stored = kctl.run(&words[..5]);
    assert!(
        stored.err.contains("the API is open to the internet"),
        "{}",
        stored.err
    );
}
