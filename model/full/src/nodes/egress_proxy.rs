//! Environment variables of the egress proxy (`spec.egressProxy`).

use crate::FullSpec;

/// The proxy variables; none without a proxy. The script sets them in upper case too: Go reads `HTTP_PROXY` first, curl and Python
/// `http_proxy`, and an image may have set either. `no_proxy` has the user's exclusions, the instance itself, the metadata
/// service and the cluster, as in kOps.
pub(crate) fn proxy_environment(full: &FullSpec) -> Vec<templates::Variable> {
    let Some(proxy) = &full.egress_proxy else {
        return Vec::new();
    };
    let mut direct = proxy.excludes.clone();
    let own_names = [
        "127.0.0.1",
        "localhost",
        "169.254.169.254",
        &full.pods.dns_domain,
        &full.name,
    ];
    direct.extend(own_names.map(str::to_owned));
    if full.is_ipv6() {
        direct.extend(["::1", "fd00:ec2::254"].map(str::to_owned));
    }
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
        variable("http_proxy", &proxy.url),
        variable("https_proxy", &proxy.url),
        variable("no_proxy", &direct.join(",")),
    ]
}
