//! Whether an addon works, and what of it somebody has changed: from its manifest, the record of what was applied, and its objects in the
//! cluster.

use crate::helm_chart::{ChartJob, find_chart_problem};
use serde::Serialize;
use serde_json::{Map, Value};

/// Fields that the API server sets, and that change with every write.
const SERVER_FIELDS: [&str; 6] = [
    "creationTimestamp",
    "generation",
    "managedFields",
    "resourceVersion",
    "selfLink",
    "uid",
];

/// An object of an addon, as it is in the cluster.
#[derive(Clone, Debug)]
pub struct AddonObject {
    /// `Deployment kube-system/coredns`.
    pub id: String,
    /// What the API has; `None`: nothing.
    pub live: Option<Value>,
    /// What it would have after the manifest was applied again; `None` if the API server would refuse it.
    pub applied: Option<Value>,
    /// Why the API server would refuse the manifest, or could not be asked.
    pub error: Option<String>,
    /// The job of a HelmChart.
    pub chart: Option<ChartJob>,
}

/// How far an addon has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum AddonState {
    /// The stored manifest is applied, and its objects work.
    Healthy,
    /// The stored manifest is applied, and something does not work.
    Unhealthy,
    /// protokube has not applied the stored manifest yet.
    Pending,
}

/// An addon of the cluster's list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AddonStatus {
    pub name: String,
    /// Tag of the image of its first workload; `None`: it has none.
    pub version: Option<String>,
    pub state: AddonState,
    /// What does not work.
    pub problems: Vec<String>,
    /// Fields that differ from the manifest: `Deployment kube-system/coredns: spec.replicas`.
    pub differs: Vec<String>,
}

/// Judges an addon. `manifest` has its objects; `applied` is true if the record says that this manifest was applied.
pub fn judge_addon(
    name: &str,
    manifest: &[Value],
    applied: bool,
    objects: &[AddonObject],
) -> AddonStatus {
    let problems: Vec<String> = objects.iter().filter_map(find_problem).collect();
    let state = match (applied, problems.is_empty()) {
        (false, _) => AddonState::Pending,
        (true, true) => AddonState::Healthy,
        (true, false) => AddonState::Unhealthy,
    };
    AddonStatus {
        name: name.to_owned(),
        version: manifest.iter().find_map(version_of),
        state,
        problems,
        differs: objects.iter().flat_map(find_differences).collect(),
    }
}

/// The tag of the first container's image; of a digest alone its beginning.
fn version_of(object: &Value) -> Option<String> {
    let containers = object.pointer("/spec/template/spec/containers")?;
    let image = containers.get(0)?.get("image")?.as_str()?;
    let (named, digest) = image.split_once('@').unwrap_or((image, ""));
    let last = named.rsplit('/').next().unwrap_or(named);
    match last.split_once(':') {
        Some((_, tag)) => Some(tag.to_owned()),
        None => digest.get(..19).map(str::to_owned),
    }
}

/// What keeps an object from working.
fn find_problem(object: &AddonObject) -> Option<String> {
    let said = |why: &str| Some(format!("{}: {why}", object.id));
    if let Some(error) = &object.error {
        return said(error);
    }
    let Some(live) = &object.live else {
        return said("does not exist");
    };
    let why = match live["kind"].as_str().unwrap_or_default() {
        "Deployment" | "StatefulSet" => unready_replicas(live),
        "DaemonSet" => unready_daemons(live),
        "APIService" => unmet_condition(live, "Available"),
        "CustomResourceDefinition" => unmet_condition(live, "Established"),
        "HelmChart" => find_chart_problem(live, object.chart.as_ref()?),
        _ => None,
    };
    said(&why?)
}

fn number(object: &Value, pointer: &str) -> i64 {
    let found = object.pointer(pointer).and_then(Value::as_i64);
    found.unwrap_or_default()
}

/// True if the controller has not seen the newest spec: what it says is of an older one.
fn is_unobserved(object: &Value) -> bool {
    number(object, "/status/observedGeneration") < number(object, "/metadata/generation")
}

fn unready_replicas(object: &Value) -> Option<String> {
    let wanted = object.pointer("/spec/replicas").and_then(Value::as_i64);
    let wanted = wanted.unwrap_or(1);
    let (updated, available) = (
        number(object, "/status/updatedReplicas"),
        number(object, "/status/availableReplicas"),
    );
    let ready = updated.min(available);
    (is_unobserved(object) || ready < wanted)
        .then(|| format!("{ready} of {wanted} pods are up to date and available"))
}

fn unready_daemons(object: &Value) -> Option<String> {
    let wanted = number(object, "/status/desiredNumberScheduled");
    let updated = number(object, "/status/updatedNumberScheduled");
    let available = number(object, "/status/numberAvailable");
    // With OnDelete, pods of the former manifest go with their instances.
    let on_delete = object.pointer("/spec/updateStrategy/type") == Some(&"OnDelete".into());
    let ready = if on_delete {
        available
    } else {
        updated.min(available)
    };
    (is_unobserved(object) || ready < wanted)
        .then(|| format!("{ready} of {wanted} pods are up to date and available"))
}

fn unmet_condition(object: &Value, wanted: &str) -> Option<String> {
    let conditions = object.pointer("/status/conditions");
    let mut conditions = conditions.and_then(Value::as_array).into_iter().flatten();
    match conditions.find(|one| one["type"] == wanted) {
        Some(one) if one["status"] == "True" => None,
        Some(one) => {
            let message = one["message"].as_str().unwrap_or_default();
            Some(format!("is not {wanted}: {message}"))
        }
        None => Some(format!("is not {wanted} yet")),
    }
}

