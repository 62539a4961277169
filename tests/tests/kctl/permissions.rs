//! What kctl's own identity must be allowed: the table of docs/getting-started.md has exactly the calls that the sources
//! name, and a cluster lives its life under exactly that.

use crate::kctl::{Operator, REGION};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Services by the prefix of their actions, as the table calls them.
const SERVICES: [(&str, &str); 10] = [
    ("sts", "STS"),
    ("s3", "S3, on the state store and the discovery store"),
    ("ec2", "EC2"),
    ("autoscaling", "Auto Scaling"),
    ("elasticloadbalancing", "Elastic Load Balancing"),
    ("iam", "IAM"),
    ("route53", "Route 53"),
    ("sqs", "SQS"),
    ("events", "EventBridge"),
    ("servicequotas", "Service Quotas"),
];

/// What AWS' services do in the caller's name, so that no call of ours is called like it.
const BEYOND_CALLS: [&str; 6] = [
    // An object that is put with an access control list (API reference, `PutObject`).
    "s3:PutObjectAcl",
    // Auto Scaling launches from a template (Auto Scaling User Guide, "Launch template support").
    "ec2:RunInstances",
    // A role in a template's profile, and a role added to a profile (IAM User Guide, "Grant permissions to pass a role").
    "iam:PassRole",
    // The first Auto Scaling group and the first balancer of an account.
    "iam:CreateServiceLinkedRole",
    // Of who makes a balancer Elastic Load Balancing demands actions of EC2 ("Elastic Load Balancing API permissions"), and with
    // security groups one that this page does not have (kubernetes-sigs/aws-load-balancer-controller#3917).
    "ec2:DescribeAccountAttributes",
    "ec2:GetSecurityGroupsForVpc",
];

/// Sources that no kctl on an operator's machine runs, or that only speak of calls.
const ELSEWHERE: [&str; 4] = [
    "aws/client/src/ec2_query",
    "aws/client/src/failure",
    "cli/src/ui",
    "_test.rs",
];

/// Keys of conditions, which look like actions.
const CONDITION_KEYS: [&str; 1] = ["iam:PassedToService"];

const TABLE: &str = "docs/getting-started.md";

fn repository_folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Every `service:Action` that a file's code names, tests apart.
fn named_in(path: &Path, found: &mut BTreeSet<String>) {
    let entries = std::fs::read_dir(path).expect("a folder");
    for entry in entries {
        let path = entry.expect("an entry").path();
        let shown = path.to_string_lossy().into_owned();
        if ELSEWHERE.iter().any(|part| shown.contains(part)) {
            continue;
        }
        if path.is_dir() {
            named_in(&path, found);
        } else if path.extension().is_some_and(|of| of == "rs") {
            let text = std::fs::read_to_string(&path).expect("a source");
            let code = text.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
            found.extend(
                code.split('"')
                    .filter(|text| is_action(text) && !CONDITION_KEYS.contains(text))
                    .map(str::to_owned),
            );
        }
    }
}

fn is_action(text: &str) -> bool {
    text.split_once(':').is_some_and(|(service, action)| {
        SERVICES.iter().any(|(prefix, _)| *prefix == service)
            && action.starts_with(|first: char| first.is_ascii_uppercase())
            && action.chars().all(|char| char.is_ascii_alphanumeric())
    })
}

/// What is called, and what AWS does for it.
fn needed_actions() -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    named_in(&repository_folder().join("aws"), &mut found);
    named_in(&repository_folder().join("cli/src"), &mut found);
    found.extend(BEYOND_CALLS.map(str::to_owned));
    found
}

/// The rows of the table that these actions make.
fn table_rows(actions: &BTreeSet<String>) -> String {
    let mut rows = String::new();
    for (prefix, name) in SERVICES {
        let of = actions
            .iter()
            .filter_map(|action| action.strip_prefix(prefix)?.strip_prefix(':'));
        let of: Vec<String> = of.map(|action| format!("`{action}`")).collect();
        let _ = writeln!(rows, "| {name} | {} |", of.join(", "));
    }
    rows
}

/// The actions that the table names.
fn documented_actions() -> BTreeSet<String> {
    let text = std::fs::read_to_string(repository_folder().join(TABLE)).expect("the page");
    let mut found = BTreeSet::new();
    for (prefix, name) in SERVICES {
        let row = text
            .lines()
            .find_map(|line| line.strip_prefix(&format!("| {name} | ")));
        let row = row.unwrap_or_else(|| panic!("no row of {name}"));
        let actions = row.split('`').skip(1).step_by(2);
        found.extend(actions.map(|action| format!("{prefix}:{action}")));
    }
    found
}

