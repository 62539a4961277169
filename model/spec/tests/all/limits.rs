//! Oversized input is refused with cause and next step before it takes much memory or time, and the time for large clusters
//! grows linearly.
use cloud::facts::Facts;
use engine::{Snapshot, plan};
use full::objects::desired_objects;
use node::config::{NODE_FORMAT, read_node_config};
use node::digest::sha256_hex;
use node::yaml::MAX_BYTES;
use spec::api::set::set_field;
use spec::api::{Cluster, InstanceGroup, InstanceGroupRole};
use spec::catalog::Catalog;
use spec::expand::expand;
use spec::read::{Problem, read_documents, render_problems};
use spec::validate::{ClusterInput, validate, validate_documents};
use std::collections::BTreeMap;

fn refused_problems(text: &str) -> Vec<Problem> {
    match read_documents("spec.yaml", text) {
        Ok(documents) => validate_documents(&documents),
        Err(problems) => problems,
    }
}

fn cluster_text(fields: &str) -> String {
    format!(
        "apiVersion: kops.k8s.io/v1alpha2\nkind: Cluster\nmetadata:\n  name: a.example.com\nspec:\n{fields}"
    )
}

fn repeat_line(count: usize, line: impl Fn(usize) -> String) -> String {
    (0..count).map(line).collect()
}

#[test]
fn each_limit_is_told_with_a_next_step() {
    let list = |key: &str| format!("{key}: [{}]\n", repeat_line(40_000, |_| "a,".into()));
    let cases = [
        ("bytes", "#".repeat(MAX_BYTES + 1), "has 4194305 bytes"),
        (
            "one long text",
            cluster_text(&format!("  channel: \"{}", "a".repeat(MAX_BYTES))),
            "bytes, more than",
        ),
        ("values", list("a").repeat(3), "larger than any spec"),
        (
            "documents",
            repeat_line(60_000, |_| "---\na: 1\n".into()),
            "larger than any spec",
        ),
        (
            "anchors in each other",
            repeat_line(12, |n| {
                format!(
                    "x{}: &x{} [{}]\n",
                    n + 1,
                    n + 1,
                    format!("*x{n},").repeat(9)
                )
            })
            .replace("*x0", "y"),
            "larger than any spec",
        ),
        ("depth", "[".repeat(1000), "nested deeper"),
        (
            "depth in blocks",
            repeat_line(1000, |n| format!("{}a:\n", " ".repeat(n))),
            "nested deeper",
        ),
        (
            "keys",
            list(&format!("? {}\n", "k".repeat(100_000))),
            "keys are longer",
        ),
    ];
    for (case, text, said) in cases {
        let problems = refused_problems(&text);
        let shown = render_problems(&problems);
        assert!(
            shown.contains(said),
            "{case}: {}",
            shown.chars().take(400).collect::<String>()
        );
        assert!(
            problems.iter().all(|problem| problem.hint.is_some()),
            "{case}"
        );
        assert!(shown.contains("spec.yaml"), "{case}: no place");
    }
}

#[test]
fn of_very_many_findings_the_first_are_told() {
    let cases = [
        (
            "unknown fields",
            cluster_text(&repeat_line(3_000, |n| format!("  x{n}: 1\n"))),
        ),
        ("on one line", {
            let fields = repeat_line(3_000, |n| format!("\"x{n}\": \"{}\",", "y".repeat(80)));
            format!(
                "{{\"apiVersion\": \"kops.k8s.io/v1alpha2\", \"kind\": \"Cluster\", \"spec\": {{{fields}}}}}"
            )
        }),
        (
            "given twice",
            cluster_text(&repeat_line(3_000, |_| "  channel: a\n".into())),
        ),
        (
            "wrong types",
            cluster_text(&format!(
                "  sshAccess:\n{}",
                repeat_line(3_000, |_| "  - {}\n".into())
            )),
        ),
        (
            "overlapping subnets",
            cluster_text(&format!(
                "  networkCIDR: 10.0.0.0/16\n  subnets:\n{}",
                repeat_line(2_000, |n| format!(
                    "  - {{name: a{n}, zone: eu-west-1a, cidr: 10.0.0.0/24}}\n"
                ))
            )),
        ),
        (
            "documents",
            repeat_line(900, |n| format!("---\nkind: Cluster{n}\n")),
        ),
    ];
    for (case, text) in cases {
        let problems = refused_problems(&text);
        let shown = render_problems(&problems);
        assert_eq!(problems.len(), 101, "{case}");
        assert!(shown.len() < 100_000, "{case}: {} bytes", shown.len());
        assert!(shown.contains("there are more findings"), "{case}");
    }
}

#[test]
fn a_path_of_a_thousand_steps_is_no_field() {
    let path = format!("spec{}", ".a".repeat(100_000));
    let problems = set_field(&mut Cluster::default(), &path, "1").unwrap_err();
    assert!(problems[0].message.contains("100001 steps"), "{problems:?}");
    assert!(problems[0].hint.is_some());
}

#[test]
fn a_configuration_of_a_machine_has_the_same_limits() {
    let deep = format!("format: {NODE_FORMAT}\nkubelet: {}", "[".repeat(5000));
    let long = format!("format: {NODE_FORMAT}\n#{}", "#".repeat(MAX_BYTES));
    for text in [deep, long] {
        assert!(read_node_config(&text, &sha256_hex(&text)).is_err());
    }
}

/// CPU time of this thread so far, nanoseconds: unlike wall time it does not depend on what else runs.
fn cpu_nanoseconds() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    text.split(' ').next().unwrap().parse().unwrap()
}

/// CPU time from validation to the plan of a cluster with so many groups of workers.
fn planning_cost(count: usize, catalog: &Catalog) -> u64 {
    let sample = test_support::expanded_spec();
    let worker = sample
        .groups
        .iter()
        .find(|group| {
            group.name() != "bastions" && group.spec.role == Some(InstanceGroupRole::Node)
        })
        .unwrap();
    let mut groups: Vec<InstanceGroup> = sample.groups.clone();
    groups.extend((0..count).map(|n| {
        let mut group = worker.clone();
        group.metadata.name = format!("nodes-{n}");
        group
    }));
    let facts = Facts {
        account: "123456789012".into(),
        partition: "aws".into(),
        stand_in: true,
        ..Facts::default()
    };
    let begun = cpu_nanoseconds();
    let problems = validate(&ClusterInput {
        cluster: &sample.cluster,
        instance_groups: &groups,
        ssh_keys: &[],
    });
    assert!(
        !problems.iter().any(Problem::is_error),
        "{}",
        render_problems(&problems)
    );
    let expanded = expand(&sample.cluster, &groups, &[], &facts, catalog).unwrap();
    let wanted = desired_objects(&expanded.full, &BTreeMap::new(), Vec::new());
    let made = plan(&wanted, &Snapshot::default()).unwrap();
    assert!(made.steps.len() > count);
    cpu_nanoseconds() - begun
}

#[test]
fn ten_times_the_groups_take_about_ten_times_the_work() {
    let catalog = Catalog::embedded().unwrap();
    let least = |count| {
        (0..2)
            .map(|_| planning_cost(count, &catalog))
            .min()
            .unwrap()
    };
    let (few, many) = (least(50), least(500));
    // In proportion it is ten, with squares a hundred.
    assert!(many < 25 * few, "{few} ns and {many} ns");
}
