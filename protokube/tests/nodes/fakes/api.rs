//! An API server with Nodes and certificate signing requests: lists, merge patches, and watches that tell of changes.

use super::http::{Received, Reply, reply, serve};
use futures::FutureExt;
use kube::{Client, Config};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio::sync::watch;

const NODES: &str = "/api/v1/nodes";
const REQUESTS: &str = "/apis/certificates.k8s.io/v1/certificatesigningrequests";

/// Objects by path, and patches as they came.
#[derive(Default)]
pub struct Objects {
    pub all: BTreeMap<String, Value>,
    pub patches: Vec<(String, Value)>,
    /// Names of objects that it does not write or delete, as when they are too large for etcd.
    pub stuck: BTreeSet<String>,
}

impl Objects {
    fn is_stuck(&self, path: &str) -> bool {
        path.split('/').any(|part| self.stuck.contains(part))
    }
}

#[derive(Clone)]
pub struct FakeApi {
    objects: Arc<Mutex<Objects>>,
    changed: watch::Sender<u64>,
}

impl FakeApi {
    pub fn new() -> Self {
        Self {
            objects: Arc::default(),
            changed: watch::Sender::new(1),
        }
    }

    pub fn objects(&self) -> MutexGuard<'_, Objects> {
        self.objects.lock().unwrap()
    }

    pub fn put_node(&self, name: &str, ready: &str) {
        let status = json!({ "conditions": [{ "type": "Ready", "status": ready }] });
        self.put(NODES, name, json!({ "status": status }));
    }

    pub fn put_request(&self, name: &str, spec: &Value) {
        self.put(REQUESTS, name, json!({ "spec": spec }));
    }

    /// Changes an object as somebody else would.
    pub fn change(&self, path: &str, change: impl FnOnce(&mut Value)) {
        change(self.objects().all.get_mut(path).unwrap());
        self.changed.send_modify(|version| *version += 1);
    }

    pub fn node(&self, name: &str) -> Value {
        self.objects().all[&format!("{NODES}/{name}")].clone()
    }

    pub fn has_node(&self, name: &str) -> bool {
        let path = format!("{NODES}/{name}");
        self.objects().all.contains_key(&path)
    }

    pub fn request(&self, name: &str) -> Value {
        self.objects().all[&format!("{REQUESTS}/{name}")].clone()
    }

    /// Waits until that holds; panics after a while, so that what never comes is a failure and no hang.
    pub async fn until(&self, holds: impl Fn(&Self) -> bool) {
        for _ in 0..1000 {
            if holds(self) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("it never came to that: {:?}", self.objects().all);
    }

    fn put(&self, kind: &str, name: &str, mut object: Value) {
        let made = *self.changed.borrow();
        let uid = format!("uid-{made}");
        object["metadata"] = json!({ "name": name, "uid": uid, "resourceVersion": "1" });
        self.objects().all.insert(format!("{kind}/{name}"), object);
        self.changed.send_modify(|version| *version += 1);
    }

    pub async fn client(&self) -> Client {
        let api = self.clone();
        let answer = move |request| {
            let api = api.clone();
            async move { api.answer(request).await }.boxed()
        };
        let url = serve(answer).await;
        Client::try_from(Config::new(url.parse().unwrap())).unwrap()
    }

    async fn answer(&self, request: Received) -> Reply {
        let path = request.path.as_str();
        if request.query.contains("watch=true") {
            return self.watched(path).await;
        }
        match request.method.as_str() {
            "GET" if path == NODES || path == REQUESTS => {
                let items = self.under(path);
                let version = self.changed.borrow().to_string();
                let list = json!({ "metadata": { "resourceVersion": version }, "items": items });
                reply(200, list.to_string())
            }
            "GET" => match self.objects().all.get(path) {
                Some(object) => reply(200, object.to_string()),
                None => status(404, "NotFound"),
            },
            "PATCH" => self.patch(path, &serde_json::from_slice(&request.body).unwrap()),
            "DELETE" => self.delete(path, &serde_json::from_slice(&request.body).unwrap()),
            other => panic!("nobody asks for {other} {path}"),
        }
    }

    /// Everything of that kind once something has changed; then the watch ends, as it may at any time.
    async fn watched(&self, path: &str) -> Reply {
        let mut changed = self.changed.subscribe();
        let _ = tokio::time::timeout(Duration::from_millis(500), changed.changed()).await;
        let event = |object| format!("{}\n", json!({ "type": "MODIFIED", "object": object }));
        let events: String = self.under(path).into_iter().map(event).collect();
        reply(200, events)
    }

    fn under(&self, kind: &str) -> Vec<Value> {
        let objects = self.objects();
        let of = objects
            .all
            .iter()
            .filter(|(path, _)| path.starts_with(kind));
        of.map(|(_, object)| object.clone()).collect()
    }

    fn delete(&self, path: &str, options: &Value) -> Reply {
        let mut objects = self.objects();
        if objects.is_stuck(path) {
            return status(500, "etcdserver: request is too large");
        }
        let Some(object) = objects.all.get_mut(path) else {
            return status(404, "NotFound");
        };
        if options["preconditions"]["uid"] != object["metadata"]["uid"] {
            return status(409, "Conflict");
        }
        // What has finalizers is only marked: somebody else takes them away, and with the last it goes.
        if object["metadata"]["finalizers"].is_array() {
            object["metadata"]["deletionTimestamp"] = json!("2030-01-01T00:00:00Z");
            return reply(200, object.to_string());
        }
        objects.all.remove(path);
        reply(
            200,
            json!({ "kind": "Status", "apiVersion": "v1" }).to_string(),
        )
    }

    fn patch(&self, path: &str, patch: &Value) -> Reply {
        let mut objects = self.objects();
        if objects.is_stuck(path) {
            return status(500, "etcdserver: request is too large");
        }
        let of = path.trim_end_matches("/approval");
        objects.patches.push((path.to_owned(), patch.clone()));
        let Some(object) = objects.all.get_mut(of) else {
            return status(404, "NotFound");
        };
        let version = &patch["metadata"]["resourceVersion"];
        if !version.is_null() && *version != object["metadata"]["resourceVersion"] {
            return status(409, "Conflict");
        }
        let labels = patch["metadata"]["labels"].as_object();
        if labels.is_some_and(|labels| labels.values().any(|value| value == "no label!")) {
            return status(422, "Invalid");
        }
        let uid = &patch["metadata"]["uid"];
        if !uid.is_null() && *uid != object["metadata"]["uid"] {
            return status(422, "metadata.uid: field is immutable");
        }
        merge(object, patch);
        let answer = reply(200, object.to_string());
        let metadata = &object["metadata"];
        if metadata["deletionTimestamp"].is_string() && metadata["finalizers"].is_null() {
            objects.all.remove(of);
        }
        drop(objects);
        self.changed.send_modify(|version| *version += 1);
        answer
    }
}

fn merge(into: &mut Value, patch: &Value) {
    match patch {
        Value::Object(fields) => {
            for (name, value) in fields {
                match (value, into.as_object_mut()) {
                    (Value::Null, Some(known)) => drop(known.remove(name)),
                    _ => merge(&mut into[name], value),
                }
            }
        }
        other => *into = other.clone(),
    }
}

fn status(code: u16, reason: &str) -> Reply {
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": reason, "reason": reason, "code": code,
    });
    reply(code, status.to_string())
}
