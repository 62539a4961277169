//! What was applied last, on disk, for the commands that run beside the daemon.

use super::balancing::Health;
use super::error::Result;
use crate::json_file;
use crate::place::Place;
use crate::world::World;
use serde::{Deserialize, Serialize};

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
    Ok(json_file::write(&place.run().join(FILE), &snapshot)?)
}

/// Empty when nothing was applied yet.
pub fn read(place: &Place) -> Result<Snapshot> {
    Ok(json_file::read(&place.run().join(FILE))?.unwrap_or_default())
}
