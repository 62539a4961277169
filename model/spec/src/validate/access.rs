//! Who may reach the cluster: the API, SSH and NodePorts.

use ipnet::IpNet;
use std::net::IpAddr;

use crate::api::Cluster;
use crate::api::cluster::ClusterSpec;
use crate::read::Problem;

use super::attribute_problems;
use super::text::{is_dns_name, is_id};

pub fn check(spec: &ClusterSpec, problems: &mut Vec<Problem>) {
    for (path, sources) in [
        ("spec.kubernetesApiAccess", &spec.kubernetes_api_access),
        ("spec.sshAccess", &spec.ssh_access),
        ("spec.nodePortAccess", &spec.node_port_access),
    ] {
        for (index, source) in sources.iter().enumerate() {
            let range = source.parse::<IpNet>();
            let path = format!("{path}[{index}]");
            if let Ok(IpNet::V6(range)) = range
                && range != range.trunc()
            {
                let message = format!(
                    "{source} is an address in a range of 2^{} addresses",
                    128 - range.prefix_len()
                );
                let hint = format!(
                    "write {}/128 for the address, or {} for the range",
                    range.addr(),
                    range.trunc()
                );
                problems.push(Problem::error(path, message).hint(hint));
            } else if range.is_err() && !is_id("pl", source) {
                let message = format!("\"{source}\" is neither a CIDR nor a prefix list");
                let hint = match source.parse::<IpAddr>() {
                    Ok(IpAddr::V4(_)) => "add /32 for one address",
                    Ok(IpAddr::V6(_)) => "add /128 for one address",
                    Err(_) => {
                        "write a CIDR such as 203.0.113.0/24 or a prefix list such as pl-0123456789abcdef0"
                    }
                };
                problems.push(Problem::error(path, message).hint(hint));
            }
        }
    }
    for (index, name) in spec.additional_sans.iter().enumerate() {
        let host = name.strip_prefix("*.").unwrap_or(name);
        if name.parse::<IpAddr>().is_err() && !is_dns_name(host) {
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

/// True for a range that only somebody means who means everybody: larger than any that belongs to one.
fn is_open_to_all(source: &str) -> bool {
    match source.parse() {
        Ok(IpNet::V4(range)) => range.prefix_len() < 8,
        Ok(IpNet::V6(range)) => range.prefix_len() < 16,
        Err(_) => false,
    }
}

/// Warnings about ports that are open to the internet, which is kOps' default. Not part of `check`: only commands that store a new spec
/// warn, so that plans of clusters that are open on purpose do not repeat it.
pub fn open_access_warnings(cluster: &Cluster) -> Vec<Problem> {
    let spec = &cluster.spec;
    let access = [
        (
            "kubernetesApiAccess",
            "the API",
            &spec.kubernetes_api_access,
            "--admin-access",
        ),
        (
            "sshAccess",
            "port 22 (SSH)",
            &spec.ssh_access,
            "--ssh-access",
        ),
    ];
    let mut problems = Vec::new();
    for (field, what, sources, flag) in access {
        if let Some(index) = sources.iter().position(|source| is_open_to_all(source)) {
            let mut message = format!("{what} is open to the internet, as with kOps");
            if spec.is_ipv6() && field == "sshAccess" {
                message += "; pods of an IPv6 cluster are reached at this port too";
            }
            let hint =
                format!("list your own networks instead; option {flag} of `kctl create cluster`");
            problems.push(Problem::warning(format!("spec.{field}[{index}]"), message).hint(hint));
        }
    }
    attribute_problems(&mut problems, 0, cluster, 0);
    problems
}
