//! A cluster's API as far as kctl asks it: TLS with a certificate of the cluster's authority, client certificates
//! demanded, lists in pages, merge patches of Nodes, evictions and deletions of pods.

use node::pki::{
    KeyAlgorithm, Keyset, Leaf, SystemKeys, Usage, issue_certificate, mint_keyset, trust_bundle,
};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, ServerConnection, StreamOwned};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use time::{Duration, OffsetDateTime};
use x509_parser::prelude::{FromDer, X509Certificate};

/// Items in a page, so that every list of more comes in several.
const PAGE: usize = 2;

/// Answers requests by method, path, query and body, or leaves them to the prepared answers.
type Handler = Box<dyn FnMut(&str, &str, &str, &[u8]) -> Option<(u16, Value)> + Send>;

/// A running API server with prepared answers.
pub struct ApiServer {
    /// `https://127.0.0.1:PORT`.
    pub url: String,
    says: Arc<Mutex<ServedObjects>>,
}

#[derive(Default)]
struct ServedObjects {
    /// Answers with this status.
    failing: Option<u16>,
    nodes: Vec<Value>,
    pods: Vec<Value>,
    budgets: Vec<Value>,
    metrics: String,
    /// Other objects by their paths.
    objects: BTreeMap<String, Value>,
    /// Resource lists of API versions and logs of pods, by their paths.
    resources: BTreeMap<String, Value>,
    handler: Option<Handler>,
}

impl ApiServer {
    /// One with a certificate for that name by that authority.
    pub fn start_server(authority: &Keyset, name: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("https://{}", listener.local_addr().expect("an address"));
        let config = Arc::new(tls_config(authority, name));
        let says: Arc<Mutex<ServedObjects>> = Arc::default();
        let shared = Arc::clone(&says);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let stream = stream.expect("a connection");
                let (config, shared) = (Arc::clone(&config), Arc::clone(&shared));
                // A client that does not like the certificate goes away.
                std::thread::spawn(move || serve_connection(stream, &config, &shared));
            }
        });
        Self { url, says }
    }

    /// What it says from now on.
    pub fn set_objects(&self, nodes: Vec<Value>, pods: Vec<Value>) {
        *self.says.lock().expect("its words") = ServedObjects {
            failing: None,
            nodes,
            pods,
            ..ServedObjects::default()
        };
    }

    /// Stores an object, in the API that has its kind; `plural` is its resource.
    pub fn put_object(&self, plural: &str, object: &Value) {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str);
        let version = text("/apiVersion").expect("a version");
        let root = if version.contains('/') { "apis" } else { "api" };
        let root = format!("/{root}/{version}");
        let namespace = text("/metadata/namespace");
        let place = namespace.map_or(String::new(), |name| format!("/namespaces/{name}"));
        let name = text("/metadata/name").expect("a name");
        let mut says = self.says.lock().expect("its words");
        let path = format!("{root}{place}/{plural}/{name}");
        says.objects.insert(path, object.clone());
        let list = says.resources.entry(root).or_insert_with(|| {
            json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": version, "resources": []})
        });
        let resource = json!({"name": plural, "singularName": "", "namespaced": namespace.is_some(), "kind": object["kind"], "verbs": ["get", "patch"]});
        let all = list["resources"].as_array_mut().expect("a list");
        if !all.contains(&resource) {
            all.push(resource);
        }
    }

    /// The log of a pod in kube-system.
    pub fn set_log(&self, pod: &str, text: String) {
        let path = format!("/api/v1/namespaces/kube-system/pods/{pod}/log");
        let mut says = self.says.lock().expect("its words");
        says.resources.insert(path, Value::String(text));
    }

    /// What it answers at a path, whatever the method.
    pub fn put_answer(&self, path: &str, answer: Value) {
        let mut says = self.says.lock().expect("its words");
        says.resources.insert(path.to_owned(), answer);
    }

    /// Who answers first, until the next [`Self::set_objects`].
    pub fn set_handler(
        &self,
        handler: impl FnMut(&str, &str, &str, &[u8]) -> Option<(u16, Value)> + Send + 'static,
    ) {
        self.says.lock().expect("its words").handler = Some(Box::new(handler));
    }

    /// The disruption budgets that it has from now on.
    pub fn set_budgets(&self, budgets: Vec<Value>) {
        self.says.lock().expect("its words").budgets = budgets;
    }

    /// Its metrics from now on.
    pub fn set_metrics(&self, text: &str) {
        text.clone_into(&mut self.says.lock().expect("its words").metrics);
    }

    /// From now on it fails.
    pub fn set_failure(&self, status: u16) {
        self.says.lock().expect("its words").failing = Some(status);
    }

    /// The Nodes as they are now.
    pub fn list_nodes(&self) -> Vec<Value> {
        self.says.lock().expect("its words").nodes.clone()
    }
}

