//! The etcd clusters: members, groups, volumes.

use crate::api::InstanceGroupRole;
use crate::api::etcd::{EnvVar, EtcdClusterSpec, EtcdMemberSpec};
use crate::expand::{
    BACKUP_RECIPIENTS, DAILY_RETENTION, HOURLY_RETENTION, default_etcd_version, split_recipients,
};
use crate::read::{Problem, nearest};
use crate::upgrade::nodes_version;
use node::backup::{CHANGES_LIMITS, CHANGES_SECONDS, parse_period};
use node::components::{EtcdSetting, etcd_setting, successor_of_setting, taken_etcd_settings};

use super::ClusterInput;
use super::backup_store;
use super::text::{check_unique, is_dns_label};
use super::versions::{Version, hashes_problem};
use super::volumes::{self, VolumeSettings};
use std::time::Duration;

/// The etcd clusters that Kubernetes uses.
pub const NAMES: [&str; 2] = ["main", "events"];

pub fn check(input: &ClusterInput<'_>, problems: &mut Vec<Problem>) {
    let clusters = &input.cluster.spec.etcd_clusters;
    for name in NAMES {
        if !clusters.iter().any(|cluster| cluster.name == name) {
            let problem = Problem::error(
                "spec.etcdClusters",
                format!("etcd cluster {name} is missing"),
            );
            problems.push(problem.hint(format!(
                "add \"- name: {name}\" with one member per control-plane group"
            )));
        }
    }
    let at = |index: usize| format!("spec.etcdClusters[{index}]");
    check_unique(
        clusters
            .iter()
            .enumerate()
            .map(|(index, cluster)| (format!("{}.name", at(index)), cluster.name.as_str())),
        problems,
    );
    for (index, cluster) in clusters.iter().enumerate() {
        // Other names are features by themselves, and in the list of what is not done.
        let listed = ["cilium", "leases"].contains(&cluster.name.as_str());
        if !NAMES.contains(&cluster.name.as_str()) && !listed {
            let message = format!(
                "unknown etcd cluster \"{}\"; kctl supports main and events",
                cluster.name
            );
            let hint = nearest::hint(&cluster.name, &NAMES);
            problems.push(Problem::error(format!("{}.name", at(index)), message).hint(hint));
        }
        check_members(&at(index), cluster, input, problems);
        let base = input.cluster.spec.config_base.as_deref();
        check_backups(&at(index), cluster, base, problems);
        let kubernetes = nodes_version(&input.cluster.spec);
        check_settings(&at(index), cluster, kubernetes.as_ref(), problems);
        problems.extend(image_problem(&at(index), cluster, kubernetes.as_ref()));
    }
}

fn check_members(
    at: &str,
    cluster: &EtcdClusterSpec,
    input: &ClusterInput<'_>,
    problems: &mut Vec<Problem>,
) {
    let count = cluster.etcd_members.len();
    if count == 0 {
        let problem = Problem::error(
            format!("{at}.etcdMembers"),
            format!("etcd cluster {} has no members", cluster.name),
        );
        return problems.push(problem.hint("add one member per control-plane group"));
    }
    if count.is_multiple_of(2) {
        let message = format!(
            "etcd cluster {} has {count} members: it tolerates no more lost members than one of {} would",
            cluster.name,
            count - 1
        );
        problems.push(
            Problem::error(format!("{at}.etcdMembers"), message).hint("use 1, 3 or 5 members"),
        );
    }
    let at = |index: usize| format!("{at}.etcdMembers[{index}]");
    let named = cluster.etcd_members.iter().enumerate();
    check_unique(
        named.map(|(index, member)| (format!("{}.name", at(index)), member.name.as_str())),
        problems,
    );
    for (index, member) in cluster.etcd_members.iter().enumerate() {
        check_one_member(&at(index), member, input, problems);
    }
}

