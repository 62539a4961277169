//! `spec.metricsServer`.

use super::assets::registry_image;
use crate::api::cluster::ClusterSpec;
use full::MetricsServer;

/// metrics-server of a completed spec; `None` if it is off.
pub(super) fn full_metrics_server(spec: &ClusterSpec) -> Option<MetricsServer> {
    let server = spec.metrics_server.clone()?;
    let image = || registry_image("metrics-server/metrics-server", "v0.8.0");
    (server.enabled == Some(true)).then(|| MetricsServer {
        image: server.image.unwrap_or_else(image),
        certificate: server.insecure == Some(false),
    })
}
