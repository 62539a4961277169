//! Who may reach the cluster: the API, SSH and NodePorts.

use ipnet::IpNet;

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
        let anyone = |source: &String| ["0.0.0.0/0", "::/0"].contains(&source.as_str());
        if let Some(index) = sources.iter().position(anyone) {
            let message = format!("{what} is open to the internet, as with kOps");
            let hint =
                format!("list your own networks instead; option {flag} of `kctl create cluster`");
            problems.push(Problem::warning(format!("spec.{field}[{index}]"), message).hint(hint));
        }
    }
    attribute_problems(&mut problems, 0, cluster, 0);
    problems
}
