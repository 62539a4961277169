//! Fields whose flags Kubernetes removed. Passed on, they end the component at its start: `unknown flag`.

use super::versions::{OLDEST_MINOR, Version};
use crate::api::cluster::ClusterSpec;
use crate::api::kubelet::KubeletConfigSpec;
use crate::catalog::DEFAULT_MINOR;
use crate::read::Problem;
use crate::upgrade::nodes_version;
use serde::Serialize;
use serde_json::Value;

/// A field of a component whose flag is gone.
struct Removed {
    field: &'static str,
    /// The last minor of Kubernetes 1 that has the flag.
    last: u32,
    /// The value with which the field asks for what is always so without the flag; then it is left out.
    idle: Option<&'static str>,
    /// What to write instead.
    instead: &'static str,
}

const fn gone(field: &'static str, last: u32, instead: &'static str) -> Removed {
    Removed {
        field,
        last,
        idle: None,
        instead,
    }
}

const fn gone_unless(
    idle: &'static str,
    field: &'static str,
    last: u32,
    instead: &'static str,
) -> Removed {
    Removed {
        field,
        last,
        idle: Some(idle),
        instead,
    }
}

const NOTHING: &str = "remove it";

/// `CHANGELOG-1.X.md` of Kubernetes says where each went; the sources of 1.32, 1.36 and 1.37 have the flags of all other fields.
const API_SERVER: &[Removed] = &[
    gone("address", 23, "use bindAddress"),
    gone_unless("false", "auditDynamicConfiguration", 18, NOTHING),
    gone("authorizationRbacSuperUser", 8, NOTHING),
    gone(
        "basicAuthFile",
        18,
        "use authenticationConfigFile, or client certificates",
    ),
    gone("cloudProvider", 32, NOTHING),
    gone_unless("true", "etcdQuorumRead", 12, NOTHING),
    gone(
        "experimentalEncryptionProviderConfig",
        23,
        "use encryptionProviderConfig",
    ),
    gone("insecureBindAddress", 23, NOTHING),
    gone_unless("0", "insecurePort", 23, NOTHING),
];

const CONTROLLER_MANAGER: &[Removed] = &[
    gone(
        "concurrentServiceSyncs",
        36,
        "remove it: it has had no effect since 1.31",
    ),
    gone(
        "experimentalClusterSigningDuration",
        24,
        "use ClusterSigningDuration",
    ),
    gone(
        "horizontalPodAutoscalerDownscaleDelay",
        30,
        "use horizontalPodAutoscalerDownscaleStabilization",
    ),
    gone("horizontalPodAutoscalerUpscaleDelay", 30, NOTHING),
    gone_unless("true", "horizontalPodAutoscalerUseRestClients", 21, NOTHING),
    gone(
        "podEvictionTimeout",
        26,
        "use defaultUnreachableTolerationSeconds and defaultNotReadyTolerationSeconds of kubeAPIServer",
    ),
];

const KUBELET: &[Removed] = &[
    gone_unless("true", "allowPrivileged", 14, NOTHING),
    gone("apiServers", 7, NOTHING),
    gone_unless("false", "babysitDaemons", 6, NOTHING),
    gone_unless("false", "configureCbr0", 4, NOTHING),
    gone_unless("true", "dockerDisableSharedPID", 11, NOTHING),
    gone_unless("false", "enableCadvisorJsonEndpoints", 20, NOTHING),
    gone_unless("false", "enableCustomMetrics", 10, NOTHING),
    gone("imagePullProgressDeadline", 23, NOTHING),
    gone("networkPluginMTU", 23, NOTHING),
    gone_unless("cni", "networkPluginName", 23, NOTHING),
    gone("nonMasqueradeCIDR", 23, "use spec.nonMasqueradeCIDR"),
    gone_unless("0", "nvidiaGPUs", 10, "use the device plugin of NVIDIA"),
    gone("reconcileCIDR", 5, NOTHING),
    gone_unless(
        "true",
        "registerSchedulable",
        33,
        "use taints, such as node.kubernetes.io/unschedulable:NoSchedule",
    ),
    gone_unless("true", "requireKubeconfig", 9, NOTHING),
    gone("seccompProfileRoot", 22, NOTHING),
];

