//! Rules of `spec.externalDns`.

use crate::api::DnsType;
use crate::api::cluster::ClusterSpec;
use crate::api::dns::ExternalDNSConfig;
use crate::expand::{DNS_CONTROLLER, EXTERNAL_DNS};
use crate::read::Problem;

pub fn check(spec: &ClusterSpec, problems: &mut Vec<Problem>) {
    let Some(config) = &spec.external_dns else {
        return;
    };
    let topology = spec.topology.as_ref();
    let dns = topology.and_then(|topology| topology.dns.as_ref());
    let has_zone = dns.and_then(|dns| dns.type_) != Some(DnsType::None);
    match config.provider.as_deref().unwrap_or(DNS_CONTROLLER) {
        EXTERNAL_DNS => check_external_dns(config, has_zone, problems),
        DNS_CONTROLLER => check_dns_controller(config, has_zone, problems),
        _ => check_none(config, problems),
    }
}

fn check_external_dns(config: &ExternalDNSConfig, has_zone: bool, problems: &mut Vec<Problem>) {
    if !has_zone {
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

/// The provider that is protokube.
fn check_dns_controller(config: &ExternalDNSConfig, has_zone: bool, problems: &mut Vec<Problem>) {
    let given = [
        ("watchIngress", config.watch_ingress == Some(true)),
        ("watchNamespace", has_text(config.watch_namespace.as_ref())),
    ];
    for (field, _) in given.iter().filter(|(_, given)| *given && !has_zone) {
        let path = format!("spec.externalDns.{field}");
        let problem = Problem::error(path, "without a hosted zone no names are published");
        problems.push(problem.hint("set topology.dns.type to Public or Private, or remove it"));
    }
    if has_text(config.priority_class_name.as_ref()) {
        let path = "spec.externalDns.priorityClassName";
        let why = "protokube publishes names, and it is no pod";
        let problem = Problem::error(path, why);
        problems.push(problem.hint("set spec.externalDns.provider: external-dns, or remove it"));
    }
}

fn check_none(config: &ExternalDNSConfig, problems: &mut Vec<Problem>) {
    for (field, given) in [
        ("disable", config.disable == Some(true)),
        ("watchIngress", config.watch_ingress == Some(true)),
        ("watchNamespace", has_text(config.watch_namespace.as_ref())),
        (
            "priorityClassName",
            has_text(config.priority_class_name.as_ref()),
        ),
    ] {
        if given {
            let path = format!("spec.externalDns.{field}");
            let why = "with this provider no names of Services and Ingresses are published";
            let problem = Problem::error(path, why);
            problems.push(problem.hint(
                "set spec.externalDns.provider to dns-controller or external-dns, or remove it",
            ));
        }
    }
}

fn has_text(text: Option<&String>) -> bool {
    text.is_some_and(|text| !text.is_empty())
}
