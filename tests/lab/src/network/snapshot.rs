//! What was applied last, on disk, for the commands that run beside the daemon.

use super::balancing::TargetHealth;
use super::error::Result;
use crate::aws_state::AwsState;
use crate::json_file;
use crate::lab_paths::LabPaths;
use serde::{Deserialize, Serialize};

#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Snapshot {
    pub world: AwsState,
    pub health: TargetHealth,
    pub warnings: Vec<String>,
}

const FILE: &str = "network.json";

pub fn write_snapshot(
    place: &LabPaths,
    world: &AwsState,
    health: &TargetHealth,
    warnings: &[String],
) -> Result<()> {
    let snapshot = Snapshot {
        world: world.clone(),
        health: health.clone(),
        warnings: warnings.to_vec(),
    };
    Ok(json_file::write_json(&place.run().join(FILE), &snapshot)?)
}

/// Empty when nothing was applied yet.
pub fn read_snapshot(place: &LabPaths) -> Result<Snapshot> {
    Ok(json_file::read_json(&place.run().join(FILE))?.unwrap_or_default())
}
