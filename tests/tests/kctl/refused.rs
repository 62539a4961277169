//! What an operator reads when AWS says no.

use crate::kctl::Operator;
use serde_json::json;

/// The lines from the first that tells of a step that failed, without what differs from run to run.
fn refusals(stderr: &str) -> String {
    let lines = stderr.lines().skip_while(|line| !line.starts_with("! "));
    let lines = lines.filter(|line| !line.trim_start().starts_with("request id"));
    let lines: Vec<String> = lines.map(without_seconds).collect();
    lines.join("\n")
}

/// `in 3.1 s` as `in N s`.
fn without_seconds(line: &str) -> String {
    let words = line.split(' ').map(|word| match word.parse::<f64>() {
        Ok(_) if word.contains('.') => "N".to_owned(),
        _ => word.to_owned(),
    });
    words.collect::<Vec<_>>().join(" ")
}

#[test]
fn a_denied_update_names_who_lacks_what_in_which_policy() {
    let operator = Operator::new();
    operator.ok(&["create", "cluster", "--zones", "us-east-1a"]);
    operator.simulator.faults(&json!([{
        "service": "ec2", "operation": "CreateVpc", "code": "UnauthorizedOperation", "status": 403,
        "message": "You are not authorized to perform this operation. User: arn:aws:sts::123456789012:assumed-role/deploy/jo \
                    is not authorized to perform: ec2:CreateVpc on resource: arn:aws:ec2:us-east-1:123456789012:vpc/* because \
                    no identity-based policy allows the ec2:CreateVpc action. Encoded authorization failure message: AQ0xyz",
    }]));
    let ended = operator.run(&["update", "--yes"]);
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    assert!(!ended.stderr.contains("AQ0xyz"), "{}", ended.stderr);
    let told = refusals(&ended.stderr);
    // Steps end in any order: those that were done stand between.
    let (refused, rest) = told.split_at(told.find("\n+ ").unwrap_or(told.len()));
    insta::assert_snapshot!(refused.trim_end(), @"");
    assert!(rest.contains("hint:") || rest.is_empty(), "{told}");
}
