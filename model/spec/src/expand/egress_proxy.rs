//! The proxy through which instances reach the internet.

use crate::api::cluster::ClusterSpec;
use full::EgressProxy;
use std::net::Ipv6Addr;

/// `spec.egressProxy` of a completed spec.
pub(super) fn full_egress_proxy(spec: &ClusterSpec) -> Option<EgressProxy> {
    let egress = spec.egress_proxy.as_ref()?;
    let proxy = egress.http_proxy.as_ref()?;
    // As in kOps, 0 is no port.
    let port = proxy
        .port
        .filter(|port| *port != 0)
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

#[cfg(test)]
mod tests {
    use super::full_egress_proxy;
    use crate::api::cluster::ClusterSpec;
    use serde_json::json;

    #[test]
    fn a_proxy_has_a_port_if_the_spec_names_one() {
        for (proxy, url) in [
            (
                json!({ "host": "proxy", "port": 3128 }),
                "http://proxy:3128",
            ),
            (json!({ "host": "proxy", "port": 0 }), "http://proxy"),
            (json!({ "host": "proxy" }), "http://proxy"),
            (json!({ "host": "fd00::1" }), "http://[fd00::1]"),
        ] {
            let spec = json!({ "egressProxy": { "httpProxy": proxy } });
            let spec: ClusterSpec = serde_json::from_value(spec).unwrap();
            assert_eq!(full_egress_proxy(&spec).unwrap().url, url);
        }
    }
}
