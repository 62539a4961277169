//! The proxy through which instances reach the internet.

use crate::api::cluster::ClusterSpec;
use full::EgressProxy;

/// `spec.egressProxy` of a completed spec.
pub(super) fn full_egress_proxy(spec: &ClusterSpec) -> Option<EgressProxy> {
    let egress = spec.egress_proxy.as_ref()?;
    let proxy = egress.http_proxy.as_ref()?;
    let port = proxy
        .port
        .map_or_else(String::new, |port| format!(":{port}"));
    let scheme = if proxy.host.contains("://") {
        ""
    } else {
        "http://"
    };
    let excludes = egress.excludes.as_deref().unwrap_or_default();
    Some(EgressProxy {
        url: format!("{scheme}{}{port}", proxy.host),
        excludes: excludes
            .split(',')
            .map(|part| part.trim().to_owned())
            .collect(),
    })
}
