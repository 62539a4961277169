//! `spec.metricsServer`.

use super::assets::registry_image;
use crate::api::cluster::ClusterSpec;
use full::MetricsServer;

/// The version that kOps installs.
pub(crate) const METRICS_SERVER: &str = "v0.8.0";

/// metrics-server of a completed spec; `None` if it is off.
pub(super) fn full_metrics_server(spec: &ClusterSpec) -> Option<MetricsServer> {
    let server = spec.metrics_server.clone()?;
    let image = || registry_image("metrics-server/metrics-server", METRICS_SERVER);
    (server.enabled == Some(true)).then(|| MetricsServer {
        image: server.image.unwrap_or_else(image),
        certificate: server.insecure == Some(false),
    })
}
