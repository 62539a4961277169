//! Expands a spec into the full spec: one ordered pass that fills in every default. Values set by the
//! user always win.

mod addon_values;
mod addons;
mod amazon_vpc;
mod api;
mod assets;
mod authentication;
mod aws_limits;
mod basics;
mod bastion;
mod bundle;
mod calico;
mod cert_manager;
mod cilium;
mod cloud_config;
mod cluster_autoscaler;
mod components;
mod containerd;
mod control_plane;
mod core_dns;
mod dns;
mod egress_proxy;
mod etcd;
mod etcd_clusters;
mod external_dns;
mod fill;
mod findings;
mod flags;
mod full_group;
mod groups;
mod iam;
mod instances;
mod kindnet;
mod kube_proxy;
mod kube_router;
mod kubelet;
mod labels;
mod load_balancer_controller;
mod machine_type;
mod metrics_server;
mod mixed_instances;
mod network;
mod nitro;
mod node_problem_detector;
mod node_settings;
mod node_termination;
mod pod_identity;
mod pod_identity_webhook;
mod pods;
mod profile;
mod ranges;
mod reservations;
mod snapshot_controller;
mod ssh;
mod user_files;
mod volumes;
mod wanted_facts;

pub(crate) use cloud_config::installs_ebs_csi_driver;
pub(crate) use cluster_autoscaler::{BY_PRIORITY, is_scaled};
pub use dns::{STAND_IN_ZONE, dns_kind};
pub use etcd::default_etcd_version;
pub(crate) use etcd::{BACKUP_RECIPIENTS, DAILY_RETENTION, HOURLY_RETENTION, split_recipients};
pub(crate) use etcd_clusters::etcd_clusters;
pub(crate) use external_dns::{DNS_CONTROLLER, EXTERNAL_DNS};
#[cfg(test)]
pub(crate) use flags::component_flags;
pub use instances::{STAND_IN_IMAGE, STAND_IN_ROOT_DEVICE};
pub(crate) use instances::{arch_of_image, arch_of_type};
pub(crate) use machine_type::{candidate_machine_types, default_machine_type};
pub(crate) use metrics_server::METRICS_SERVER;
pub use network::STAND_IN_ADDRESS;
pub(crate) use network::{DEFAULT_NETWORK, plan_subnet_ranges};
pub(crate) use node_settings::full_containerd;
pub(crate) use user_files::{decode_base64, file_place};
pub(crate) use volumes::least_performance;

pub use wanted_facts::wanted_facts;

use crate::api::{Cluster, InstanceGroup};
use crate::catalog::Catalog;
use crate::read::Problem;
use crate::upgrade::version_before;
use crate::validate::kubernetes_upgrade;
use crate::validate::versions::Version;
use cloud::facts::Facts;
use findings::Findings;
use full::FullSpec;

/// What a spec expands to.
#[derive(Clone, Debug, PartialEq)]
pub struct Expanded {
    /// The full spec, which all later stages read.
    pub full: FullSpec,
    /// The cluster with all defaults filled in, stored as `cluster-completed.spec`.
    pub cluster: Cluster,
    /// The groups likewise, sorted by name.
    pub groups: Vec<InstanceGroup>,
    /// Findings that do not stop the command.
    pub warnings: Vec<Problem>,
}

/// Input that all areas of the expansion share.
struct Context<'a> {
    name: String,
    /// Of nodes, etcd and addons: while an upgrade can be taken back, the version before it.
    version: Version,
    /// Of the control plane's components.
    control_plane_version: Version,
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
    let mut findings = Findings::new(cluster);
    let Some(control_plane_version) = basics::kubernetes_version(&cluster.spec, &mut findings)
    else {
        return Err(findings.into_errors());
    };
    if let Some(problem) = kubernetes_upgrade::find_problem(&cluster.spec) {
        findings.push(problem);
        return Err(findings.into_errors());
    }
    let version = version_before(&cluster.spec).unwrap_or_else(|| control_plane_version.clone());
    if facts.stand_in {
        findings.add_warning(
            "",
            "no AWS call was made: account, images, instance types and hosted zones that are not among \
             the facts are placeholders",
            "pass --facts FILE for real values",
        );
    }
    let context = Context {
        name: cluster.name().to_owned(),
        version,
        control_plane_version,
        facts,
        catalog,
    };
    let mut cluster = cluster.clone();
    let mut groups = groups.to_vec();
    groups.sort_by(|a, b| a.name().cmp(b.name()));
    complete_spec(&mut cluster, &mut groups, &context, &mut findings);
    let full = full_spec(&cluster, &groups, ssh_public_keys, &context, &mut findings);
    if let Some(full) = full.as_ref().filter(|_| !findings.has_errors()) {
        ranges::check_ranges(full, &cluster.spec, facts, &mut findings);
        amazon_vpc::check_services(full, &mut findings);
        calico::check_calico(full, &mut findings);
        kindnet::check_kindnet(full, &mut findings);
        aws_limits::check_aws_limits(full, &groups, &mut findings);
        addon_values::check_addon_values(full, &mut findings);
    }
    match full {
        Some(full) if !findings.has_errors() => Ok(Expanded {
            full,
            cluster,
            groups,
            warnings: findings.into_warnings(),
        }),
        _ => Err(findings.into_errors()),
    }
}

