//! Rules of external-dns.

use crate::api::DnsType;
use crate::api::cluster::ClusterSpec;
use crate::api::dns::ExternalDNSConfig;
use crate::expand::EXTERNAL_DNS;
use crate::read::Problem;

pub fn check(spec: &ClusterSpec, problems: &mut Vec<Problem>) {
    let Some(config) = &spec.external_dns else {
        return;
    };
    if config.provider.as_deref() != Some(EXTERNAL_DNS) {
        check_without(config, problems);
        return;
    }
    let topology = spec.topology.as_ref();
    let dns = topology.and_then(|topology| topology.dns.as_ref());
    if dns.and_then(|dns| dns.type_) == Some(DnsType::None) {
        let path = "spec.externalDns.provider";
        let problem = Problem::error(path, "external-dns needs a hosted zone");
        problems.push(problem.hint("set topology.dns.type to Public or Private, or remove it"));
    }
    let namespace = config.watch_namespace.as_deref().unwrap_or_default();
    if !["", "kube-system"].contains(&namespace) {
        let path = "spec.externalDns.watchNamespace";
        let problem = Problem::error(path, "external-dns looks in all namespaces or in one");
        problems.push(problem.hint("write kube-system, as in kOps, or remove it"));
    }
}

/// What dns-controller does in kOps for Services and Ingresses.
fn check_without(config: &ExternalDNSConfig, problems: &mut Vec<Problem>) {
    let given = |text: &Option<String>| text.as_ref().is_some_and(|text| !text.is_empty());
    for (field, wanted) in [
        ("disable", config.disable == Some(true)),
        ("watchIngress", config.watch_ingress == Some(true)),
        ("watchNamespace", given(&config.watch_namespace)),
        ("priorityClassName", given(&config.priority_class_name)),
    ] {
        if wanted {
            let problem = Problem::error(
                format!("spec.externalDns.{field}"),
                "without external-dns, protokube publishes the cluster's own names only",
            );
            problems
                .push(problem.hint("set spec.externalDns.provider: external-dns, or remove it"));
        }
    }
}
