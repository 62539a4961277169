//! What a spec must satisfy beyond its types: rules that need no cloud, all findings at once.
//!
//! The rules are kOps', and AWS' limits where kOps would leave them to the first failed call.
//! A rule speaks only of what the user wrote: what expansion fills in is right by construction.

mod access;
pub(crate) mod addon_values;
pub(crate) mod addons;
mod amazon_vpc;
mod api_server;
mod assets;
mod authentication;
mod backup_store;
mod bastion;
mod calico;
mod cidr;
mod cilium;
mod cluster_autoscaler;
pub(crate) mod components;
mod containerd;
mod etcd;
mod external_dns;
mod feature_gates;
mod fips;
mod hooks;
mod host;
mod iam;
mod instance_groups;
mod instances;
pub(crate) mod ipv6;
mod kindnet;
mod kube_router;
mod kubelet;
pub(crate) mod kubernetes_upgrade;
mod labels;
mod load_balancer;
mod made_names;
mod metrics_server;
mod mixed_instances;
mod names;
mod network;
mod no_effect;
mod pod_identity;
mod profile;
pub(crate) mod removed_flags;
pub(crate) mod runtime_config;
mod ssh_keys;
mod subnet_plan;
pub(crate) mod subnets;
mod text;
pub mod values;
pub mod versions;
mod volumes;
mod warm_pool;

use crate::api::metadata::CLUSTER_LABEL;
use crate::api::{Cluster, InstanceGroup, Object, Resource, SSHCredential, Spec};
use std::collections::BTreeMap;

use crate::read::{Document, ObjectRef, Problem, first_of, nearest};

pub use access::open_access_warnings;
pub use fips::fips_problems;

/// The objects of one cluster, as the user wrote them.
#[derive(Clone, Copy, Debug)]
pub struct ClusterInput<'a> {
    pub cluster: &'a Cluster,
    pub instance_groups: &'a [InstanceGroup],
    /// Its public SSH keys.
    pub ssh_keys: &'a [SSHCredential],
}

/// Every finding of every rule, errors and warnings, cluster first. Paths are those of the object
/// named in each finding; `locate` gives them places.
pub fn validate(input: &ClusterInput<'_>) -> Vec<Problem> {
    let mut problems = Vec::new();
    check_cluster(input, &mut problems);
    attribute_problems(&mut problems, 0, input.cluster, 0);
    let mut before: BTreeMap<&str, usize> = BTreeMap::new();
    for group in input.instance_groups {
        let first = problems.len();
        check_group(group, input, &mut problems);
        let occurrence = before.entry(group.name()).or_default();
        attribute_problems(&mut problems, first, group, *occurrence);
        *occurrence += 1;
    }
    for key in input.ssh_keys {
        let first = problems.len();
        ssh_keys::check(key, &mut problems);
        attribute_problems(&mut problems, first, key, 0);
    }
    problems
}

fn check_cluster(input: &ClusterInput<'_>, problems: &mut Vec<Problem>) {
    let spec = &input.cluster.spec;
    names::check_cluster(input, problems);
    versions::check(spec, problems);
    kubernetes_upgrade::check(spec, problems);
    network::check(spec, problems);
    subnets::check(spec, problems);
    subnet_plan::check(spec, problems);
    ipv6::check_cluster(spec, problems);
    load_balancer::check(spec, problems);
    bastion::check(input, problems);
    access::check(spec, problems);
    etcd::check(input, problems);
    instance_groups::check_set(input, problems);
    made_names::check_set(input, problems);
    iam::check(spec, problems);
    pod_identity::check(input.cluster.name(), spec, problems);
    labels::check_cloud_labels("spec.cloudLabels", &spec.cloud_labels, problems);
    labels::check_volume_labels(spec, problems);
    assets::check(spec, problems);
    let containerd = spec.containerd.as_ref();
    containerd::check("spec.containerd", containerd, spec, problems);
    calico::check(spec, problems);
    cilium::check(spec, problems);
    amazon_vpc::check(spec, problems);
    kube_router::check(spec, problems);
    kindnet::check(spec, problems);
    cluster_autoscaler::check(spec, problems);
    addon_values::check(spec, problems);
    metrics_server::check(spec, problems);
    components::check(spec, problems);
    api_server::check(spec, problems);
    runtime_config::check(spec, problems);
    addons::check(spec, problems);
    authentication::check(spec, problems);
    external_dns::check(spec, problems);
    kubelet::check("spec.kubelet", spec.kubelet.as_ref(), problems);
    kubelet::check("spec.masterKubelet", spec.master_kubelet.as_ref(), problems);
    removed_flags::check_cluster(spec, problems);
    feature_gates::check_cluster(spec, problems);
    profile::check_cluster(spec, problems);
    host::check_cluster(spec, problems);
    warm_pool::check_cluster(spec, problems);
    no_effect::check(spec, problems);
    values::check(spec, problems);
}

fn check_group(group: &InstanceGroup, input: &ClusterInput<'_>, problems: &mut Vec<Problem>) {
    let spec = &group.spec;
    names::check_group(group, input, problems);
    made_names::check(group, problems);
    instance_groups::check(group, input, problems);
    cluster_autoscaler::check_group(spec, problems);
    instances::check(spec, problems);
    mixed_instances::check(spec, problems);
    warm_pool::check_group(spec, &input.cluster.spec, problems);
    volumes::check(spec, problems);
    ipv6::check_group(spec, &input.cluster.spec, problems);
    labels::check_group(spec, problems);
    let containerd = spec.containerd.as_ref();
    containerd::check("spec.containerd", containerd, &input.cluster.spec, problems);
    kubelet::check("spec.kubelet", spec.kubelet.as_ref(), problems);
    removed_flags::check_group(spec.kubelet.as_ref(), &input.cluster.spec, problems);
    feature_gates::check_group(spec.kubelet.as_ref(), &input.cluster.spec, problems);
    profile::check_group(spec.kubelet.as_ref(), &input.cluster.spec, problems);
    host::check_group(spec, problems);
    values::check(spec, problems);
}

