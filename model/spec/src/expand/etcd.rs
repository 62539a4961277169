//! The etcd clusters: versions, members and their volumes.

use super::assets::{self, remapped_image};
use super::etcd_clusters::{RETENTION_DAYS, etcd_clusters};
use super::fill::fill;
use super::volumes::{self, DEFAULT_TYPE};
use super::{Context, Findings};
use crate::api::assets::AssetsSpec;
use crate::api::cluster::ClusterSpec;
use crate::api::etcd::{EnvVar, EtcdClusterSpec, EtcdMemberSpec};
use crate::api::{InstanceGroup, InstanceGroupRole};
use crate::validate::versions::Version;
use full::{EtcdCluster, EtcdMember};
use node::backup::{CHANGES_SECONDS, EtcdBackupSettings, parse_period};
use node::components::{EtcdSetting, etcd_setting};
use node::duration::parse_milliseconds;
use std::collections::BTreeMap;

/// Variable with the metrics addresses. The spec has two places for them; both count.
const METRICS: &str = "ETCD_LISTEN_METRICS_URLS";

/// Seconds between two backups, as in kOps.
const BACKUP_INTERVAL: u64 = 15 * 60;

const DAY: u64 = 24 * 60 * 60;

/// Variables of etcd-manager with the retention of backups.
pub(crate) const HOURLY_RETENTION: &str = "ETCD_MANAGER_HOURLY_BACKUPS_RETENTION";
pub(crate) const DAILY_RETENTION: &str = "ETCD_MANAGER_DAILY_BACKUPS_RETENTION";

/// The variable with the public keys for which the spec and the private keys are stored sealed, separated by commas. kOps passes a
/// variable that it does not know to etcd-manager, so a spec with it stays one of kOps.
pub(crate) const BACKUP_RECIPIENTS: &str = "KCTL_ETCD_BACKUP_AGE_RECIPIENTS";

/// Default size of a member's volume, in GiB.
const VOLUME_SIZE: i32 = 20;

/// The etcd version that goes with a Kubernetes version, as kOps pairs them; of 3.5 and 3.6 the patches of its release in August 2026.
pub fn default_etcd_version(kubernetes: &Version) -> &'static str {
    match kubernetes.minor {
        ..=33 => "3.5.31",
        34..=36 => "3.6.12",
        37.. => "3.7.2",
    }
}

/// Fills in versions, requests, backups and volumes. A spec without etcd clusters gets those of a new
/// cluster.
pub(super) fn complete_etcd(spec: &mut ClusterSpec, groups: &[InstanceGroup], context: &Context) {
    if spec.etcd_clusters.is_empty() {
        let control_planes: Vec<&str> = groups
            .iter()
            .filter(|group| group.spec.role == Some(InstanceGroupRole::ControlPlane))
            .map(InstanceGroup::name)
            .collect();
        spec.etcd_clusters = etcd_clusters(&["main", "events"], &control_planes, true, None);
    }
    let base = spec.config_base.as_deref().unwrap_or_default();
    let base = base.trim_end_matches('/').to_owned();
    for etcd in &mut spec.etcd_clusters {
        complete_cluster(etcd, &base, context);
        etcd.etcd_members.iter_mut().for_each(complete_member);
    }
}

fn complete_cluster(etcd: &mut EtcdClusterSpec, base: &str, context: &Context) {
    fill(&mut etcd.provider, "Manager");
    fill(&mut etcd.version, default_etcd_version(&context.version));
    let cpu = if etcd.name == "main" { "200m" } else { "100m" };
    fill(&mut etcd.cpu_request, cpu);
    fill(&mut etcd.memory_request, "100Mi");
    let backups = etcd.backups.get_or_insert_default();
    let store = format!("{base}/backups/etcd/{}", etcd.name);
    fill(&mut backups.backup_store, store);
    let manager = etcd.manager.get_or_insert_default();
    fill(&mut manager.backup_interval, "15m0s");
    fill(&mut manager.backup_retention_days, RETENTION_DAYS);
}

fn complete_member(member: &mut EtcdMemberSpec) {
    fill(&mut member.volume_type, DEFAULT_TYPE);
    fill(&mut member.volume_size, VOLUME_SIZE);
    // As in kOps, encryption is opt-in. `kctl create cluster` sets it.
    fill(&mut member.encrypted_volume, false);
    let volume_type = member.volume_type.clone().unwrap_or_default();
    volumes::fill_performance(
        &volume_type,
        &mut member.volume_iops,
        &mut member.volume_throughput,
    );
}