fn check_one_member(
    path: &str,
    member: &EtcdMemberSpec,
    input: &ClusterInput<'_>,
    problems: &mut Vec<Problem>,
) {
    if !is_dns_label(&member.name) {
        let problem = Problem::error(
            format!("{path}.name"),
            format!("\"{}\" is not a name of a member", member.name),
        );
        problems.push(problem.hint("use lowercase letters, digits and dashes, for example a"));
    }
    volumes::check_one(
        &VolumeSettings {
            kind: ("volumeType", member.volume_type.as_deref()),
            size: ("volumeSize", member.volume_size),
            iops: ("volumeIops", member.volume_iops),
            throughput: ("volumeThroughput", member.volume_throughput),
            path,
        },
        problems,
    );
    if input.instance_groups.is_empty() {
        return; // Reported once, for the whole cluster.
    }
    let path = format!("{path}.instanceGroup");
    let group = input
        .instance_groups
        .iter()
        .find(|group| group.name() == member.instance_group);
    match group.map(|group| group.spec.role) {
        Some(None | Some(InstanceGroupRole::ControlPlane)) => {}
        Some(Some(role)) => {
            let problem = Problem::error(
                path,
                format!("group {} has the role {role:?}", member.instance_group),
            );
            problems.push(problem.hint("etcd runs in groups of role ControlPlane"));
        }
        None => {
            let names: Vec<&str> = input
                .instance_groups
                .iter()
                .map(crate::api::Resource::name)
                .collect();
            let message = format!("the cluster has no group \"{}\"", member.instance_group);
            problems.push(
                Problem::error(path, message).hint(nearest::hint(&member.instance_group, &names)),
            );
        }
    }
}

/// Settings of etcd's own: those that tune it are taken, and no others.
fn check_settings(
    at: &str,
    cluster: &EtcdClusterSpec,
    kubernetes: Option<&Version>,
    problems: &mut Vec<Problem>,
) {
    if cluster
        .manager
        .as_ref()
        .is_some_and(|one| one.image.is_some())
    {
        let message = "it is the image of etcd-manager, which kctl does not run";
        let problem = Problem::warning(format!("{at}.manager.image"), message);
        problems.push(problem.hint("remove it: it does nothing"));
    }
    let minor = version_of(cluster, kubernetes).and_then(Version::parse);
    let minor = minor.map_or(0, |version| version.minor);
    let variables = cluster.manager.iter().flat_map(|manager| &manager.env);
    for (index, variable) in variables.enumerate() {
        let path = format!("{at}.manager.env[{index}].name");
        problems.extend(setting_problem(&path, variable, minor));
    }
}

/// The version of an etcd cluster: its own, or the one that goes with Kubernetes.
fn version_of<'a>(etcd: &'a EtcdClusterSpec, kubernetes: Option<&Version>) -> Option<&'a str> {
    let named = etcd.version.as_deref();
    named.or(kubernetes.map(default_etcd_version))
}

/// The image decides what runs, and the version what is checked before members change: they must agree.
fn image_problem(
    at: &str,
    etcd: &EtcdClusterSpec,
    kubernetes: Option<&Version>,
) -> Option<Problem> {
    let image = etcd.image.as_deref()?;
    let named = etcd.version.as_deref();
    let version = version_of(etcd, kubernetes)?;
    let wanted = Version::parse(version)?;
    let path = format!("{at}.image");
    let Some(tag) = image_tag(image).and_then(Version::parse) else {
        let message = format!("its tag does not say which etcd it is: kctl takes it for {version}");
        let hint = format!("set {at}.version to the version of the image");
        return named
            .is_none()
            .then(|| Problem::warning(path, message).hint(hint));
    };
    let tag = Version { pre: None, ..tag };
    let hint = format!("set {at}.version to {tag}, or leave the image out");
    if (tag.major, tag.minor) != (wanted.major, wanted.minor) {
        let message =
            format!("it is etcd {tag}, and the version of this etcd cluster is {version}");
        return Some(Problem::error(path, message).hint(hint));
    }
    if let Some(problem) = hashes_problem(&path, &tag) {
        return Some(problem);
    }
    let message = format!("it is etcd {tag}, and kctl takes it for {version}");
    (tag.patch != wanted.patch).then(|| Problem::warning(path, message).hint(hint))
}

/// `3.5.9-0` of `registry.k8s.io/etcd:3.5.9-0`.
fn image_tag(image: &str) -> Option<&str> {
    let name = image.split('@').next()?.rsplit('/').next()?;
    Some(name.split_once(':')?.1)
}