/// Fills in the defaults of all areas. The order matters: each area reads what earlier areas filled in.
fn complete_spec(
    cluster: &mut Cluster,
    groups: &mut [InstanceGroup],
    context: &Context,
    findings: &mut Findings,
) {
    let spec = &mut cluster.spec;
    basics::complete_basics(spec, context, findings);
    profile::complete_profile(spec);
    cloud_config::complete_cloud_config(spec);
    network::complete_network(spec, context, findings);
    pods::complete_pod_network(spec, findings);
    groups::assign_subnets(groups, spec, context, findings);
    dns::complete_dns(spec, context, findings);
    api::complete_api(spec, groups, findings);
    etcd::complete_etcd(spec, groups, context);
    core_dns::complete_core_dns(spec);
    cluster_autoscaler::complete_cluster_autoscaler(spec, context);
    control_plane::complete_control_plane(spec, context, findings);
    kube_proxy::complete_kube_proxy(spec, context);
    kubelet::complete_kubelet(spec, context, findings);
    containerd::complete_containerd(spec, context);
    iam::complete_iam(spec);
    node_termination::complete_node_termination(spec);
    node_problem_detector::complete_node_problem_detector(spec);
    groups::complete_groups(groups, spec, context, findings);
}

/// Derives the full spec from a completed spec; `None` only if a problem was reported.
fn full_spec(
    cluster: &Cluster,
    groups: &[InstanceGroup],
    ssh_public_keys: &[String],
    context: &Context,
    findings: &mut Findings,
) -> Option<FullSpec> {
    let spec = &cluster.spec;
    // Compute all parts before the first `?`, so that all problems are reported at once.
    let placement = basics::find_placement(spec, context, findings);
    let network = network::full_network(spec, context, findings);
    let pods = pods::full_pod_network(spec, findings);
    let etcd = etcd::full_etcd_clusters(spec, groups, findings);
    let iam = iam::full_iam(spec, findings);
    let pod_identity = pod_identity::full_pod_identity(spec, findings);
    let node_port_range = control_plane::node_port_range(spec, findings);
    let ssh_key = ssh::ssh_key(spec, context, ssh_public_keys, findings);
    let control_plane = components::full_control_plane(spec, findings);
    let kube_proxy = components::full_kube_proxy(spec, findings);
    let full_groups: Vec<_> = groups
        .iter()
        .filter_map(|group| full_group::full_group(group, spec, context, findings))
        .collect();
    let pods = pods?;
    let mut full = FullSpec {
        name: context.name.clone(),
        placement: placement?,
        kubernetes_version: context.version.to_string(),
        state: basics::state_location(spec, context.facts),
        network: network?,
        addons: addons::full_addons(cluster, groups, &pods.networking, findings),
        images: assets::image_source(&spec.assets.clone().unwrap_or_default()),
        pods,
        dns: dns::full_dns(spec, context),
        api: api::full_api(spec),
        bastion: bastion::full_bastion(spec),
        ssh_access: spec.ssh_access.clone(),
        ssh_key: ssh_key?,
        node_port_access: spec.node_port_access.clone(),
        node_port_range: node_port_range?,
        cloud_labels: spec.cloud_labels.clone(),
        iam: iam?,
        pod_identity,
        etcd: etcd?,
        control_plane: control_plane?,
        kube_proxy,
        egress_proxy: egress_proxy::full_egress_proxy(spec),
        node_termination: node_termination::full_node_termination(spec),
        assets: assets::full_assets(spec, &full_groups, context),
        image_archives: Vec::new(),
        groups: full_groups,
    };
    bundle::take_from_bundle(&mut full, context, findings);
    Some(full)
}
