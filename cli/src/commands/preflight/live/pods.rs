//! Pods that listen or try: what they are, how they are started and waited for, and what is read of them.

use super::members::Member;
use super::namespace::api_message;
use futures::{StreamExt as _, stream};
use k8s_openapi::api::core::v1::{ContainerState, Event, Pod};
use kube::Client;
use kube::api::{Api, ListParams, PostParams};
use node::config::DIRECTORY;
use node::names::PREFLIGHT_LABEL;
use node::probe::ProbeReport;
use serde_json::json;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// The longest life of a pod: two times of [`START`], [`TRIES`], and room for a slow API.
pub(super) const LIFE: Duration = Duration::from_mins(5);

/// Time for pods to start.
pub(super) const START: Duration = Duration::from_mins(1);

/// Time for trials, after which a pod reports what it has.
pub(super) const TRIES: Duration = Duration::from_mins(1);

/// Calls at the same time.
const AT_ONCE: usize = 8;

const PAUSE: Duration = Duration::from_secs(1);

/// nodeup in the container.
const NODEUP: &str = "/nodeup";

/// The exit code of agents for arguments that they do not know.
const USAGE: i32 = 2;

/// A pod that runs nodeup of its node. It has no account, no rights, and of its node nothing but that file.
pub(super) fn nodeup_pod(
    name: &str,
    member: &Member,
    has_host_network: bool,
    arguments: &[String],
) -> Result<Pod, serde_json::Error> {
    let command: Vec<&str> = std::iter::once(NODEUP)
        .chain(arguments.iter().map(String::as_str))
        .collect();
    let selinux = member
        .selinux
        .then(|| json!({"type": "spc_t", "level": "s0"}));
    serde_json::from_value(json!({
        "metadata": {"name": name, "labels": {PREFLIGHT_LABEL: "true"}},
        "spec": {
            "nodeName": member.name,
            "hostNetwork": has_host_network,
            "restartPolicy": "Never",
            "activeDeadlineSeconds": LIFE.as_secs(),
            // There is nothing to put in order.
            "terminationGracePeriodSeconds": 0,
            "automountServiceAccountToken": false,
            "enableServiceLinks": false,
            "tolerations": [{"operator": "Exists"}],
            "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
            "containers": [{
                "name": "nodeup",
                "image": member.image,
                "imagePullPolicy": "IfNotPresent",
                "command": command,
                // Of a program that fails, the end of its output is in the pod's status.
                "terminationMessagePolicy": "FallbackToLogsOnError",
                // A listener answers every pod, and may not take what its node needs. Trials with 11 others at once hold 6 MB.
                "resources": {
                    "requests": {"cpu": "1m", "memory": "8Mi"},
                    "limits": {"cpu": "200m", "memory": "64Mi"},
                },
                "securityContext": {
                    // Only root may run the file.
                    "runAsUser": 0,
                    "allowPrivilegeEscalation": false,
                    "readOnlyRootFilesystem": true,
                    "capabilities": {"drop": ["ALL"]},
                    "seLinuxOptions": selinux,
                },
                "volumeMounts": [{"name": "nodeup", "mountPath": NODEUP, "readOnly": true}],
            }],
            "volumes": [{"name": "nodeup", "hostPath": {"path": format!("{DIRECTORY}/nodeup"), "type": "File"}}],
        },
    }))
}

/// Makes pods. Returns why one was not made, in their order.
pub(super) async fn make_pods(
    client: &Client,
    namespace: &str,
    pods: &[Pod],
) -> Vec<Option<String>> {
    let api: Api<Pod> = Api::namespaced(client.clone(), namespace);
    let parameters = PostParams::default();
    let made = stream::iter(pods).map(|pod| api.create(&parameters, pod));
    let made: Vec<Result<Pod, kube::Error>> = made.buffered(AT_ONCE).collect().await;
    let refused = made.into_iter().map(Result::err);
    refused
        .map(|error| error.map(|error| format!("no pod was made: {}", api_message(&error))))
        .collect()
}

/// Waits for the pods that were made. `read` says of each what it has come to, or nothing as long as it may still come to that. Returns what
/// came of all of them in their order.
pub(super) async fn wait_for_pods<T>(
    client: &Client,
    namespace: &str,
    pods: &[Pod],
    refused: Vec<Option<String>>,
    limit: Duration,
    read: impl Fn(&Pod) -> Option<Result<T, String>>,
) -> Vec<Result<T, String>> {
    let api: Api<Pod> = Api::namespaced(client.clone(), namespace);
    let refused = refused.into_iter();
    let mut ends: Vec<Option<Result<T, String>>> = refused.map(|why| why.map(Err)).collect();
    let deadline = Instant::now() + limit;
    loop {
        let is_over = Instant::now() >= deadline;
        let listed = api.list(&ListParams::default()).await;
        let listed = listed.map(|list| list.items);
        for (pod, end) in pods.iter().zip(&mut ends) {
            if end.is_none() {
                *end = same_pod(pod, &listed).and_then(&read);
            }
        }
        if ends.iter().all(Option::is_some) {
            return ends.into_iter().flatten().collect();
        }
        if is_over {
            let warnings = read_warnings(client, namespace).await;
            let ends = pods.iter().zip(ends);
            let ends = ends.map(|(pod, end)| {
                end.unwrap_or_else(|| {
                    let why = late_words(pod, &listed, &warnings);
                    Err(format!("not after {} s: {why}", limit.as_secs()))
                })
            });
            return ends.collect();
        }
        sleep(PAUSE).await;
    }
}

