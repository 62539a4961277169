//! `kill -9` in the middle of an apply: the next run finishes the job, and nothing is there twice.

use crate::kctl::Operator;
use std::process::Stdio;
use std::time::Duration;

#[test]
fn an_apply_killed_at_several_moments_is_finished_by_the_next() {
    let operator = Operator::new();
    let before = operator.listing();
    operator.ok(&["create", "cluster", "--zones", "us-east-1a,us-east-1b"]);
    for wait in [300, 700, 1100] {
        let mut command = operator.command(&["update", "--yes"]);
        let mut run = command
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("kctl runs");
        std::thread::sleep(Duration::from_millis(wait));
        let _ = run.kill();
        run.wait().expect("it ends");
    }
    operator.ok(&["update", "--yes"]);
    operator.ok(&["update", "--exit-code"]);
    let listing = operator.listing();
    let vpcs = listing
        .iter()
        .filter(|line| line.starts_with("ec2 vpc "))
        .count();
    assert_eq!(vpcs, 1, "{listing:#?}");
    operator.ok(&["delete", "cluster", "prod.example.com", "--yes"]);
    assert_eq!(operator.listing(), before);
}
