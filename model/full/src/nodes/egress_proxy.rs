//! Environment variables of the egress proxy (`spec.egressProxy`).

use crate::FullSpec;

/// The proxy variables, in both spellings: Go reads `HTTP_PROXY` first, curl and Python `http_proxy`, and an image may have set
/// either. None without a proxy. `no_proxy` has the user's exclusions, the instance itself, the metadata
/// service and the cluster, as in kOps.
pub(super) fn proxy_environment(full: &FullSpec) -> Vec<templates::Variable> {
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
    let direct = direct.join(",");
    let values = [
        ("http_proxy", &proxy.url),
        ("https_proxy", &proxy.url),
        ("no_proxy", &direct),
    ];
    let variable = |name: String, value: &str| templates::Variable {
        name,
        value: value.to_owned(),
    };
    values
        .into_iter()
        .flat_map(|(name, value)| {
            [name.to_owned(), name.to_uppercase()].map(|name| variable(name, value))
        })
        .collect()
}
