//! The nodeup and protokube binaries that instances download: finds them on this computer, and lists them for the state store.

use crate::env;
use crate::error::{CommandError, ErrorContext, ErrorKind};
use aws_cloud::AssetSource;
use cloud::{ObjectContent, S3Object};
use full::FullSpec;
use node::config::{Agent, Agents, Arch, Role, agent_key};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const NAMES: [&str; 2] = ["nodeup", "protokube"];

/// Placeholder for the sha256 of a binary that was not found. No file has this sha256.
pub const STAND_IN: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// The agent binaries for every architecture in a cluster, and the local files they are read from.
#[derive(Clone, Debug, Default)]
pub struct AgentBinaries {
    /// The binaries by sha256, as user data and NodeConfig name them.
    pub agents: Agents,
    /// The local file of each sha256.
    files: BTreeMap<String, PathBuf>,
    /// Binaries that were not found: `nodeup for linux/arm64`.
    pub missing: Vec<String>,
    /// Files built for this computer, which may not run on instances.
    pub own_builds: Vec<PathBuf>,
}

impl AgentBinaries {
    /// Placeholders for all binaries, for commands that need none (`kctl render`).
    pub fn stand_ins(full: &FullSpec) -> Self {
        let mut binaries = Self::default();
        for arch in node_architectures(full) {
            for name in NAMES {
                binaries.add_agent(name, arch, STAND_IN.to_owned());
            }
        }
        binaries
    }

    /// Finds the binaries in `KCTL_ASSETS`, else in the folder of the kctl executable.
    pub fn find_all(full: &FullSpec) -> Result<Self, CommandError> {
        let dirs = search_dirs();
        let mut binaries = Self::default();
        for arch in node_architectures(full) {
            for name in NAMES {
                let mut paths = dirs.iter().flat_map(|dir| candidate_paths(dir, name, arch));
                let Some(file) = paths.find(|file| file.is_file()) else {
                    binaries
                        .missing
                        .push(format!("{name} for linux/{}", arch.as_str()));
                    binaries.add_agent(name, arch, STAND_IN.to_owned());
                    continue;
                };
                if file
                    .parent()
                    .is_some_and(|parent| dirs.iter().any(|dir| dir == parent))
                {
                    binaries.own_builds.push(file.clone());
                }
                let sha256 = sha256_of(&file)
                    .or_failed(format!("could not read {}", file.display()), HOW)?;
                binaries.files.insert(sha256.clone(), file);
                binaries.add_agent(name, arch, sha256);
            }
        }
        Ok(binaries)
    }

    fn add_agent(&mut self, name: &str, arch: Arch, sha256: String) {
        let list = if name == "nodeup" {
            &mut self.agents.nodeup
        } else {
            &mut self.agents.protokube
        };
        list.push(Agent {
            arch,
            sha256,
            mirrors: Vec::new(),
        });
    }

    /// A warning if binaries were built for this computer.
    pub fn own_build_warning(&self) -> Option<String> {
        let paths: Vec<String> = self
            .own_builds
            .iter()
            .map(|file| file.display().to_string())
            .collect();
        (!paths.is_empty()).then(|| {
            format!(
                "instances would run {}, which was built for this computer and may need another C library: `tests/assets/build amd64 arm64` builds \
                 them for all, and prints what KCTL_ASSETS is to be",
                paths.join(" and ")
            )
        })
    }

    /// Fails if binaries are missing.
    pub fn check_complete(&self) -> Result<(), CommandError> {
        if self.missing.is_empty() {
            return Ok(());
        }
        Err(CommandError::from_message(
            ErrorKind::Precondition,
            format!(
                "binaries that instances download were not found: {}",
                self.missing.join(", ")
            ),
            HOW,
        ))
    }

    /// The state store objects that hold the binaries.
    pub fn s3_objects(&self) -> Vec<S3Object> {
        let list = |name: &'static str, agents: &[Agent]| {
            let object = |agent: &Agent| S3Object {
                key: agent_key(name, agent),
                content: ObjectContent::Sha256(agent.sha256.clone()),
            };
            agents.iter().map(object).collect::<Vec<_>>()
        };
        [
            list("nodeup", &self.agents.nodeup),
            list("protokube", &self.agents.protokube),
        ]
        .concat()
    }

    /// Finds the local file of an object, for the upload.
    pub fn asset_source(&self) -> AssetSource {
        let files = self.files.clone();
        Arc::new(move |object: &S3Object| {
            let file = match &object.content {
                ObjectContent::Sha256(sha256) => files.get(sha256),
                ObjectContent::Text(_) | ObjectContent::Signed(_) | ObjectContent::Hidden(_) => {
                    None
                }
            };
            let missing = || {
                io::Error::new(
                    io::ErrorKind::NotFound,
                    format!("no file for {}", object.key),
                )
            };
            file.cloned().ok_or_else(missing)
        })
    }
}

const HOW: &str = "build them: `tests/assets/build amd64 arm64`, and set KCTL_ASSETS to the folder that it prints";

/// Hex sha256 of a file, read in pieces.
fn sha256_of(file: &Path) -> io::Result<String> {
    let mut hash = Sha256::new();
    io::copy(&mut std::fs::File::open(file)?, &mut hash)?;
    Ok(format!("{:x}", hash.finalize()))
}

/// Architectures of all groups whose instances run nodeup: all but bastions.
fn node_architectures(full: &FullSpec) -> Vec<Arch> {
    let instances = full
        .groups
        .iter()
        .filter(|group| group.role != Role::Bastion);
    let mut all: Vec<Arch> = instances.map(|group| group.arch).collect();
    all.sort();
    all.dedup();
    all
}

fn search_dirs() -> Vec<PathBuf> {
    if let Some(dir) = env::get_variable(env::ASSETS) {
        return vec![PathBuf::from(dir)];
    }
    let own = std::env::current_exe()
        .ok()
        .and_then(|exe| exe.parent().map(Path::to_owned));
    own.into_iter().collect()
}

/// `DIR/linux/ARCH/NAME`; for the architecture of this computer also `DIR/NAME`.
fn candidate_paths(dir: &Path, name: &str, arch: Arch) -> Vec<PathBuf> {
    let mut all = vec![dir.join("linux").join(arch.as_str()).join(name)];
    let own = match std::env::consts::ARCH {
        "x86_64" => Some(Arch::Amd64),
        "aarch64" => Some(Arch::Arm64),
        _ => None,
    };
    if std::env::consts::OS == "linux" && own == Some(arch) {
        all.push(dir.join(name));
    }
    all
}
