//! The container runtime, of a cluster or a group.

use crate::api::containerd::{ContainerdConfig, PackagesConfig};
use crate::read::{Problem, path};

use super::assets::is_sha256;
use super::text::check_one_of;
use super::versions::Version;

pub fn check(at: &str, config: Option<&ContainerdConfig>, problems: &mut Vec<Problem>) {
    let Some(config) = config else { return };
    let runc = config.runc.as_ref().and_then(|runc| runc.version.as_ref());
    for (path, version) in [
        (format!("{at}.version"), config.version.as_ref()),
        (format!("{at}.runc.version"), runc),
    ] {
        if let Some(version) = version.filter(|version| Version::parse(version).is_none()) {
            let problem = Problem::error(path, format!("\"{version}\" is not a version"));
            problems.push(problem.hint("write three numbers, such as 2.3.4, or leave it out"));
        }
    }
    if let Some(level) = &config.log_level {
        check_one_of(
            format!("{at}.logLevel"),
            level,
            &["trace", "debug", "info", "warn", "error", "fatal", "panic"],
            problems,
        );
    }
    if config.config_override.is_some() && !config.registry_mirrors.is_empty() {
        let problem = Problem::error(
            format!("{at}.registryMirrors"),
            "configOverride replaces the file that mirrors are named in",
        );
        problems.push(problem.hint("put the mirrors into configOverride, or remove it"));
    }
    for (registry, mirrors) in &config.registry_mirrors {
        let at = path::field_path(&format!("{at}.registryMirrors"), registry);
        for (index, mirror) in mirrors
            .iter()
            .enumerate()
            .filter(|(_, mirror)| !is_url(mirror))
        {
            let problem = Problem::error(
                path::element_path(&at, index),
                format!("\"{mirror}\" is not a URL"),
            );
            problems.push(problem.hint("write https://HOST"));
        }
    }
    let runc = config.runc.as_ref().and_then(|runc| runc.packages.as_ref());
    check_packages(
        &format!("{at}.packages"),
        config.packages.as_ref(),
        problems,
    );
    check_packages(&format!("{at}.runc.packages"), runc, problems);
}

fn is_url(text: &str) -> bool {
    text.starts_with("https://") || text.starts_with("http://")
}

fn check_packages(at: &str, packages: Option<&PackagesConfig>, problems: &mut Vec<Problem>) {
    let Some(packages) = packages else { return };
    for (arch, url, hash) in [
        ("Amd64", &packages.url_amd64, &packages.hash_amd64),
        ("Arm64", &packages.url_arm64, &packages.hash_arm64),
    ] {
        if let Some(url) = url.as_deref().filter(|url| !is_url(url)) {
            let problem =
                Problem::error(format!("{at}.url{arch}"), format!("\"{url}\" is not a URL"));
            problems.push(problem.hint("write https://HOST/PATH"));
        }
        if let Some(hash) = hash.as_deref().filter(|hash| !is_sha256(hash)) {
            let problem = Problem::error(
                format!("{at}.hash{arch}"),
                format!("\"{hash}\" is not a SHA-256"),
            );
            problems.push(problem.hint("write the 64 hex digits that sha256sum prints"));
        }
        if url.is_some() != hash.is_some() {
            let problem = Problem::error(at, format!("url{arch} and hash{arch} go together"));
            problems.push(problem.hint("add the missing one"));
        }
    }
}
