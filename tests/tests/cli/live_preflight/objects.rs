//! The namespaces and pods of an API whose nodes run pods as a test says.

use crate::api_server::{failure_status, merge_patch};
use node::names::PREFLIGHT_LABEL;
use node::probe::{Outcome, ProbeReport, Trial};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// What a node makes of a pod: its status.
pub(super) type Runs = Box<dyn Fn(&Value) -> Value + Send>;

/// The namespaces and pods of the API.
#[derive(Default)]
pub(super) struct Objects {
    pub(super) namespaces: BTreeMap<String, Value>,
    /// Pods of all namespaces that there were, by name.
    pub(super) pods: BTreeMap<String, Value>,
    /// Namespaces in which a policy allows everything.
    open: BTreeSet<String>,
    /// Nobody may make a namespace.
    pub(super) is_closed: bool,
    /// How many seconds the clock of the API is ahead.
    pub(super) ahead: i64,
    /// Somebody makes this namespace anew right after it was listed.
    pub(super) remade: &'static str,
}

/// The node that a pod is made for.
pub(super) fn node_of(pod: &Value) -> &str {
    pod["spec"]["nodeName"].as_str().expect("a node")
}

pub(super) fn name_of(object: &Value) -> &str {
    object["metadata"]["name"].as_str().expect("a name")
}

/// The address of a listener.
fn pod_address(pod: &Value) -> String {
    let index = name_of(pod).strip_prefix("listener-");
    let index: u8 = index.expect("a listener").parse().expect("a number");
    format!("10.9.0.{}", index + 1)
}

pub(super) fn ended(code: i32, message: &str) -> Value {
    let state = json!({"terminated": {"exitCode": code, "message": message}});
    let container = json!({"name": "nodeup", "image": "", "imageID": "", "ready": false, "restartCount": 0, "state": state});
    let phase = if code == 0 { "Succeeded" } else { "Failed" };
    json!({"phase": phase, "containerStatuses": [container]})
}

/// Nodes run listeners, and trials come to what `outcome` says: the node that tries, and the trial.
pub(super) fn run_trials(outcome: impl Fn(&str, &Trial) -> Outcome + Send + 'static) -> Runs {
    Box::new(move |pod: &Value| {
        let command = pod["spec"]["containers"][0]["command"].as_array();
        let command: Vec<&str> = command
            .expect("a command")
            .iter()
            .map(|word| word.as_str().expect("a word"))
            .collect();
        assert_eq!(command[..2], ["/nodeup", "probe"]);
        if command[2] == "listen" {
            return json!({"phase": "Running", "podIP": pod_address(pod)});
        }
        let at = command.iter().position(|word| *word == "--trials");
        let trials: Vec<Trial> =
            serde_json::from_str(command[at.expect("trials") + 1]).expect("trials");
        let outcomes = trials.iter().map(|trial| outcome(node_of(pod), trial));
        let report = ProbeReport {
            packet: Some(8951),
            outcomes: outcomes.collect(),
        };
        ended(0, &serde_json::to_string(&report).expect("JSON"))
    })
}

fn list(kind: &str, items: &[&Value]) -> Value {
    json!({"kind": kind, "apiVersion": "v1", "metadata": {}, "items": items})
}

