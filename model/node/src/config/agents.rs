//! The binaries of nodeup and protokube, by architecture and sha256.

use super::Error;
use crate::config::Arch;
use serde::{Deserialize, Serialize};

/// The agents that instances run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Agents {
    /// nodeup, at most one per architecture.
    pub nodeup: Vec<Agent>,
    /// protokube, at most one per architecture.
    pub protokube: Vec<Agent>,
}

/// An agent's binary for one architecture.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Agent {
    pub arch: Arch,
    /// sha256 of the binary, hex.
    pub sha256: String,
    /// Sources besides the state store: https URLs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mirrors: Vec<String>,
}

/// Key of an agent's binary, relative to the cluster's base in the state store.
pub fn agent_key(name: &str, agent: &Agent) -> String {
    format!("assets/{}/{}/{name}", agent.sha256, agent.arch.as_str())
}

/// Finds the binary for an architecture. `name` and `group` are for the error.
pub fn find_agent<'a>(
    agents: &'a [Agent],
    name: &'static str,
    group: &str,
    arch: Arch,
) -> Result<&'a Agent, Error> {
    let found = agents.iter().find(|agent| agent.arch == arch);
    found.ok_or_else(|| Error::NoAgent {
        group: group.to_owned(),
        name,
        arch: arch.as_str(),
    })
}
