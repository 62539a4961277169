//! A fake API server with Nodes, pods and certificate signing requests: lists, merge patches, watches and evictions. It allows what the
//! addon with protokube's own rights allows.

use super::http::{ReceivedRequest, Reply, serve_http, text_reply};
use super::rbac::Attributes;
use futures::FutureExt;
use kube::{Client, Config};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio::sync::watch;

const NODES: &str = "/api/v1/nodes";
const PODS: &str = "/api/v1/pods";
const SERVICES: &str = "/api/v1/services";
const INGRESSES: &str = "/apis/networking.k8s.io/v1/ingresses";
const REQUESTS: &str = "/apis/certificates.k8s.io/v1/certificatesigningrequests";

/// Objects by path, and received patches in order.
#[derive(Default)]
pub struct StoredObjects {
    pub all: BTreeMap<String, Value>,
    pub patches: Vec<(String, Value)>,
    /// Names of objects whose writes and deletions fail, as if they were too large for etcd.
    pub stuck: BTreeSet<String>,
    /// Names of pods that a budget keeps.
    pub kept_pods: BTreeSet<String>,
    /// Pods in a namespace that is being deleted.
    pub going_pods: BTreeSet<String>,
    /// Evictions of pods that were accepted, in order.
    pub evictions: Vec<String>,
    /// True if the addon with protokube's rights is not applied.
    pub without_rights: bool,
}

impl StoredObjects {
    fn is_stuck(&self, path: &str) -> bool {
        path.split('/').any(|part| self.stuck.contains(part))
    }
}

#[derive(Clone)]
pub struct FakeApi {
    objects: Arc<Mutex<StoredObjects>>,
    changed: watch::Sender<u64>,
}

impl FakeApi {
    pub fn new() -> Self {
        Self {
            objects: Arc::default(),
            changed: watch::Sender::new(1),
        }
    }

