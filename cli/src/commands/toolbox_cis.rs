//! `kctl toolbox cis`: observes through the API what the controls of the CIS Kubernetes Benchmark are about, and shows how each stands.
//! Changes nothing.

use super::document::print_document;
use super::inspect::Inspector;
use super::session::Session;
use super::toolbox_dump::read_bytes;
use crate::api::ApiQuery;
use crate::args::{ReportFormat, ToolboxCis};
use crate::error::{CommandError, ErrorKind, Outcome};
use crate::ui::cis::render;
use engine::error_chain;
use fleet::{
    CIS_BENCHMARK, CisNode, CisObserved, CisResult, CisRow, NodeFiles, PodAdmission, judge_cis,
};
use futures::{StreamExt, stream};
use http::Request;
use kube::Client;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use time::OffsetDateTime;

/// Resources that controls are about, and where the API lists them.
const LISTS: [(&str, &str); 8] = [
    ("pods", "/api/v1/pods"),
    ("namespaces", "/api/v1/namespaces"),
    ("serviceaccounts", "/api/v1/serviceaccounts"),
    (
        "networkpolicies",
        "/apis/networking.k8s.io/v1/networkpolicies",
    ),
    ("roles", "/apis/rbac.authorization.k8s.io/v1/roles"),
    (
        "clusterroles",
        "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    ),
    (
        "rolebindings",
        "/apis/rbac.authorization.k8s.io/v1/rolebindings",
    ),
    (
        "clusterrolebindings",
        "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
    ),
];

/// The list that nodes of a cluster with `spec.profile: cis` write, as kubelet serves it.
const NODE_FILES: &str = "logs/kctl-node-files.txt";

/// Most bytes of what a kubelet answers.
const ANSWER: u64 = 1 << 20;

/// Requests at the same time.
const PARALLEL: usize = 8;

/// Runs the command.
pub async fn run(args: &ToolboxCis, session: &Session<'_>) -> Result<Outcome, CommandError> {
    let known = judge_cis(&CisObserved::default());
    let is_known = |number: &&String| known.iter().any(|row| row.number == number.as_str());
    if let Some(number) = args.accept.iter().find(|number| !is_known(number)) {
        return Err(CommandError::usage_error(
            format!("the {CIS_BENCHMARK} has no control {number:?}"),
            "write a number of the first column, such as 1.1.12",
        ));
    }
    let name = session.cluster_name(args.cluster.as_deref()).await?;
    let mut inspector = Inspector::open(&name, ApiQuery::Nodes, &args.reach, session).await?;
    let client = inspector.connect().await?;
    let nodes = read_list(&client, "/api/v1/nodes").await;
    let nodes = nodes.map_err(|error| inspector.explain(&error))?;
    let rows = judge_cis(&observe(&client, &nodes, OffsetDateTime::now_utc()).await);
    print_report(&name, args, &rows, session)?;
    let failing: Vec<&str> = rows
        .iter()
        .filter(|row| row.result == CisResult::Fail && !is_accepted(row, &args.accept))
        .map(|row| row.number)
        .collect();
    if failing.is_empty() {
        session.shell.print_done("no control fails");
        return Ok(Outcome::Fine);
    }
    Err(CommandError::from_message(
        ErrorKind::Unhealthy,
        format!("{name} fails controls: {}", failing.join(", ")),
        format!(
            "kctl edit cluster {name} --set spec.profile=cis    sets what the benchmark asks for; --accept NUMBER lets a control fail"
        ),
    ))
}

fn is_accepted(row: &CisRow, accepted: &[String]) -> bool {
    accepted.iter().any(|number| number == row.number)
}

/// The report for programs. Additions keep `format`; anything else raises it.
#[derive(Serialize)]
struct CisDocument<'a> {
    format: u32,
    cluster: &'a str,
    benchmark: &'static str,
    /// The numbers of controls that may fail.
    accepted: &'a [String],
    controls: &'a [CisRow],
}

fn print_report(
    name: &str,
    args: &ToolboxCis,
    rows: &[CisRow],
    session: &Session<'_>,
) -> Result<(), CommandError> {
    if args.output == ReportFormat::Table {
        let accepts = |row: &CisRow| is_accepted(row, &args.accept);
        return session.shell.print_result(&render(rows, accepts));
    }
    let document = CisDocument {
        format: 1,
        cluster: name,
        benchmark: CIS_BENCHMARK,
        accepted: &args.accept,
        controls: rows,
    };
    print_document(&document, args.output, session.shell)
}