/// The fields of an object that applying its manifest would change.
fn find_differences(object: &AddonObject) -> Vec<String> {
    let (Some(live), Some(applied)) = (&object.live, &object.applied) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    collect_differences("", &of_users(live), &of_users(applied), &mut found);
    let of_object = |path: String| format!("{}: {path}", object.id);
    found.into_iter().map(of_object).collect()
}

/// The object without its status and what the API server sets.
fn of_users(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(fields) = object.as_object_mut() {
        fields.remove("status");
    }
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.retain(|name, _| !SERVER_FIELDS.contains(&name.as_str()));
    }
    object
}

fn collect_differences(at: &str, live: &Value, applied: &Value, found: &mut Vec<String>) {
    let step = |name: &str| match at {
        "" => name.to_owned(),
        at => format!("{at}.{name}"),
    };
    match (live, applied) {
        _ if live == applied => {}
        (Value::Object(one), Value::Object(other)) => {
            let empty = Value::Null;
            let of = |side: &Map<String, Value>, name: &str| {
                side.get(name).cloned().unwrap_or_else(|| empty.clone())
            };
            let only_other = other.keys().filter(|name| !one.contains_key(*name));
            for name in one.keys().chain(only_other) {
                collect_differences(&step(name), &of(one, name), &of(other, name), found);
            }
        }
        (Value::Array(one), Value::Array(other)) if one.len() == other.len() => {
            for (index, (live, applied)) in one.iter().zip(other).enumerate() {
                collect_differences(&format!("{at}[{index}]"), live, applied, found);
            }
        }
        _ => found.push(at.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn object(live: Value) -> AddonObject {
        AddonObject {
            id: "X y".to_owned(),
            applied: Some(live.clone()),
            live: Some(live),
            error: None,
            chart: None,
        }
    }

    fn problem(live: Value) -> Option<String> {
        find_problem(&object(live))
    }

    #[test]
    fn what_has_pods_works_once_all_of_them_are_of_the_newest_manifest_and_available() {
        let deployment = |status: Value| json!({"kind": "Deployment", "metadata": {"generation": 2}, "spec": {"replicas": 2}, "status": status});
        let good = json!({"observedGeneration": 2, "updatedReplicas": 2, "availableReplicas": 2});
        assert_eq!(problem(deployment(good.clone())), None);
        for field in ["observedGeneration", "updatedReplicas", "availableReplicas"] {
            let mut bad = good.clone();
            bad[field] = json!(1);
            assert!(problem(deployment(bad)).is_some(), "{field}");
        }
        let daemons = |strategy: &str, status: Value| json!({"kind": "DaemonSet", "spec": {"updateStrategy": {"type": strategy}}, "status": status});
        let old =
            json!({"desiredNumberScheduled": 2, "updatedNumberScheduled": 1, "numberAvailable": 2});
        assert_eq!(
            problem(daemons("RollingUpdate", old.clone())).as_deref(),
            Some("X y: 1 of 2 pods are up to date and available")
        );
        assert_eq!(problem(daemons("OnDelete", old)), None);
        // No node for it is no problem.
        assert_eq!(problem(daemons("RollingUpdate", json!({}))), None);
    }

    #[test]
    fn what_has_a_condition_works_once_it_is_met() {
        let service =
            |conditions: Value| json!({"kind": "APIService", "status": {"conditions": conditions}});
        assert_eq!(
            problem(service(json!([{"type": "Available", "status": "True"}]))),
            None
        );
        let missing = json!([{"type": "Available", "status": "False", "message": "no endpoints"}]);
        assert_eq!(
            problem(service(missing)).as_deref(),
            Some("X y: is not Available: no endpoints")
        );
        assert!(problem(service(json!([]))).is_some());
    }

    #[test]
    fn only_fields_that_applying_would_change_differ() {
        let mut one = object(
            json!({"metadata": {"resourceVersion": "1", "generation": 1}, "spec": {"a": [1, 2], "b": 1}, "status": 1}),
        );
        one.applied = Some(
            json!({"metadata": {"resourceVersion": "2", "generation": 2}, "spec": {"a": [1, 3], "c": 1}, "status": 2}),
        );
        assert_eq!(
            find_differences(&one),
            ["X y: spec.a[1]", "X y: spec.b", "X y: spec.c"]
        );
        one.live = None;
        assert!(find_differences(&one).is_empty());
    }

    #[test]
    fn the_version_is_the_tag_of_the_image() {
        let of = |image: &str| {
            version_of(&json!({"spec": {"template": {"spec": {"containers": [{"image": image}]}}}}))
        };
        assert_eq!(of("a.example.com:5000/b/c:v1.2").as_deref(), Some("v1.2"));
        assert_eq!(of("a/b:v1@sha256:00").as_deref(), Some("v1"));
        assert_eq!(
            of("a/b@sha256:0123456789abcdef").as_deref(),
            Some("sha256:0123456789ab")
        );
        assert_eq!(of("busybox"), None);
        assert_eq!(version_of(&json!({"kind": "ConfigMap"})), None);
    }

    #[test]
    fn an_addon_is_pending_until_its_stored_manifest_is_applied() {
        let missing = AddonObject {
            id: "X y".to_owned(),
            live: None,
            applied: None,
            error: None,
            chart: None,
        };
        let state =
            |applied, objects: &[AddonObject]| judge_addon("a", &[], applied, objects).state;
        assert_eq!(state(false, &[]), AddonState::Pending);
        assert_eq!(state(true, &[]), AddonState::Healthy);
        assert_eq!(state(true, &[missing]), AddonState::Unhealthy);
    }
}
