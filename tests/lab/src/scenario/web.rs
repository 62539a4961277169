//! kubectl in the operator's network, and a deployment of the lab's test image that shows which pods reach each other.

use super::Lab;
use anyhow::{Context, Result};
use serde_json::Value;
use std::time::Duration;

const DEPLOYMENT: &str = include_str!("web.yaml");

/// A pod of the deployment `web`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pod {
    pub name: String,
    pub node: String,
    pub address: String,
}

impl Lab {
    /// Runs kubectl with the kubeconfig that `kctl export kubeconfig` wrote.
    pub fn run_kubectl(&self, words: &[&str]) -> Result<String> {
        self.run(&[&["kubectl"], words].concat())
    }

    /// Runs `kubectl get` and returns its JSON.
    pub fn get_objects(&self, words: &[&str]) -> Result<Value> {
        let text = self.run_kubectl(&[&["get", "--output=json"], words].concat())?;
        serde_json::from_str(&text).with_context(|| format!("kubectl get {}", words.join(" ")))
    }

    /// Waits until a deployment is rolled out.
    pub fn rolled_out(&self, namespace: &str, deployment: &str, limit: Duration) -> Result<()> {
        let seconds = format!("--timeout={}s", limit.as_secs());
        let words = ["rollout", "status", "--namespace", namespace, deployment];
        self.run_kubectl(&[&words[..], &[&seconds]].concat())
            .map(drop)
    }

    /// Creates the deployment `web` and its service in `default`, with the pods evenly on the nodes, and waits until they are ready.
    pub fn deploy_web(&self, replicas: usize, limit: Duration) -> Result<Vec<Pod>> {
        let file = self.place.run().join("web.yaml");
        std::fs::write(
            &file,
            DEPLOYMENT.replace("@REPLICAS@", &replicas.to_string()),
        )?;
        self.run_kubectl(&["apply", "--filename", &file.display().to_string()])?;
        self.rolled_out("default", "deployment/web", limit)?;
        self.web_pods()
    }

    /// The deployment's pods that have not ended and are not being deleted, by name.
    pub fn web_pods(&self) -> Result<Vec<Pod>> {
        let pods = self.get_objects(&["pods", "--selector=app=web"])?;
        let pods = pods.get("items").and_then(Value::as_array);
        let pods = pods.context("a list of pods")?;
        let ended = |pod: &Value| {
            let phase = pod.pointer("/status/phase").and_then(Value::as_str);
            matches!(phase, Some("Succeeded" | "Failed"))
        };
        let stay =
            |pod: &&Value| pod.pointer("/metadata/deletionTimestamp").is_none() && !ended(pod);
        let mut found: Vec<Pod> = pods
            .iter()
            .filter(stay)
            .map(parse_pod)
            .collect::<Result<_>>()?;
        found.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(found)
    }

    /// Runs the test program in a pod.
    pub fn in_pod(&self, pod: &Pod, words: &[&str]) -> Result<String> {
        self.run_kubectl(&[&["exec", &pod.name, "--", "/web"], words].concat())
    }

    /// Reads a URL from a pod: which pod answered (`host`), and the client address that it saw (`client`).
    pub fn from_pod(&self, pod: &Pod, url: &str) -> Result<Value> {
        Ok(serde_json::from_str(&self.in_pod(pod, &["-get", url])?)?)
    }
}

fn parse_pod(pod: &Value) -> Result<Pod> {
    let text = |path: &str| {
        let found = pod.pointer(path).and_then(Value::as_str);
        let found = found.with_context(|| format!("a pod has no {path}"));
        found.map(str::to_owned)
    };
    Ok(Pod {
        name: text("/metadata/name")?,
        node: text("/spec/nodeName")?,
        address: text("/status/podIP")?,
    })
}