/// `minor`: of etcd 3.
fn setting_problem(path: &str, EnvVar { name, value, .. }: &EnvVar, minor: u32) -> Option<Problem> {
    if [HOURLY_RETENTION, DAILY_RETENTION].contains(&name.as_str()) {
        let period = value.as_deref().unwrap_or_default();
        return parse_period(period).is_none().then(|| {
            let message = format!("{period:?} is not a period");
            Problem::error(path, message).hint("write 7d, 1y or a duration such as 36h")
        });
    }
    if name == BACKUP_RECIPIENTS {
        let all = value.as_deref().unwrap_or_default();
        let wrong = split_recipients(all).find(|one| !is_age_recipient(one))?;
        let message = format!("{wrong:?} is not a public key of age");
        return Some(
            Problem::error(path, message).hint("write what `age-keygen -y` prints: age1..."),
        );
    }
    if name.starts_with("ETCD_MANAGER_") || !name.starts_with("ETCD_") {
        let message = format!("{name} is a setting of etcd-manager, which kctl does not run");
        return Some(Problem::warning(path, message).hint("remove it: it does nothing"));
    }
    match etcd_setting(name) {
        Some(EtcdSetting::Taken) => {
            let successor = successor_of_setting(name).filter(|_| minor >= 7)?;
            let message = format!("etcd 3.{minor} has no {name} any more, and would ignore it");
            let hint = format!("set {successor} instead, which etcd 3.6 has too");
            Some(Problem::error(path, message).hint(hint))
        }
        Some(EtcdSetting::Refused(does)) => {
            let message = format!("{name} {does}");
            Some(Problem::error(path, message).hint("remove it"))
        }
        None => {
            let message = format!("{name} is no setting of etcd 3.5 to 3.7");
            let known: Vec<String> = taken_etcd_settings().collect();
            let known: Vec<&str> = known.iter().map(String::as_str).collect();
            Some(Problem::error(path, message).hint(nearest::hint(name, &known)))
        }
    }
}

/// A public key of X25519 in the form of age: <https://age-encryption.org/v1>, "The X25519 recipient type".
fn is_age_recipient(text: &str) -> bool {
    let key = bech32::decode(text).ok();
    key.is_some_and(|(kind, key)| kind.as_str() == "age" && key.len() == 32)
}

/// protokube looks once a minute whether a snapshot is due.
const SHORTEST_INTERVAL: Duration = Duration::from_mins(1);

/// protokube refuses a longer one too.
const LONGEST_INTERVAL: Duration = Duration::from_hours(365 * 24);

fn check_backups(
    at: &str,
    cluster: &EtcdClusterSpec,
    base: Option<&str>,
    problems: &mut Vec<Problem>,
) {
    let backups = cluster.backups.as_ref();
    if let Some(store) = backups.and_then(|backups| backups.backup_store.as_deref()) {
        backup_store::check(&format!("{at}.backups.backupStore"), store, base, problems);
    }
    let changes = backups.and_then(|backups| backups.changes_seconds);
    // That a number is not negative is checked for every field.
    if let Some(seconds) = changes.and_then(|seconds| u64::try_from(seconds).ok())
        && !CHANGES_LIMITS.contains(&seconds)
    {
        let problem = Problem::error(
            format!("{at}.backups.changesSeconds"),
            format!(
                "with changes stored every {seconds} seconds, a restore would miss more than an hour"
            ),
        );
        problems.push(problem.hint(format!(
            "use 1 to {}, or 0 to store none; the default is {CHANGES_SECONDS}",
            CHANGES_LIMITS.end()
        )));
    }
    let interval = cluster
        .manager
        .as_ref()
        .and_then(|manager| manager.backup_interval.as_deref());
    if let Some(interval) = interval
        && let Some(period) = parse_period(interval)
        && !(SHORTEST_INTERVAL..=LONGEST_INTERVAL).contains(&period)
    {
        let problem = Problem::error(
            format!("{at}.manager.backupInterval"),
            match period < SHORTEST_INTERVAL {
                true => format!("a snapshot every {interval} would take longer than that"),
                false => format!("a snapshot every {interval} is no backup"),
            },
        );
        problems.push(problem.hint("use 1m or more, up to a year; the default is 15m"));
    }
    if let Some(days) = cluster
        .manager
        .as_ref()
        .and_then(|manager| manager.backup_retention_days)
        .filter(|days| *days < 1)
    {
        let problem = Problem::error(
            format!("{at}.manager.backupRetentionDays"),
            format!("{days} days would keep no snapshot"),
        );
        problems.push(problem.hint("use 1 or more; the default is 90"));
    }
}
