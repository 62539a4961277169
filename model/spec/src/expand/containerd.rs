//! The container runtime.

use super::Context;
use super::assets::{registry_image, remapped_image};
use super::fill::fill;
use crate::api::cluster::ClusterSpec;
use crate::catalog::Component;

/// Fills in the versions of containerd and runc, and the pause image.
pub(super) fn complete_containerd(spec: &mut ClusterSpec, context: &Context) {
    let assets = spec.assets.clone().unwrap_or_default();
    let containerd = spec.containerd.get_or_insert_default();
    fill(&mut containerd.log_level, "info");
    fill(
        &mut containerd.sandbox_image,
        remapped_image(&registry_image("pause", "3.10.1"), &assets),
    );
    if containerd.skip_install == Some(true) {
        return;
    }
    fill(
        &mut containerd.version,
        Component::Containerd.version_for(&context.version),
    );
    let runc = containerd.runc.get_or_insert_default();
    fill(
        &mut runc.version,
        Component::Runc.version_for(&context.version),
    );
}
