//! Packages of the distribution: looked for first, so that a machine that has them all needs no network.

use super::failure::{failed, invalid};
use engine::{Class, Failure};
use host::{Host, Output};
use node::config::Distribution;
use node::host::Packages;
use std::collections::BTreeSet;
use std::sync::Mutex;

/// What apt and dpkg say when another of them is at work. Cloud images update themselves at their first boot.
const LOCKED: [&str; 4] = [
    "Could not get lock",
    "Unable to acquire the dpkg frontend lock",
    "Unable to lock",
    "is another process using it",
];

/// What they say when trying again is of no use.
const FINAL: [&str; 3] = [
    "Unable to locate package",
    "has no installation candidate",
    "No match for argument",
];

/// Those of the packages that are installed.
pub(super) fn observe(host: &Host, want: &Packages) -> Result<Option<Packages>, Failure> {
    let there = match want.distribution {
        Distribution::Debian => installed_debian(host)?,
        Distribution::AmazonLinux => installed_rpm(host, want)?,
    };
    let mut have = want.clone();
    have.packages
        .retain(|package| there.contains(bare(package)));
    Ok((!have.packages.is_empty()).then_some(have))
}

/// `name=version` and `name:architecture` without what follows the name.
fn bare(package: &str) -> &str {
    package.split(['=', ':']).next().unwrap_or(package)
}

/// Names of what is installed, and of what that stands for.
fn installed_debian(host: &Host) -> Result<BTreeSet<String>, Failure> {
    let format = "--showformat=${Package}|${db:Status-Status}|${Provides}\\n";
    let answer = run(host, "dpkg-query", &["--show", format])?;
    if !answer.is_success() {
        return Err(invalid("dpkg-query --show", answer.stderr.trim()));
    }
    let mut there = BTreeSet::new();
    for line in answer.stdout.lines() {
        let mut fields = line.split('|');
        let (name, status) = (fields.next().unwrap_or_default(), fields.next());
        if status != Some("installed") {
            continue;
        }
        there.insert(name.to_owned());
        let provides = fields.next().unwrap_or_default().split(',');
        let names = provides.filter_map(|provided| provided.split_whitespace().next());
        there.extend(names.map(str::to_owned));
    }
    Ok(there)
}

fn installed_rpm(host: &Host, want: &Packages) -> Result<BTreeSet<String>, Failure> {
    let mut there = BTreeSet::new();
    for package in &want.packages {
        if run(host, "rpm", &["--query", "--whatprovides", bare(package)])?.is_success() {
            there.insert(bare(package).to_owned());
        }
    }
    Ok(there)
}

/// Installs what is missing. One at a time: package tools know one caller. A tool that is busy or a mirror that does not
/// answer is tried again by the engine until its deadline.
pub(super) fn install(
    host: &Host,
    one_at_a_time: &Mutex<()>,
    want: &Packages,
) -> Result<(), Failure> {
    let _turn = one_at_a_time
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    host.may_change().map_err(failed("installing packages"))?;
    match want.distribution {
        Distribution::Debian => install_debian(host, want),
        Distribution::AmazonLinux => install_dnf(host, want),
    }
}

fn install_debian(host: &Host, want: &Packages) -> Result<(), Failure> {
    // An installation that was killed leaves dpkg refusing everything until this was run.
    let broken = run(host, "dpkg", &["--audit"])?;
    if !broken.stdout.trim().is_empty() || !broken.is_success() {
        expect(
            "dpkg --configure -a",
            &run(host, "dpkg", &["--force-confold", "--configure", "-a"])?,
        )?;
    }
    // Its failure is no reason to stop: one broken source among many, or lists that are good enough. Lists that could not be fetched
    // are a failure only when asked for (apt-get(8), `--error-on=any`; older ones ignore the setting).
    let lists = run(
        host,
        "apt-get",
        &[
            "update",
            "-o",
            "APT::Update::Error-Mode=any",
            "-o",
            "DPkg::Lock::Timeout=60",
        ],
    )?;
    let mut arguments = vec![
        "install",
        "--yes",
        "--no-install-recommends",
        "-o",
        "DPkg::Lock::Timeout=60",
        "-o",
        "Dpkg::Options::=--force-confold",
    ];
    arguments.extend(want.packages.iter().map(String::as_str));
    let answer = run(host, "apt-get", &arguments)?;
    expect("apt-get install", &answer).map_err(|mut failure| {
        if !lists.is_success() {
            // Without lists no package can be located: that may be the network's fault.
            failure.class = Class::Blocked;
            failure.message = format!(
                "{}; apt-get update: {}",
                failure.message,
                last_line(&lists.stderr)
            );
        }
        failure
    })
}

fn install_dnf(host: &Host, want: &Packages) -> Result<(), Failure> {
    let mut arguments = vec!["install", "--assumeyes", "--setopt=install_weak_deps=False"];
    arguments.extend(want.packages.iter().map(String::as_str));
    expect("dnf install", &run(host, "dnf", &arguments)?)
}

fn run(host: &Host, program: &str, arguments: &[&str]) -> Result<Output, Failure> {
    host.run(program, arguments)
        .map_err(failed(format!("starting {program}")))
}

fn expect(call: &str, answer: &Output) -> Result<(), Failure> {
    if answer.is_success() {
        return Ok(());
    }
    let says = |texts: &[&str]| {
        texts
            .iter()
            .any(|text| answer.stderr.contains(text) || answer.stdout.contains(text))
    };
    let class = if !says(&LOCKED) && says(&FINAL) {
        Class::Invalid
    } else {
        Class::Blocked
    };
    Err(Failure {
        class,
        ..invalid(call, &last_line(&answer.stderr))
    })
}

fn last_line(text: &str) -> String {
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.next_back().unwrap_or("it said nothing").to_owned()
}
