//! What the API knows: objects, logs of the cluster's own pods, and the journals of nodes, which kubelets serve.

use super::archive::Archive;
use super::redact::redact_objects;
use anyhow::Context;
use futures::{AsyncReadExt, StreamExt, stream};
use http::Request;
use kube::Client;
use serde_json::Value;
use std::io;

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

/// Bytes of a container's log: its end.
const LOG_LINES: usize = 20_000;

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
    let logs = stream::iter(list_logs(&pods))
        .map(async |log| {
            let text = read_bytes(client, &log.path, u64::MAX).await;
            (log.file, text)
        })
        .buffered(PARALLEL);
    let logs: Vec<_> = logs.collect().await;
    for (file, text) in logs {
        archive.add_result(&file, text)?;
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

/// A log to read, and the file that it goes to.
struct Log {
    path: String,
    file: String,
}

/// The logs of all containers of kube-system, and of those that ran before in the same pod.
fn list_logs(pods: &Value) -> Vec<Log> {
    let text = |value: &Value, path: &str| value.pointer(path)?.as_str().map(str::to_owned);
    let mut logs = Vec::new();
    for pod in pods["items"].as_array().into_iter().flatten() {
        let Some(name) = text(pod, "/metadata/name") else {
            continue;
        };
        if pod
            .pointer("/metadata/namespace")
            .is_none_or(|of| of != "kube-system")
        {
            continue;
        }
        let statuses = ["initContainerStatuses", "containerStatuses"]
            .into_iter()
            .filter_map(|field| pod.get("status")?.get(field)?.as_array())
            .flatten();
        for status in statuses {
            let Some(container) = text(status, "/name") else {
                continue;
            };
            let restarted = status["restartCount"]
                .as_u64()
                .is_some_and(|count| count > 0);
            for previous in [false, true] {
                if previous && !restarted {
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
    logs
}

async fn read_list(client: &Client, path: &str) -> anyhow::Result<Value> {
    let request = Request::get(path).body(Vec::new())?;
    let mut list: Value = client.request(request).await?;
    redact_objects(&mut list);
    Ok(list)
}

/// The beginning of a response.
async fn read_bytes(client: &Client, path: &str, most: u64) -> anyhow::Result<Vec<u8>> {
    let request = Request::get(path).body(Vec::new())?;
    let mut bytes = Vec::new();
    let stream = client.request_stream(request).await?;
    stream.take(most).read_to_end(&mut bytes).await?;
    Ok(bytes)
}
