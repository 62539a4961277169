//! What was applied last, on disk, for the commands that run beside the daemon.

use super::balancing::Health;
use super::error::{Error, Result, doing};
use crate::place::Place;
use crate::world::World;
use serde::{Deserialize, Serialize};
use std::io;
use std::path::Path;

#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Snapshot {
    pub world: World,
    pub health: Health,
    pub warnings: Vec<String>,
}

const FILE: &str = "network.json";

pub fn write(place: &Place, world: &World, health: &Health, warnings: &[String]) -> Result<()> {
    let snapshot = Snapshot {
        world: world.clone(),
        health: health.clone(),
        warnings: warnings.to_vec(),
    };
    replace(&place.run().join(FILE), &snapshot)
}

/// Empty when nothing was applied yet.
pub fn read(place: &Place) -> Result<Snapshot> {
    load(&place.run().join(FILE))
}

/// By way of a new file, so that a reader never sees half of one.
pub fn replace(path: &Path, value: &impl Serialize) -> Result<()> {
    let bytes = serde_json::to_vec_pretty(value).map_err(|source| Error::State {
        path: path.display().to_string(),
        source,
    })?;
    let new = path.with_extension("new");
    std::fs::write(&new, bytes).map_err(doing(format!("writing {}", new.display())))?;
    std::fs::rename(&new, path).map_err(doing(format!("replacing {}", path.display())))
}

pub fn load<T: Default + serde::de::DeserializeOwned>(path: &Path) -> Result<T> {
    let text = match std::fs::read(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(T::default()),
        other => other.map_err(doing(format!("reading {}", path.display())))?,
    };
    serde_json::from_slice(&text).map_err(|source| Error::State {
        path: path.display().to_string(),
        source,
    })
}
