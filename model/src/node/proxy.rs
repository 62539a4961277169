//! How machines reach the internet where only a proxy does: `spec.egressProxy`.

use crate::api::cluster::ClusterSpec;
use crate::full::FullSpec;

/// Variables of the proxy, none without one. What the user excludes goes past it, and so do the machine itself, the
/// metadata service and the cluster, as in kOps.
pub(super) fn proxy_environment(
    cluster: &ClusterSpec,
    full: &FullSpec,
) -> Vec<templates::Variable> {
    let egress = cluster.egress_proxy.as_ref();
    let Some(proxy) = egress.and_then(|egress| egress.http_proxy.as_ref()) else {
        return Vec::new();
    };
    let port = proxy
        .port
        .map_or_else(String::new, |port| format!(":{port}"));
    let scheme = if proxy.host.contains("://") {
        ""
    } else {
        "http://"
    };
    let address = format!("{scheme}{}{port}", proxy.host);
    let users = egress
        .and_then(|egress| egress.excludes.as_deref())
        .unwrap_or_default();
    let mut direct: Vec<String> = users
        .split(',')
        .map(|part| part.trim().to_owned())
        .collect();
    let ours = [
        "127.0.0.1",
        "localhost",
        "169.254.169.254",
        &full.pods.dns_domain,
        &full.name,
    ];
    direct.extend(ours.map(str::to_owned));
    direct.push(full.pods.non_masquerade_cidr.to_string());
    direct.push(full.network.cidr.to_string());
    direct.extend(
        full.network
            .additional_cidrs
            .iter()
            .map(ToString::to_string),
    );
    let mut seen = std::collections::BTreeSet::new();
    direct.retain(|name| !name.is_empty() && seen.insert(name.clone()));
    let variable = |name: &str, value: &str| templates::Variable {
        name: name.to_owned(),
        value: value.to_owned(),
    };
    vec![
        variable("http_proxy", &address),
        variable("https_proxy", &address),
        variable("no_proxy", &direct.join(",")),
    ]
}
