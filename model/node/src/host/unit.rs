//! Units of systemd.

use serde::Serialize;

/// A unit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Unit {
    /// `kubelet.service`.
    pub name: String,
    /// What is in it; `None`: the distribution brings it, or it is masked.
    pub content: Option<String>,
    /// It runs now and at every boot; else it is masked, whoever brings it.
    pub enabled: bool,
    /// sha256 (hex) over the desired state of all it needs: what it was last started with is on record, so that a machine
    /// that died between a change and the restart is seen. Empty where the unit does not run.
    pub starts_with: String,
}
