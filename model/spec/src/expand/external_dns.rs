//! `spec.externalDns`: who publishes the names of Services, Ingresses and pods.

use crate::api::cluster::ClusterSpec;
use crate::api::dns::ExternalDNSConfig;
use crate::expand::dns_kind;
use full::{DnsKind, ExternalDns, ObjectNames};

/// The provider that is an addon.
pub(crate) const EXTERNAL_DNS: &str = "external-dns";

/// The provider that is protokube, by the name of what does it in kOps.
pub(crate) const DNS_CONTROLLER: &str = "dns-controller";

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

/// What protokube publishes by a completed spec; `None`: no names of objects.
pub(super) fn full_object_names(spec: &ClusterSpec) -> Option<ObjectNames> {
    let config = spec.external_dns.as_ref()?;
    let on = dns_kind(spec) != DnsKind::None
        && config.provider.as_deref() == Some(DNS_CONTROLLER)
        && config.disable != Some(true);
    // As dns-controller's argument in kOps, and unlike external-dns.
    on.then(|| ObjectNames {
        watch_ingress: config.watch_ingress == Some(true),
    })
}
