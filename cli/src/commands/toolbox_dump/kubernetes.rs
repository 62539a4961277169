//! What the API knows: objects, logs of the cluster's own pods, and the journals of nodes, which kubelets serve.

use super::archive::{Archive, is_plain_name};
use super::redact::redact_objects;
use anyhow::{Context, bail};
use futures::future::join_all;
use futures::{AsyncReadExt, StreamExt, stream};
use http::Request;
use kube::Client;
use serde_json::Value;
use std::collections::BTreeMap;
use std::io;
use std::time::Duration;
use tokio::time::timeout;

/// Objects: name of the file, and path in the API. No Secrets, no ConfigMaps.
const OBJECTS: [(&str, &str); 15] = [
    ("nodes", "/api/v1/nodes"),
    ("pods", "/api/v1/pods"),
    ("services", "/api/v1/services"),
    ("events", "/api/v1/events"),
    ("persistentvolumes", "/api/v1/persistentvolumes"),
    ("persistentvolumeclaims", "/api/v1/persistentvolumeclaims"),
    ("deployments", "/apis/apps/v1/deployments"),
    ("daemonsets", "/apis/apps/v1/daemonsets"),
    ("statefulsets", "/apis/apps/v1/statefulsets"),
    (
        "poddisruptionbudgets",
        "/apis/policy/v1/poddisruptionbudgets",
    ),
    ("leases", "/apis/coordination.k8s.io/v1/leases"),
    ("apiservices", "/apis/apiregistration.k8s.io/v1/apiservices"),
    (
        "mutatingwebhooks",
        "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations",
    ),
    (
        "validatingwebhooks",
        "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
    ),
    (
        "certificatesigningrequests",
        "/apis/certificates.k8s.io/v1/certificatesigningrequests",
    ),
];

/// Lines of a container's log: its end.
const LOG_LINES: usize = 20_000;

/// Most bytes of a container's log. Kubelets answer, and one that was taken over may answer without end.
const LOG: u64 = 16 << 20;

/// Most logs of the pods of one node, whose kubelet may make up pods.
const LOGS_OF_NODE: usize = 100;

/// Longest time of a request.
const REQUEST: Duration = Duration::from_mins(1);

/// Most bytes of a journal: journald begins a new file at 128 MiB.
const JOURNAL: u64 = 129 << 20;

/// Requests at the same time.
const PARALLEL: usize = 8;

/// Adds objects and logs.
pub async fn add_objects(client: &Client, archive: &mut Archive) -> io::Result<()> {
    let lists = stream::iter(OBJECTS)
        .map(async |(name, path)| (name, read_list(client, path).await))
        .buffered(PARALLEL);
    let lists: Vec<_> = lists.collect().await;
    let mut pods = Value::Null;
    for (name, list) in lists {
        let file = format!("kubernetes/{name}.json");
        let text = list.and_then(|list| {
            let text = serde_json::to_vec_pretty(&list).context("writing JSON")?;
            if name == "pods" {
                pods = list;
            }
            Ok(text)
        });
        archive.add_result(&file, text)?;
    }
    let (logs, problems) = list_logs(&pods);
    problems
        .iter()
        .for_each(|problem| archive.note_problem(problem));
    // Nothing is read while logs are packed: packing blocks this thread, and connections have a deadline.
    for some in logs.chunks(PARALLEL) {
        let texts = join_all(some.iter().map(|log| read_log(client, &log.path))).await;
        for (log, text) in some.iter().zip(texts) {
            archive.add_result(&log.file, text)?;
        }
    }
    Ok(())
}

/// Adds the newest journal of a node: `journalctl --file` reads it.
pub async fn add_journal(client: &Client, node: &str, archive: &mut Archive) -> io::Result<()> {
    let file = format!("nodes/{node}/system.journal");
    let journal = read_journal(client, node).await;
    archive.add_result(&file, journal)
}

