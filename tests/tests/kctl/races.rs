//! Many who change one stored object at once: each change is there in the end.

use crate::kctl::{KctlOutput, Operator};
use serde_json::json;
use std::fs::File;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

const GROUP: &str = "nodes-us-east-1a";

/// Changes, and how many at once.
const CHANGES: usize = 100;
const AT_ONCE: usize = 20;

/// Repeats one change until nobody else was faster, later each time, as people would; counts the times somebody was.
fn add_with_retries(operator: &Operator, number: usize, lost: &AtomicUsize) {
    let label = format!("spec.nodeLabels.label-{number}=x");
    for tries in 1.. {
        let ended = operator.run(&["edit", "ig", GROUP, "--set", &label]);
        match ended.code {
            Some(0) => return,
            Some(4) => lost.fetch_add(1, Ordering::Relaxed),
            _ => panic!("{}", ended.stderr),
        };
        let said = "was changed by somebody else";
        assert!(ended.stderr.contains(said), "{}", ended.stderr);
        std::thread::sleep(Duration::from_millis(500) * tries);
    }
}

#[test]
fn of_a_hundred_racing_edits_none_is_lost() {
    let operator = Operator::new();
    operator.run_ok(&["create", "cluster", "--zones", "us-east-1a"]);
    let (next, lost) = (AtomicUsize::new(0), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= CHANGES {
                        return;
                    }
                    add_with_retries(&operator, number, &lost);
                }
            });
        }
    });
    let group = operator.run_ok(&["get", "ig", GROUP, "-o", "yaml"]).stdout;
    for number in 0..CHANGES {
        let label = format!("label-{number}: x\n");
        assert!(group.contains(&label), "{label} is lost\n{group}");
    }
    println!("{} races lost and repeated", lost.into_inner());
}

#[test]
fn who_loses_a_race_with_replace_hears_of_what_and_where_the_text_is() {
    let operator = Operator::new();
    operator.run_ok(&["create", "cluster", "--zones", "us-east-1a"]);
    let stored = operator.run_ok(&["get", "ig", GROUP, "-o", "yaml"]).stdout;
    let text = stored.replace("maxSize: 1\n", "maxSize: 2\n");
    assert_ne!(text, stored);
    let file = operator.home_path("group.yaml");
    std::fs::write(&file, &text).expect("a file");
    let name = file.to_str().expect("a path");
    // What S3 says to whoever comes second.
    let lost = json!([{"service": "s3", "operation": "PutObject", "code": "PreconditionFailed", "status": 412}]);
    let raced = |ended: &KctlOutput| {
        assert_eq!(ended.code, Some(4), "{}", ended.stderr);
        let said = format!("InstanceGroup {GROUP} was changed by somebody else at the same time");
        assert!(ended.stderr.contains(&said), "{}", ended.stderr);
    };
    operator.simulator.set_faults(&lost);
    let from_file = operator.run(&["replace", "-f", name]);
    raced(&from_file);
    let told = format!("your text is in {name}");
    assert!(from_file.stderr.contains(&told), "{}", from_file.stderr);

    operator.simulator.set_faults(&lost);
    let mut command = operator.kctl_command(&["replace", "-f", "-"]);
    command
        .env("TMPDIR", operator.home_path(""))
        .stdin(File::open(&file).expect("the file"));
    let from_pipe = command.output().expect("kctl runs").into();
    raced(&from_pipe);
    let kept = from_pipe
        .stderr
        .split("your text is in ")
        .nth(1)
        .expect("a path");
    let kept = kept.split_whitespace().next().expect("a path");
    assert_eq!(std::fs::read_to_string(kept).expect("the text"), text);
    operator.run_ok(&["replace", "-f", kept]);
}
