//! From what the user said to what will be: one ordered pass that writes every decision down. What
//! the user said always wins.

mod addons;
mod api;
mod assets;
mod basics;
mod bastion;
mod components;
mod containerd;
mod control_plane;
mod core_dns;
mod dns;
mod egress_proxy;
mod etcd;
mod etcd_clusters;
mod fill;
mod flags;
mod found;
mod full_group;
mod groups;
mod iam;
mod kubelet;
mod labels;
mod machine_type;
mod machines;
mod network;
mod node_settings;
mod pods;
mod proxy;
mod ssh;
mod termination;
mod user_files;
mod volumes;
mod wanted_facts;

pub use dns::{STAND_IN_ZONE, dns_kind};
pub(crate) use etcd_clusters::etcd_clusters;
pub(crate) use flags::api_server as api_server_flags;
pub(crate) use machine_type::{default_machine_type, usual_machine_types};
pub use machines::{STAND_IN_IMAGE, STAND_IN_ROOT_DEVICE};
pub(crate) use machines::{arch_of_image, arch_of_type};
pub use network::STAND_IN_ADDRESS;
pub(crate) use network::{DEFAULT_NETWORK, with_ranges};

pub use wanted_facts::wanted_facts;

use crate::api::{Cluster, InstanceGroup};
use crate::catalog::Catalog;
use crate::read::Problem;
use crate::validate::versions::Version;
use cloud::facts::Facts;
use found::Found;
use full::FullSpec;

/// What a spec expands to.
#[derive(Clone, Debug, PartialEq)]
pub struct Expanded {
    /// Every decision, typed: what all later stages read.
    pub full: FullSpec,
    /// The cluster with every decision written into its own fields: `cluster-completed.spec`.
    pub cluster: Cluster,
    /// The groups likewise, sorted by name.
    pub groups: Vec<InstanceGroup>,
    /// What its author should know.
    pub warnings: Vec<Problem>,
}

/// What every area needs to decide.
struct Known<'a> {
    /// The cluster's name.
    name: String,
    version: Version,
    facts: &'a Facts,
    catalog: &'a Catalog,
}

/// Completes a cluster and its groups and derives the full spec. `ssh_public_keys` are OpenSSH
/// public keys, the first one counts. Fails with all problems at once.
///
/// Expanding the completed cluster and groups again gives the same result.
pub fn expand(
    cluster: &Cluster,
    groups: &[InstanceGroup],
    ssh_public_keys: &[String],
    facts: &Facts,
    catalog: &Catalog,
) -> Result<Expanded, Vec<Problem>> {
    let mut found = Found::about(cluster);
    let Some(version) = basics::version(&cluster.spec, &mut found) else {
        return Err(found.into_errors());
    };
    if facts.stand_in {
        found.warning(
            "",
            "AWS was not asked: account, images, machine types and hosted zones that are not among \
             the facts are made up",
            "use this to look at, not to apply; --facts FILE gives real ones",
        );
    }
    let known = Known {
        name: cluster.name().to_owned(),
        version,
        facts,
        catalog,
    };
    let mut cluster = cluster.clone();
    let mut groups = groups.to_vec();
    groups.sort_by(|a, b| a.name().cmp(b.name()));
    complete(&mut cluster, &mut groups, &known, &mut found);
    let full = full(&cluster, &groups, ssh_public_keys, &known, &mut found);
    match full {
        Some(full) if !found.has_errors() => Ok(Expanded {
            full,
            cluster,
            groups,
            warnings: found.into_warnings(),
        }),
        _ => Err(found.into_errors()),
    }
}

/// Writes every decision into the spec. Each area reads what those before it have decided.
fn complete(cluster: &mut Cluster, groups: &mut [InstanceGroup], known: &Known, found: &mut Found) {
    let spec = &mut cluster.spec;
    basics::complete(spec, known, found);
    network::complete(spec, known, found);
    pods::complete(spec, found);
    groups::place(groups, spec, found);
    dns::complete(spec, known, found);
    api::complete(spec, groups, found);
    etcd::complete(spec, groups, known);
    core_dns::complete(spec);
    control_plane::complete(spec, known);
    proxy::complete(spec, known);
    kubelet::complete(spec, known, found);
    containerd::complete(spec, known);
    iam::complete(spec);
    termination::complete(spec);
    groups::complete(groups, spec, known, found);
}

/// The full spec of a completed one; `None` only where a problem was found.
fn full(
    cluster: &Cluster,
    groups: &[InstanceGroup],
    ssh_public_keys: &[String],
    known: &Known,
    found: &mut Found,
) -> Option<FullSpec> {
    let spec = &cluster.spec;
    // All of them, before any is looked at: every problem is reported at once.
    let placement = basics::placement(spec, known, found);
    let network = network::full(spec, known, found);
    let pods = pods::full(spec, found);
    let etcd = etcd::full(spec, groups, found);
    let iam = iam::full(spec, found);
    let node_port_range = control_plane::node_port_range(spec, found);
    let ssh_key = ssh::key(spec, known, ssh_public_keys, found);
    let control_plane = components::control_plane(spec, found);
    let kube_proxy = components::kube_proxy(spec, found);
    let groups: Vec<_> = groups
        .iter()
        .filter_map(|group| full_group::full(group, spec, known, found))
        .collect();
    let pods = pods?;
    Some(FullSpec {
        name: known.name.clone(),
        placement: placement?,
        kubernetes_version: known.version.to_string(),
        state: basics::state(spec),
        network: network?,
        addons: addons::full(spec, &pods.networking, found),
        pods,
        dns: dns::full(spec, known),
        api: api::full(spec),
        bastion: bastion::full(spec),
        ssh_access: spec.ssh_access.clone(),
        ssh_key: ssh_key?,
        node_port_access: spec.node_port_access.clone(),
        node_port_range: node_port_range?,
        cloud_labels: spec.cloud_labels.clone(),
        iam: iam?,
        etcd: etcd?,
        control_plane: control_plane?,
        kube_proxy,
        egress_proxy: egress_proxy::full(spec),
        node_termination: termination::full(spec),
        assets: assets::full(spec, &groups, known),
        groups,
    })
}
