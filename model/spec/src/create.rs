//! New clusters: the spec that `kctl create cluster` writes for its options, by kOps' rules.

mod api;
pub(crate) mod audit;
mod cloud_labels;
mod groups;
mod network;
mod networking;
mod options;
mod wanted_facts;

pub use groups::labelled_group;
pub use options::{Authorization, CreateOptions, Topology};
pub use wanted_facts::wanted_facts;

use crate::api::authorization::{
    AlwaysAllowAuthorizationSpec, AuthorizationSpec, RBACAuthorizationSpec,
};
use crate::api::cluster::ClusterSpec;
use crate::api::iam::{IAMSpec, ServiceAccountIssuerDiscoveryConfig};
use crate::api::kube_apiserver::KubeAPIServerConfig;
use crate::api::kube_controller_manager::KubeControllerManagerConfig;
use crate::api::kube_proxy::KubeProxyConfig;
use crate::api::kube_scheduler::KubeSchedulerConfig;
use crate::api::kubelet::KubeletConfigSpec;
use crate::api::metadata::Metadata;
use crate::api::{Cluster, InstanceGroup};
use crate::catalog::{DEFAULT_MINOR, recommended_patch};
use crate::expand::etcd_clusters;
use crate::read::Problem;
use crate::validate::versions::{NEWEST_MINOR, OLDEST_MINOR, Version};
use cloud::facts::Facts;
use std::collections::BTreeMap;

/// From where the API and SSH are reached when nobody says: everywhere.
const EVERYWHERE: [&str; 2] = ["0.0.0.0/0", "::/0"];

#[derive(Clone, Debug, PartialEq)]
pub struct NewCluster {
    pub cluster: Cluster,
    /// Its groups, sorted by name.
    pub groups: Vec<InstanceGroup>,
    /// What its author should know.
    pub warnings: Vec<Problem>,
}

/// The spec of a new cluster. Fails with all problems at once, each under the flag that caused it.
pub fn create_cluster(options: &CreateOptions, facts: &Facts) -> Result<NewCluster, Vec<Problem>> {
    create_cluster_with(options, facts, |_| Ok(()))
}

/// The same with a change of the cluster on the way (`--set`, `--unset`): after all that options
/// decide, before subnets get the ranges they lack.
pub fn create_cluster_with(
    options: &CreateOptions,
    facts: &Facts,
    change: impl FnOnce(&mut Cluster) -> Result<(), Vec<Problem>>,
) -> Result<NewCluster, Vec<Problem>> {
    let mut problems = Vec::new();
    check_options(options, &mut problems);
    check_zones(options, facts, &mut problems);
    let mut spec = basic_spec(options, &mut problems);
    let placed = network::plan_vpc(options, facts, &mut spec, &mut problems);
    networking::choose_plugin(options, &mut spec, &mut problems);
    network::set_topology(options, facts, &mut spec, &mut problems);
    network::set_ipv6(options, facts, &mut spec);
    api::choose_api_access(options, &mut spec);
    let mut groups = groups::build_groups(options, facts, &spec, &placed, &mut problems);
    let control_planes: Vec<&str> = groups::control_planes(&groups);
    spec.etcd_clusters = etcd_clusters(
        &options.etcd_clusters(),
        &control_planes,
        options.encrypt_etcd_storage.unwrap_or(true),
        options.etcd_storage_type.as_deref(),
    );
    groups.sort_by(|a, b| a.name().cmp(b.name()));
    let mut cluster = Cluster {
        metadata: Metadata::with_name(&options.name),
        spec: Box::new(spec),
    };
    if let Err(mut found) = change(&mut cluster) {
        problems.append(&mut found);
    }
    network::assign_ranges(&mut cluster.spec, facts, &mut problems);
    if problems.iter().any(Problem::is_error) {
        return Err(problems);
    }
    Ok(NewCluster {
        cluster,
        groups,
        warnings: problems,
    })
}

/// What no later step notices.
fn check_options(options: &CreateOptions, problems: &mut Vec<Problem>) {
    let mut error = |flag: &str, message: &str, hint: &str| {
        problems.push(Problem::error(flag, message).hint(hint));
    };
    if options.name.is_empty() {
        let hint = "name it by the DNS name its instances will have: dev.example.com";
        error("NAME", "a cluster needs a name", hint);
    }
    if options.zones.is_empty() {
        let hint = "name the availability zones: --zones eu-west-1a,eu-west-1b,eu-west-1c";
        error("--zones", "a cluster needs a zone", hint);
    }
    let zones = options.control_plane_zones.len();
    if options
        .control_plane_count
        .is_some_and(|count| count < zones)
    {
        error(
            "--control-plane-count",
            "fewer control planes than control-plane zones",
            "leave one of the two out, or name as many",
        );
    }
    if options.bastion && options.topology != Topology::Private {
        error(
            "--bastion",
            "only a private topology has a bastion",
            "add --topology private",
        );
    }
    if options.ipv6 && !(options.subnets.is_empty() && options.utility_subnets.is_empty()) {
        error(
            "--ipv6",
            "subnets of yours with IPv6 cannot be named by options",
            "leave --subnets and --utility-subnets out, and name them in the spec before the first update",
        );
    }
}