fn removed_of(component: &str) -> &'static [Removed] {
    match component {
        "kube-apiserver" => API_SERVER,
        "kube-controller-manager" => CONTROLLER_MANAGER,
        "kubelet" => KUBELET,
        _ => &[],
    }
}

/// The parts of a Cluster with flags that can be gone; kubelet's is in an InstanceGroup too.
const SECTIONS: [(&str, &str); 4] = [
    ("spec.kubeAPIServer.", "kube-apiserver"),
    ("spec.kubeControllerManager.", "kube-controller-manager"),
    ("spec.kubelet.", "kubelet"),
    ("spec.masterKubelet.", "kubelet"),
];

/// What to say of the field at a path whose flag Kubernetes has removed.
pub(crate) fn removal_note(path: &str) -> Option<String> {
    let (component, field) = SECTIONS
        .iter()
        .find_map(|(at, component)| Some((*component, path.strip_prefix(*at)?)))?;
    let row = removed_of(component)
        .iter()
        .find(|row| row.field == field)?;
    let idle = row.idle.map(|idle| format!(" unless it is {idle}"));
    Some(format!(
        "Refused{} where Kubernetes is newer than 1.{}, the last one whose {component} had this flag: {}.",
        idle.unwrap_or_default(),
        row.last,
        row.instead
    ))
}

/// True if a field asks for what is always so, and no version that kctl runs has its flag.
pub(crate) fn is_idle(component: &str, field: &str, value: &str) -> bool {
    removed_of(component)
        .iter()
        .any(|row| row.field == field && row.last < OLDEST_MINOR && row.idle == Some(value))
}

/// Leaves out what asks for nothing in this minor, and would be an unknown flag.
pub(crate) fn drop_idle_flags(kubelet: &mut KubeletConfigSpec, minor: u32) {
    let has_flag = |row: &Removed| row.field != "registerSchedulable" || minor <= row.last;
    if kubelet.register_schedulable == Some(true) && !KUBELET.iter().all(has_flag) {
        kubelet.register_schedulable = None;
    }
}

/// Refuses the fields of a cluster whose flags its version does not have.
pub(crate) fn check_cluster(spec: &ClusterSpec, problems: &mut Vec<Problem>) {
    let minor = minor_of(spec);
    let at = "spec.kubeAPIServer";
    check(
        at,
        "kube-apiserver",
        spec.kube_api_server.as_ref(),
        minor,
        problems,
    );
    check(
        "spec.kubeControllerManager",
        "kube-controller-manager",
        spec.kube_controller_manager.as_ref(),
        minor,
        problems,
    );
    for (at, kubelet) in [
        ("spec.kubelet", &spec.kubelet),
        ("spec.masterKubelet", &spec.master_kubelet),
    ] {
        check(at, "kubelet", kubelet.as_ref(), minor, problems);
    }
}

/// The same of a group's kubelet.
pub(crate) fn check_group(
    kubelet: Option<&KubeletConfigSpec>,
    cluster: &ClusterSpec,
    problems: &mut Vec<Problem>,
) {
    check(
        "spec.kubelet",
        "kubelet",
        kubelet,
        minor_of(cluster),
        problems,
    );
}

/// The minor of Kubernetes 1 that a spec asks for.
fn minor_of(spec: &ClusterSpec) -> u32 {
    let version = spec.kubernetes_version.as_deref().and_then(Version::parse);
    version.map_or(DEFAULT_MINOR, |version| version.minor)
}

/// The oldest and the newest minor that a spec has to fit. While an upgrade can be taken back, kubelets are of the minor before, the control
/// plane's components know the feature gates of the minor that they emulate only, and a rollback starts those of the minor before.
pub(super) fn minors_of(spec: &ClusterSpec) -> (u32, u32) {
    let newest = minor_of(spec);
    let oldest = nodes_version(spec).map_or(newest, |version| version.minor);
    (oldest, newest)
}

