//! The proxy through which instances reach the internet.

use crate::api::cluster::ClusterSpec;
use full::EgressProxy;
use std::net::Ipv6Addr;

/// `spec.egressProxy` of a completed spec.
pub(super) fn full_egress_proxy(spec: &ClusterSpec) -> Option<EgressProxy> {
    let egress = spec.egress_proxy.as_ref()?;
    let proxy = egress.http_proxy.as_ref()?;
    let port = proxy
        .port
        .map_or_else(String::new, |port| format!(":{port}"));
    let host = match proxy.host.parse::<Ipv6Addr>() {
        Ok(address) => format!("[{address}]"),
        Err(_) => proxy.host.clone(),
    };
    let excludes = egress.excludes.as_deref().unwrap_or_default();
    Some(EgressProxy {
        url: format!("http://{host}{port}"),
        excludes: excludes
            .split(',')
            .map(|part| part.trim().to_owned())
            .collect(),
    })
}