impl Objects {
    pub(super) fn answer(
        &mut self,
        (method, path, query): (&str, &str, &str),
        body: &[u8],
        runs: &Runs,
    ) -> Option<(u16, Value)> {
        let parts: Vec<&str> = path.split('/').skip(1).collect();
        let rest = match &parts[..] {
            ["api", "v1", "namespaces", rest @ ..] => rest,
            ["apis", "networking.k8s.io", "v1", "namespaces", name, _] => {
                return Some(self.take_policy(name, body));
            }
            _ => return None,
        };
        let forbidden = |why: &str| Some((403, failure_status(403, why)));
        match (method, rest) {
            ("GET", []) => {
                let (_, asked) = query
                    .split_once("labelSelector=kctl.dev%2Fpreflight")
                    .expect("a selector");
                let wanted = asked.strip_prefix("%3D");
                let wanted = wanted.and_then(|text| text.split('&').next());
                let is_selected = |namespace: &&Value| {
                    let value = namespace["metadata"]["labels"][PREFLIGHT_LABEL].as_str();
                    value.is_some_and(|value| wanted.is_none_or(|wanted| wanted == value))
                };
                let all = self.namespaces.values().filter(is_selected);
                let answer = list("NamespaceList", &all.collect::<Vec<&Value>>());
                if let Some(namespace) = self.namespaces.get_mut(self.remade) {
                    namespace["metadata"]["uid"] = json!("made-anew");
                }
                Some((200, answer))
            }
            ("POST", []) if self.is_closed => forbidden("no new namespaces"),
            ("POST", []) => {
                let mut made: Value = serde_json::from_slice(body).expect("JSON");
                made["metadata"]["creationTimestamp"] = json!(time_in(self.ahead));
                let name = name_of(&made).to_owned();
                made["metadata"]["uid"] = json!(format!("uid-of-{name}"));
                made["metadata"]["resourceVersion"] = json!("1");
                self.namespaces.insert(name, made.clone());
                Some((201, made))
            }
            ("DELETE", [name]) => Some(self.delete_namespace(name, body)),
            (_, [name, ..]) if !self.namespaces.contains_key(*name) => forbidden("no namespace"),
            ("GET", [_, "serviceaccounts", "default"]) => {
                Some((200, json!({"metadata": {"name": "default"}})))
            }
            ("PATCH", [name]) => {
                let namespace = self.namespaces.get_mut(*name).expect("the namespace");
                merge_patch(namespace, &serde_json::from_slice(body).expect("JSON"));
                Some((200, namespace.clone()))
            }
            ("POST", [name, "pods"]) if !self.is_enforced(name, "privileged") => {
                forbidden("violates PodSecurity")
            }
            ("POST", [name, "pods"]) => {
                assert!(self.open.contains(*name), "a policy may deny all");
                let mut made: Value = serde_json::from_slice(body).expect("JSON");
                made["status"] = runs(&made);
                let name = name_of(&made).to_owned();
                self.pods.insert(name, made.clone());
                Some((201, made))
            }
            ("GET", [_, "pods"]) => {
                let all: Vec<&Value> = self.pods.values().collect();
                Some((200, list("PodList", &all)))
            }
            _ => None,
        }
    }

    fn take_policy(&mut self, namespace: &str, body: &[u8]) -> (u16, Value) {
        let policy: Value = serde_json::from_slice(body).expect("JSON");
        for way in ["ingress", "egress"] {
            assert_eq!(policy["spec"][way], json!([{}]), "all is allowed");
        }
        self.open.insert(namespace.to_owned());
        (201, policy)
    }

    /// What Pod Security enforces in a namespace that there is.
    pub(super) fn is_enforced(&self, namespace: &str, profile: &str) -> bool {
        let namespace = self.namespaces.get(namespace);
        namespace.is_some_and(|namespace| {
            namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == profile
        })
    }

    fn delete_namespace(&mut self, name: &str, body: &[u8]) -> (u16, Value) {
        let Some(namespace) = self.namespaces.get(name) else {
            return (404, failure_status(404, name));
        };
        let options: Value = serde_json::from_slice(body).expect("JSON");
        for field in ["uid", "resourceVersion"] {
            let wanted = &options["preconditions"][field];
            if !wanted.is_null() && *wanted != namespace["metadata"][field] {
                return (409, failure_status(409, "it is another one"));
            }
        }
        let gone = self.namespaces.remove(name);
        (200, gone.expect("the namespace"))
    }

    /// Stores a namespace with a value of the label of preflight that is so many seconds old by the clock of the API.
    pub(super) fn put_namespace(&mut self, name: &str, label: &str, age: i64) {
        let metadata = json!({
            "name": name,
            "uid": format!("uid-of-{name}"),
            "resourceVersion": "7",
            "labels": {PREFLIGHT_LABEL: label},
            "creationTimestamp": time_in(self.ahead - age),
        });
        let namespace = json!({"metadata": metadata});
        self.namespaces.insert(name.to_owned(), namespace);
    }
}

/// The time in so many seconds, as the API writes it.
fn time_in(seconds: i64) -> String {
    let time = OffsetDateTime::now_utc() + time::Duration::seconds(seconds);
    let time = time.replace_nanosecond(0).expect("a time");
    time.format(&Rfc3339).expect("a text")
}