/// The etcd clusters of a completed spec.
pub(super) fn full_etcd_clusters(
    spec: &ClusterSpec,
    groups: &[InstanceGroup],
    findings: &mut Findings,
) -> Option<Vec<EtcdCluster>> {
    let assets = spec.assets.clone().unwrap_or_default();
    let mut clusters = Vec::with_capacity(spec.etcd_clusters.len());
    for (index, etcd) in spec.etcd_clusters.iter().enumerate() {
        let path = format!("spec.etcdClusters[{index}]");
        let mut members = Vec::with_capacity(etcd.etcd_members.len());
        for (index, member) in etcd.etcd_members.iter().enumerate() {
            let path = format!("{path}.etcdMembers[{index}].instanceGroup");
            match group_zone(&member.instance_group, groups, spec) {
                Some(zone) => members.push(full_member(member, zone)),
                None => findings.add_error(
                    path,
                    format!("no group {:?} with a subnet", member.instance_group),
                    "name a control-plane group of this cluster",
                ),
            }
        }
        clusters.push(EtcdCluster {
            name: etcd.name.clone(),
            version: without_v(etcd.version.as_deref().unwrap_or_default()),
            members,
            cpu_request: etcd.cpu_request.clone().unwrap_or_default(),
            memory_request: etcd.memory_request.clone().unwrap_or_default(),
            image: etcd_image(etcd, &assets),
            environment: etcd_environment(etcd),
            backups: backup_settings(etcd),
        });
    }
    (!findings.has_errors()).then_some(clusters)
}

/// The image in the spec, or the Kubernetes project's image of that version.
fn etcd_image(etcd: &EtcdClusterSpec, assets: &AssetsSpec) -> String {
    let version = without_v(etcd.version.as_deref().unwrap_or_default());
    let default = || assets::registry_image("etcd", &format!("v{version}"));
    remapped_image(&etcd.image.clone().unwrap_or_else(default), assets)
}

/// Environment variables that tune the members. Of the user's variables, only tuning ones are taken; they win over the
/// fields of the spec.
fn etcd_environment(etcd: &EtcdClusterSpec) -> BTreeMap<String, String> {
    let mut environment = BTreeMap::new();
    for (name, time) in [
        ("ETCD_HEARTBEAT_INTERVAL", &etcd.heartbeat_interval),
        ("ETCD_ELECTION_TIMEOUT", &etcd.leader_election_timeout),
    ] {
        if let Some(milliseconds) = time.as_deref().and_then(parse_milliseconds) {
            environment.insert(name.to_owned(), milliseconds.to_string());
        }
    }
    let manager = etcd.manager.clone().unwrap_or_default();
    let mut metrics = manager.listen_metrics_urls;
    if !manager.listen_client_http_urls.is_empty() {
        let urls = manager.listen_client_http_urls.join(",");
        environment.insert("ETCD_LISTEN_CLIENT_HTTP_URLS".to_owned(), urls);
    }
    let taken = |variable: &EnvVar| etcd_setting(&variable.name) == Some(EtcdSetting::Taken);
    for variable in manager.env.into_iter().filter(taken) {
        let value = variable.value.unwrap_or_default();
        if variable.name == METRICS {
            metrics.push(value);
        } else {
            environment.insert(variable.name, value);
        }
    }
    metrics.retain(|url| !url.is_empty());
    if !metrics.is_empty() {
        environment.insert(METRICS.to_owned(), metrics.join(","));
    }
    environment
}

/// Where and how often the etcd cluster is backed up. As in kOps, `backupRetentionDays` is for the daily backups, and etcd-manager's
/// variables win (kOps: `pkg/model/components/etcdmanager/model.go`). That changes are not stored is said too, and not left out.
fn backup_settings(etcd: &EtcdClusterSpec) -> EtcdBackupSettings {
    let manager = etcd.manager.clone().unwrap_or_default();
    let backups = etcd.backups.clone().unwrap_or_default();
    let variable = |name: &str| {
        let mut named = manager.env.iter().filter(|one| one.name == name);
        named.next_back().and_then(|one| one.value.as_deref())
    };
    let period = |name| {
        let period = variable(name).and_then(parse_period);
        period.map(|period| period.as_secs())
    };
    let recipients = split_recipients(variable(BACKUP_RECIPIENTS).unwrap_or_default());
    let days = manager.backup_retention_days.unwrap_or(RETENTION_DAYS);
    let days = u64::try_from(days).unwrap_or_default();
    let interval = manager.backup_interval.as_deref().and_then(parse_period);
    let changes = backups.changes_seconds;
    let changes = changes.and_then(|seconds| u64::try_from(seconds).ok());
    EtcdBackupSettings {
        store: backups.backup_store.unwrap_or_default(),
        interval_seconds: interval.map_or(BACKUP_INTERVAL, |interval| interval.as_secs()),
        hourly_retention_seconds: period(HOURLY_RETENTION).unwrap_or(7 * DAY),
        daily_retention_seconds: period(DAILY_RETENTION).unwrap_or(days * DAY),
        recipients: recipients.map(str::to_owned).collect(),
        changes_seconds: Some(changes.unwrap_or(CHANGES_SECONDS)),
        unknown: serde_json::Map::default(),
    }
}

