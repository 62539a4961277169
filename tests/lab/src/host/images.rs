//! What hosts boot: layers on this machine's kernel, or images with a kernel of their own.

use super::layer::LowerLayers;
use super::machine::MachineImages;
use crate::lab_paths::LabPaths;
use crate::ledger::Ledger;
use anyhow::Result;
use std::path::Path;

/// What all hosts of a lab boot.
#[derive(Debug, Clone)]
pub enum Images {
    Layers(LowerLayers),
    /// Every host is a virtual machine.
    Machines(MachineImages),
}

impl Images {
    /// Prepares them for all releases; the cache keeps what is made. They trust the lab's certificate authority (PEM).
    pub fn prepare_images(
        cache: &Path,
        place: &LabPaths,
        ledger: &Ledger,
        authority: &str,
        machines: bool,
    ) -> Result<Self> {
        if machines {
            return MachineImages::prepare_images(cache, authority).map(Self::Machines);
        }
        LowerLayers::prepare_layers(cache, place, ledger, authority).map(Self::Layers)
    }
}
