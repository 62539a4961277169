//! What else runs on instances: hooks, files, kernel parameters, packages, updates, the proxy.

use base64::Engine as _;

use crate::api::IntOrString;
use crate::api::cluster::ClusterSpec;
use crate::api::host::{FileAssetSpec, HookSpec, RollingUpdate};
use crate::api::instance_group::InstanceGroupSpec;
use crate::read::{Problem, path};

use super::text::{check_one_of, check_unique};

/// Settings that a cluster and a group share.
struct HostSettings<'a> {
    hooks: &'a [HookSpec],
    files: &'a [FileAssetSpec],
    sysctls: &'a [String],
    packages: &'a [String],
    update_policy: Option<&'a str>,
    rolling_update: Option<&'a RollingUpdate>,
}

pub fn check_cluster(spec: &ClusterSpec, problems: &mut Vec<Problem>) {
    let shared = HostSettings {
        hooks: &spec.hooks,
        files: &spec.file_assets,
        sysctls: &spec.sysctl_parameters,
        packages: &spec.packages,
        update_policy: spec.update_policy.as_deref(),
        rolling_update: spec.rolling_update.as_ref(),
    };
    check(&shared, problems);
    check_proxy(spec, problems);
}

pub fn check_group(spec: &InstanceGroupSpec, problems: &mut Vec<Problem>) {
    let shared = HostSettings {
        hooks: &spec.hooks,
        files: &spec.file_assets,
        sysctls: &spec.sysctl_parameters,
        packages: &spec.packages,
        update_policy: spec.update_policy.as_deref(),
        rolling_update: spec.rolling_update.as_ref(),
    };
    check(&shared, problems);
}

fn check(shared: &HostSettings<'_>, problems: &mut Vec<Problem>) {
    for (index, one) in shared.hooks.iter().enumerate() {
        check_hook(&path::element_path("spec.hooks", index), one, problems);
    }
    for (index, one) in shared.files.iter().enumerate() {
        check_file(&path::element_path("spec.fileAssets", index), one, problems);
    }
    let named = shared.files.iter().enumerate();
    check_unique(
        named.map(|(index, file)| (format!("spec.fileAssets[{index}].name"), file.name.as_str())),
        problems,
    );
    for (index, line) in shared.sysctls.iter().enumerate() {
        let setting = line
            .split_once('=')
            .is_some_and(|(name, value)| !name.trim().is_empty() && !value.trim().is_empty());
        if !setting && !line.trim_start().starts_with('#') && !line.trim().is_empty() {
            let problem = Problem::error(
                path::element_path("spec.sysctlParameters", index),
                format!("\"{line}\" is not a kernel parameter"),
            );
            problems.push(problem.hint("write NAME=VALUE, such as net.ipv4.ip_forward=1"));
        }
    }
    for (index, package) in shared.packages.iter().enumerate() {
        if package.is_empty() || package.contains(char::is_whitespace) {
            let problem = Problem::error(
                path::element_path("spec.packages", index),
                format!("\"{package}\" is not the name of a package"),
            );
            problems.push(problem.hint("write one name per line"));
        }
    }
    if let Some(policy) = shared.update_policy {
        check_one_of(
            "spec.updatePolicy",
            policy,
            &["automatic", "external"],
            problems,
        );
    }
    if let Some(update) = shared.rolling_update {
        check_rolling_update(update, problems);
    }
}

fn check_hook(at: &str, hook: &HookSpec, problems: &mut Vec<Problem>) {
    if hook.disabled == Some(true) {
        return;
    }
    match (&hook.exec_container, &hook.manifest) {
        (None, None) => {
            let problem = Problem::error(at, "the hook does nothing");
            problems.push(problem.hint("add manifest or execContainer"));
        }
        (Some(_), Some(_)) => {
            let problem = Problem::error(at, "both manifest and execContainer are given");
            problems.push(problem.hint("keep one of them"));
        }
        (Some(action), None) if action.image.as_deref().unwrap_or_default().is_empty() => {
            let problem = Problem::error(
                format!("{at}.execContainer.image"),
                "the container has no image",
            );
            problems.push(problem.hint("add \"image: ...\""));
        }
        _ => {}
    }
    if hook.use_raw_manifest == Some(true) && (!hook.requires.is_empty() || !hook.before.is_empty())
    {
        let problem = Problem::error(
            format!("{at}.useRawManifest"),
            "a raw manifest names its own requires and before",
        );
        problems.push(problem.hint("put Requires= and Before= into the manifest"));
    }
    if let Some(name) = hook
        .name
        .as_deref()
        .filter(|name| name.is_empty() || name.contains(['/', ' ']))
    {
        let problem = Problem::error(
            format!("{at}.name"),
            format!("\"{name}\" is not the name of a unit"),
        );
        problems.push(problem.hint("write a name such as prepare-disk.service"));
    }
}

