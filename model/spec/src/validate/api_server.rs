//! Settings with which kube-apiserver does not start: admission plugins, modes of authorization, halves of key pairs.

use super::removed_flags::minors_of;
use super::versions::OLDEST_MINOR;
use crate::api::cluster::ClusterSpec;
use crate::api::kube_apiserver::KubeAPIServerConfig;
use crate::read::path::element_path;
use crate::read::{Problem, nearest};

const AT: &str = "spec.kubeAPIServer";

/// The admission plugins of kube-apiserver by the first minor that has them: `AllOrderedPlugins` in
/// pkg/kubeapiserver/options/plugins.go of Kubernetes 1.32 to 1.37.
const PLUGINS: [(u32, &[&str]); 4] = [
    (
        OLDEST_MINOR,
        &[
            "AlwaysAdmit",
            "AlwaysDeny",
            "AlwaysPullImages",
            "CertificateApproval",
            "CertificateSigning",
            "CertificateSubjectRestriction",
            "ClusterTrustBundleAttest",
            "DefaultIngressClass",
            "DefaultStorageClass",
            "DefaultTolerationSeconds",
            "DenyServiceExternalIPs",
            "EventRateLimit",
            "ExtendedResourceToleration",
            "ImagePolicyWebhook",
            "LimitPodHardAntiAffinityTopology",
            "LimitRanger",
            "MutatingAdmissionPolicy",
            "MutatingAdmissionWebhook",
            "NamespaceAutoProvision",
            "NamespaceExists",
            "NamespaceLifecycle",
            "NodeRestriction",
            "OwnerReferencesPermissionEnforcement",
            "PersistentVolumeClaimResize",
            "PodNodeSelector",
            "PodSecurity",
            "PodTolerationRestriction",
            "Priority",
            "ResourceQuota",
            "RuntimeClass",
            "ServiceAccount",
            "StorageObjectInUseProtection",
            "TaintNodesByCondition",
            "ValidatingAdmissionPolicy",
            "ValidatingAdmissionWebhook",
        ],
    ),
    (33, &["PodTopologyLabels"]),
    (35, &["NodeDeclaredFeatureValidator"]),
    (
        36,
        &[
            "JobValidation",
            "PodGroupProtection",
            "PodGroupWorkloadExists",
            "PodResizeValidator",
        ],
    ),
];

/// Those that have gone, with the last minor that has them.
const GONE: [(&str, u32); 2] = [("JobValidation", 36), ("PodGroupWorkloadExists", 36)];

/// The plugins on which the limits of what nodes may do rest; whether Kubernetes has each on by default; what is open without it.
const LIMITING: [(&str, bool, &str); 2] = [
    (
        "NodeRestriction",
        false,
        "every kubelet may change all Nodes and the status of all pods",
    ),
    (
        "ValidatingAdmissionPolicy",
        true,
        "kctl's policies for tokens on workers have no effect",
    ),
];

pub fn check(spec: &ClusterSpec, problems: &mut Vec<Problem>) {
    let authorization = spec.authorization.as_ref();
    if authorization.is_some_and(|authorization| authorization.always_allow.is_some()) {
        warn_of_always_allow("spec.authorization.alwaysAllow", problems);
    }
    let Some(config) = &spec.kube_api_server else {
        return;
    };
    check_plugin_names(config, minors_of(spec), problems);
    check_plugin_lists(config, problems);
    warn_of_open_limits(config, problems);
    check_authorization(config, problems);
    for (field, file, other, other_file) in [
        (
            "proxyClientCertFile",
            &config.proxy_client_cert_file,
            "proxyClientKeyFile",
            &config.proxy_client_key_file,
        ),
        (
            "tlsCertFile",
            &config.tls_cert_file,
            "tlsPrivateKeyFile",
            &config.tls_private_key_file,
        ),
    ] {
        let (given, missing) = match (file, other_file) {
            (Some(_), None) => (field, other),
            (None, Some(_)) => (other, field),
            _ => continue,
        };
        let message = format!("kctl's own {missing} does not belong to it");
        let problem = Problem::error(format!("{AT}.{given}"), message);
        problems.push(problem.hint(format!("add {missing}, or remove it")));
    }
}

/// The admission plugins of a minor.
fn plugins_of(minor: u32) -> Vec<&'static str> {
    let known = PLUGINS.iter().filter(|(first, _)| *first <= minor);
    let known = known.flat_map(|(_, names)| names.iter().copied());
    known
        .filter(|name| find_last(name, minor).is_none())
        .collect()
}

/// The last minor that has a plugin, if this minor comes after it.
fn find_last(plugin: &str, minor: u32) -> Option<u32> {
    let mut gone = GONE.iter();
    let gone = gone.find(|(name, last)| *name == plugin && *last < minor)?;
    Some(gone.1)
}

/// The first minor that has a plugin, if it comes after this one.
fn find_first(plugin: &str, minor: u32) -> Option<u32> {
    let mut later = PLUGINS.iter().filter(|(first, _)| *first > minor);
    let first = later.find(|(_, names)| names.contains(&plugin))?;
    Some(first.0)
}