    pub fn lock_objects(&self) -> MutexGuard<'_, StoredObjects> {
        self.objects.lock().unwrap()
    }

    pub fn put_node(&self, name: &str, ready: &str) {
        let status = json!({ "conditions": [{ "type": "Ready", "status": ready }] });
        self.put_object(NODES, name, json!({ "status": status }));
    }

    /// A pod on a Node, with a controller of this kind.
    pub fn put_pod(&self, name: &str, node: &str, controller: &str) {
        let owner = json!({"apiVersion": "apps/v1", "kind": controller, "name": "c", "uid": "c", "controller": true});
        let metadata = json!({"name": name, "namespace": "default", "ownerReferences": [owner]});
        let pod = json!({"metadata": metadata, "spec": {"nodeName": node, "containers": []}});
        self.lock_objects()
            .all
            .insert(format!("{PODS}/{name}"), pod);
    }

    /// The kubelet has ended a pod that was evicted.
    pub fn end_pod(&self, name: &str) {
        self.lock_objects().all.remove(&format!("{PODS}/{name}"));
    }

    pub fn put_request(&self, name: &str, spec: &Value) {
        self.put_object(REQUESTS, name, json!({ "spec": spec }));
    }

    /// Makes an object, or replaces it.
    pub fn put_whole(&self, path: &str, object: Value) {
        self.lock_objects().all.insert(path.to_owned(), object);
        self.changed.send_modify(|version| *version += 1);
    }

    /// Removes an object as another client would.
    pub fn remove_object(&self, path: &str) {
        self.lock_objects().all.remove(path);
        self.changed.send_modify(|version| *version += 1);
    }

    /// Changes an object as another client would.
    pub fn change_object(&self, path: &str, change: impl FnOnce(&mut Value)) {
        change(self.lock_objects().all.get_mut(path).unwrap());
        self.changed.send_modify(|version| *version += 1);
    }

    pub fn node_object(&self, name: &str) -> Value {
        self.lock_objects().all[&format!("{NODES}/{name}")].clone()
    }

    pub fn has_node(&self, name: &str) -> bool {
        let path = format!("{NODES}/{name}");
        self.lock_objects().all.contains_key(&path)
    }

    pub fn signing_request(&self, name: &str) -> Value {
        self.lock_objects().all[&format!("{REQUESTS}/{name}")].clone()
    }

    /// Waits until the condition holds; panics after a while.
    pub async fn wait_until(&self, holds: impl Fn(&Self) -> bool) {
        for _ in 0..1000 {
            if holds(self) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("it never came to that: {:?}", self.lock_objects().all);
    }

    fn put_object(&self, kind: &str, name: &str, mut object: Value) {
        let made = *self.changed.borrow();
        let uid = format!("uid-{made}");
        object["metadata"] = json!({ "name": name, "uid": uid, "resourceVersion": "1" });
        self.lock_objects()
            .all
            .insert(format!("{kind}/{name}"), object);
        self.changed.send_modify(|version| *version += 1);
    }

    pub async fn new_client(&self) -> Client {
        let mut config = Config::new(self.start().await.parse().unwrap());
        config.default_retry = false;
        Client::try_from(config).unwrap()
    }

    /// Starts a server of the API, and returns its URL.
    pub async fn start(&self) -> String {
        let api = self.clone();
        let answer = move |request| {
            let api = api.clone();
            async move { api.answer_request(request).await }.boxed()
        };
        serve_http(answer).await
    }

    async fn answer_request(&self, request: ReceivedRequest) -> Reply {
        let path = request.path.as_str();
        if path.ends_with("/selfsubjectaccessreviews") {
            let mut review: Value = serde_json::from_slice(&request.body).unwrap();
            let allowed = Attributes::of_review(&review).are_allowed();
            let allowed = allowed && !self.lock_objects().without_rights;
            review["status"] = json!({ "allowed": allowed });
            return text_reply(201, review.to_string());
        }
        let attributes = Attributes::of_request(&request);
        if !attributes.are_allowed() {
            eprintln!("protokube's own user may not do this: {attributes:?}");
            return error_reply(403, "Forbidden");
        }
        if request.query.contains("watch=true") {
            return self
                .answer_watch(path, &query_parameters(&request.query))
                .await;
        }
        match request.method.as_str() {
            "GET" if [NODES, REQUESTS, PODS, SERVICES, INGRESSES].contains(&path) => {
                let unlimited = !request.query.contains("limit=");
                assert!(path != REQUESTS || !unlimited, "requests may be large");
                let of_kubelets = request.query.contains("fieldSelector=spec.signerName");
                assert!(path != REQUESTS || of_kubelets, "and of other signers");
                let parameters = query_parameters(&request.query);
                let mut items = self.objects_under(path);
                for (name, value) in &parameters {
                    items.retain(|object| is_selected(object, name, value));
                }
                let version = self.changed.borrow().to_string();
                text_reply(200, list_page(items, &parameters, &version).to_string())
            }
            "GET" => match self.lock_objects().all.get(path) {
                Some(object) => text_reply(200, object.to_string()),
                None => error_reply(404, "NotFound"),
            },
            "PATCH" => self.patch_object(path, &serde_json::from_slice(&request.body).unwrap()),
            "POST" if path.ends_with("/eviction") => self.evict_pod(path),
            "POST" | "PUT" => {
                let mut object: Value = serde_json::from_slice(&request.body).unwrap();
                self.write_object(path, &mut object)
            }
            "DELETE" => self.delete_object(path, &serde_json::from_slice(&request.body).unwrap()),
            other => panic!("nobody asks for {other} {path}"),
        }
    }

    /// Sends all objects of a kind once one has changed, then ends the watch, as an API server may at any time.
    async fn answer_watch(&self, path: &str, parameters: &BTreeMap<String, String>) -> Reply {
        let mut changed = self.changed.subscribe();
        let _ = tokio::time::timeout(Duration::from_millis(500), changed.changed()).await;
        let event = |object| format!("{}\n", json!({ "type": "MODIFIED", "object": object }));
        let mut objects = self.objects_under(path);
        for (name, value) in parameters {
            objects.retain(|object| is_selected(object, name, value));
        }
        let events: String = objects.into_iter().map(event).collect();
        text_reply(200, events)
    }

    /// Creates or replaces an object, if its resource version is the current one.
    fn write_object(&self, path: &str, object: &mut Value) -> Reply {
        let name = object["metadata"]["name"].as_str().unwrap();
        let path = format!("{}/{name}", path.trim_end_matches(&format!("/{name}")));
        let mut objects = self.lock_objects();
        let current = objects.all.get(&path);
        let current = current.map_or(&Value::Null, |known| &known["metadata"]["resourceVersion"]);
        if *current != object["metadata"]["resourceVersion"] {
            return error_reply(409, "Conflict");
        }
        let version = current
            .as_str()
            .map_or(1, |text| text.parse::<u64>().unwrap() + 1);
        object["metadata"]["resourceVersion"] = json!(version.to_string());
        objects.all.insert(path, object.clone());
        text_reply(200, object.to_string())
    }

    /// Marks a pod as ending, unless a budget keeps it.
    fn evict_pod(&self, path: &str) -> Reply {
        let name = path.split('/').nth(6).unwrap();
        let mut objects = self.lock_objects();
        if objects.kept_pods.contains(name) {
            return error_reply(429, "Cannot evict pod as it would violate the budget");
        }
        if objects.going_pods.contains(name) {
            // apiserver: `plugin/namespace/lifecycle`.
            let cause = json!({"reason": "NamespaceTerminating", "message": "namespace default is being terminated", "field": "metadata.namespace"});
            let status = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "reason": "Forbidden",
                "message": "unable to create new content in namespace default", "details": {"causes": [cause]}, "code": 403});
            return text_reply(403, status.to_string());
        }
        let Some(pod) = objects.all.get_mut(&format!("{PODS}/{name}")) else {
            return error_reply(404, "NotFound");
        };
        pod["metadata"]["deletionTimestamp"] = json!("2030-01-01T00:00:00Z");
        objects.evictions.push(name.to_owned());
        text_reply(
            201,
            json!({"kind": "Status", "apiVersion": "v1", "status": "Success"}).to_string(),
        )
    }

    fn objects_under(&self, kind: &str) -> Vec<Value> {
        let objects = self.lock_objects();
        let matching = objects
            .all
            .iter()
            .filter(|(path, _)| path.starts_with(kind));
        matching.map(|(_, object)| object.clone()).collect()
    }

    fn delete_object(&self, path: &str, options: &Value) -> Reply {
        let mut objects = self.lock_objects();
        if objects.is_stuck(path) {
            return error_reply(500, "etcdserver: request is too large");
        }
        let Some(object) = objects.all.get_mut(path) else {
            return error_reply(404, "NotFound");
        };
        if options["preconditions"]["uid"] != object["metadata"]["uid"] {
            return error_reply(409, "Conflict");
        }
        // An object with finalizers is only marked as deleted, and removed with its last finalizer.
        if object["metadata"]["finalizers"].is_array() {
            object["metadata"]["deletionTimestamp"] = json!("2030-01-01T00:00:00Z");
            return text_reply(200, object.to_string());
        }
        objects.all.remove(path);
        text_reply(
            200,
            json!({ "kind": "Status", "apiVersion": "v1" }).to_string(),
        )
    }

    fn patch_object(&self, path: &str, patch: &Value) -> Reply {
        let mut objects = self.lock_objects();
        if objects.is_stuck(path) {
            return error_reply(500, "etcdserver: request is too large");
        }
        let object_path = path.trim_end_matches("/approval");
        objects.patches.push((path.to_owned(), patch.clone()));
        let Some(object) = objects.all.get_mut(object_path) else {
            return error_reply(404, "NotFound");
        };
        let version = &patch["metadata"]["resourceVersion"];
        if !version.is_null() && *version != object["metadata"]["resourceVersion"] {
            return error_reply(409, "Conflict");
        }
        let labels = patch["metadata"]["labels"].as_object();
        if labels.is_some_and(|labels| labels.values().any(|value| value == "no label!")) {
            return error_reply(422, "Invalid");
        }
        let uid = &patch["metadata"]["uid"];
        if !uid.is_null() && *uid != object["metadata"]["uid"] {
            return error_reply(422, "metadata.uid: field is immutable");
        }
        merge_patch(object, patch);
        let answer = text_reply(200, object.to_string());
        let metadata = &object["metadata"];
        if metadata["deletionTimestamp"].is_string() && metadata["finalizers"].is_null() {
            objects.all.remove(object_path);
        }
        drop(objects);
        self.changed.send_modify(|version| *version += 1);
        answer
    }
}

