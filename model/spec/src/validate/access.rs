//! Who may reach the cluster: the API, SSH and NodePorts.

use ipnet::IpNet;

use crate::api::cluster::ClusterSpec;
use crate::read::Problem;

use super::text::{is_dns_name, is_id};

pub fn check(spec: &ClusterSpec, problems: &mut Vec<Problem>) {
    for (path, sources) in [
        ("spec.kubernetesApiAccess", &spec.kubernetes_api_access),
        ("spec.sshAccess", &spec.ssh_access),
        ("spec.nodePortAccess", &spec.node_port_access),
    ] {
        for (index, source) in sources.iter().enumerate() {
            if source.parse::<IpNet>().is_err() && !is_id("pl", source) {
                let problem = Problem::error(
                    format!("{path}[{index}]"),
                    format!("\"{source}\" is neither a CIDR nor a prefix list"),
                );
                let hint = if source.parse::<std::net::IpAddr>().is_ok() {
                    "add /32 for one address"
                } else {
                    "write a CIDR such as 203.0.113.0/24 or a prefix list such as pl-0123456789abcdef0"
                };
                problems.push(problem.hint(hint));
            }
        }
    }
    for (index, name) in spec.additional_sans.iter().enumerate() {
        let host = name.strip_prefix("*.").unwrap_or(name);
        if name.parse::<std::net::IpAddr>().is_err() && !is_dns_name(host) {
            let problem = Problem::error(
                format!("spec.additionalSans[{index}]"),
                format!("\"{name}\" is neither a DNS name nor an address"),
            );
            problems.push(
                problem.hint("write the name as it stands in the URL, without https:// and port"),
            );
        }
    }
}