/// The public keys in the value of [`BACKUP_RECIPIENTS`].
pub(crate) fn split_recipients(value: &str) -> impl Iterator<Item = &str> {
    let all = value.split([',', '\n']).map(str::trim);
    all.filter(|one| !one.is_empty())
}

fn without_v(version: &str) -> String {
    version.strip_prefix('v').unwrap_or(version).to_owned()
}

/// The zone of a group's first subnet. Validation ensures that all its subnets are in one zone.
fn group_zone<'a>(group: &str, groups: &[InstanceGroup], spec: &'a ClusterSpec) -> Option<&'a str> {
    let group = groups.iter().find(|candidate| candidate.name() == group)?;
    let first = group.spec.subnets.first()?;
    let subnet = spec.subnets.iter().find(|subnet| subnet.name == *first)?;
    Some(&subnet.zone)
}

fn full_member(member: &EtcdMemberSpec, zone: &str) -> EtcdMember {
    let volume_type = member.volume_type.clone().unwrap_or_default();
    EtcdMember {
        name: member.name.clone(),
        group: member.instance_group.clone(),
        zone: zone.to_owned(),
        volume_size: member.volume_size.unwrap_or(VOLUME_SIZE),
        volume_iops: volumes::accepted_iops(&volume_type, member.volume_iops),
        volume_throughput: volumes::accepted_throughput(&volume_type, member.volume_throughput),
        volume_type,
        encrypted: member.encrypted_volume == Some(true),
        kms_key_id: member.kms_key_id.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::etcd::{EtcdBackupSpec, EtcdManagerSpec};

    #[test]
    fn backups_have_the_recipients_of_the_variable() {
        let settings = backup_settings(&EtcdClusterSpec {
            manager: Some(EtcdManagerSpec {
                env: vec![EnvVar {
                    name: BACKUP_RECIPIENTS.into(),
                    value: Some("age1a, age1b\n".into()),
                    ..EnvVar::default()
                }],
                ..EtcdManagerSpec::default()
            }),
            ..EtcdClusterSpec::default()
        });
        assert_eq!(settings.recipients, ["age1a", "age1b"]);
        let none = backup_settings(&EtcdClusterSpec::default());
        assert!(none.recipients.is_empty() && none.interval_seconds == 900);
    }

    #[test]
    fn changes_are_stored_unless_the_spec_turns_them_off() {
        for (said, seconds) in [(None, CHANGES_SECONDS), (Some(0), 0), (Some(60), 60)] {
            let settings = backup_settings(&EtcdClusterSpec {
                backups: Some(EtcdBackupSpec {
                    changes_seconds: said,
                    ..EtcdBackupSpec::default()
                }),
                ..EtcdClusterSpec::default()
            });
            assert_eq!(settings.changes_seconds, Some(seconds), "{said:?}");
        }
    }

    #[test]
    fn the_users_variables_win_and_only_those_that_tune_a_member_are_taken() {
        let variable = |name: &str, value: &str| EnvVar {
            name: name.into(),
            value: Some(value.into()),
            ..EnvVar::default()
        };
        let environment = etcd_environment(&EtcdClusterSpec {
            heartbeat_interval: Some("250ms".into()),
            leader_election_timeout: Some("1m2s".into()),
            manager: Some(EtcdManagerSpec {
                env: vec![
                    variable("ETCD_QUOTA_BACKEND_BYTES", "8589934592"),
                    variable("ETCD_NAME", "other"),
                    variable("ETCD_FORCE_NEW_CLUSTER", "true"),
                    variable("ETCD_LISTEN_METRICS_URLS", "http://0.0.0.0:8082"),
                    variable("ETCD_MANAGER_DAILY_BACKUPS_RETENTION", "90d"),
                    variable("ETCD_HEARTBEAT_INTERVAL", "300"),
                ],
                listen_metrics_urls: vec!["http://0.0.0.0:8081".into()],
                ..EtcdManagerSpec::default()
            }),
            ..EtcdClusterSpec::default()
        });
        let expected = [
            ("ETCD_ELECTION_TIMEOUT", "62000"),
            ("ETCD_HEARTBEAT_INTERVAL", "300"),
            (
                "ETCD_LISTEN_METRICS_URLS",
                "http://0.0.0.0:8081,http://0.0.0.0:8082",
            ),
            ("ETCD_QUOTA_BACKEND_BYTES", "8589934592"),
        ];
        let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(environment, expected.into());
    }
}
