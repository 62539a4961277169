//! `.ci/run`, `tests/run` and targets of the Makefile: nothing is left out because something is not there, and every run has a seed of its own.

use crate::checkout_folder;
use std::path::Path;
use std::process::{Command, Output};
use test_support::write_script;

/// Runs it in a checkout of nothing else, where `make` only says what it was asked.
fn run(parent: &Path) -> Output {
    let own = parent.join("checkout/.ci");
    std::fs::create_dir_all(&own).expect("a folder");
    std::fs::copy(checkout_folder().join(".ci/run"), own.join("run")).expect("a copy");
    write_script(
        &parent.join("make"),
        "echo \"make $*: $KCTL_KOPS_FIXTURES $KCTL_AWS_RECORDED\"",
    );
    let path = format!("{}:/usr/bin:/bin", parent.display());
    // Not the copy itself: see `write_script`.
    let mut command = Command::new("/bin/sh");
    command
        .arg(own.join("run"))
        .current_dir("/")
        .env("PATH", path);
    command
        .env_remove("KCTL_KOPS_FIXTURES")
        .env_remove("KCTL_AWS_RECORDED");
    command.output().expect("it runs")
}

/// What tests compare with, below a folder beside the checkout.
const COMPARED_WITH: [&str; 2] = ["fixtures/kops", "data/aws-recorded"];

fn make_folders(parent: &Path, names: &[&str]) -> Vec<String> {
    let made = names.iter().map(|name| {
        let folder = parent.join("shared").join(name);
        std::fs::create_dir_all(&folder).expect("a folder");
        let folder = folder.canonicalize().expect("a path");
        folder.display().to_string()
    });
    made.collect()
}

#[test]
fn what_tests_compare_with_is_given_to_every_run() {
    let parent = tempfile::tempdir().expect("a folder");
    let folders = make_folders(parent.path(), &COMPARED_WITH);
    let ran = run(parent.path());
    let said = String::from_utf8(ran.stdout).expect("text");
    assert_eq!(said, format!("make test: {}\n", folders.join(" ")));
}

#[test]
fn without_what_tests_compare_with_nothing_is_run() {
    for missing in COMPARED_WITH {
        let parent = tempfile::tempdir().expect("a folder");
        let others = COMPARED_WITH.into_iter().filter(|name| *name != missing);
        make_folders(parent.path(), &others.collect::<Vec<_>>());
        let ran = run(parent.path());
        assert!(!ran.status.success());
        assert!(ran.stdout.is_empty(), "{ran:?}");
        let said = String::from_utf8(ran.stderr).expect("text");
        assert!(said.contains(&format!("../shared/{missing}")), "{said}");
    }
}

/// Runs `tests/run` in a checkout in which every part says the seed of the lab and no more.
fn run_tests(parent: &Path, seed: Option<&str>) -> String {
    let tests = parent.join("checkout/tests");
    for folder in ["assets", "lint", "lab", "simulator"] {
        std::fs::create_dir_all(tests.join(folder)).expect("a folder");
    }
    std::fs::copy(checkout_folder().join("tests/run"), tests.join("run")).expect("a copy");
    let says = "echo \"the lab has $KCTL_LAB_SEED\"";
    for part in ["lint/run", "lab/prepare", "simulator/run-tests"] {
        write_script(&tests.join(part), says);
    }
    // Its output is a path.
    write_script(&tests.join("assets/build"), "echo /assets");
    write_script(&parent.join("cargo"), says);
    let mut command = Command::new("/bin/sh");
    command
        .arg(tests.join("run"))
        .env("CARGO", parent.join("cargo"));
    command
        .env("KCTL_BIN", parent.join("kctl"))
        .env_remove("SEED");
    let ran = command.envs(seed.map(|seed| ("SEED", seed))).output();
    String::from_utf8(ran.expect("it runs").stdout).expect("text")
}

#[test]
fn every_run_draws_a_seed_that_the_lab_gets_and_a_named_one_repeats_it() {
    let parent = tempfile::tempdir().expect("a folder");
    let drawn = [(), ()].map(|()| run_tests(parent.path(), None));
    assert_ne!(drawn[0].lines().next(), drawn[1].lines().next());
    let again = run_tests(parent.path(), Some("7"));
    for (said, seed) in [(&drawn[0], None), (&drawn[1], None), (&again, Some("7"))] {
        let first = said
            .lines()
            .next()
            .and_then(|line| line.strip_prefix("SEED="));
        let printed = first.expect("a seed");
        assert_eq!(printed, seed.unwrap_or(printed));
        let lab = format!("the lab has {printed}");
        assert_eq!(
            said.lines().filter(|line| **line == lab).count(),
            5,
            "{said}"
        );
    }
}

/// On a machine that has never built anything.
#[test]
fn the_demo_and_the_simulator_build_also_what_kctl_stores_for_instances() {
    for target in ["demo", "simulator"] {
        let mut make = Command::new("make");
        make.args(["--dry-run", target])
            .current_dir(checkout_folder());
        make.env_remove("MAKEFLAGS").env_remove("MAKELEVEL");
        let said = make.output().expect("make").stdout;
        let said = String::from_utf8(said).expect("text");
        let built = "--bin kctl --bin nodeup --bin protokube";
        assert!(said.contains(built), "{said}");
    }
}
