//! CoreDNS, the cluster's DNS server, and the autoscaler of its pods.

use crate::addons::manifest::AddonName;
use crate::addons::{Addon, Error};
use crate::{DnsKind, FullSpec};
use std::collections::BTreeMap;
use templates::addons::{CoreDns, CoreDnsAutoscaler, Corefile, StubDomain};

/// The instance's name servers: CoreDNS pods get the file that kubelet's `resolvConf` names.
const HOST_SERVERS: &str = "/etc/resolv.conf";

pub(super) fn core_dns_addon(full: &FullSpec, dns: &crate::CoreDns) -> Result<Addon, Error> {
    let named = AddonName::new("coredns.addons.k8s.io", "k8s-1.12");
    // Without DNS the names of the API are in /etc/hosts of the instances alone.
    let reads_hosts =
        full.dns.kind == DnsKind::None && matches!(dns.corefile, crate::Corefile::Made { .. });
    let corefile = match &dns.corefile {
        crate::Corefile::Own(text) => text.clone(),
        crate::Corefile::Made {
            domain,
            upstreams,
            stub_domains,
        } => {
            let mut made = make_corefile(domain, upstreams, stub_domains);
            made.dns64 = full.is_ipv6();
            made.hosts.extend(reads_hosts.then(|| full.name.clone()));
            named.render_template(&made)?
        }
    };
    let mut rendered = vec![named.render_template(&CoreDns {
        reads_hosts,
        watched_resources: watched_resources(&dns.corefile),
        corefile,
        image: dns.image.clone(),
        cluster_ip: full.pods.dns_service_ip.to_string(),
        replicas: dns.replicas,
        cpu_request: dns.cpu_request.clone(),
        memory_request: dns.memory_request.clone(),
        memory_limit: dns.memory_limit.clone(),
        tolerations: dns.tolerations.clone(),
        affinity: dns.affinity.clone(),
        pod_annotations: Some(dns.pod_annotations.clone()).filter(|given| !given.is_empty()),
    })?];
    if dns.replicas.is_none() {
        rendered.push(named.render_template(&CoreDnsAutoscaler {
            image: dns.autoscaler_image.clone(),
            tolerations: dns.tolerations.clone(),
            affinity: dns.affinity.clone(),
        })?);
    }
    named.make_addon(full, &rendered)
}

/// What the plugin `kubernetes` watches: pods only with `pods verified` (<https://coredns.io/plugins/kubernetes/>). A Corefile of the user's
/// may say so in many ways, with variables and snippets too, and without the right its pods would never be ready.
fn watched_resources(corefile: &crate::Corefile) -> Vec<String> {
    let pods = matches!(corefile, crate::Corefile::Own(_)).then_some("pods");
    let watched = ["endpoints", "namespaces", "services"].into_iter();
    watched.chain(pods).map(str::to_owned).collect()
}

fn make_corefile(
    domain: &str,
    upstreams: &[String],
    stub_domains: &BTreeMap<String, Vec<String>>,
) -> Corefile {
    let mut upstreams = upstreams.to_vec();
    if upstreams.is_empty() {
        upstreams.push(HOST_SERVERS.to_owned());
    }
    let stub = |(domain, servers): (&String, &Vec<String>)| StubDomain {
        domain: format!("{}:53", domain.trim_end_matches('.')),
        servers: servers.clone(),
    };
    // CoreDNS refuses a forward without servers.
    let stubs = stub_domains.iter();
    let stubs = stubs.filter(|(_, servers)| !servers.is_empty());
    Corefile {
        domain: format!("{}.", domain.trim_end_matches('.')),
        hosts: Vec::new(),
        upstreams,
        dns64: false,
        stubs: stubs.map(stub).collect(),
    }
}
