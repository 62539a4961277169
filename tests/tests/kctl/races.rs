//! Many who change one stored object at once: each change is there in the end.

use crate::kctl::Operator;
use std::sync::atomic::{AtomicUsize, Ordering};

const GROUP: &str = "nodes-us-east-1a";

/// Changes, and how many at once.
const CHANGES: usize = 100;
const AT_ONCE: usize = 20;

/// Repeats one change until nobody else was faster; counts the times somebody was.
fn add(operator: &Operator, number: usize, lost: &AtomicUsize) {
    let label = format!("spec.nodeLabels.label-{number}=x");
    loop {
        let ended = operator.run(&["edit", "ig", GROUP, "--set", &label]);
        match ended.code {
            Some(0) => return,
            Some(4) => lost.fetch_add(1, Ordering::Relaxed),
            _ => panic!("{}", ended.stderr),
        };
        let said = "was changed by somebody else";
        assert!(ended.stderr.contains(said), "{}", ended.stderr);
    }
}

#[test]
fn of_a_hundred_racing_edits_none_is_lost() {
    let operator = Operator::new();
    operator.ok(&["create", "cluster", "--zones", "us-east-1a"]);
    let (next, lost) = (AtomicUsize::new(0), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= CHANGES {
                        return;
                    }
                    add(&operator, number, &lost);
                }
            });
        }
    });
    let group = operator.ok(&["get", "ig", GROUP, "-o", "yaml"]).stdout;
    for number in 0..CHANGES {
        let label = format!("label-{number}: x\n");
        assert!(group.contains(&label), "{label} is lost\n{group}");
    }
    println!("{} races lost and repeated", lost.into_inner());
}