/// An authority that is none of the cluster's.
pub fn another_authority() -> Keyset {
    let now = OffsetDateTime::now_utc();
    mint_keyset(
        "other",
        KeyAlgorithm::EcdsaP256,
        &mut SystemKeys::issuing_at(now),
    )
    .expect("a keyset")
}

fn certificates(pem: &str) -> Vec<CertificateDer<'static>> {
    let all = CertificateDer::pem_slice_iter(pem.as_bytes());
    all.collect::<Result<_, _>>().expect("certificates")
}

/// A server's certificate for these names by that authority, and its key.
pub fn server_certificate(
    authority: &Keyset,
    names: &[&str],
) -> (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>) {
    let leaf = Leaf {
        common_name: "kubernetes-master".to_owned(),
        organization: None,
        usage: Usage::Server,
        names: names.iter().map(|&name| name.to_owned()).collect(),
        validity: Duration::days(1),
    };
    let now = OffsetDateTime::now_utc();
    let issued = issue_certificate(authority, &leaf, &mut SystemKeys::issuing_at(now))
        .expect("a certificate");
    let key = PrivateKeyDer::from_pem_slice(issued.key.reveal().as_bytes()).expect("a key");
    (certificates(&issued.certificate), key)
}

fn tls_config(authority: &Keyset, name: &str) -> ServerConfig {
    let mut trusted = RootCertStore::empty();
    for certificate in certificates(&trust_bundle(authority)) {
        trusted.add(certificate).expect("an authority");
    }
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let clients = WebPkiClientVerifier::builder_with_provider(trusted.into(), provider.clone());
    let (certificate, key) = server_certificate(authority, &[name]);
    ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("TLS")
        .with_client_cert_verifier(clients.build().expect("a verifier"))
        .with_single_cert(certificate, key)
        .expect("a server's certificate")
}

fn serve_connection(
    tcp: TcpStream,
    config: &Arc<ServerConfig>,
    says: &Mutex<ServedObjects>,
) -> std::io::Result<()> {
    let connection = ServerConnection::new(Arc::clone(config)).map_err(std::io::Error::other)?;
    let mut stream = BufReader::new(StreamOwned::new(connection, tcp));
    let mut first = String::new();
    stream.read_line(&mut first)?;
    let mut length = 0;
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line)? == 0 || line.trim().is_empty() {
            break;
        }
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().expect("a length");
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body)?;
    let mut words = first.split(' ');
    let (method, target) = (
        words.next().unwrap_or_default(),
        words.next().unwrap_or_default(),
    );
    let stream = stream.get_mut();
    let (status, body) = if is_administrator(&stream.conn) {
        answer_request(method, target, &body, &mut says.lock().expect("its words"))
    } else {
        (401, failure_status(401, "Unauthorized"))
    };
    let body = match body {
        Value::String(text) => text,
        other => other.to_string(),
    };
    let head = format!(
        "HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all((head + &body).as_bytes())?;
    stream.conn.send_close_notify();
    stream.flush()
}

fn is_administrator(connection: &ServerConnection) -> bool {
    let certificate = connection.peer_certificates().and_then(|all| all.first());
    let certificate = certificate.expect("a client certificate");
    let (_, certificate) = X509Certificate::from_der(certificate).expect("X.509");
    let lives = certificate.validity().time_to_expiration();
    assert!(
        lives.is_some_and(|left| left <= Duration::hours(2)),
        "a short life"
    );
    let mut groups = certificate.subject().iter_organization();
    groups.any(|group| group.as_str() == Ok("system:masters"))
}

