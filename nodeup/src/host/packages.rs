//! Installs missing packages of the distribution. An instance that has all packages needs no network.

use super::failure::{call_failure, permanent_failure};
use crate::lock::lock_ignoring_poison;
use engine::{Class, Failure};
use host::{Host, Output};
use node::config::Distribution;
use node::host::Packages;
use node::values::parse_package;
use std::collections::BTreeSet;
use std::sync::Mutex;

/// Messages of apt and dpkg if another process holds their lock. Cloud images update themselves at their first boot.
const LOCKED: [&str; 4] = [
    "Could not get lock",
    "Unable to acquire the dpkg frontend lock",
    "Unable to lock",
    "is another process using it",
];

/// Messages of package tools after which a retry does not help.
const FINAL: [&str; 3] = [
    "Unable to locate package",
    "has no installation candidate",
    "No match for argument",
];

/// The installed ones among the desired packages.
pub(super) fn observe_packages(host: &Host, want: &Packages) -> Result<Option<Packages>, Failure> {
    let mut have = want.clone();
    match want.distribution {
        Distribution::Debian => {
            let there = installed_debian(host)?;
            have.packages
                .retain(|package| there.contains(bare_name(package)));
        }
        Distribution::AmazonLinux => {
            have.packages.clear();
            for package in &want.packages {
                if is_installed_rpm(host, package)? {
                    have.packages.push(package.clone());
                }
            }
        }
    }
    Ok((!have.packages.is_empty()).then_some(have))
}

/// The name without version, architecture and suite. kctl's own names and those of the spec are all read by the same parser.
fn bare_name(package: &str) -> &str {
    parse_package(package).unwrap_or(package)
}

/// Names of installed packages and of what they provide.
fn installed_debian(host: &Host) -> Result<BTreeSet<String>, Failure> {
    let format = "--showformat=${Package}|${db:Status-Status}|${Provides}\\n";
    let answer = run_tool(host, "dpkg-query", &["--show", format])?;
    if !answer.is_success() {
        return Err(permanent_failure("dpkg-query --show", answer.stderr.trim()));
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

/// True if rpm has the package under the words of the spec (`glibc.i686`, `htop-3.2.2-1.amzn2023.x86_64`), or one that provides it.
fn is_installed_rpm(host: &Host, package: &str) -> Result<bool, Failure> {
    let provided = ["--query", "--whatprovides", bare_name(package)];
    Ok(run_tool(host, "rpm", &provided)?.is_success()
        || run_tool(host, "rpm", &["--query", package])?.is_success())
}

/// Installs the packages. Only one package tool runs at a time. If a tool is busy or a mirror does not respond, the engine retries
/// until its deadline.
pub(super) fn install_packages(
    host: &Host,
    one_at_a_time: &Mutex<()>,
    want: &Packages,
) -> Result<(), Failure> {
    let _turn = lock_ignoring_poison(one_at_a_time);
    host.may_change()
        .map_err(call_failure("installing packages"))?;
    match want.distribution {
        Distribution::Debian => install_debian(host, want),
        Distribution::AmazonLinux => install_dnf(host, want),
    }
}

fn install_debian(host: &Host, want: &Packages) -> Result<(), Failure> {
    // After an interrupted installation dpkg refuses to work until it is configured.
    let broken = run_tool(host, "dpkg", &["--audit"])?;
    if !broken.stdout.trim().is_empty() || !broken.is_success() {
        check_success(
            "dpkg --configure -a",
            &run_tool(host, "dpkg", &["--force-confold", "--configure", "-a"])?,
        )?;
    }
    // A failure here is not fatal, because one broken source does not matter and old lists may suffice. By default apt-get does not
    // report lists that could not be fetched as an error (apt-get(8), `--error-on=any`; older versions ignore the setting).
    let lists = run_tool(
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
    let answer = run_tool(host, "apt-get", &arguments)?;
    check_success("apt-get install", &answer).map_err(|mut failure| {
        if !lists.is_success() {
            // Without lists no package can be located, and the network may be the cause.
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
    check_success("dnf install", &run_tool(host, "dnf", &arguments)?)
}

fn run_tool(host: &Host, program: &str, arguments: &[&str]) -> Result<Output, Failure> {
    host.run_program(program, arguments)
        .map_err(call_failure(format!("starting {program}")))
}

fn check_success(call: &str, answer: &Output) -> Result<(), Failure> {
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
        ..permanent_failure(call, &last_line(&answer.stderr))
    })
}

fn last_line(text: &str) -> String {
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.next_back().unwrap_or("no error message").to_owned()
}