/// Zones are named by hand, and each account has others.
fn check_zones(options: &CreateOptions, facts: &Facts, problems: &mut Vec<Problem>) {
    if facts.zones.is_empty() {
        return;
    }
    for zone in options.all_zones() {
        if !facts.zones.iter().any(|there| there == zone) {
            let flag = match options.zones.iter().any(|named| named == zone) {
                true => "--zones",
                false => "--control-plane-zones",
            };
            let message = format!(
                "{zone} is no zone of its region in account {}",
                facts.account
            );
            let hint = format!("there are {}", facts.zones.join(", "));
            problems.push(Problem::error(flag, message).hint(hint));
        }
    }
}

/// What does not depend on anything else.
fn basic_spec(options: &CreateOptions, problems: &mut Vec<Problem>) -> ClusterSpec {
    let strings = |values: &[&str]| values.iter().map(|value| (*value).to_owned()).collect();
    let admin_access: Vec<String> = match options.admin_access.as_slice() {
        [] => strings(&EVERYWHERE),
        types => types.to_vec(),
    };
    let ssh_access = match options.ssh_access.as_slice() {
        [] => admin_access.clone(),
        types => types.to_vec(),
    };
    let state_store = options.state_store.trim_end_matches('/');
    let cloud_labels = cloud_labels::parse(&options.cloud_labels).unwrap_or_else(|message| {
        let hint = "write key=value,key=\"value, with = and comma\"";
        problems.push(Problem::error("--cloud-labels", message).hint(hint));
        BTreeMap::new()
    });
    let mut spec = ClusterSpec {
        channel: Some(
            options
                .channel
                .clone()
                .unwrap_or_else(|| "stable".to_owned()),
        ),
        cloud_provider: Some("aws".to_owned()),
        config_base: Some(format!("{state_store}/{}", options.name)),
        kubernetes_version: Some(kubernetes_version(options, problems)),
        authorization: Some(authorization_spec(options.authorization)),
        iam: Some(IAMSpec {
            allow_container_registry: Some(true),
            legacy: Some(false),
            use_service_account_external_permissions: options
                .discovery_store
                .as_ref()
                .map(|_| true),
            ..IAMSpec::default()
        }),
        service_account_issuer_discovery: options.discovery_store.as_ref().map(|store| {
            let store = store.trim_end_matches('/');
            ServiceAccountIssuerDiscoveryConfig {
                discovery_store: Some(format!("{store}/{}", options.name)),
                enable_aws_oidc_provider: Some(true),
                ..ServiceAccountIssuerDiscoveryConfig::default()
            }
        }),
        kubelet: Some(KubeletConfigSpec {
            anonymous_auth: Some(false),
            ..KubeletConfigSpec::default()
        }),
        kubernetes_api_access: admin_access,
        ssh_access,
        cloud_labels,
        non_masquerade_cidr: Some("100.64.0.0/10".to_owned()),
        dns_zone: options.dns_zone.clone(),
        disable_subnet_tags: options.disable_subnet_tags.then_some(true),
        ..ClusterSpec::default()
    };
    set_feature_gates(&options.kubernetes_feature_gates, &mut spec);
    if options.audit_log {
        audit::write_audit_log(&mut spec);
    }
    spec
}

/// The version as given, or the default minor's recommended patch.
fn kubernetes_version(options: &CreateOptions, problems: &mut Vec<Problem>) -> String {
    let newest = recommended_patch(NEWEST_MINOR).unwrap_or_default();
    let default = recommended_patch(DEFAULT_MINOR).unwrap_or_default();
    let given = options.kubernetes_version.as_deref().unwrap_or(default);
    let known = |version: &Version| {
        version.major == 1 && (OLDEST_MINOR..=NEWEST_MINOR).contains(&version.minor)
    };
    if !Version::parse(given).is_some_and(|version| known(&version)) {
        let message = format!("{given:?} is not a Kubernetes version that kctl knows");
        let hint = format!("use 1.{OLDEST_MINOR}.0 to {newest}");
        problems.push(Problem::error("--kubernetes-version", message).hint(hint));
    }
    given.to_owned()
}

fn authorization_spec(mode: Authorization) -> AuthorizationSpec {
    match mode {
        Authorization::Rbac => AuthorizationSpec {
            rbac: Some(RBACAuthorizationSpec {}),
            always_allow: None,
        },
        Authorization::AlwaysAllow => AuthorizationSpec {
            rbac: None,
            always_allow: Some(AlwaysAllowAuthorizationSpec {}),
        },
    }
}

/// `+Gate`, `Gate` and `-Gate` for every component.
fn set_feature_gates(given: &[String], spec: &mut ClusterSpec) {
    if given.is_empty() {
        return;
    }
    let gates: BTreeMap<String, String> = given
        .iter()
        .map(|gate| match gate.strip_prefix('-') {
            Some(off) => (off.to_owned(), "false".to_owned()),
            None => (gate.trim_start_matches('+').to_owned(), "true".to_owned()),
        })
        .collect();
    let kubelet: &mut KubeletConfigSpec = spec.kubelet.get_or_insert_default();
    kubelet.feature_gates = gates.clone();
    let api: &mut KubeAPIServerConfig = spec.kube_api_server.get_or_insert_default();
    api.feature_gates = gates.clone();
    let manager: &mut KubeControllerManagerConfig =
        spec.kube_controller_manager.get_or_insert_default();
    manager.feature_gates = gates.clone();
    let proxy: &mut KubeProxyConfig = spec.kube_proxy.get_or_insert_default();
    proxy.feature_gates = gates.clone();
    let scheduler: &mut KubeSchedulerConfig = spec.kube_scheduler.get_or_insert_default();
    scheduler.feature_gates = gates;
}
