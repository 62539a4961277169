//! Systemd units on an instance.

use serde::Serialize;

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Unit {
    /// Name with its suffix: `kubelet.service`.
    pub name: String,
    /// Text of the unit file; `None` if the distribution provides it or the unit is masked.
    pub content: Option<String>,
    /// True: the unit is started now and at every boot. False: it is masked.
    pub enabled: bool,
    /// sha256 (hex) over the desired state of everything that the unit reads at start; empty if it is disabled. nodeup records the
    /// digest of the last start, so that a crash between a change and the restart is detected.
    pub starts_with: String,
}
