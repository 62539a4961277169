//! What an operator reads when AWS says no.

use crate::kctl::Operator;
use serde_json::json;

/// The lines of the step that failed, without what differs from run to run and without those that wait for it.
fn refusal_lines(stderr: &str) -> String {
    let lines = stderr.lines().skip_while(|line| !line.starts_with("! "));
    let lines = lines.take_while(|line| !line.contains("  not tried: "));
    let lines = lines.filter(|line| !line.trim_start().starts_with("request id"));
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn a_denied_update_names_who_lacks_what_in_which_policy() {
    let operator = Operator::new();
    operator.run_ok(&["create", "cluster", "--zones", "us-east-1a"]);
    operator.simulator.set_faults(&json!([{
        "service": "ec2", "operation": "CreateVpc", "code": "UnauthorizedOperation", "status": 403,
        "message": "You are not authorized to perform this operation. User: arn:aws:sts::123456789012:assumed-role/deploy/jo \
                    is not authorized to perform: ec2:CreateVpc on resource: arn:aws:ec2:us-east-1:123456789012:vpc/* because \
                    no identity-based policy allows the ec2:CreateVpc action. Encoded authorization failure message: AQ0xyz",
    }]));
    let ended = operator.run(&["update", "--yes"]);
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    assert!(!ended.stderr.contains("AQ0xyz"), "{}", ended.stderr);
    insta::assert_snapshot!(refusal_lines(&ended.stderr), @r"
    ! vpc/prod.example.com could not be created
        ec2:CreateVpc failed with UnauthorizedOperation: You are not authorized to perform this operation. User: arn:aws:sts::123456789012:assumed-role/deploy/jo is not authorized to perform: ec2:CreateVpc on resource: arn:aws:ec2:us-east-1:123456789012:vpc/* because no identity-based policy allows the ec2:CreateVpc action.
        hint: no identity-based policy of arn:aws:sts::123456789012:assumed-role/deploy/jo allows ec2:CreateVpc on arn:aws:ec2:us-east-1:123456789012:vpc/*: add it to one, or attach one that has it
    ");
    let waiting = "subnet/us-east-1a.prod.example.com  not tried: vpc/prod.example.com failed";
    assert!(ended.stderr.contains(waiting), "{}", ended.stderr);
}
