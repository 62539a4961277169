//! Defaults of CoreDNS and the node-local DNS cache.

use super::assets::{registry_image, remapped_image};
use super::fill::{fill, fill_list};
use super::{dns_kind, pods};
use crate::api::cluster::ClusterSpec;
use crate::api::dns::NodeLocalDNSConfig;
use crate::validate::addons::CACHE_ADDRESS;
use full::{DnsKind, NodeLocalDns};

/// The IPv6 address of AWS' resolver in every VPC (<https://docs.aws.amazon.com/vpc/latest/userguide/AmazonDNS-concepts.html>).
const RESOLVER_V6: &str = "fd00:ec2::253";

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
    // Pods have no way to the IPv4 address of the instance's resolver, nor to addresses that it knows and DNS64 does not.
    if spec.is_ipv6() {
        let dns = spec.kube_dns.get_or_insert_default();
        fill_list(&mut dns.upstream_nameservers, &[RESOLVER_V6]);
    }
    complete_cache(spec);
}

/// The node-local DNS cache. kOps fills in more for one that is off than one would think.
fn complete_cache(spec: &mut ClusterSpec) {
    let assets = spec.assets.clone().unwrap_or_default();
    let own_names = answers_names_of_its_own(spec);
    let dns = spec.kube_dns.get_or_insert_default();
    let local = dns.node_local_dns.get_or_insert_default();
    fill(&mut local.enabled, false);
    fill(&mut local.cpu_request, "25m");
    fill(&mut local.memory_request, "5Mi");
    fill(
        &mut local.image,
        remapped_image(&registry_image("dns/k8s-dns-node-cache", "1.26.0"), &assets),
    );
    if local.enabled == Some(true) {
        fill(&mut local.local_ip, CACHE_ADDRESS);
        fill(&mut local.forward_to_kube_dns, own_names);
    }
}

/// True if CoreDNS knows names outside the cluster that the instances' name servers do not know.
fn answers_names_of_its_own(spec: &ClusterSpec) -> bool {
    let dns = spec.kube_dns.clone().unwrap_or_default();
    let names = dns_kind(spec) == DnsKind::None;
    names
        || dns.external_core_file.is_some()
        || !dns.stub_domains.is_empty()
        || !dns.upstream_nameservers.is_empty()
}

/// The node-local DNS cache of a completed spec; `None` if it is off.
pub(super) fn full_node_local_dns(spec: &ClusterSpec) -> Option<NodeLocalDns> {
    let dns = spec.kube_dns.clone()?;
    let NodeLocalDNSConfig {
        enabled,
        external_core_file,
        additional_config,
        image,
        local_ip,
        forward_to_kube_dns,
        memory_request,
        cpu_request,
        pod_annotations,
    } = dns.node_local_dns?;
    let proxy = spec.kube_proxy.as_ref();
    let mode = proxy.and_then(|proxy| proxy.proxy_mode.as_deref());
    (enabled == Some(true)).then(|| NodeLocalDns {
        image: image.unwrap_or_default(),
        address: local_ip.unwrap_or_default(),
        domain: dns.domain.unwrap_or_default(),
        corefile: external_core_file,
        additional: additional_config,
        forward_all: forward_to_kube_dns == Some(true),
        server: dns.server_ip.filter(|_| mode == Some("ipvs")),
        cpu_request,
        memory_request,
        pod_annotations,
    })
}
