//! `spec.snapshotController`.

use crate::api::addons::SnapshotControllerConfig;
use crate::api::cluster::ClusterSpec;
use full::SnapshotController;

/// The snapshot controller of a completed spec; `None` if it is off.
pub(super) fn full_snapshot_controller(spec: &ClusterSpec) -> Option<SnapshotController> {
    let SnapshotControllerConfig {
        enabled,
        install_default_class,
    } = spec.snapshot_controller.clone()?;
    (enabled == Some(true)).then_some(SnapshotController {
        default_class: install_default_class == Some(true),
    })
}
