//! nodeup and protokube: the binaries that machines download, as found beside kctl.

use crate::env;
use crate::error::{CommandError, Context, Kind};
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

/// Stands for the hash of a binary that is not there; no file has it.
pub const STAND_IN: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// The binaries of every architecture that a cluster's machines have, and the files they are.
#[derive(Clone, Debug, Default)]
pub struct Found {
    /// By hash, for user data and NodeConfig.
    pub agents: Agents,
    /// The file of each hash.
    files: BTreeMap<String, PathBuf>,
    /// Those that are not there, in words.
    pub missing: Vec<String>,
    /// Those that are there as a build for this machine, which others may not run.
    pub own: Vec<PathBuf>,
}

impl Found {
    /// Stand-ins for all of them, for those who look at a spec without the binaries at hand.
    pub fn stand_ins(full: &FullSpec) -> Self {
        let mut found = Self::default();
        for arch in architectures(full) {
            for name in NAMES {
                found.add(name, arch, STAND_IN.to_owned());
            }
        }
        found
    }

    /// Looks for them: in KCTL_ASSETS, else beside kctl itself.
    pub fn look(full: &FullSpec) -> Result<Self, CommandError> {
        let places = places();
        let mut found = Self::default();
        for arch in architectures(full) {
            for name in NAMES {
                let mut candidates = places
                    .iter()
                    .flat_map(|place| candidates(place, name, arch));
                let Some(file) = candidates.find(|file| file.is_file()) else {
                    found
                        .missing
                        .push(format!("{name} for linux/{}", arch.as_str()));
                    found.add(name, arch, STAND_IN.to_owned());
                    continue;
                };
                if file
                    .parent()
                    .is_some_and(|parent| places.iter().any(|place| place == parent))
                {
                    found.own.push(file.clone());
                }
                let sha256 =
                    sha256_of(&file).failed(format!("could not read {}", file.display()), HOW)?;
                found.files.insert(sha256.clone(), file);
                found.add(name, arch, sha256);
            }
        }
        Ok(found)
    }

    fn add(&mut self, name: &str, arch: Arch, sha256: String) {
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

    /// What may be wrong with those that were found.
    pub fn warning(&self) -> Option<String> {
        let own: Vec<String> = self
            .own
            .iter()
            .map(|file| file.display().to_string())
            .collect();
        (!own.is_empty()).then(|| {
            format!(
                "machines get {}, built for this one: with another C library they do not start; `tests/assets/build amd64 arm64` builds \
                 them for all, and prints what KCTL_ASSETS is to be",
                own.join(" and ")
            )
        })
    }

    /// Fails if some are missing, and says how to get them.
    pub fn complete(&self) -> Result<(), CommandError> {
        if self.missing.is_empty() {
            return Ok(());
        }
        Err(CommandError::said(
            Kind::Precondition,
            format!(
                "machines need binaries that are not here: {}",
                self.missing.join(", ")
            ),
            HOW,
        ))
    }

    /// The objects of the store that they become.
    pub fn objects(&self) -> Vec<S3Object> {
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

    /// Where the store finds their files.
    pub fn source(&self) -> AssetSource {
        let files = self.files.clone();
        Arc::new(move |object: &S3Object| {
            let file = match &object.content {
                ObjectContent::Sha256(sha256) => files.get(sha256),
                ObjectContent::Text(_) => None,
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

/// Hex sha256 of a file, read piece by piece.
fn sha256_of(file: &Path) -> io::Result<String> {
    let mut hash = Sha256::new();
    io::copy(&mut std::fs::File::open(file)?, &mut hash)?;
    Ok(format!("{:x}", hash.finalize()))
}

/// Architectures of all machines that run nodeup.
fn architectures(full: &FullSpec) -> Vec<Arch> {
    let machines = full
        .groups
        .iter()
        .filter(|group| group.role != Role::Bastion);
    let mut all: Vec<Arch> = machines.map(|group| group.arch).collect();
    all.sort();
    all.dedup();
    all
}

fn places() -> Vec<PathBuf> {
    if let Some(dir) = env::value(env::ASSETS) {
        return vec![PathBuf::from(dir)];
    }
    let own = std::env::current_exe()
        .ok()
        .and_then(|exe| exe.parent().map(Path::to_owned));
    own.into_iter().collect()
}

/// `DIR/linux/ARCH/NAME`; for this machine's own architecture also `DIR/NAME`.
fn candidates(dir: &Path, name: &str, arch: Arch) -> Vec<PathBuf> {
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
