//! Compares the objects of our addons with those that kOps makes of its own test specs.

use super::{full_spec, read_text, scenario_folders};
use full::addons::make_addons;
use node::addons::{ADDON_LABEL, MANAGED_BY_LABEL};
use serde_json::Value;
use spec::read::ReadOptions;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Kind, namespace and name.
type ObjectKey = (String, String, String);

/// Addons of kOps of which kctl makes nothing, and the topic of docs/compat.md that says why.
const NOT_MADE: &[(&str, &str)] = &[
    ("dns-controller.addons.k8s.io", "dns-records"),
    ("kops-controller.addons.k8s.io", "joining"),
    ("node-termination-handler.aws", "termination"),
    ("karpenter.sh", "addons"),
];

/// Addon, start of `KIND NAME PATH` (of what one side lacks: the object alone), topic.
const STATED: &[(&str, &str, &str)] = &[
    ("protokube.rbac.kctl.dev", "", "protokube-rights"),
    ("node-registration.kctl.dev", "", "node-registration"),
    (
        "coredns.addons.k8s.io",
        "Role coredns-autoscaler",
        "autoscaler-role",
    ),
    (
        "coredns.addons.k8s.io",
        "RoleBinding coredns-autoscaler",
        "autoscaler-role",
    ),
    (
        "coredns.addons.k8s.io",
        "ClusterRole coredns-autoscaler",
        "autoscaler-role",
    ),
    (
        "coredns.addons.k8s.io",
        "ClusterRole system:coredns",
        "coredns-role",
    ),
    (CLOUD_CONTROLLER, "ConfigMap", "cloud-config"),
    (CLOUD_CONTROLLER, "DaemonSet", "cloud-config"),
    (CLOUD_CONTROLLER, "Role", "cloud-controller-role"),
    (
        CLOUD_CONTROLLER,
        "ClusterRole system",
        "cloud-controller-role",
    ),
    (EBS_CSI, "ValidatingAdmissionPolicy", "ebs-csi-limits"),
    (
        EBS_CSI,
        "Deployment ebs-csi-controller /spec/template/spec/affinity",
        "controllers-place",
    ),
    (
        EBS_CSI,
        "Deployment ebs-csi-controller /spec/template/spec/tolerations",
        "drained-controllers",
    ),
    (
        BALANCERS,
        "Deployment aws-load-balancer-controller /spec/template/spec/affinity/nodeAffinity",
        "controllers-place",
    ),
    (
        BALANCERS,
        "Deployment aws-load-balancer-controller /spec/template/spec/tolerations",
        "controllers-place",
    ),
    (
        AUTOSCALER,
        "Deployment cluster-autoscaler /spec/template/spec/affinity",
        "controllers-place",
    ),
    (
        AUTOSCALER,
        "Deployment cluster-autoscaler /spec/template/spec/tolerations",
        "controllers-place",
    ),
    (EBS_CSI, "Role ebs-csi-leases-role /rules", "ebs-csi-limits"),
    (
        "nodelocaldns.addons.k8s.io",
        "DaemonSet node-local-dns /spec/template/spec/containers/0/securityContext",
        "node-local-dns-rights",
    ),
    (
        "nodelocaldns.addons.k8s.io",
        "ConfigMap",
        "node-local-dns-names",
    ),
    (
        "node-problem-detector.addons.k8s.io",
        "ValidatingAdmissionPolicy",
        "node-problem-limits",
    ),
    (SNAPSHOTS, "Role ", "snapshot-limits"),
    (SNAPSHOTS, "Deployment ", "snapshot-limits"),
    (SNAPSHOTS, "Issuer", "snapshot-certificate"),
    (SNAPSHOTS, "Certificate ", "snapshot-certificate"),
    (AUTOSCALER, "ClusterRole cluster", "cluster-autoscaler-role"),
    (AUTOSCALER, "Role cluster", "cluster-autoscaler-role"),
    (AUTOSCALER, "ConfigMap", "autoscaler-priorities"),
    (METRICS, "Issuer", "metrics-certificate"),
    (METRICS, "Certificate", "metrics-certificate"),
    (
        METRICS,
        "Deployment metrics-server /spec/template/spec/containers/0/args",
        "metrics-kubelets",
    ),
    (METRICS, "Deployment", "metrics-place"),
    (METRICS, "PodDisruptionBudget", "metrics-place"),
    (CILIUM, "ValidatingAdmissionPolicy", "cilium-limits"),
    (CALICO, "ValidatingAdmissionPolicy", "calico-limits"),
    (CALICO, "ClusterRole calico-node /rules", "calico-limits"),
    (
        CALICO,
        "ClusterRole calico-cni-plugin /rules",
        "calico-limits",
    ),
    (CALICO, "Role calico-node", "calico-limits"),
    (CALICO, "RoleBinding calico-node", "calico-limits"),
    (
        CALICO,
        "DaemonSet calico-node /spec/template/metadata/annotations",
        "calico-restarts",
    ),
    (
        CALICO,
        "Deployment calico-typha /spec/template/spec/tolerations",
        "calico-typha",
    ),
    (CILIUM, "Namespace ", "cilium-secrets"),
    (CILIUM, "Role cilium-tls", "cilium-secrets"),
    (CILIUM, "Role cilium-operator-tls", "cilium-secrets"),
    (CILIUM, "RoleBinding cilium-tls", "cilium-secrets"),
    (CILIUM, "RoleBinding cilium-operator-tls", "cilium-secrets"),
    (CILIUM, "ClusterRole cilium", "cilium-version"),
    (CILIUM, "ConfigMap", "cilium-version"),
    (CILIUM, "DaemonSet cilium /spec/template", "cilium-version"),
    (
        CILIUM,
        "Deployment cilium-operator /spec/template/spec/containers/0",
        "cilium-version",
    ),
    (VPC_CNI, "CustomResourceDefinition ", "vpc-cni-crd"),
    (
        VPC_CNI,
        "DaemonSet aws-node /spec/template/spec/containers/0/env",
        "network-roles",
    ),
    (
        VPC_CNI,
        "DaemonSet aws-node /spec/template/spec/containers/0/volumeMounts",
        "network-roles",
    ),
    (
        VPC_CNI,
        "DaemonSet aws-node /spec/template/spec/containers/1/env",
        "network-roles",
    ),
    (
        VPC_CNI,
        "DaemonSet aws-node /spec/template/spec/containers/1/volumeMounts",
        "network-roles",
    ),
    (
        VPC_CNI,
        "DaemonSet aws-node /spec/template/spec/securityContext",
        "network-roles",
    ),
    (
        VPC_CNI,
        "DaemonSet aws-node /spec/template/spec/volumes",
        "network-roles",
    ),
    (POD_IDENTITY, "Issuer", "pod-identity-certificate"),
    (POD_IDENTITY, "Certificate", "pod-identity-certificate"),
    (
        POD_IDENTITY,
        "Deployment pod-identity-webhook /spec/replicas",
        "pod-identity-place",
    ),
    (
        POD_IDENTITY,
        "Deployment pod-identity-webhook /spec/template/spec/nodeSelector",
        "pod-identity-place",
    ),
    (
        POD_IDENTITY,
        "Deployment pod-identity-webhook /spec/template/spec/tolerations",
        "pod-identity-place",
    ),
];

