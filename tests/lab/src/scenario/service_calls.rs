//! Clients of a service inside a cluster: pods that call it by its ClusterIP, five times a second, each time over a new connection with a
//! limit of five seconds; and the result of every call.

use super::Lab;
use crate::daemon::LabAddresses;
use crate::lab_paths::LabPaths;
use crate::operator;
use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{JoinHandle, sleep, spawn};
use std::time::Duration;

const DEPLOYMENT: &str = include_str!("caller.yaml");

/// Time between two readings of the pods' logs: less than a pod stays after its last line.
const PAUSE: Duration = Duration::from_secs(3);

/// Last line of a pod that is told to end.
const ENDED: &str = "ended";

/// One call.
#[derive(Debug, Clone, Deserialize)]
pub struct ServiceCall {
    /// Start of the call, in seconds since 1970.
    pub begun: u64,
    pub milliseconds: u64,
    /// Empty: the service answered.
    pub failure: String,
}

/// A thread that reads the logs of the client pods until [`Self::end`].
#[derive(Debug)]
pub struct ServiceCalls {
    over: Arc<AtomicBool>,
    reader: JoinHandle<Result<BTreeMap<String, String>>>,
}

impl Lab {
    /// Starts two clients of the service `web`, which [`Lab::deploy_web`] makes.
    pub fn start_service_calls(&self, limit: Duration) -> Result<ServiceCalls> {
        let service = self.get_objects(&["service", "web"])?;
        let address = service
            .pointer("/spec/clusterIP")
            .and_then(|ip| ip.as_str());
        let address = address.context("the service has no address")?;
        let file = self.place.run().join("caller.yaml");
        std::fs::write(&file, DEPLOYMENT.replace("@ADDRESS@", address))?;
        self.run_kubectl(&["apply", "--filename", &file.display().to_string()])?;
        self.rolled_out("default", "deployment/caller", limit)?;
        let over = Arc::new(AtomicBool::new(false));
        let (place, up, end) = (self.place.clone(), self.up.clone(), over.clone());
        let reader = spawn(move || read_logs(&place, &up, &end));
        Ok(ServiceCalls { over, reader })
    }
}

impl ServiceCalls {
    /// Ends the reading and returns all calls. Fails if a pod is gone whose last lines nobody has read.
    pub fn end(self) -> Result<Vec<ServiceCall>> {
        self.over.store(true, Ordering::Relaxed);
        let Ok(logs) = self.reader.join() else {
            bail!("the reader of the logs panicked")
        };
        let mut calls = Vec::new();
        for line in logs?.values().flat_map(|log| log.lines()) {
            if line != ENDED {
                calls.push(serde_json::from_str(line).with_context(|| line.to_owned())?);
            }
        }
        Ok(calls)
    }
}

/// The log of every client pod that there was, by name, when `over` is set. A round that fails is repeated: API servers go.
fn read_logs(
    place: &LabPaths,
    up: &LabAddresses,
    over: &AtomicBool,
) -> Result<BTreeMap<String, String>> {
    let mut logs = BTreeMap::new();
    loop {
        let last = over.load(Ordering::Relaxed);
        match read_round(place, up, &mut logs) {
            Ok(present) if last => {
                for (pod, log) in &logs {
                    let read = present.contains(pod) || log.trim_end().ends_with(ENDED);
                    ensure!(read, "the last calls of pod {pod} are unknown: it is gone");
                }
                return Ok(logs);
            }
            Err(error) if last => return Err(error),
            _ => sleep(PAUSE),
        }
    }
}

/// Adds the logs of the pods that there are now, and returns their names.
fn read_round(
    place: &LabPaths,
    up: &LabAddresses,
    logs: &mut BTreeMap<String, String>,
) -> Result<Vec<String>> {
    let kubectl = |words: &[&str]| {
        let words = [&["kubectl"], words].concat();
        let words: Vec<String> = words.into_iter().map(str::to_owned).collect();
        let mut command = operator::operator_command(place, up, &words)?;
        let output = command.stdin(Stdio::null()).output()?;
        let error = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{}: {error}", words.join(" "));
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let pods = kubectl(&["get", "pods", "--selector=app=caller", "--output=name"])?;
    let pods: Vec<String> = pods.lines().map(str::to_owned).collect();
    for pod in &pods {
        // A pod that has not started has none, and one on a node that is gone none any more.
        if let Ok(log) = kubectl(&["logs", pod]) {
            // The last line may be incomplete.
            let whole = log.rsplit_once('\n').map_or("", |(whole, _)| whole);
            let known = logs.entry(pod.clone()).or_default();
            if whole.len() > known.len() {
                whole.clone_into(known);
            }
        }
    }
    Ok(pods)
}
