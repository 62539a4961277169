//! Names of the cluster and its groups, and the cloud names made of them.

use crate::api::cluster::ClusterSpec;
use crate::api::{DnsType, InstanceGroup};
use crate::read::Problem;
use node::names::{self, dns};

use super::ClusterInput;
use super::made_names::scaling_group_name;
use super::text::{is_dns_label, is_dns_name};

/// EC2's limit of launch template names.
const LAUNCH_TEMPLATE_NAME: usize = 128;
/// The limit of names of security groups, Auto Scaling groups and key pairs.
const NAME: usize = 255;
/// The limit of keys of tags, of all services.
const TAG_KEY: usize = 128;
/// The limit of a whole DNS name.
const DNS_NAME: usize = 253;

pub fn check_cluster(input: &ClusterInput<'_>, problems: &mut Vec<Problem>) {
    let spec = &input.cluster.spec;
    check_cluster_name(input.cluster.name(), spec, problems);
    check_internal_name(input, problems);
    check_cloud_names(input, problems);
    check_store_locations(spec, problems);
    if let Some(cloud) = spec
        .cloud_provider
        .as_deref()
        .filter(|cloud| *cloud != "aws")
    {
        let message = format!("\"{cloud}\" is not a cloud that kctl works with");
        problems.push(Problem::error("spec.cloudProvider", message).hint("use aws"));
    }
}

/// Without DNS instances find the API by their own list of hosts, which has the usual name.
fn check_internal_name(input: &ClusterInput<'_>, problems: &mut Vec<Problem>) {
    let spec = &input.cluster.spec;
    let usual = dns::api_internal(input.cluster.name());
    let other = spec.master_internal_name.as_ref();
    let Some(other) = other.filter(|name| without_dns(spec) && **name != usual) else {
        return;
    };
    let message =
        format!("no instance of a cluster without DNS finds {other}: they know the API as {usual}");
    let hint = "leave it out, or publish names: topology.dns.type Public or Private";
    problems.push(Problem::error("spec.masterInternalName", message).hint(hint));
}

fn without_dns(spec: &ClusterSpec) -> bool {
    let dns = spec.topology.as_ref().and_then(|one| one.dns.as_ref());
    dns.and_then(|dns| dns.type_) == Some(DnsType::None)
}

/// Keys and secrets have one place in the state store, kOps' usual one.
fn check_store_locations(spec: &ClusterSpec, problems: &mut Vec<Problem>) {
    let Some(base) = spec.config_base.as_deref() else {
        return;
    };
    let base = base.trim_end_matches('/');
    let places = [
        ("spec.configStore", &spec.config_store, base.to_owned()),
        ("spec.keyStore", &spec.key_store, format!("{base}/pki")),
        (
            "spec.secretStore",
            &spec.secret_store,
            format!("{base}/secrets"),
        ),
    ];
    for (path, given, only) in places {
        let elsewhere = given
            .as_deref()
            .filter(|given| given.trim_end_matches('/') != only);
        if let Some(given) = elsewhere {
            let message = format!("{given} is not where kctl keeps it, which is {only}");
            problems
                .push(Problem::error(path, message).hint("leave it out, and move what is there"));
        }
    }
}

fn check_cluster_name(name: &str, spec: &ClusterSpec, problems: &mut Vec<Problem>) {
    let path = "metadata.name";
    if !is_dns_name(name) {
        let message = format!("\"{name}\" is not a DNS name");
        problems.push(
            Problem::error(path, message).hint("use lowercase letters, digits, dashes and dots"),
        );
    } else if name.ends_with(".k8s.local") && !without_dns(spec) {
        // As kOps: without DNS the name is only a name (`usesLegacyGossip`, pkg/apis/kops/validation/validation.go).
        let message =
            format!("{name} asks for gossip names, which kOps removed and kctl never had");
        let hint = "add \"topology: {dns: {type: None}}\", or use a name of a domain you have";
        problems.push(Problem::error(path, message).hint(hint));
    } else if !name.contains('.') {
        let message = format!("{name} has no domain");
        problems.push(
            Problem::error(path, message)
                .hint(format!("use a full name such as {name}.example.com")),
        );
    }
}

/// Names that are made of the cluster's, against the limits of those that are not cut with a hash
/// ([`node::names`]): roles, balancers and queues are, as in kOps.
fn check_cloud_names(input: &ClusterInput<'_>, problems: &mut Vec<Problem>) {
    let name = input.cluster.name();
    let tag = names::ownership_tag(name);
    check_length("metadata.name", "the tag", &tag, TAG_KEY, problems);
    let made = dns::bootstrap_name(name);
    check_length("metadata.name", "the DNS name", &made, DNS_NAME, problems);
}

fn check_length(path: &str, what: &str, name: &str, limit: usize, problems: &mut Vec<Problem>) {
    let length = name.chars().count();
    if length > limit {
        let message = format!("{what} {name} would have {length} characters, AWS takes {limit}");
        problems.push(
            Problem::error(path, message).hint(format!("use a name shorter by {}", length - limit)),
        );
    }
}

pub fn check_group(group: &InstanceGroup, input: &ClusterInput<'_>, problems: &mut Vec<Problem>) {
    let (name, cluster) = (group.name(), input.cluster.name());
    if !name.split('.').all(is_dns_label) {
        let message = format!("\"{name}\" is not a name of a group");
        problems.push(
            Problem::error("metadata.name", message)
                .hint("use lowercase letters, digits and dashes"),
        );
    }
    let made = scaling_group_name(group, cluster);
    check_length(
        "metadata.name",
        "the launch template",
        &made,
        LAUNCH_TEMPLATE_NAME,
        problems,
    );
    check_length(
        "metadata.name",
        "the Auto Scaling group",
        &made,
        NAME,
        problems,
    );
    if let Some(other) = group.metadata.cluster().filter(|other| *other != cluster) {
        let path = "metadata.labels[\"kops.k8s.io/cluster\"]";
        let problem = Problem::error(
            path,
            format!("the group says it belongs to {other}, the cluster is {cluster}"),
        );
        problems.push(problem.hint(format!(
            "write {cluster}, or keep the group with its own cluster"
        )));
    }
}