const CLOUD_CONTROLLER: &str = "aws-cloud-controller.addons.k8s.io";
const EBS_CSI: &str = "aws-ebs-csi-driver.addons.k8s.io";
const SNAPSHOTS: &str = "snapshot-controller.addons.k8s.io";
const BALANCERS: &str = "aws-load-balancer-controller.addons.k8s.io";
const AUTOSCALER: &str = "cluster-autoscaler.addons.k8s.io";
const CALICO: &str = "networking.projectcalico.org";
const CILIUM: &str = "networking.cilium.io";
const VPC_CNI: &str = "networking.amazon-vpc-routed-eni";
const METRICS: &str = "metrics-server.addons.k8s.io";

const POD_IDENTITY: &str = "eks-pod-identity-webhook.addons.k8s.io";

struct Difference {
    addon: String,
    /// `KIND NAME PATH`.
    place: String,
    ours: Value,
    theirs: Value,
}

fn topic(one: &Difference) -> Option<&'static str> {
    let mut stated = STATED.iter();
    let row = stated.find(|(addon, place, _)| one.addon == *addon && one.place.starts_with(place));
    row.map(|(_, _, topic)| *topic)
}

#[test]
fn addons_are_those_of_kops_but_for_stated_differences() {
    let Some(folder) = std::env::var_os("KCTL_KOPS_FIXTURES").map(PathBuf::from) else {
        eprintln!("skipped: KCTL_KOPS_FIXTURES is not set");
        return;
    };
    let stated = include_str!("../../../../../docs/compat.md");
    let (mut unstated, mut used) = (Vec::new(), BTreeSet::new());
    let (mut equal, mut made, mut all) = (0, 0, 0);
    for scenario in scenario_folders(&folder.join("update_cluster")) {
        let theirs = kops_objects(&scenario);
        all += theirs.len();
        let lenient = ReadOptions {
            allow_unsupported: true,
        };
        let Ok(full) = full_spec(&scenario, lenient) else {
            continue;
        };
        let addons = make_addons(&full).expect("addons");
        let ours = addons.into_iter().flat_map(|addon| addon.objects);
        let ours: BTreeMap<ObjectKey, Value> = ours.map(keyed).collect();
        for (key, object) in &theirs {
            let addon = addon_of(object);
            if let Some((_, topic)) = NOT_MADE.iter().find(|(other, _)| *other == addon) {
                used.insert(*topic);
                continue;
            }
            made += 1;
            let found = differences(&addon, key, ours.get(key), Some(object));
            equal += usize::from(found.is_empty());
            state(found, &scenario, &mut unstated, &mut used);
        }
        for (key, object) in ours.iter().filter(|(key, _)| !theirs.contains_key(key)) {
            let found = differences(&addon_of(object), key, Some(object), None);
            state(found, &scenario, &mut unstated, &mut used);
        }
    }
    let topics = used.iter();
    let silent = topics.filter(|topic| !stated.contains(&format!("`{topic}`")));
    unstated.extend(silent.map(|topic| format!("docs/compat.md says nothing of {topic}")));
    let figures = format!("of {all} addon objects {made} are made, {equal} of them equal");
    if !include_str!("../../../../../docs/specification.md").contains(&figures) {
        unstated.push(format!("docs/specification.md does not say: {figures}"));
    }
    let count = unstated.len();
    assert!(
        unstated.is_empty(),
        "{count} unstated differences:\n{}",
        unstated.join("\n")
    );
}

