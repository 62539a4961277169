//! What else runs on instances: hooks, files, kernel parameters, packages, updates, the proxy.

use crate::api::IntOrString;
use crate::api::cluster::ClusterSpec;
use crate::api::host::{FileAssetSpec, HookSpec, RollingUpdate};
use crate::api::instance_group::InstanceGroupSpec;
use crate::read::{Problem, path};

use super::hooks::{self, APART, roles_meet};
use super::text::check_one_of;
use crate::expand::{decode_base64, file_place};
use node::values::Refusal;

/// Settings that a cluster and a group share.
struct HostSettings<'a> {
    hooks: &'a [HookSpec],
    files: &'a [FileAssetSpec],
    update_policy: Option<&'a str>,
    rolling_update: Option<&'a RollingUpdate>,
}

pub fn check_cluster(spec: &ClusterSpec, problems: &mut Vec<Problem>) {
    let shared = HostSettings {
        hooks: &spec.hooks,
        files: &spec.file_assets,
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
        update_policy: spec.update_policy.as_deref(),
        rolling_update: spec.rolling_update.as_ref(),
    };
    check(&shared, problems);
}

fn check(shared: &HostSettings<'_>, problems: &mut Vec<Problem>) {
    for (index, one) in shared.hooks.iter().enumerate() {
        check_hook(&path::element_path("spec.hooks", index), one, problems);
    }
    hooks::check_unique_names(shared.hooks, problems);
    for (index, one) in shared.files.iter().enumerate() {
        check_file(&path::element_path("spec.fileAssets", index), one, problems);
    }
    check_places(shared.files, problems);
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
    hooks::check_name(at, hook, problems);
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
        (Some(action), None) => {
            if action.image.is_none() {
                let at = format!("{at}.execContainer.image");
                let problem = Problem::error(at, "the container has no image");
                problems.push(problem.hint("add \"image: ...\""));
            }
            hooks::check_variables(at, action, problems);
        }
        (None, Some(manifest)) => hooks::check_manifest(at, hook, manifest, problems),
    }
    if hook.use_raw_manifest == Some(true) && (!hook.requires.is_empty() || !hook.before.is_empty())
    {
        let problem = Problem::error(
            format!("{at}.useRawManifest"),
            "a raw manifest names its own requires and before",
        );
        problems.push(problem.hint("put Requires= and Before= into the manifest"));
    }
}

/// Where kOps has containerd's configuration.
const KOPS_CONTAINERD_CONFIG: &str = "/etc/containerd/config-kops.toml";

fn check_file(at: &str, file: &FileAssetSpec, problems: &mut Vec<Problem>) {
    if file.name.is_empty() {
        problems.push(
            Problem::error(format!("{at}.name"), "the file has no name").hint("add \"name: ...\""),
        );
    } else if file.path.as_deref().unwrap_or_default().is_empty()
        && let Err(Refusal { message, hint }) = file_place(file)
    {
        problems.push(Problem::error(format!("{at}.name"), message).hint(hint));
    }
    if file_place(file).is_ok_and(|place| place == KOPS_CONTAINERD_CONFIG) {
        let message = "containerd does not read this file here, but /etc/containerd/config.toml";
        let problem = Problem::warning(at, message);
        problems.push(problem.hint("use spec.containerd.configOverride or configAdditions"));
    }
    if file.content.is_empty() {
        let problem = Problem::error(format!("{at}.content"), "the file is empty");
        problems.push(problem.hint("add its text below \"content: |\""));
    } else if file.is_base64 == Some(true) && decode_base64(&file.content).is_none() {
        let problem = Problem::error(format!("{at}.content"), "the content is not base64");
        problems.push(problem.hint("encode it with base64, or remove isBase64"));
    }
}

/// Of two files at one place kOps keeps the first; here neither is preferred. Files of different roles never meet, and a
/// file of a group replaces the cluster's.
fn check_places(files: &[FileAssetSpec], problems: &mut Vec<Problem>) {
    let placed: Vec<_> = files
        .iter()
        .enumerate()
        .filter_map(|(index, file)| Some((index, file, file_place(file).ok()?)))
        .collect();
    for (index, file, place) in &placed {
        let mut before = placed.iter().take_while(|(first, ..)| first < index);
        let Some((first, ..)) =
            before.find(|(_, other, at)| at == place && roles_meet(&file.roles, &other.roles))
        else {
            continue;
        };
        let message = format!("{place} is the place of spec.fileAssets[{first}] too");
        let problem = Problem::error(path::element_path("spec.fileAssets", *index), message);
        problems.push(problem.hint(APART));
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
    if proxy.host.is_empty() {
        let problem = Problem::error(format!("{at}.host"), "the proxy has no host");
        problems.push(problem.hint("add its name or address"));
    }
    if proxy.host.contains('@') {
        // What user data has, every process of an instance can read, and everybody who may describe launch templates.
        let message = "a password of the proxy would be in the instances' user data";
        let problem = Problem::error(format!("{at}.host"), message);
        problems.push(problem.hint("write the name or address only, and let the proxy know the instances by their addresses"));
    }
}
