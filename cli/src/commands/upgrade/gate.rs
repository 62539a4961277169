//! What a cluster must satisfy before an upgrade, and again before it is finalized.

use super::step::{Step, StepKind};
use crate::args::{DrainTimeoutAction, ReplacementOptions, RollingUpdate, Upgrade};
use crate::commands::etcd::EtcdReports;
use crate::commands::rolling_update::Forecast;
use crate::commands::session::Session;
use crate::error::{CommandError, ErrorContext};
use etcd_rules::find_upgrade_obstacle;
use fleet::{Fleet, Health, check_health, read_deprecated_apis};
use serde::Serialize;
use spec::api::Cluster;
use spec::api::cluster::ClusterSpec;
use spec::upgrade::{
    check_addons, etcd_minor_changes, etcd_problems, kubelet_problems, named_apis,
    unfinished_problems, version_before,
};
use spec::validate::versions::Version;
use std::time::Duration;

/// A check and what it found.
#[derive(Clone, Debug, Serialize)]
pub struct Check {
    pub name: &'static str,
    /// What stands against the upgrade.
    pub problems: Vec<String>,
    /// What to know before it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// Checks the running cluster. Fails if its API cannot be asked.
pub async fn check_upgrade(
    name: &str,
    step: &Step,
    args: &Upgrade,
    session: &Session<'_>,
) -> Result<Vec<Check>, CommandError> {
    let (current, target) = (&step.from, &step.to);
    let rolling_update = replace_all(args);
    let forecast = Forecast::observe(name, &rolling_update, session).await?;
    let view = &forecast.view;
    let cluster = forecast.inspector().cluster();
    let nodes = view.fleet.nodes.as_deref().unwrap_or_default();
    let nodes: Vec<(&str, &str)> = nodes
        .iter()
        .map(|node| (node.name.as_str(), node.version.as_str()))
        .collect();
    let health = check_health(forecast.inspector().groups(), &view.fleet);
    let mut skew = unfinished_problems(current, &nodes);
    skew.extend(kubelet_problems(target, &nodes));
    if step.kind == StepKind::Finalize {
        skew.extend(untried_problems(&cluster.spec, &view.fleet));
    }
    let mut etcd = etcd_problems(
        &cluster.state.cluster.object.spec,
        &cluster.completed.etcd_versions,
        target,
    );
    etcd.extend(etcd_obstacles(name, &forecast, target, session).await?);
    for unhealthy in &view.observed.etcd {
        etcd.extend(unhealthy.members.iter().filter_map(|member| {
            let problem = member.problem.as_ref()?;
            Some(format!(
                "member {} of etcd cluster {} is not healthy: {problem}",
                member.name, unhealthy.name
            ))
        }));
    }
    let check = |name, problems| Check {
        name,
        problems,
        warnings: Vec::new(),
    };
    let addons = check_addons(&cluster.state.cluster.object.spec, target);
    Ok(vec![
        check("health", health_problems(&health)),
        check("version skew", skew),
        check("etcd", etcd),
        Check {
            name: "deprecated APIs",
            problems: api_problems(&forecast, target).await?,
            warnings: list_unknown_apis(&cluster.state.cluster.object.spec, step),
        },
        Check {
            name: "addons",
            problems: addons.problems,
            warnings: addons.warnings,
        },
        check("budgets", forecast.stopping.clone()),
    ])
}

/// Control planes of which it is not known that they run the version of the upgrade: there is no way back from what nobody has tried.
fn untried_problems(updated: &Cluster, fleet: &Fleet) -> Vec<String> {
    if version_before(&updated.spec).is_none() {
        return vec!["no `kctl update` has given the version to control planes".to_owned()];
    }
    let control_planes = fleet.instances.iter();
    let control_planes = control_planes.filter(|one| one.is_control_plane() && one.is_counted());
    let old = control_planes.filter(|one| one.up_to_date.is_current() != Some(true));
    old.map(|one| {
        format!(
            "control plane {} is not known to be up to date: `kctl reconcile` replaces it",
            one.instance.id
        )
    })
    .collect()
}

/// What holds up a minor upgrade of etcd that comes with the target, as the members report it.
async fn etcd_obstacles(
    name: &str,
    forecast: &Forecast<'_>,
    target: &Version,
    session: &Session<'_>,
) -> Result<Vec<String>, CommandError> {
    let cluster = forecast.inspector().cluster();
    let spec = &cluster.state.cluster.object.spec;
    let changed = etcd_minor_changes(spec, &cluster.completed.etcd_versions, target);
    if changed.is_empty() {
        return Ok(Vec::new());
    }
    let reports = EtcdReports::find(name, session).await?.unwrap_or_default();
    let found = changed
        .into_iter()
        .filter_map(|etcd| find_upgrade_obstacle(etcd, &reports.members, &reports.records));
    Ok(found
        .map(|(message, next)| format!("{message}: {next}"))
        .collect())
}

/// The rolling update that an upgrade needs: every instance is replaced.
fn replace_all(args: &Upgrade) -> RollingUpdate {
    let replacement = ReplacementOptions {
        parallelism: 1,
        drain_timeout: Duration::ZERO,
        on_drain_timeout: DrainTimeoutAction::Fail,
        post_drain_delay: Duration::ZERO,
        validation_timeout: Duration::ZERO,
        lock_wait: None,
        no_backup: true,
        reach: args.reach.clone(),
    };
    RollingUpdate {
        force: true,
        ..RollingUpdate::new(args.target.clone(), false, replacement)
    }
}

fn health_problems(health: &Health) -> Vec<String> {
    let findings = health.findings.iter();
    findings
        .map(|finding| {
            format!(
                "{} {}: {}",
                finding.kind.word(),
                finding.name,
                finding.message
            )
        })
        .collect()
}

/// Deprecated APIs that clients use and the target no longer serves.
async fn api_problems(
    forecast: &Forecast<'_>,
    target: &Version,
) -> Result<Vec<String>, CommandError> {
    const NEXT: &str = "see the logs of kube-apiserver, and repeat the command";
    let Some(client) = forecast.inspector().api_client() else {
        return Ok(Vec::new());
    };
    const BROKEN: &str = "the metrics of the API could not be read";
    let request = http::Request::get("/metrics").body(Vec::new());
    let request = request.or_failed(BROKEN, NEXT)?;
    let text = client.request_text(request).await.or_failed(BROKEN, NEXT)?;
    let gone = |minor: Option<u32>| minor.is_some_and(|minor| minor <= target.minor);
    let apis = read_deprecated_apis(&text).into_iter();
    let apis = apis.filter(|api| gone(api.removed_minor));
    Ok(apis
        .map(|api| format!("clients use {}, which {target} does not serve", api.name))
        .collect())
}

/// The APIs that the spec turns on or off by name, before another minor: nothing here knows which minor has which.
fn list_unknown_apis(spec: &ClusterSpec, step: &Step) -> Vec<String> {
    let Step { from, to, .. } = step;
    if from.minor == to.minor {
        return Vec::new();
    }
    let apis = named_apis(spec).into_iter();
    apis.map(|api| {
        format!(
            "spec.kubeAPIServer.runtimeConfig names {api}: kctl does not know whether {to} still has it; if not, kube-apiserver ends at its \
             start"
        )
    })
    .collect()
}