/// A kubelet serves `/var/log` of its host: the journal is in a folder that is named by the machine's ID.
async fn read_journal(client: &Client, node: &str) -> anyhow::Result<Vec<u8>> {
    let folder = format!("/api/v1/nodes/{node}/proxy/logs/journal/");
    let listing = read_bytes(client, &folder, 1 << 20).await?;
    let listing = String::from_utf8_lossy(&listing).into_owned();
    let machine = listing
        .split("href=\"")
        .filter_map(|rest| rest.split_once("/\""))
        .map(|(name, _)| name)
        .find(|name| name.len() == 32 && name.bytes().all(|byte| byte.is_ascii_hexdigit()));
    let machine = machine.context("the node has no journal in /var/log/journal")?;
    read_bytes(
        client,
        &format!("{folder}{machine}/system.journal"),
        JOURNAL,
    )
    .await
}

/// A log; one that is too long ends early and says so. Of a pod that went meanwhile, or whose node did, the log says that: pods are deleted
/// about a minute after their node (the pod garbage collector), and until then are listed without a kubelet that has their log.
async fn read_log(client: &Client, path: &str) -> anyhow::Result<Vec<u8>> {
    let mut text = match read_bytes(client, path, LOG).await {
        Err(error) if is_gone(&error) => {
            return Ok(format!("(no log: {error:#})\n").into_bytes());
        }
        read => read?,
    };
    if text.len() as u64 >= LOG {
        text.extend_from_slice(b"\n(cut off by kctl)\n");
    }
    Ok(text)
}

/// The API server itself does not find the pod or its node. If a kubelet does not know a pod, it says `pods/log` there.
fn is_gone(error: &anyhow::Error) -> bool {
    let Some(kube::Error::Api(status)) = error.downcast_ref() else {
        return false;
    };
    let kind = status.details.as_ref().map(|details| details.kind.as_str());
    status.code == 404 && matches!(kind, Some("nodes" | "pods"))
}

/// A log to read, and the file that it goes to.
struct Log {
    path: String,
    file: String,
}

/// The logs of all containers of kube-system, and of those that ran before in the same pod; and why some are not read. Names are those of
/// the pod's spec, which the API server has checked. In the status the kubelet may write any.
fn list_logs(pods: &Value) -> (Vec<Log>, Vec<String>) {
    let (mut logs, mut problems) = (Vec::new(), Vec::new());
    let mut of_node: BTreeMap<String, usize> = BTreeMap::new();
    for pod in list_at(pods, "/items") {
        if text_at(pod, "/metadata/namespace") != "kube-system" {
            continue;
        }
        let (name, node) = (
            text_at(pod, "/metadata/name"),
            text_at(pod, "/spec/nodeName"),
        );
        let count = of_node.entry(node.to_owned()).or_default();
        for container in container_names(pod) {
            if !is_plain_name(name) || !is_plain_name(container) {
                problems.push(format!(
                    "log left out, because of its name: {name:?}, {container:?}"
                ));
                continue;
            }
            for previous in [false, true] {
                if previous && !was_restarted(pod, container) {
                    continue;
                }
                *count += 1;
                if *count > LOGS_OF_NODE {
                    continue;
                }
                let suffix = if previous { ".previous" } else { "" };
                logs.push(Log {
                    path: format!(
                        "/api/v1/namespaces/kube-system/pods/{name}/log?container={container}&tailLines={LOG_LINES}&previous={previous}"
                    ),
                    file: format!("kubernetes/logs/{name}/{container}{suffix}.log"),
                });
            }
        }
    }
    let beyond = of_node.iter().filter(|(_, count)| **count > LOGS_OF_NODE);
    problems.extend(beyond.map(|(node, count)| {
        format!("of {count} logs of pods on {node:?} only {LOGS_OF_NODE} were read")
    }));
    (logs, problems)
}

fn container_names(pod: &Value) -> impl Iterator<Item = &str> {
    let containers = ["/spec/initContainers", "/spec/containers"].into_iter();
    let containers = containers.flat_map(move |list| list_at(pod, list));
    containers.filter_map(|one| one.get("name")?.as_str())
}

