//! Defaults of CoreDNS and the node-local DNS cache.

use super::assets::{registry_image, remapped_image};
use super::fill::fill;
use super::pods;
use crate::api::cluster::ClusterSpec;

/// Fills in cache sizes, requests, address and images, as in kOps.
pub(super) fn complete_core_dns(spec: &mut ClusterSpec) {
    let server = pods::dns_address(spec);
    let domain = spec.cluster_dns_domain.clone().unwrap_or_default();
    let assets = spec.assets.clone().unwrap_or_default();
    let dns = spec.kube_dns.get_or_insert_default();
    fill(&mut dns.provider, "CoreDNS");
    fill(&mut dns.domain, domain);
    if let Some(server) = server {
        fill(&mut dns.server_ip, server);
    }
    fill(&mut dns.cache_max_size, 1000);
    fill(&mut dns.cache_max_concurrent, 150);
    fill(&mut dns.cpu_request, "100m");
    fill(&mut dns.memory_request, "70Mi");
    fill(&mut dns.memory_limit, "170Mi");
    fill(
        &mut dns.core_dns_image,
        remapped_image(&registry_image("coredns/coredns", "v1.14.2"), &assets),
    );
    fill(
        &mut dns.cpa_image,
        remapped_image(
            &registry_image("cpa/cluster-proportional-autoscaler", "v1.9.0"),
            &assets,
        ),
    );
    let local = dns.node_local_dns.get_or_insert_default();
    fill(&mut local.enabled, false);
    if local.enabled == Some(true) {
        fill(&mut local.local_ip, "169.254.20.10");
        fill(&mut local.cpu_request, "25m");
        fill(&mut local.memory_request, "5Mi");
        fill(
            &mut local.image,
            remapped_image(&registry_image("dns/k8s-dns-node-cache", "1.26.0"), &assets),
        );
    }
}