fn check<T: Serialize>(
    at: &str,
    component: &str,
    config: Option<&T>,
    minor: u32,
    problems: &mut Vec<Problem>,
) {
    let Some(Ok(Value::Object(fields))) = config.map(serde_json::to_value) else {
        return;
    };
    for row in removed_of(component).iter().filter(|row| row.last < minor) {
        let text = match fields.get(row.field) {
            None | Some(Value::Null) => continue,
            Some(Value::String(text)) => text.clone(),
            Some(other) => other.to_string(),
        };
        // No text is no flag.
        if text.is_empty() || row.idle == Some(text.as_str()) {
            continue;
        }
        let message = format!(
            "{component} of Kubernetes 1.{minor} has no such flag; the last one that had it is 1.{}",
            row.last
        );
        problems.push(Problem::error(format!("{at}.{}", row.field), message).hint(row.instead));
    }
}

#[cfg(test)]
mod tests {
    use super::{API_SERVER, CONTROLLER_MANAGER, KUBELET, Removed, check_cluster, check_group};
    use crate::api::cluster::ClusterSpec;
    use crate::expand::component_flags;
    use crate::validate::versions::{NEWEST_MINOR, OLDEST_MINOR};
    use serde_json::{Value, json};

    /// A value that the field takes and that asks for something.
    fn wrong_values(row: &Removed) -> Vec<Value> {
        let values = [
            json!(true),
            json!(false),
            json!(7),
            json!("10.0.0.0/8"),
            json!("/a/file"),
            json!("external"),
        ];
        let idle = |value: &Value| row.idle.is_some_and(|idle| *idle == *value.to_string());
        values.into_iter().filter(|value| !idle(value)).collect()
    }

    fn spec_with(section: &str, field: &str, value: &Value, minor: u32) -> Option<ClusterSpec> {
        let spec =
            json!({ "kubernetesVersion": format!("1.{minor}.0"), section: { field: value } });
        serde_json::from_value(spec).ok()
    }

    const SECTIONS: [(&str, &[Removed]); 4] = [
        ("kubeAPIServer", API_SERVER),
        ("kubeControllerManager", CONTROLLER_MANAGER),
        ("kubelet", KUBELET),
        ("masterKubelet", KUBELET),
    ];

    #[test]
    fn a_flag_that_is_gone_is_refused_by_name_and_one_that_is_there_is_not() {
        for (section, table) in SECTIONS {
            for row in table {
                let mut tried = 0;
                for value in wrong_values(row) {
                    for minor in OLDEST_MINOR..=NEWEST_MINOR {
                        let Some(spec) = spec_with(section, row.field, &value, minor) else {
                            continue;
                        };
                        tried += 1;
                        let mut problems = Vec::new();
                        check_cluster(&spec, &mut problems);
                        let at = format!("spec.{section}.{}", row.field);
                        let refused = problems.iter().any(|one| one.path == at && one.is_error());
                        assert_eq!(refused, row.last < minor, "{at} 1.{minor} {value}");
                        let mut problems = Vec::new();
                        check_group(spec.kubelet.as_ref(), &spec, &mut problems);
                        assert_eq!(!problems.is_empty(), refused && section == "kubelet");
                    }
                }
                assert!(tried > 0, "{section}.{} takes no value", row.field);
            }
        }
    }

    #[test]
    fn what_asks_for_nothing_is_taken_and_is_no_flag() {
        for (section, table) in SECTIONS {
            for row in table {
                let idle = row.idle.into_iter().chain([""]);
                for text in idle {
                    let words = [json!(text), serde_json::from_str(text).unwrap_or_default()];
                    for value in words.iter().filter(|value| !value.is_null()) {
                        let Some(spec) = spec_with(section, row.field, value, NEWEST_MINOR) else {
                            continue;
                        };
                        let mut problems = Vec::new();
                        check_cluster(&spec, &mut problems);
                        assert!(problems.is_empty(), "{problems:?}");
                        let flags = component_flags(spec);
                        assert_eq!(
                            flags,
                            component_flags(ClusterSpec::default()),
                            "{}",
                            row.field
                        );
                    }
                }
            }
        }
    }
}
