//! The container runtime, of a cluster or a group.

use crate::api::cluster::ClusterSpec;
use crate::api::containerd::{ContainerdConfig, PackagesConfig};
use crate::catalog::Component;
use crate::read::{Problem, path};
use crate::upgrade::nodes_version;

use super::text::{check_one_of, check_unique};
use super::versions::Version;
use crate::expand::full_containerd;
use node::components::{ContainerdHost, containerd_config, mirror_url, unread_additions};
use node::config::Containerd;
use node::values::{Refusal, parse_host_and_port, parse_web_url};

/// `cluster`: whose containerd is installed.
pub fn check(
    at: &str,
    config: Option<&ContainerdConfig>,
    cluster: &ClusterSpec,
    problems: &mut Vec<Problem>,
) {
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
        // The override may name the folder itself.
        let problem = Problem::warning(
            format!("{at}.registryMirrors"),
            "configOverride replaces the file that names the folder of the mirrors",
        );
        problems.push(problem.hint(
            "name it there: config_path = \"/etc/containerd/certs.d\" of the plugin's registry",
        ));
    }
    for (registry, mirrors) in &config.registry_mirrors {
        let at = path::field_path(&format!("{at}.registryMirrors"), registry);
        if registry != "*"
            && let Err(Refusal { message, hint }) = parse_host_and_port(registry)
        {
            problems
                .push(Problem::error(&at, message).hint(format!("{hint}; * is every registry")));
        }
        check_mirrors(&at, mirrors, problems);
    }
    check_settings(at, config, cluster, problems);
    let runc = config.runc.as_ref().and_then(|runc| runc.packages.as_ref());
    check_packages(
        &format!("{at}.packages"),
        config.packages.as_ref(),
        problems,
    );
    check_packages(&format!("{at}.runc.packages"), runc, problems);
}

/// URLs, each once.
fn check_mirrors(at: &str, mirrors: &[String], problems: &mut Vec<Problem>) {
    for (index, mirror) in mirrors.iter().enumerate() {
        if let Err(Refusal { message, hint }) = parse_web_url(&mirror_url(mirror)) {
            problems.push(Problem::error(path::element_path(at, index), message).hint(hint));
        }
    }
    let places = mirrors.iter().enumerate();
    check_unique(
        places.map(|(index, mirror)| (path::element_path(at, index), mirror.as_str())),
        problems,
    );
}

/// What goes into `config.toml`, as far as this section says it; what a cluster and a group say together is checked when their
/// instances are made.
fn check_settings(
    at: &str,
    config: &ContainerdConfig,
    cluster: &ClusterSpec,
    problems: &mut Vec<Problem>,
) {
    let settings = full_containerd(ContainerdConfig {
        config_override: None,
        version: config
            .version
            .clone()
            .or_else(|| installed_version(cluster)),
        ..config.clone()
    });
    for (text, plugin) in unread_additions(&settings) {
        let at = path::field_path(&format!("{at}.configAdditions"), text);
        let message = format!(
            "containerd {} does not read this",
            settings.version.as_deref().unwrap_or_default()
        );
        problems.push(Problem::warning(at, message).hint(format!("it reads plugins.\"{plugin}\"")));
    }
    if let Err(Refusal { message, hint }) = containerd_config(&settings, &ContainerdHost::default())
    {
        problems.push(Problem::error(format!("{at}.configAdditions"), message).hint(hint));
    }
    let nri = config.nri.as_ref();
    if nri.is_some_and(|nri| nri.enabled != Some(false)) && is_before_nri(&settings) {
        let problem = Problem::error(
            format!("{at}.nri"),
            "containerd has plugins of NRI since 1.7",
        );
        problems.push(problem.hint("use containerd 1.7 or newer, or remove it"));
    }
    if config.config_override.is_some() && nri.is_some() {
        let problem = Problem::error(
            format!("{at}.nri"),
            "configOverride replaces the file that turns it on and off",
        );
        problems.push(problem.hint("put plugins.\"io.containerd.nri.v1.nri\" into configOverride"));
    }
    if config.config_override.is_some() && !config.config_additions.is_empty() {
        let problem = Problem::error(
            format!("{at}.configAdditions"),
            "configOverride replaces the file that they are added to",
        );
        problems.push(problem.hint("put the additions into configOverride, or remove it"));
    }
}

/// True for a containerd that has no Node Resource Interface
/// (<https://github.com/containerd/containerd/blob/main/docs/NRI.md>).
fn is_before_nri(settings: &Containerd) -> bool {
    let version = settings.version.as_deref().and_then(Version::parse);
    version.is_some_and(|version| (version.major, version.minor) < (1, 7))
}

/// The version of the cluster's containerd; `None` if the image brings it.
fn installed_version(cluster: &ClusterSpec) -> Option<String> {
    let containerd = cluster.containerd.as_ref();
    if containerd.is_some_and(|containerd| containerd.skip_install == Some(true)) {
        return None;
    }
    let kubernetes = nodes_version(cluster);
    containerd
        .and_then(|containerd| containerd.version.clone())
        .or_else(|| Some(Component::Containerd.version_for(&kubernetes?)))
}

fn check_packages(at: &str, packages: Option<&PackagesConfig>, problems: &mut Vec<Problem>) {
    let Some(packages) = packages else { return };
    for (arch, url, hash) in [
        ("Amd64", &packages.url_amd64, &packages.hash_amd64),
        ("Arm64", &packages.url_arm64, &packages.hash_arm64),
    ] {
        if url.is_some() != hash.is_some() {
            let problem = Problem::error(at, format!("url{arch} and hash{arch} go together"));
            problems.push(problem.hint("add the missing one"));
        }
    }
}
