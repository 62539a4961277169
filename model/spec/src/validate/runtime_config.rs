//! `kubeAPIServer.runtimeConfig`: entries with which kube-apiserver of any minor ends at its start (Kubernetes: `APIEnablementOptions`,
//! `validateAPIPriorityAndFairness`). Which groups and versions a minor has is not known here.

use super::text::{is_dns_label, is_dns_name};
use super::values::parse_switch;
use crate::api::cluster::ClusterSpec;
use crate::read::Problem;
use crate::read::path::field_path;
use std::collections::BTreeMap;

const AT: &str = "spec.kubeAPIServer.runtimeConfig";

/// Entries that stand for all versions of a kind. Of other words for true and false, kube-apiserver takes none here.
const KINDS: [&str; 4] = ["api/all", "api/ga", "api/beta", "api/alpha"];

/// It does nothing, with any value.
const LEGACY: &str = "api/legacy";

/// What API Priority and Fairness uses, which the spec cannot turn off.
const FAIRNESS: &str = "flowcontrol.apiserver.k8s.io/v1";

pub fn check(spec: &ClusterSpec, problems: &mut Vec<Problem>) {
    let Some(config) = &spec.kube_api_server else {
        return;
    };
    let entries = &config.runtime_config;
    problems.extend(
        entries
            .iter()
            .filter_map(|(key, value)| find_problem(key, value)),
    );
    if let Some(key) = find_unfair(entries) {
        let message = format!("API Priority and Fairness needs {FAIRNESS}, which this turns off");
        let problem = Problem::error(field_path(AT, key), message);
        problems.push(problem.hint(format!("set {FAIRNESS} to \"true\"")));
    }
}

/// The APIs that a spec turns on or off by name, but for the group without a name, which every minor has.
pub fn named_apis(spec: &ClusterSpec) -> Vec<&str> {
    let config = spec.kube_api_server.iter();
    let keys = config.flat_map(|config| config.runtime_config.keys());
    let keys = keys.map(String::as_str);
    keys.filter(|key| !KINDS.contains(key) && *key != LEGACY && !is_core(key))
        .collect()
}

fn find_problem(key: &str, value: &str) -> Option<Problem> {
    if key == LEGACY {
        return None;
    }
    let is_kind = KINDS.contains(&key);
    if !is_kind && !names_api(key) {
        let message = format!("{key:?} is no API of kube-apiserver");
        return Some(Problem::error(field_path(AT, key), message).hint(
            "write the group and version of an API of Kubernetes, with or without a resource: resource.k8s.io/v1beta1/deviceclasses",
        ));
    }
    let fits = match is_kind {
        true => matches!(value, "true" | "false"),
        // No value turns it on.
        false => value.is_empty() || parse_switch(value).is_some(),
    };
    (!fits).then(|| {
        let message = format!("{value:?} is neither true nor false");
        Problem::error(field_path(AT, key), message).hint("write true or false")
    })
}

/// The entry that turns off what API Priority and Fairness uses: of those that say something about it, the narrowest decides.
fn find_unfair(entries: &BTreeMap<String, String>) -> Option<&'static str> {
    let says = |key: &str| entries.get(key).map(String::as_str);
    let deciding = [FAIRNESS, "api/ga", "api/all"];
    let deciding = deciding
        .into_iter()
        .find(|key| matches!(says(key), Some("true" | "false")))?;
    (says(deciding) == Some("false")).then_some(deciding)
}

/// True of `GROUP/VERSION` and `GROUP/VERSION/RESOURCE` with a group that can be one of Kubernetes, and of the ways to write the version of
/// the group without a name.
fn names_api(key: &str) -> bool {
    // They would end the entry.
    if key.contains([',', '=']) {
        return false;
    }
    if is_core(key) {
        return true;
    }
    let mut parts = key.split('/');
    let (Some(group), Some(version)) = (parts.next(), parts.next()) else {
        return false;
    };
    let resource = parts.next();
    is_group(group)
        && is_version(version)
        && resource.is_none_or(is_dns_label)
        && parts.next().is_none()
}

/// True of the version of the group without a name, and of what kube-apiserver takes for it.
fn is_core(key: &str) -> bool {
    ["v1", "api/v1", "/v1"].into_iter().any(|core| {
        let rest = key.strip_prefix(core);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    })
}

/// The groups of Kubernetes are single words, or belong to k8s.io; those of others are served by CustomResourceDefinitions.
fn is_group(text: &str) -> bool {
    is_dns_name(text) && (!text.contains('.') || text.ends_with(".k8s.io"))
}

/// `v1`, `v1beta2`, `v1alpha3`.
fn is_version(text: &str) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let Some(numbers) = text.strip_prefix('v') else {
        return false;
    };
    let mut stages = ["alpha", "beta"].into_iter();
    match stages.find_map(|stage| numbers.split_once(stage)) {
        Some((number, of_stage)) => is_number(number) && is_number(of_stage),
        None => is_number(numbers),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::kube_apiserver::KubeAPIServerConfig;

    fn is_refused(entries: &[(&str, &str)]) -> bool {
        let entries = entries.iter();
        let entries = entries.map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        let spec = ClusterSpec {
            kube_api_server: Some(KubeAPIServerConfig {
                runtime_config: entries.collect(),
                ..KubeAPIServerConfig::default()
            }),
            ..ClusterSpec::default()
        };
        let mut problems = Vec::new();
        check(&spec, &mut problems);
        problems.iter().any(Problem::is_error)
    }

    /// By `Options.Complete`, `APIEnablementOptions.Validate` and `MergeAPIResourceConfigs` of Kubernetes 1.37.
    #[test]
    fn entries_are_read_as_kube_apiserver_reads_them() {
        for (key, value, refused) in [
            ("v1", "true", false),
            ("api/v1", "", false),
            ("v1/pods", "true", false),
            ("/v1", "true", false),
            ("apps/v1", "T", false),
            ("resource.k8s.io/v1beta1", "", false),
            ("resource.k8s.io/v1alpha3/devicetaintrules", "1", false),
            ("internal.apiserver.k8s.io/v1alpha1", "0", false),
            ("api/legacy", "whatever", false),
            ("api/beta", "true", false),
            ("api/beta", "1", true),
            ("api/alpha", "", true),
            ("apps/v1", "on", true),
            ("apps", "true", true),
            ("apps/v1/Deployments", "true", true),
            ("apps/v1/deployments/scale", "true", true),
            ("apps/1", "true", true),
            ("apps/v1gamma1", "true", true),
            ("apps/v1beta", "true", true),
            ("api/stable", "true", true),
            ("flow.example.com/v1", "true", true),
            ("apps/v1,batch/v1", "true", true),
            ("apps/v1=true", "true", true),
            ("", "true", true),
        ] {
            assert_eq!(is_refused(&[(key, value)]), refused, "{key}={value}");
        }
    }

    #[test]
    fn what_priority_and_fairness_uses_stays_on() {
        for (entries, refused) in [
            (&[("api/all", "false")][..], true),
            (&[("api/all", "false"), ("v1", "true")][..], true),
            (&[("api/all", "false"), ("api/ga", "true")][..], false),
            (&[("api/ga", "false"), ("api/all", "true")][..], true),
            (&[("api/ga", "false"), (FAIRNESS, "true")][..], false),
            (&[("api/ga", "true"), (FAIRNESS, "false")][..], true),
        ] {
            assert_eq!(is_refused(entries), refused, "{entries:?}");
        }
    }
}
