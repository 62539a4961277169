//! `spec.externalDns` with the provider external-dns.

use crate::api::cluster::ClusterSpec;
use crate::api::dns::ExternalDNSConfig;
use full::ExternalDns;

/// The provider that is an addon; with the others protokube alone publishes names.
pub(crate) const EXTERNAL_DNS: &str = "external-dns";

/// external-dns of a completed spec; `None` if it is off.
pub(super) fn full_external_dns(spec: &ClusterSpec) -> Option<ExternalDns> {
    let ExternalDNSConfig {
        disable,
        watch_ingress,
        watch_namespace,
        provider,
        priority_class_name,
    } = spec.external_dns.clone()?;
    let on = provider.as_deref() == Some(EXTERNAL_DNS) && disable != Some(true);
    on.then(|| ExternalDns {
        watch_ingress: watch_ingress != Some(false),
        watch_namespace: watch_namespace.filter(|namespace| !namespace.is_empty()),
        priority_class: priority_class_name.unwrap_or_else(|| "system-cluster-critical".to_owned()),
    })
}