fn answer_request(
    method: &str,
    target: &str,
    body: &[u8],
    says: &mut ServedObjects,
) -> (u16, Value) {
    if let Some(status) = says.failing {
        return (
            status,
            failure_status(status, "etcdserver: request timed out"),
        );
    }
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    if let Some(handler) = &mut says.handler
        && let Some(answer) = handler(method, path, query, body)
    {
        return answer;
    }
    if let Some(list) = says.resources.get(path) {
        return (200, list.clone());
    }
    if let Some(object) = says.objects.get(path) {
        let mut object = object.clone();
        if method == "PATCH" {
            assert!(query.contains("dryRun=All"), "{target}");
            merge_patch(&mut object, &serde_json::from_slice(body).expect("JSON"));
        }
        return (200, object);
    }
    if method != "GET" || path.starts_with("/api/v1/nodes/") {
        return answer_object_request(method, path, body, says);
    }
    if path == "/metrics" {
        return (200, Value::String(says.metrics.clone()));
    }
    let (kind, items) = match path {
        "/api/v1/nodes" => ("NodeList", &says.nodes),
        "/api/v1/namespaces/kube-system/pods" | "/api/v1/pods" => ("PodList", &says.pods),
        "/apis/policy/v1/poddisruptionbudgets" => ("PodDisruptionBudgetList", &says.budgets),
        _ if path.ends_with("/log") => return (404, missing_log(path, says)),
        _ => return (404, failure_status(404, path)),
    };
    let mut fields = query.split('&');
    let from = fields.find_map(|field| field.strip_prefix("continue="));
    let from: usize = from.map_or(0, |from| from.parse().expect("a number"));
    // It may return fewer than the limit, and everything to who names none.
    let size = if query.contains("limit=") {
        PAGE
    } else {
        items.len()
    };
    let page: Vec<&Value> = items.iter().skip(from).take(size).collect();
    let next = from + page.len();
    let next = if next < items.len() {
        next.to_string()
    } else {
        String::new()
    };
    let list = json!({"kind": kind, "apiVersion": "v1", "metadata": {"resourceVersion": "1", "continue": next}, "items": page});
    (200, list)
}

/// What an API server says where there is no log: it does not find the node, or its kubelet does not find the pod.
fn missing_log(path: &str, says: &ServedObjects) -> Value {
    let name = path.split('/').rev().nth(1).unwrap_or_default();
    let pod = says.pods.iter().find(|pod| pod["metadata"]["name"] == name);
    let of_pod =
        |node: &&Value| pod.is_some_and(|pod| pod["spec"]["nodeName"] == node["metadata"]["name"]);
    let kind = match says.nodes.iter().find(of_pod) {
        Some(_) => "pods/log",
        None => "nodes",
    };
    let mut status = failure_status(404, "not found");
    status["details"] = json!({"name": name, "kind": kind});
    status
}

/// Reads or changes one Node, or takes a pod away.
fn answer_object_request(
    method: &str,
    path: &str,
    body: &[u8],
    says: &mut ServedObjects,
) -> (u16, Value) {
    let parts: Vec<&str> = path.split('/').skip(3).collect();
    match (method, &parts[..]) {
        ("GET" | "PATCH", ["nodes", name]) => {
            let mut nodes = says.nodes.iter_mut();
            let Some(node) = nodes.find(|node| node["metadata"]["name"] == *name) else {
                return (404, failure_status(404, path));
            };
            if method == "PATCH" {
                let patch = serde_json::from_slice(body).expect("a patch in JSON");
                merge_patch(node, &patch);
            }
            (200, node.clone())
        }
        ("POST", ["namespaces", _, "pods", name, "eviction"]) => {
            let refuses = |budget: &&Value| budget["status"]["disruptionsAllowed"] == 0;
            if let Some(budget) = says.budgets.iter().find(refuses) {
                let message = format!("budget {} allows none now", budget["metadata"]["name"]);
                return (429, failure_status(429, &message));
            }
            says.pods.retain(|pod| pod["metadata"]["name"] != *name);
            (
                201,
                json!({"kind": "Status", "apiVersion": "v1", "status": "Success"}),
            )
        }
        _ => (404, failure_status(404, path)),
    }
}

/// RFC 7386.
pub fn merge_patch(target: &mut Value, patch: &Value) {
    let Value::Object(fields) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = json!({});
    }
    for (name, value) in fields {
        if value.is_null() {
            target.as_object_mut().expect("an object").remove(name);
        } else {
            merge_patch(&mut target[name], value);
        }
    }
}

pub fn failure_status(code: u16, message: &str) -> Value {
    json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": message, "reason": "", "code": code})
}
