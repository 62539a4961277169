//! `tests/requirements`, the one list of what a machine needs, and `tests/install`, which goes through it first.

use crate::checkout;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::{Command, Output};
use tempfile::TempDir;
use test_support::write_script;

/// Program, package, targets.
fn list() -> Vec<(String, String, Vec<String>)> {
    let text = std::fs::read_to_string(checkout().join("tests/requirements")).expect("the list");
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let lines = lines.map(|line| line.split_whitespace().map(str::to_owned));
    lines
        .filter_map(|mut words| Some((words.next()?, words.next()?, words.collect())))
        .collect()
}

/// A machine with nothing of the list but what lies in its system's folders, and with an apt-get that installs what `gives` says.
struct Machine(TempDir);

impl Machine {
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

    fn install(&self, target: &str) -> Output {
        let mut command = Command::new(checkout().join("tests/install"));
        command.arg(target).env_clear().env("PATH", self.0.path());
        command.output().expect("it runs")
    }

    fn asked(&self) -> Vec<String> {
        let log = std::fs::read_to_string(self.0.path().join("log")).unwrap_or_default();
        log.lines().map(str::to_owned).collect()
    }

    fn has(&self, program: &str) -> bool {
        let folders = [self.0.path(), Path::new("/usr/sbin"), Path::new("/sbin")];
        folders.iter().any(|folder| folder.join(program).exists())
    }

    /// Packages of what it lacks for a target, each once, sorted.
    fn lacks(&self, target: &str) -> String {
        let all = list();
        let wanted = all
            .iter()
            .filter(|(_, _, targets)| targets.iter().any(|one| one == target));
        let missing = wanted.filter(|(program, ..)| !self.has(program));
        let packages: BTreeSet<&str> = missing.map(|(_, package, _)| package.as_str()).collect();
        packages.into_iter().collect::<Vec<_>>().join(" ")
    }
}

/// What packages bring, by the list; a module of Python comes with the interpreter that has it.
fn packages(all: &[(String, String, Vec<String>)]) -> BTreeMap<&str, Vec<&str>> {
    let mut gives: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (program, package, _) in all {
        let program = program.split(':').next().unwrap_or_default();
        gives.entry(package).or_default().push(program);
    }
    gives
}

fn targets(all: &[(String, String, Vec<String>)]) -> BTreeSet<&str> {
    let targets = all.iter().flat_map(|(.., targets)| targets);
    targets.map(String::as_str).collect()
}

fn said(ran: &Output) -> String {
    String::from_utf8_lossy(&ran.stderr).into_owned()
}

#[test]
fn whoever_is_not_root_is_told_all_that_is_missing_in_one_line() {
    let all = list();
    for target in targets(&all) {
        let machine = Machine::new(1000, &BTreeMap::new());
        let ran = machine.install(target);
        let install = "sudo apt-get install --no-install-recommends";
        let line = format!(
            "this machine lacks programs: {install} {}\n",
            machine.lacks(target)
        );
        assert_eq!((ran.status.code(), said(&ran)), (Some(1), line), "{target}");
        assert!(machine.asked().is_empty());
    }
}

#[test]
fn root_gets_all_that_is_missing_at_once() {
    let all = list();
    for target in targets(&all) {
        let machine = Machine::new(0, &packages(&all));
        let lacks = machine.lacks(target);
        let ran = machine.install(target);
        assert!(ran.status.success(), "{target}: {}", said(&ran));
        let asked = machine.asked();
        assert_eq!(asked.len(), 2, "{asked:?}");
        assert!(asked[0].ends_with(" update"), "{asked:?}");
        let end = format!("--no-install-recommends {lacks}");
        assert!(asked[1].ends_with(&end), "{target}: {asked:?}");
        assert!(machine.install(target).status.success());
        assert_eq!(machine.asked().len(), 2, "nothing is missing any more");
    }
}

#[test]
fn a_package_without_its_program_is_an_error() {
    let machine = Machine::new(0, &BTreeMap::from([("build-essential", vec!["cc"])]));
    assert!(machine.install("binaries").status.success());
    let machine = Machine::new(0, &BTreeMap::from([("build-essential", vec!["c99"])]));
    let ran = machine.install("binaries");
    assert!(!ran.status.success());
    assert!(
        said(&ran).contains("build-essential came without"),
        "{}",
        said(&ran)
    );
}

/// What a target would run, line by line.
fn recipe(target: &str) -> Vec<String> {
    let mut command = Command::new("make");
    command.args(["--dry-run", "--no-print-directory", target]);
    command.env_remove("MAKEFLAGS").env_remove("MAKELEVEL");
    let ran = command.current_dir(checkout()).output().expect("make");
    assert!(ran.status.success(), "{}", said(&ran));
    let text = String::from_utf8(ran.stdout).expect("text");
    text.lines().map(str::to_owned).collect()
}

#[test]
fn every_target_looks_at_the_list_before_it_does_anything() {
    let all = list();
    // Whoever makes an environment of Python looks at the list for it.
    for target in targets(&all)
        .into_iter()
        .filter(|target| *target != "python")
    {
        let recipe = recipe(target);
        assert_eq!(recipe[0], format!("tests/ready {target}"));
        assert!(recipe.len() > 1, "{recipe:?}");
    }
}