fn query_parameters(query: &str) -> BTreeMap<String, String> {
    let url = reqwest::Url::parse(&format!("http://api/?{query}")).unwrap();
    url.query_pairs().into_owned().collect()
}

/// A page of a list: `limit` objects from those that `continue` numbers.
fn list_page(items: Vec<Value>, parameters: &BTreeMap<String, String>, version: &str) -> Value {
    let number = |name: &str| {
        parameters
            .get(name)
            .map(|text| text.parse::<usize>().unwrap())
    };
    let (from, all) = (number("continue").unwrap_or(0), items.len());
    let most = number("limit").unwrap_or(all);
    let page: Vec<Value> = items.into_iter().skip(from).take(most).collect();
    let to = from + page.len();
    let next = if to < all {
        to.to_string()
    } else {
        String::new()
    };
    json!({ "metadata": { "resourceVersion": version, "continue": next }, "items": page })
}

/// True if a list with that parameter has the object: selectors of labels and of the Node of a pod.
fn is_selected(object: &Value, parameter: &str, selector: &str) -> bool {
    match (parameter, selector.split_once('=')) {
        ("labelSelector", None) => !object["metadata"]["labels"][selector].is_null(),
        ("fieldSelector", Some(("spec.nodeName", node))) => object["spec"]["nodeName"] == node,
        ("fieldSelector", Some(("spec.signerName", signer))) => {
            object["spec"]["signerName"] == signer
        }
        _ => true,
    }
}

fn merge_patch(into: &mut Value, patch: &Value) {
    match patch {
        Value::Object(fields) => {
            for (name, value) in fields {
                match (value, into.as_object_mut()) {
                    (Value::Null, Some(known)) => drop(known.remove(name)),
                    _ => merge_patch(&mut into[name], value),
                }
            }
        }
        other => *into = other.clone(),
    }
}

fn error_reply(code: u16, reason: &str) -> Reply {
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": reason, "reason": reason, "code": code,
    });
    text_reply(code, status.to_string())
}