fn check_file(at: &str, file: &FileAssetSpec, problems: &mut Vec<Problem>) {
    if file.name.is_empty() {
        problems.push(
            Problem::error(format!("{at}.name"), "the file has no name").hint("add \"name: ...\""),
        );
    }
    if file.content.is_empty() {
        let problem = Problem::error(format!("{at}.content"), "the file is empty");
        problems.push(problem.hint("add its text below \"content: |\""));
    } else if file.is_base64 == Some(true) {
        let bare: String = file.content.split_whitespace().collect();
        if base64::engine::general_purpose::STANDARD
            .decode(bare)
            .is_err()
        {
            let problem = Problem::error(format!("{at}.content"), "the content is not base64");
            problems.push(problem.hint("encode it with base64, or remove isBase64"));
        }
    }
    if let Some(path) = file.path.as_deref().filter(|path| !path.starts_with('/')) {
        let problem = Problem::error(
            format!("{at}.path"),
            format!("\"{path}\" is not an absolute path"),
        );
        problems
            .push(problem.hint("begin it with /, or remove it to get /srv/kubernetes/assets/NAME"));
    }
    if let Some(mode) = file
        .mode
        .as_deref()
        .filter(|mode| !u32::from_str_radix(mode, 8).is_ok_and(|mode| mode <= 0o7777))
    {
        let problem = Problem::error(
            format!("{at}.mode"),
            format!("\"{mode}\" is not a file mode"),
        );
        problems.push(problem.hint("write it in octal and in quotes, such as \"0440\""));
    }
}

fn check_rolling_update(update: &RollingUpdate, problems: &mut Vec<Problem>) {
    let number = |path: &str, value: Option<&IntOrString>, problems: &mut Vec<Problem>| {
        let text = value?.to_string();
        let digits = text.strip_suffix('%').unwrap_or(&text);
        let parsed = digits
            .parse::<u32>()
            .ok()
            .filter(|number| !text.ends_with('%') || *number <= 100);
        if parsed.is_none() {
            let problem = Problem::error(
                path,
                format!("\"{text}\" is neither a number nor a percentage"),
            );
            problems.push(problem.hint("write 1 or 25%"));
        }
        parsed
    };
    let unavailable = number(
        "spec.rollingUpdate.maxUnavailable",
        update.max_unavailable.as_ref(),
        problems,
    );
    let surge = number(
        "spec.rollingUpdate.maxSurge",
        update.max_surge.as_ref(),
        problems,
    );
    if unavailable == Some(0) && surge == Some(0) {
        let problem = Problem::error(
            "spec.rollingUpdate",
            "with maxUnavailable and maxSurge 0 no instance could be replaced",
        );
        problems.push(problem.hint("raise one of them"));
    }
}

fn check_proxy(spec: &ClusterSpec, problems: &mut Vec<Problem>) {
    let Some(egress) = &spec.egress_proxy else {
        return;
    };
    let at = "spec.egressProxy.httpProxy";
    let Some(proxy) = &egress.http_proxy else {
        let problem = Problem::error(at, "the egress proxy has no address");
        return problems.push(problem.hint("add httpProxy with host and port"));
    };
    if proxy.host.is_empty() || proxy.host.contains("://") {
        let problem = Problem::error(
            format!("{at}.host"),
            format!("\"{}\" is not a name of a host", proxy.host),
        );
        problems.push(problem.hint("write the name or address alone, without http:// and port"));
    }
    if !proxy.port.is_some_and(|port| (1..=65_535).contains(&port)) {
        let problem = Problem::error(format!("{at}.port"), "the proxy needs a port");
        problems.push(problem.hint("add \"port: 3128\" or another of 1 to 65535"));
    }
}
