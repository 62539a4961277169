//! How a running cluster stands to the controls of the CIS Kubernetes Benchmark, by what was observed of it. Nothing passes that was not
//! observed.

#[cfg(test)]
mod cis_test;
mod components;
mod controls;
mod node_files;
mod objects;
mod seen;

pub use node_files::NodeFiles;

use controls::CONTROLS;
use seen::{Seen, State};
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// The benchmark that has these numbers; 1.12 has the same.
pub const CIS_BENCHMARK: &str = "CIS Kubernetes Benchmark 2.0";

/// What was observed of a cluster.
#[derive(Clone, Debug, Default)]
pub struct CisObserved {
    pub nodes: Vec<CisNode>,
    /// The objects of the API by their resource, `pods`, of all namespaces; or why they could not be read.
    pub lists: BTreeMap<&'static str, Result<Vec<Value>, String>>,
    /// Which pods each namespace takes.
    pub admission: BTreeMap<String, PodAdmission>,
}

/// A Node and what its kubelet serves.
#[derive(Clone, Debug)]
pub struct CisNode {
    pub name: String,
    pub control_plane: bool,
    /// The KubeletConfiguration that kubelet runs with, or why it could not be read.
    pub kubelet: Result<Value, String>,
    /// The list of its files, or why it could not be read.
    pub files: Result<NodeFiles, String>,
}

/// Which pods a namespace takes, by what the API server says of one that asks for every right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PodAdmission {
    Everything,
    /// The Pod Security Standard of that name.
    Baseline,
    Restricted,
    /// It was refused for another reason.
    NotKnown(String),
}

impl PodAdmission {
    /// Reads the API server's answer to such a pod: nothing, or why it refuses the pod.
    pub fn read(refusal: Option<String>) -> Self {
        let Some(why) = refusal else {
            return Self::Everything;
        };
        let violates = |level: &str| why.contains(&format!("violates PodSecurity \"{level}"));
        if violates("restricted") {
            Self::Restricted
        } else if violates("baseline") {
            Self::Baseline
        } else {
            Self::NotKnown(why)
        }
    }
}

/// How a control stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CisResult {
    Pass,
    Fail,
    /// It was not observed, or the benchmark leaves to the operator what is right for the cluster.
    NotKnown,
}

/// A control and how it stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CisRow {
    /// Its number in the benchmark.
    pub number: &'static str,
    /// kctl's short title of it.
    pub title: &'static str,
    /// True if the benchmark assesses it automatically. Others never fail: their expected state depends on the cluster.
    pub automated: bool,
    pub result: CisResult,
    /// What was observed; of one that is not known, what to look at.
    pub why: String,
}

/// Every control in the order of the benchmark.
pub fn judge_cis(observed: &CisObserved) -> Vec<CisRow> {
    let rows = CONTROLS.iter().map(|control| {
        let all = control.check.look(observed);
        let (result, state) = decide(&all, control.automated);
        CisRow {
            number: control.number,
            title: control.title,
            automated: control.automated,
            result,
            why: seen::summarize(&all, state),
        }
    });
    rows.collect()
}

/// The result, and what has to be said for it.
fn decide(all: &[Seen], automated: bool) -> (CisResult, State) {
    let any = |state: State| all.iter().any(|seen| seen.state == state);
    if any(State::Wrong) {
        let result = if automated {
            CisResult::Fail
        } else {
            CisResult::NotKnown
        };
        (result, State::Wrong)
    } else if any(State::Unseen) || all.is_empty() {
        (CisResult::NotKnown, State::Unseen)
    } else {
        (CisResult::Pass, State::Right)
    }
}