fn was_restarted(pod: &Value, container: &str) -> bool {
    let lists = ["/status/initContainerStatuses", "/status/containerStatuses"].into_iter();
    let mut statuses = lists.flat_map(|list| list_at(pod, list));
    statuses.any(|status| {
        let count = status.get("restartCount").and_then(Value::as_u64);
        text_at(status, "/name") == container && count.is_some_and(|count| count > 0)
    })
}

/// The list at this path; empty if there is none.
fn list_at<'a>(value: &'a Value, path: &str) -> &'a [Value] {
    let list = value.pointer(path).and_then(Value::as_array);
    list.map(Vec::as_slice).unwrap_or_default()
}

/// The text at this path; empty if there is none.
fn text_at<'a>(value: &'a Value, path: &str) -> &'a str {
    let text = value.pointer(path).and_then(Value::as_str);
    text.unwrap_or_default()
}

async fn read_list(client: &Client, path: &str) -> anyhow::Result<Value> {
    let request = Request::get(path).body(Vec::new())?;
    let Ok(list) = timeout(REQUEST, client.request(request)).await else {
        bail!("no answer within {} s", REQUEST.as_secs());
    };
    let mut list: Value = list?;
    redact_objects(&mut list);
    Ok(list)
}

/// The beginning of a response.
pub async fn read_bytes(client: &Client, path: &str, most: u64) -> anyhow::Result<Vec<u8>> {
    let request = Request::get(path).body(Vec::new())?;
    let read = async {
        let mut bytes = Vec::new();
        let stream = client.request_stream(request).await?;
        stream.take(most).read_to_end(&mut bytes).await?;
        Ok(bytes)
    };
    match timeout(REQUEST, read).await {
        Ok(read) => read,
        Err(_) => bail!("no end of the answer within {} s", REQUEST.as_secs()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn pod(name: &str, containers: &[&str], reported: &[&str]) -> Value {
        let named = |name: &&str| json!({"name": name, "restartCount": 1});
        json!({
            "metadata": {"namespace": "kube-system", "name": name},
            "spec": {"nodeName": "i-1", "containers": containers.iter().map(named).collect::<Vec<_>>()},
            "status": {"containerStatuses": reported.iter().map(named).collect::<Vec<_>>()},
        })
    }

    #[test]
    fn a_kubelet_names_neither_files_nor_requests() {
        let evil = ["kube-proxy&follow=true", "../../x", "kube-proxy/../x"];
        let reported = [&["kube-proxy"], &evil[..]].concat();
        let pods = json!({"items": [
            pod("kube-proxy-i-1", &["kube-proxy"], &reported),
            pod("../x", &["a"], &[]),
            pod("b", &evil, &evil),
        ]});
        let (logs, problems) = list_logs(&pods);
        let files: Vec<&str> = logs.iter().map(|log| log.file.as_str()).collect();
        let folder = "kubernetes/logs/kube-proxy-i-1";
        let wanted = ["", ".previous"].map(|end| format!("{folder}/kube-proxy{end}.log"));
        assert_eq!(files, wanted);
        assert!(logs.iter().all(|log| !log.path.contains("follow")));
        assert_eq!(problems.len(), 4, "{problems:?}");
    }

    #[test]
    fn a_kubelet_that_makes_up_pods_keeps_nobody_else_from_the_dump() {
        let names: Vec<String> = (0..2000).map(|number| format!("a-{number}")).collect();
        let mut pods: Vec<Value> = names.iter().map(|name| pod(name, &["c"], &[])).collect();
        let mut other = pod("z", &["c"], &[]);
        other["spec"]["nodeName"] = json!("i-2");
        pods.push(other);
        let (logs, problems) = list_logs(&json!({"items": pods}));
        assert_eq!(logs.len(), LOGS_OF_NODE + 1);
        assert_eq!(
            problems,
            ["of 2000 logs of pods on \"i-1\" only 100 were read"]
        );
    }
}