/// The pod as the API has it.
fn same_pod<'a>(pod: &Pod, listed: &'a Result<Vec<Pod>, kube::Error>) -> Option<&'a Pod> {
    let mut all = listed.iter().flatten();
    all.find(|one| one.metadata.name == pod.metadata.name)
}

/// What keeps a pod: the last warning about it, or its state.
fn late_words(
    pod: &Pod,
    listed: &Result<Vec<Pod>, kube::Error>,
    warnings: &BTreeMap<String, String>,
) -> String {
    let name = pod.metadata.name.as_deref().unwrap_or_default();
    match (listed, warnings.get(name)) {
        (Err(error), _) => api_message(error),
        (Ok(_), Some(warning)) => warning.clone(),
        (Ok(_), None) => {
            let now = same_pod(pod, listed);
            now.map_or_else(|| "the pod is gone".to_owned(), state_words)
        }
    }
}

/// The last warning of each pod, by its name: why its network or its file could not be set up.
async fn read_warnings(client: &Client, namespace: &str) -> BTreeMap<String, String> {
    let api: Api<Event> = Api::namespaced(client.clone(), namespace);
    let list = api.list(&ListParams::default()).await;
    // Without events the state of the pod has to do.
    let mut events = list.map(|list| list.items).unwrap_or_default();
    events.retain(|event| event.type_.as_deref() == Some("Warning"));
    events.sort_by_key(|event| event.last_timestamp.clone());
    let named = events.into_iter().filter_map(|event| {
        let words = join_words(event.reason, event.message);
        Some((event.involved_object.name?, words))
    });
    named.collect()
}

fn join_words(reason: Option<String>, message: Option<String>) -> String {
    let words: Vec<String> = [reason, message].into_iter().flatten().collect();
    words.join(": ")
}

fn container_state(pod: &Pod) -> Option<&ContainerState> {
    let statuses = pod.status.as_ref()?.container_statuses.as_deref()?;
    statuses.first()?.state.as_ref()
}

fn phase(pod: &Pod) -> &str {
    let phase = pod
        .status
        .as_ref()
        .and_then(|status| status.phase.as_deref());
    phase.unwrap_or("Pending")
}

/// The state of a pod that is not as far as it should be.
fn state_words(pod: &Pod) -> String {
    let waiting = container_state(pod).and_then(|state| state.waiting.clone());
    let status = pod.status.clone().unwrap_or_default();
    let words = match waiting {
        Some(waiting) => join_words(waiting.reason, waiting.message),
        None => join_words(status.reason, status.message),
    };
    match words.is_empty() {
        true => format!("the pod is {}", phase(pod)),
        false => words,
    }
}

/// Why a pod has ended that should not have.
fn end_words(pod: &Pod) -> String {
    let terminated = container_state(pod).and_then(|state| state.terminated.as_ref());
    let Some(end) = terminated else {
        return state_words(pod);
    };
    let said = join_words(end.reason.clone(), end.message.clone());
    let said = said.trim();
    if end.exit_code == USAGE {
        return format!(
            "its nodeup is of another kctl, and a rolling update replaces it after `kctl update --yes` ({said})"
        );
    }
    format!("its pod ended with {}: {said}", end.exit_code)
}

/// The address of a listener once it runs.
pub(super) fn read_listener(pod: &Pod) -> Option<Result<IpAddr, String>> {
    match phase(pod) {
        "Failed" | "Succeeded" => Some(Err(end_words(pod))),
        "Running" => {
            let address = pod.status.as_ref()?.pod_ip.as_deref()?;
            let address = address.parse::<IpAddr>();
            Some(address.map_err(|_| "its pod has no address".to_owned()))
        }
        _ => None,
    }
}

/// The report of trials once they have ended.
pub(super) fn read_report(pod: &Pod) -> Option<Result<ProbeReport, String>> {
    match phase(pod) {
        "Failed" => Some(Err(end_words(pod))),
        "Succeeded" => {
            let terminated = container_state(pod).and_then(|state| state.terminated.as_ref());
            let text = terminated.and_then(|end| end.message.as_deref());
            let report = serde_json::from_str(text.unwrap_or_default());
            Some(report.map_err(|error| format!("its report cannot be read: {error}")))
        }
        _ => None,
    }
}
