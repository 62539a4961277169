//! `spec.certManager`.

use crate::api::addons::CertManagerConfig;
use crate::api::cluster::ClusterSpec;
use full::CertManager;

/// cert-manager of a completed spec; `None` if it is off, or the user installs it.
pub(super) fn full_cert_manager(spec: &ClusterSpec) -> Option<CertManager> {
    let CertManagerConfig {
        enabled,
        managed,
        image,
        default_issuer,
        nameservers,
        hosted_zone_ids,
        feature_gates,
    } = spec.cert_manager.clone()?;
    let installed = enabled == Some(true) && managed != Some(false);
    installed.then_some(CertManager {
        image,
        default_issuer,
        nameservers,
        hosted_zone_ids,
        feature_gates,
    })
}