#[test]
fn the_table_of_permissions_has_what_is_called_and_nothing_else() {
    let (needed, documented) = (needed_actions(), documented_actions());
    let missing: Vec<&String> = needed.difference(&documented).collect();
    let idle: Vec<&String> = documented.difference(&needed).collect();
    assert!(
        missing.is_empty() && idle.is_empty(),
        "{TABLE} lacks {missing:?} and has {idle:?} that nobody calls. Its rows are:\n{}",
        table_rows(&needed)
    );
}

/// Created, changed and deleted by one who may do nothing else, with names, a bastion and private machines.
#[test]
fn a_cluster_lives_under_exactly_the_documented_permissions() {
    let operator = Operator::with_permissions(&documented_actions());
    operator.simulator.run_python(
        REGION,
        "boto('route53').create_hosted_zone(Name='example.com', CallerReference='test')",
    );
    let before = operator.list_resources();
    operator.run_ok(&[
        "create",
        "cluster",
        "--zones",
        "us-east-1a,us-east-1b",
        "--topology",
        "private",
        "--bastion",
        "--dns-zone",
        "example.com",
    ]);
    // Nobody serves names at that port.
    let preflight = ["preflight", "--name-server", "127.0.0.1:9"];
    let asked = operator.run_ok(&preflight).stdout;
    assert!(asked.contains("IAM allows the "), "{asked}");
    operator.run_ok(&["update", "--yes"]);
    let made = operator.run_ok(&preflight).stdout;
    assert!(made.contains("none is in the way (IPv4)"), "{made}");
    operator.run_ok(&["edit", "ig", "nodes-us-east-1a", "--set", "spec.maxSize=3"]);
    assert_asks_for_the_role_of_a_group(&operator);
    operator.run_ok(&["edit", "cluster", "--set", "spec.cloudLabels.Owner=crew"]);
    operator.run_ok(&["update", "--yes"]);
    let settled = operator.run(&["update", "--exit-code"]);
    assert_eq!(settled.code, Some(0), "{}", settled.stdout);
    operator.run_ok(&["get", "instances"]);
    operator.run_ok(&["delete", "cluster", "prod.example.com", "--yes"]);
    assert_eq!(operator.list_resources(), before);
}

/// Auto Scaling hands the role of the instances on, also where only the group changes.
fn assert_asks_for_the_role_of_a_group(operator: &Operator) {
    const DENY: &str = "boto('iam').put_user_policy(UserName='operator', PolicyName='no-roles', PolicyDocument=json.dumps({
    'Version': '2012-10-17', 'Statement': [{'Effect': 'Deny', 'Action': 'iam:PassRole', 'Resource': '*'}]}))";
    let code = format!("import json\n{DENY}");
    operator.simulator.run_python(REGION, &code);
    let ran = operator.run(&["preflight", "--name-server", "127.0.0.1:9"]);
    let named = ran.stdout.contains("iam:PassRole") && ran.stdout.contains("role/nodes.prod");
    assert!(ran.code == Some(4) && named, "{}", ran.stdout);
    let undo = "boto('iam').delete_user_policy(UserName='operator', PolicyName='no-roles')";
    operator.simulator.run_python(REGION, undo);
}

#[test]
fn a_preflight_names_the_action_that_is_not_allowed() {
    let mut actions = documented_actions();
    assert!(actions.remove("ec2:CreateNatGateway"));
    assert!(actions.remove("iam:CreateServiceLinkedRole"));
    let operator = Operator::with_permissions(&actions);
    operator.run_ok(&[
        "create",
        "cluster",
        "--zones",
        "us-east-1a",
        "--topology",
        "private",
    ]);
    let ran = operator.run(&["preflight", "-o", "json"]);
    assert_eq!(ran.code, Some(4), "{}{}", ran.stdout, ran.stderr);
    let document: Value = serde_json::from_str(&ran.stdout).expect("JSON");
    let rows = document["checks"].as_array().expect("rows");
    let mut problems = rows.iter().filter(|row| row["state"] == "problem");
    let expected = json!({
        "check": "permissions",
        "subject": "ec2:CreateNatGateway",
        "state": "problem",
        "message": "on *: no policy allows it to arn:aws:iam::123456789012:user/operator",
        "next": "allow ec2:CreateNatGateway to arn:aws:iam::123456789012:user/operator, or use other credentials",
    });
    assert_eq!(problems.next(), Some(&expected), "{}", ran.stdout);
    assert_eq!(problems.next(), None);
    // In an account that has used Auto Scaling and load balancers their roles are there.
    let mut unknown = rows.iter().filter(|row| row["state"] == "not_known");
    assert!(
        unknown.any(|row| row["subject"] == "iam:CreateServiceLinkedRole"),
        "{}",
        ran.stdout
    );
}