async fn observe(client: &Client, nodes: &[Value], now: OffsetDateTime) -> CisObserved {
    let lists = stream::iter(LISTS)
        .map(async |(resource, path)| {
            let list = read_list(client, path).await;
            (resource, list.map_err(|error| error_chain(&error)))
        })
        .buffered(PARALLEL);
    let lists: BTreeMap<&'static str, Result<Vec<Value>, String>> = lists.collect().await;
    let nodes = stream::iter(nodes)
        .map(async |node| observe_node(client, node, now).await)
        .buffered(PARALLEL);
    let nodes: Vec<CisNode> = nodes.collect().await;
    let namespaces = lists.get("namespaces").and_then(|list| list.as_ref().ok());
    let namespaces = namespaces.into_iter().flatten().map(name_of);
    let admission = stream::iter(namespaces)
        .map(async |name| (name.to_owned(), ask_admission(client, name).await))
        .buffered(PARALLEL);
    let admission: BTreeMap<String, PodAdmission> = admission.collect().await;
    CisObserved {
        nodes,
        lists,
        admission,
    }
}

fn name_of(object: &Value) -> &str {
    let name = object.pointer("/metadata/name");
    name.and_then(Value::as_str).unwrap_or_default()
}

async fn observe_node(client: &Client, node: &Value, now: OffsetDateTime) -> CisNode {
    let name = name_of(node).to_owned();
    let role = node.pointer("/metadata/labels/node-role.kubernetes.io~1control-plane");
    let (kubelet, files) = futures::join!(
        read_kubelet(client, &name),
        read_node_files(client, &name, now)
    );
    CisNode {
        name,
        control_plane: role.is_some(),
        kubelet,
        files,
    }
}

/// The configuration that a kubelet runs with.
async fn read_kubelet(client: &Client, node: &str) -> Result<Value, String> {
    let path = format!("/api/v1/nodes/{node}/proxy/configz");
    let read = read_bytes(client, &path, ANSWER).await;
    let bytes = read.map_err(|error| format!("kubelet's configuration: {error:#}"))?;
    let mut answer: Value = serde_json::from_slice(&bytes)
        .map_err(|error| format!("kubelet's configuration: {error}"))?;
    match answer.pointer_mut("/kubeletconfig").map(Value::take) {
        Some(config @ Value::Object(_)) => Ok(config),
        _ => Err("kubelet answers without a configuration".to_owned()),
    }
}

async fn read_node_files(
    client: &Client,
    node: &str,
    now: OffsetDateTime,
) -> Result<NodeFiles, String> {
    let path = format!("/api/v1/nodes/{node}/proxy/{NODE_FILES}");
    match read_bytes(client, &path, ANSWER).await {
        Ok(bytes) => NodeFiles::read(&String::from_utf8_lossy(&bytes), now),
        Err(error) if is_absent(&error) => {
            Err("it has no list of files, which instances with spec.profile: cis write".to_owned())
        }
        Err(error) => Err(format!("its list of files: {error:#}")),
    }
}

fn is_absent(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(kube::Error::Api(status)) if status.code == 404)
}

/// Asks whether a namespace takes a pod with every right. Nothing is made: it is a dry run.
async fn ask_admission(client: &Client, namespace: &str) -> PodAdmission {
    let pod = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "kctl-toolbox-cis"},
        "spec": {
            "hostIPC": true,
            "hostNetwork": true,
            "hostPID": true,
            "containers": [{
                "name": "a",
                "image": "a",
                "ports": [{"containerPort": 1, "hostPort": 1}],
                "securityContext": {"privileged": true},
            }],
            "volumes": [{"name": "a", "hostPath": {"path": "/"}}],
        },
    });
    let path = format!("/api/v1/namespaces/{namespace}/pods?dryRun=All");
    let request = Request::post(path).header("Content-Type", "application/json");
    let request = match request.body(pod.to_string().into_bytes()) {
        Ok(request) => request,
        Err(error) => return PodAdmission::NotKnown(error.to_string()),
    };
    match client.request_text(request).await {
        Ok(_) => PodAdmission::read(None),
        Err(kube::Error::Api(status)) => PodAdmission::read(Some(status.message.clone())),
        Err(error) => PodAdmission::NotKnown(error_chain(&error)),
    }
}

/// A list of the API.
#[derive(Deserialize)]
struct List {
    items: Vec<Value>,
}

async fn read_list(client: &Client, path: &str) -> Result<Vec<Value>, kube::Error> {
    let request = Request::get(path).body(Vec::new());
    let request = request.map_err(kube::Error::HttpError)?;
    let list: List = client.request(request).await?;
    Ok(list.items)
}
