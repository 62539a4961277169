//! `tests/requirements`, the one list of what a machine needs, and `tests/install`, which goes through it first.

use crate::checkout_folder;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::{Command, Output};
use tempfile::TempDir;
use test_support::write_script;

fn listed_requirements() -> Vec<(String, String, Vec<String>)> {
    let text =
        std::fs::read_to_string(checkout_folder().join("tests/requirements")).expect("the list");
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let lines = lines.map(|line| line.split_whitespace().map(str::to_owned));
    lines
        .filter_map(|mut words| Some((words.next()?, words.next()?, words.collect())))
        .collect()
}

/// A machine with nothing of the list but what lies in its system's folders, and with an apt-get that installs what `gives` says.
struct FakeMachine(TempDir);

impl FakeMachine {
    fn new(user: u32, gives: &BTreeMap<&str, Vec<&str>>) -> Self {
        let machine = Self(tempfile::tempdir().expect("a folder"));
        let bin = machine.0.path();
        for name in [
            "cat", "chmod", "dirname", "echo", "grep", "sh", "sort", "xargs",
        ] {
            let real = ["/usr/bin", "/bin"].map(|folder| Path::new(folder).join(name));
            let real = real.iter().find(|path| path.exists()).expect("coreutils");
            std::os::unix::fs::symlink(real, bin.join(name)).expect("a link");
        }
        write_script(&bin.join("id"), &format!("echo {user}"));
        let (log, new) = (bin.join("log"), "printf '#!/bin/sh\\n'");
        let mut script = format!(
            "echo \"$*\" >>{}\nfor word; do case $word in\n",
            log.display()
        );
        for (package, programs) in gives {
            let made: String = programs
                .iter()
                .map(|name| bin.join(name).display().to_string())
                .map(|path| format!("{new} >{path}; chmod +x {path}; "))
                .collect();
            script += &format!("{package}) {made};;\n");
        }
        write_script(
            &bin.join("apt-get"),
            &(script.replace("; ;;", " ;;") + "esac; done"),
        );
        machine
    }

    fn run_install(&self, target: &str) -> Output {
        let mut command = Command::new(checkout_folder().join("tests/install"));
        command.arg(target).env_clear().env("PATH", self.0.path());
        command.output().expect("it runs")
    }

    fn requested_packages(&self) -> Vec<String> {
        let log = std::fs::read_to_string(self.0.path().join("log")).unwrap_or_default();
        log.lines().map(str::to_owned).collect()
    }

    fn has_program(&self, program: &str) -> bool {
        let folders = [self.0.path(), Path::new("/usr/sbin"), Path::new("/sbin")];
        folders.iter().any(|folder| folder.join(program).exists())
    }

    /// Packages of what it lacks for a target, each once, sorted.
    fn missing_packages(&self, target: &str) -> String {
        let all = listed_requirements();
        let wanted = all
            .iter()
            .filter(|(_, _, targets)| targets.iter().any(|one| one == target));
        let missing = wanted.filter(|(program, ..)| !self.has_program(program));
        let packages: BTreeSet<&str> = missing.map(|(_, package, _)| package.as_str()).collect();
        packages.into_iter().collect::<Vec<_>>().join(" ")
    }
}

/// What packages bring, by the list; a module of Python comes with the interpreter that has it.
fn programs_by_package(all: &[(String, String, Vec<String>)]) -> BTreeMap<&str, Vec<&str>> {
    let mut gives: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (program, package, _) in all {
        let program = program.split(':').next().unwrap_or_default();
        gives.entry(package).or_default().push(program);
    }
    gives
}

fn all_targets(all: &[(String, String, Vec<String>)]) -> BTreeSet<&str> {
    let targets = all.iter().flat_map(|(.., targets)| targets);
    targets.map(String::as_str).collect()
}

fn stderr_of(ran: &Output) -> String {
    String::from_utf8_lossy(&ran.stderr).into_owned()
}

#[test]
fn whoever_is_not_root_is_told_all_that_is_missing_in_one_line() {
    let all = listed_requirements();
    for target in all_targets(&all) {
        let machine = FakeMachine::new(1000, &BTreeMap::new());
        let ran = machine.run_install(target);
        let install = "sudo apt-get install --no-install-recommends";
        let line = format!(
            "this machine lacks programs: {install} {}\n",
            machine.missing_packages(target)
        );
        assert_eq!(
            (ran.status.code(), stderr_of(&ran)),
            (Some(1), line),
            "{target}"
        );
        assert!(machine.requested_packages().is_empty());
    }
}

#[test]
fn root_gets_all_that_is_missing_at_once() {
    let all = listed_requirements();
    for target in all_targets(&all) {
        let machine = FakeMachine::new(0, &programs_by_package(&all));
        let lacks = machine.missing_packages(target);
        let ran = machine.run_install(target);
        assert!(ran.status.success(), "{target}: {}", stderr_of(&ran));
        let asked = machine.requested_packages();
        assert_eq!(asked.len(), 2, "{asked:?}");
        assert!(asked[0].ends_with(" update"), "{asked:?}");
        let end = format!("--no-install-recommends {lacks}");
        assert!(asked[1].ends_with(&end), "{target}: {asked:?}");
        assert!(machine.run_install(target).status.success());
        assert_eq!(
            machine.requested_packages().len(),
            2,
            "nothing is missing any more"
        );
    }
}

#[test]
fn a_package_without_its_program_is_an_error() {
    let machine = FakeMachine::new(0, &BTreeMap::from([("build-essential", vec!["cc"])]));
    assert!(machine.run_install("binaries").status.success());
    let machine = FakeMachine::new(0, &BTreeMap::from([("build-essential", vec!["c99"])]));
    let ran = machine.run_install("binaries");
    assert!(!ran.status.success());
    assert!(
        stderr_of(&ran).contains("build-essential came without"),
        "{}",
        stderr_of(&ran)
    );
}

/// What a target would run, line by line.
fn target_recipe(target: &str) -> Vec<String> {
    let mut command = Command::new("make");
    command.args(["--dry-run", "--no-print-directory", target]);
    command.env_remove("MAKEFLAGS").env_remove("MAKELEVEL");
    let ran = command
        .current_dir(checkout_folder())
        .output()
        .expect("make");
    assert!(ran.status.success(), "{}", stderr_of(&ran));
    let text = String::from_utf8(ran.stdout).expect("text");
    text.lines().map(str::to_owned).collect()
}

#[test]
fn every_target_looks_at_the_list_before_it_does_anything() {
    let all = listed_requirements();
    // Whoever makes an environment of Python looks at the list for it, and `tests/ready test` for the browser.
    for target in all_targets(&all)
        .into_iter()
        .filter(|target| !["python", "browser"].contains(target))
    {
        let recipe = target_recipe(target);
        assert_eq!(recipe[0], format!("tests/ready {target}"));
        assert!(recipe.len() > 1, "{recipe:?}");
    }
}