fn state(
    found: Vec<Difference>,
    scenario: &Path,
    unstated: &mut Vec<String>,
    used: &mut BTreeSet<&'static str>,
) {
    for one in found {
        match topic(&one) {
            Some(topic) => _ = used.insert(topic),
            None => unstated.push(format!(
                "{}: {} {}: ours {} theirs {}",
                scenario.file_name().unwrap_or_default().display(),
                one.addon,
                one.place,
                one.ours,
                one.theirs
            )),
        }
    }
}

fn kops_objects(scenario: &Path) -> BTreeMap<ObjectKey, Value> {
    let files = std::fs::read_dir(scenario.join("addons")).expect("addons");
    let files = files.map(|entry| entry.expect("an entry").path());
    let manifests = files.filter(|path| !path.ends_with("bootstrap.yaml"));
    let texts = manifests.map(|path| read_text(&path));
    let objects =
        texts.flat_map(|text| node::addons::read_manifest("kops", &text).expect("objects"));
    objects.map(keyed).collect()
}

fn keyed(object: Value) -> (ObjectKey, Value) {
    let text = |pointer: &str| {
        let found = object.pointer(pointer).and_then(Value::as_str);
        found.unwrap_or_default().to_owned()
    };
    let key = (
        text("/kind"),
        text("/metadata/namespace"),
        text("/metadata/name"),
    );
    (key, object)
}

fn addon_of(object: &Value) -> String {
    let label = &object["metadata"]["labels"][ADDON_LABEL];
    label.as_str().unwrap_or_default().to_owned()
}

fn differences(
    addon: &str,
    key: &ObjectKey,
    ours: Option<&Value>,
    theirs: Option<&Value>,
) -> Vec<Difference> {
    let mut found = Vec::new();
    let at = format!("{} {}", key.0, key.2);
    match (ours, theirs) {
        (Some(ours), Some(theirs)) => compare(&at, ours, theirs, &mut |place, ours, theirs| {
            found.push(Difference {
                addon: addon.to_owned(),
                place,
                ours: ours.clone(),
                theirs: theirs.clone(),
            });
        }),
        (ours, theirs) => found.push(Difference {
            addon: addon.to_owned(),
            place: at,
            ours: ours.map_or(Value::Null, |_| "made".into()),
            theirs: theirs.map_or(Value::Null, |_| "made".into()),
        }),
    }
    found
}

/// Reports the deepest values that differ. The label of who manages an object differs always; the order of arguments, an empty text and a
/// last newline say nothing.
fn compare(
    at: &str,
    ours: &Value,
    theirs: &Value,
    report: &mut impl FnMut(String, &Value, &Value),
) {
    if is_empty(ours) && is_empty(theirs) {
        return;
    }
    if ours == theirs || at.ends_with(MANAGED_BY_LABEL) {
        return;
    }
    let step = if at.contains(" /") { "/" } else { " /" };
    match (ours, theirs) {
        (Value::Object(one), Value::Object(other)) => {
            let names: BTreeSet<&String> = one.keys().chain(other.keys()).collect();
            for name in names {
                let of = |side: &serde_json::Map<String, Value>| side.get(name).cloned();
                let (ours, theirs) = (of(one), of(other));
                let (ours, theirs) = (ours.unwrap_or_default(), theirs.unwrap_or_default());
                compare(&format!("{at}{step}{name}"), &ours, &theirs, report);
            }
        }
        (Value::String(one), Value::String(other)) if one.trim_end() == other.trim_end() => {}
        (Value::Array(one), Value::Array(other)) if at.ends_with("/args") => {
            let of = |side: &[Value]| side.iter().map(Value::to_string).collect::<BTreeSet<_>>();
            let (one, other) = (of(one), of(other));
            let only = |one: &BTreeSet<String>, other| one.difference(other).cloned().collect();
            let (mine, theirs): (Vec<String>, Vec<String>) =
                (only(&one, &other), only(&other, &one));
            if (&mine, &theirs) != (&Vec::new(), &Vec::new()) {
                report(at.to_owned(), &mine.into(), &theirs.into());
            }
        }
        (Value::Array(one), Value::Array(other)) if one.len() == other.len() => {
            for (index, (ours, theirs)) in one.iter().zip(other).enumerate() {
                compare(&format!("{at}{step}{index}"), ours, theirs, report);
            }
        }
        _ => report(at.to_owned(), ours, theirs),
    }
}

fn is_empty(value: &Value) -> bool {
    // The last is what kOps' own tool leaves of an object that it has read.
    value.is_null() || value == "" || value == "0"
}
