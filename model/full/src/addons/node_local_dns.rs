//! The node-local DNS cache: a DNS server on every node, which pods ask instead of CoreDNS.

use super::manifest::AddonName;
use super::{Addon, Error};
use crate::FullSpec;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use templates::Template;

/// Settings of the cache: `spec.kubeDNS.nodeLocalDNS`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeLocalDns {
    pub image: String,
    /// The address on every node on which it listens.
    pub address: String,
    /// The cluster's DNS domain.
    pub domain: String,
    /// A whole Corefile from the spec.
    pub corefile: Option<String>,
    /// Blocks that are added to the Corefile.
    pub additional: Option<String>,
    /// It asks CoreDNS for names outside the cluster too.
    pub forward_all: bool,
    /// kube-proxy runs in the mode `ipvs`: the address of CoreDNS, which the program does not find out itself then.
    pub server: Option<String>,
    pub cpu_request: Option<String>,
    pub memory_request: Option<String>,
    /// Annotations of its pods.
    pub pod_annotations: BTreeMap<String, String>,
}

/// Its program replaces this by the address of the Service `kube-dns-upstream`.
const CLUSTER_DNS: &str = "__PILLAR__CLUSTER__DNS__";

#[derive(Serialize)]
struct Corefile {
    additional: String,
    domain: String,
    address: String,
    /// The address as it stands before a port.
    health_host: String,
    server: String,
    forward_all: bool,
}

impl Template for Corefile {
    const NAME: &'static str = "node_local_dns/corefile.hbs";
    const SOURCE: &'static str = include_str!("node_local_dns/corefile.hbs");
}

#[derive(Serialize)]
struct Manifest {
    corefile: String,
    annotations: BTreeMap<String, String>,
    image: String,
    address: String,
    cpu_request: Option<String>,
    memory_request: Option<String>,
}

impl Template for Manifest {
    const NAME: &'static str = "node_local_dns/manifest.yaml.hbs";
    const SOURCE: &'static str = include_str!("node_local_dns/manifest.yaml.hbs");
}

pub(super) fn addon(full: &FullSpec) -> Result<Option<Addon>, Error> {
    let Some(cache) = &full.addons.node_local_dns else {
        return Ok(None);
    };
    let named = AddonName::new("nodelocaldns.addons.k8s.io", "k8s-1.12");
    let corefile = match &cache.corefile {
        Some(own) => own.clone(),
        None => named.render_template(&make_corefile(cache))?,
    };
    let scraped = [
        ("prometheus.io/port", "9253"),
        ("prometheus.io/scrape", "true"),
    ];
    let scraped = scraped.map(|(key, value)| (key.to_owned(), value.to_owned()));
    let mut annotations = BTreeMap::from(scraped);
    annotations.extend(cache.pod_annotations.clone());
    let manifest = named.render_template(&Manifest {
        corefile,
        annotations,
        image: cache.image.clone(),
        address: cache.address.clone(),
        cpu_request: cache.cpu_request.clone(),
        memory_request: cache.memory_request.clone(),
    })?;
    named.make_addon(full, &[manifest]).map(Some)
}

fn make_corefile(cache: &NodeLocalDns) -> Corefile {
    let server = cache.server.as_deref().unwrap_or(CLUSTER_DNS);
    let additional = cache.additional.as_deref().unwrap_or_default();
    Corefile {
        additional: additional.trim_end().to_owned(),
        domain: cache.domain.clone(),
        address: cache.address.clone(),
        health_host: if cache.address.contains(':') {
            format!("[{}]", cache.address)
        } else {
            cache.address.clone()
        },
        server: server.to_owned(),
        forward_all: cache.forward_all,
    }
}