/// A plugin must be one of the version's, and while an upgrade can be taken back, one of the version before it too: API servers of that
/// version start again after a rollback.
fn check_plugin_names(
    config: &KubeAPIServerConfig,
    (oldest, newest): (u32, u32),
    problems: &mut Vec<Problem>,
) {
    let known = plugins_of(newest);
    let before = plugins_of(oldest);
    let fits = |plugin: &&str| known.contains(plugin) && before.contains(plugin);
    for (field, plugins) in [
        ("admissionControl", &config.admission_control),
        ("appendAdmissionPlugins", &config.append_admission_plugins),
        ("disableAdmissionPlugins", &config.disable_admission_plugins),
        ("enableAdmissionPlugins", &config.enable_admission_plugins),
    ] {
        for (index, entry) in plugins.iter().enumerate() {
            // The flag is a list with commas.
            for plugin in entry.split(',').filter(|plugin| !fits(plugin)) {
                let has_none =
                    |minor: u32| format!("Kubernetes 1.{minor} has no admission plugin {plugin}");
                let first = find_first(plugin, oldest).filter(|first| *first <= newest);
                let (message, hint) = match (find_last(plugin, newest), first) {
                    (Some(last), _) => {
                        let none = has_none(newest);
                        (
                            format!("{none} any more; the last that had it is 1.{last}"),
                            "remove it".to_owned(),
                        )
                    }
                    (None, Some(first)) => {
                        let none = has_none(oldest);
                        (
                            format!("{none} yet; the first with it is 1.{first}"),
                            "remove it until the upgrade is finalized: a rollback starts the version before".to_owned(),
                        )
                    }
                    (None, None) => (has_none(newest), nearest::hint(plugin, &known)),
                };
                let path = element_path(&format!("{AT}.{field}"), index);
                problems.push(Problem::error(path, message).hint(hint));
            }
        }
    }
}

/// `--admission-control` excludes the other flags, and no plugin may be both on and off.
fn check_plugin_lists(config: &KubeAPIServerConfig, problems: &mut Vec<Problem>) {
    let on = [
        ("enableAdmissionPlugins", &config.enable_admission_plugins),
        ("appendAdmissionPlugins", &config.append_admission_plugins),
    ];
    let off = &config.disable_admission_plugins;
    let unused = config.admission_control.is_empty();
    let others = on.iter().copied().chain([("disableAdmissionPlugins", off)]);
    for (other, _) in others.filter(|(_, plugins)| !unused && !plugins.is_empty()) {
        let message = format!("it excludes {other}");
        let problem = Problem::error(format!("{AT}.admissionControl"), message);
        problems.push(
            problem.hint(
                "keep enableAdmissionPlugins, or appendAdmissionPlugins to add to the default",
            ),
        );
    }
    for (index, plugin) in off.iter().enumerate() {
        if let Some((list, _)) = on.iter().find(|(_, plugins)| plugins.contains(plugin)) {
            let path = element_path(&format!("{AT}.disableAdmissionPlugins"), index);
            let problem = Problem::error(path, format!("{plugin} is in {list} too"));
            problems.push(problem.hint("keep it in one of the lists"));
        }
    }
}

fn warn_of_open_limits(config: &KubeAPIServerConfig, problems: &mut Vec<Problem>) {
    let (only, on) = (&config.admission_control, &config.enable_admission_plugins);
    for (plugin, by_default, open) in LIMITING {
        let has = |plugins: &[String]| {
            let mut plugins = plugins.iter().flat_map(|entry| entry.split(','));
            plugins.any(|one| one == plugin)
        };
        let field = if has(&config.disable_admission_plugins) {
            "disableAdmissionPlugins"
        } else if !only.is_empty() && !has(only) {
            "admissionControl"
        } else if only.is_empty()
            && !by_default
            && !on.is_empty()
            && !has(on)
            && !has(&config.append_admission_plugins)
        {
            "enableAdmissionPlugins"
        } else {
            continue;
        };
        let problem =
            Problem::warning(format!("{AT}.{field}"), format!("without {plugin}, {open}"));
        problems.push(problem.hint(format!("keep {plugin} on")));
    }
}

fn warn_of_always_allow(path: &str, problems: &mut Vec<Problem>) {
    let message = "whoever has any token or certificate of the cluster may do everything in it, each pod and node too";
    let problem = Problem::warning(path, message);
    problems.push(problem.hint("use RBAC"));
}

fn check_authorization(config: &KubeAPIServerConfig, problems: &mut Vec<Problem>) {
    let at = format!("{AT}.authorizationMode");
    let modes = config.authorization_mode.iter();
    let modes: Vec<&str> = modes.flat_map(|modes| modes.split(',')).collect();
    if modes.contains(&"AlwaysAllow") {
        warn_of_always_allow(&at, problems);
    }
    if modes.contains(&"ABAC") {
        let message = "ABAC reads a file of policies, for which the spec has no field";
        problems.push(Problem::error(&at, message).hint("write Node,RBAC"));
    }
    let twice = modes.iter().enumerate();
    let mut twice = twice.filter(|(index, mode)| modes.iter().take(*index).any(|one| one == *mode));
    if let Some((_, mode)) = twice.next() {
        let problem = Problem::error(&at, format!("{mode} is there twice"));
        problems.push(problem.hint("name each mode once"));
    }
    match (
        modes.contains(&"Webhook"),
        &config.authorization_webhook_config_file,
    ) {
        (true, None) => {
            let message = "Webhook needs to know whom to ask";
            problems.push(Problem::error(at, message).hint("add authorizationWebhookConfigFile"));
        }
        (false, Some(_)) => {
            let path = format!("{AT}.authorizationWebhookConfigFile");
            let problem = Problem::error(path, "authorizationMode has no Webhook");
            problems.push(problem.hint("write Node,RBAC,Webhook there, or remove it"));
        }
        _ => {}
    }
}
