//! Rules of metrics-server.

use crate::api::cluster::ClusterSpec;
use crate::read::Problem;

/// As in kOps: API servers verify its certificate only if cert-manager issues one. Who has no cert-manager says so.
pub fn check(spec: &ClusterSpec, problems: &mut Vec<Problem>) {
    let Some(server) = &spec.metrics_server else {
        return;
    };
    if server.enabled != Some(true) || server.insecure == Some(true) || has_cert_manager(spec) {
        return;
    }
    let problem = Problem::error(
        "spec.metricsServer.insecure",
        "API servers can verify the certificate of metrics-server only if cert-manager issues it",
    );
    problems.push(
        problem.hint("write insecure: true, so that they do not, or set spec.certManager.enabled"),
    );
}

fn has_cert_manager(spec: &ClusterSpec) -> bool {
    let manager = spec.cert_manager.as_ref();
    manager.and_then(|manager| manager.enabled) == Some(true)
}
