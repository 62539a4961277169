//! `.ci/run`: nothing is left out because something is not there.

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
        "echo \"make $*: $KCTL_KOPS_FIXTURES\"",
    );
    let path = format!("{}:/usr/bin:/bin", parent.display());
    // Not the copy itself: see `write_script`.
    let mut command = Command::new("/bin/sh");
    command
        .arg(own.join("run"))
        .current_dir("/")
        .env("PATH", path);
    command.env_remove("KCTL_KOPS_FIXTURES");
    command.output().expect("it runs")
}

#[test]
fn the_cases_of_kops_are_given_to_every_run() {
    let parent = tempfile::tempdir().expect("a folder");
    let fixtures = parent.path().join("shared/fixtures/kops");
    std::fs::create_dir_all(&fixtures).expect("a folder");
    let ran = run(parent.path());
    let said = String::from_utf8(ran.stdout).expect("text");
    let fixtures = fixtures.canonicalize().expect("a path");
    assert_eq!(said, format!("make test: {}\n", fixtures.display()));
}

#[test]
fn without_the_cases_of_kops_nothing_is_run() {
    let parent = tempfile::tempdir().expect("a folder");
    let ran = run(parent.path());
    assert!(!ran.status.success());
    assert!(ran.stdout.is_empty(), "{ran:?}");
    let said = String::from_utf8(ran.stderr).expect("text");
    assert!(said.contains("../shared/fixtures/kops"), "{said}");
}
