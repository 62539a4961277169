//! Our own binaries, nodeup and protokube, by architecture and sha256.

use super::Error;
use crate::config::Arch;
use serde::{Deserialize, Serialize};

/// The binaries that machines run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Agents {
    /// nodeup, at most one per architecture.
    pub nodeup: Vec<Agent>,
    /// protokube, at most one per architecture.
    pub protokube: Vec<Agent>,
}

/// A binary for one architecture.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Agent {
    /// Architecture.
    pub arch: Arch,
    /// Hex.
    pub sha256: String,
    /// Where it is found besides the state store: https URLs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mirrors: Vec<String>,
}

/// Key of a binary, relative to the cluster's base in the state store.
pub fn agent_key(name: &str, agent: &Agent) -> String {
    format!("assets/{}/{}/{name}", agent.sha256, agent.arch.as_str())
}

/// The binary that instances of a group run: the one for their architecture.
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