/// Says which object the findings from `first` on are about.
fn attribute_problems<S: Spec>(
    problems: &mut [Problem],
    first: usize,
    object: &Resource<S>,
    occurrence: usize,
) {
    for problem in problems.iter_mut().skip(first) {
        problem.object.get_or_insert_with(|| ObjectRef {
            kind: S::KIND.to_owned(),
            name: object.name().to_owned(),
            occurrence,
        });
    }
}

/// Validates every cluster among documents with its groups and keys, findings placed. A group
/// belongs to the cluster that its label names; without a label to the only cluster there is.
pub fn validate_documents(documents: &[Document]) -> Vec<Problem> {
    let clusters = cluster_names(documents);
    let alone = clusters.len() == 1;
    let mut problems = find_duplicates(documents);
    if clusters.len() > 1 {
        problems.extend(find_strays(documents, &clusters));
    }
    for home in documents {
        let Object::Cluster(cluster) = &home.object else {
            continue;
        };
        let mut own = vec![home];
        let mut groups = Vec::new();
        let mut keys = Vec::new();
        for document in documents {
            if !alone && document.object.metadata().cluster() != Some(cluster.name()) {
                continue;
            }
            match &document.object {
                Object::InstanceGroup(group) => groups.push(group.clone()),
                Object::SSHCredential(key) => keys.push(key.clone()),
                Object::Cluster(_) | Object::Keyset(_) => continue,
            }
            own.push(document);
        }
        let input = ClusterInput {
            cluster,
            instance_groups: &groups,
            ssh_keys: &keys,
        };
        let mut found = first_of(validate(&input));
        locate_problems(&mut found, &own);
        problems.extend(found);
    }
    problems.sort_by_key(|problem| {
        problem
            .place
            .as_ref()
            .map(|place| (place.file.clone(), place.line))
    });
    problems
}

/// The clusters and instance groups that the documents of one command define twice, of which the last would win. Groups of several
/// clusters may share a name. SSH keys are stored by their content, whatever their names.
pub fn find_duplicates(documents: &[Document]) -> Vec<Problem> {
    let mut seen: BTreeMap<(&str, Option<&str>, &str), usize> = BTreeMap::new();
    let mut problems = Vec::new();
    let clusters = cluster_names(documents);
    let only = clusters.first().copied().filter(|_| clusters.len() == 1);
    for document in documents {
        let metadata = document.object.metadata();
        let cluster = match document.object {
            Object::Cluster(_) => None,
            Object::InstanceGroup(_) => metadata.cluster().or(only),
            Object::SSHCredential(_) | Object::Keyset(_) => continue,
        };
        let kind = document.object.kind();
        let count = seen.entry((kind, cluster, &metadata.name)).or_default();
        *count += 1;
        if *count == 2 {
            let message = format!("{kind} {} is defined twice", metadata.name);
            let problem = Problem::error("metadata.name", message);
            let mut problem = problem.hint("rename one of them, or remove it");
            document.locations.locate(&mut problem);
            problems.push(problem);
        }
    }
    problems
}

/// The names of the clusters that documents define.
fn cluster_names(documents: &[Document]) -> Vec<&str> {
    let clusters = documents
        .iter()
        .filter_map(|document| match &document.object {
            Object::Cluster(cluster) => Some(cluster.name()),
            _ => None,
        });
    clusters.collect()
}

/// The objects whose label names a cluster that is not among the known ones.
pub fn find_strays(documents: &[Document], known: &[&str]) -> Vec<Problem> {
    let mut problems = Vec::new();
    let belongs = |document: &&Document| !matches!(document.object, Object::Cluster(_));
    for document in documents.iter().filter(belongs) {
        let metadata = document.object.metadata();
        let Some(stray) = metadata.cluster().filter(|name| !known.contains(name)) else {
            continue;
        };
        let path = format!("metadata.labels[\"{CLUSTER_LABEL}\"]");
        let message = format!("there is no cluster {stray}, neither in the files nor in the store");
        let hint = nearest::nearest_name(stray, known.iter().copied()).map_or_else(
            || "name a cluster that exists, or put its Cluster object into the files".to_owned(),
            |near| format!("did you mean \"{near}\"?"),
        );
        let mut problem = Problem::error(path, message).hint(hint);
        problem.object = Some(ObjectRef {
            kind: document.object.kind().to_owned(),
            name: metadata.name.clone(),
            occurrence: 0,
        });
        document.locations.locate(&mut problem);
        problems.push(problem);
    }
    problems
}

/// Gives findings their places in the documents that the objects were read from, which are those
/// of one cluster.
pub fn locate_problems(problems: &mut [Problem], documents: &[&Document]) {
    for problem in problems {
        let Some(object) = &problem.object else {
            continue;
        };
        let mut same = documents.iter().filter(|document| {
            document.object.kind() == object.kind && document.object.metadata().name == object.name
        });
        if let Some(home) = same.nth(object.occurrence) {
            home.locations.locate(problem);
        }
    }
}
