//! CoreDNS, the cluster's DNS server, with what sets the number of its pods.

use super::manifest::Named;
use super::{Addon, Error};
use crate::api::dns::KubeDNSConfig;
use crate::expand::Expanded;
use serde_json::{Value, json};
use templates::addons::{CoreDns, CoreDnsAutoscaler, Corefile, StubDomain};

/// The machine's name servers: its pods get the file of kubelet's `resolvConf`.
const HOST_SERVERS: &str = "/etc/resolv.conf";

/// The addon; `None` where the user brings a DNS server.
pub(super) fn addon(expanded: &Expanded) -> Result<Option<Addon>, Error> {
    let named = Named::new("coredns.addons.k8s.io", "k8s-1.12");
    let dns = expanded.cluster.spec.kube_dns.clone().unwrap_or_default();
    if dns.provider.as_deref() == Some("None") {
        return Ok(None);
    }
    let tolerations = tolerations(&dns);
    let corefile = match &dns.external_core_file {
        Some(own) => own.clone(),
        None => named.render(&corefile(&dns))?,
    };
    let mut rendered = vec![named.render(&CoreDns {
        corefile,
        image: dns.core_dns_image.clone().unwrap_or_default(),
        cluster_ip: expanded.full.pods.dns_service_ip.to_string(),
        replicas: dns.replicas,
        cpu_request: dns.cpu_request.clone(),
        memory_request: dns.memory_request.clone(),
        memory_limit: dns.memory_limit.clone(),
        tolerations: tolerations.clone(),
        affinity: dns.affinity.clone(),
        pod_annotations: Some(dns.pod_annotations.clone()).filter(|given| !given.is_empty()),
    })?];
    if dns.replicas.is_none() {
        rendered.push(named.render(&CoreDnsAutoscaler {
            image: dns.cpa_image.clone().unwrap_or_default(),
            tolerations,
            affinity: dns.affinity.clone(),
        })?);
    }
    named.addon(&rendered).map(Some)
}

fn corefile(dns: &KubeDNSConfig) -> Corefile {
    let domain = dns.domain.as_deref().unwrap_or_default();
    let mut upstreams = dns.upstream_nameservers.clone();
    if upstreams.is_empty() {
        upstreams.push(HOST_SERVERS.to_owned());
    }
    let stub = |(domain, servers): (&String, &Vec<String>)| StubDomain {
        domain: format!("{}:53", domain.trim_end_matches('.')),
        servers: servers.clone(),
    };
    // A domain without servers would forward to nobody, which CoreDNS refuses.
    let stubs = dns
        .stub_domains
        .iter()
        .filter(|(_, servers)| !servers.is_empty());
    Corefile {
        domain: format!("{}.", domain.trim_end_matches('.')),
        upstreams,
        stubs: stubs.map(stub).collect(),
    }
}

fn tolerations(dns: &KubeDNSConfig) -> Vec<Value> {
    if dns.tolerations.is_empty() {
        vec![json!({ "key": "CriticalAddonsOnly", "operator": "Exists" })]
    } else {
        dns.tolerations.clone()
    }
}
