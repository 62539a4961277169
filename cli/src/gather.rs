//! Gathers what is known of a running cluster into a `fleet::Fleet`: AWS and the API in parallel; then, for each control
//! plane, what its protokube waits for; and for each instance that is not known to have joined, its boot report, and
//! only if that does not explain it, its console.

use crate::api::ApiObjects;
use aws_client::store::Store;
use aws_cloud::fleet::{last_launch_failure, observe_fleet};
use aws_cloud::{CloudClients, console_output};
use engine::{Failure, error_chain};
use fleet::{
    ApiError, AwsFleet, BootStage, Fleet, Group, InstanceStatus, LaunchFailure, Node, RoleWait,
    append_holders, instance_statuses, latest_boot_stage, role_waits,
};
use futures::stream::{self, StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::Pod;
use node::bootstrap::REPORT_LIMIT;
use node::report::{BootReport, report_key};
use node::waits::{WAITS_LIMIT, read_waits, waits_key};
use std::collections::BTreeMap;
use time::OffsetDateTime;

/// Number of instances read in parallel. EC2 answers slowly for consoles.
const PARALLEL: usize = 8;

/// Where the fleet is read from.
#[derive(Clone, Copy, Debug)]
pub struct FleetSources<'a> {
    pub cluster: &'a str,
    pub groups: &'a [Group],
    /// AWS clients for its region.
    pub clients: &'a CloudClients,
    pub store: &'a Store,
}

/// Observes the whole fleet; `answer` is the API's, which comes back with it, empty if the API could not be asked.
pub async fn gather_fleet(
    sources: &FleetSources<'_>,
    answer: impl Future<Output = Result<ApiObjects, ApiError>>,
    now: fn() -> OffsetDateTime,
) -> Result<(Fleet, ApiObjects), Failure> {
    let (aws, answer) = futures::join!(observe_fleet(sources.clients, sources.cluster), answer);
    let aws = aws?;
    let (nodes, objects) = match answer {
        Ok(answer) => (Ok(answer.nodes.iter().map(Node::read).collect()), answer),
        Err(error) => (Err::<Vec<Node>, ApiError>(error), ApiObjects::default()),
    };
    let is_system = |pod: &&Pod| {
        pod.metadata
            .namespace
            .as_deref()
            .is_none_or(|one| one == "kube-system")
    };
    let statuses = instance_statuses(&aws, sources.groups, nodes.as_deref().ok());
    let (mut instances, gaps) = complete_statuses(sources, statuses, now).await;
    append_holders(&mut instances);
    let fleet = Fleet {
        launch_failures: launch_failures(sources, &aws).await?,
        scaling_groups: aws.scaling_groups,
        instances,
        nodes,
        pods: objects.pods.iter().filter(is_system).cloned().collect(),
        gaps,
    };
    Ok((fleet, objects))
}

/// The instances by group and id, with waits and boot stages, and what could not be read.
async fn complete_statuses(
    sources: &FleetSources<'_>,
    statuses: Vec<InstanceStatus>,
    now: fn() -> OffsetDateTime,
) -> (Vec<InstanceStatus>, Vec<String>) {
    let found: Vec<(InstanceStatus, Option<String>)> = stream::iter(statuses)
        .map(|status| complete_status(sources, status, now))
        .buffer_unordered(PARALLEL)
        .collect()
        .await;
    let (mut instances, gaps): (Vec<_>, Vec<_>) = found.into_iter().unzip();
    let mut gaps: Vec<String> = gaps.into_iter().flatten().collect();
    instances.sort_by(|a, b| (a.group(), &a.instance.id).cmp(&(b.group(), &b.instance.id)));
    gaps.sort();
    gaps.dedup();
    (instances, gaps)
}

/// An instance with what its protokube waits for and its boot stage, as far as they apply; and what could not be read.
async fn complete_status(
    sources: &FleetSources<'_>,
    mut status: InstanceStatus,
    now: fn() -> OffsetDateTime,
) -> (InstanceStatus, Option<String>) {
    let mut unread = None;
    if status.has_waits() {
        (status.waits, unread) = read_waiting_roles(sources, &status.instance.id, now()).await;
    }
    if !status.membership.is_missing() {
        return (status, unread);
    }
    let (boot, gap) = match BootStage::from_ec2_state(&status.instance, now()) {
        Some(boot) => (boot, None),
        None => running_boot_stage(sources, &status, now).await,
    };
    status.boot = Some(boot);
    (status, unread.or(gap))
}

/// The boot stage of a running instance: from its boot report, else from what its protokube waits for, else from its
/// console, which is read only then; and what could not be read.
async fn running_boot_stage(
    sources: &FleetSources<'_>,
    status: &InstanceStatus,
    now: fn() -> OffsetDateTime,
) -> (BootStage, Option<String>) {
    let id = &status.instance.id;
    let (report, unread) = match read_report(sources, id).await {
        Ok(report) => (report.as_ref().map(BootStage::from_report), None),
        Err(gap) => (None, Some(gap)),
    };
    if let Some(report) = report.as_ref().filter(|one| status.is_explained_by(one)) {
        return (report.clone(), unread);
    }
    if let Some(cause) = status.waits.first() {
        return (BootStage::from_wait(cause), unread);
    }
    let (console, gap) = match console_output(sources.clients, id).await {
        Ok(console) => {
            let read = |text: &str| BootStage::from_console(&status.instance, text, now());
            (console.map(|console| read(&console.text)), unread)
        }
        Err(failure) => (None, Some(unread.unwrap_or(failure.to_string()))),
    };
    let latest = latest_boot_stage(report, console);
    let boot = latest.unwrap_or_else(|| BootStage::without_report(&status.instance, now()));
    (boot, gap)
}

/// The boot reports of these instances that the store has, by instance, and what could not be read.
pub async fn read_boot_reports(
    sources: &FleetSources<'_>,
    instances: &[String],
) -> (BTreeMap<String, BootReport>, Vec<String>) {
    let found: Vec<_> = stream::iter(instances)
        .map(async |id| (id, read_report(sources, id).await))
        .buffered(PARALLEL)
        .collect()
        .await;
    let (mut reports, mut gaps) = (BTreeMap::new(), Vec::new());
    for (id, report) in found {
        match report {
            Ok(Some(report)) => drop(reports.insert(id.clone(), report)),
            Ok(None) => {}
            Err(gap) => gaps.push(gap),
        }
    }
    (reports, gaps)
}

/// An instance's boot report in the state store.
async fn read_report(
    sources: &FleetSources<'_>,
    instance: &str,
) -> Result<Option<BootReport>, String> {
    let key = format!("{}/{}", sources.cluster, report_key(instance));
    // An instance may have written anything.
    let object = sources.store.get_first(&key, REPORT_LIMIT + 1).await;
    let object = object.map_err(|error| error_chain(&error))?;
    let Some(bytes) = object else {
        return Ok(None);
    };
    if bytes.len() > REPORT_LIMIT {
        return Err(format!(
            "{key} in the store has more than {REPORT_LIMIT} bytes, the limit of a boot report"
        ));
    }
    serde_json::from_slice(&bytes)
        .map(Some)
        .map_err(|error| format!("{key} in the store is not a boot report: {error}"))
}

/// What a control plane's protokube waits for, and why that could not be read.
async fn read_waiting_roles(
    sources: &FleetSources<'_>,
    instance: &str,
    now: OffsetDateTime,
) -> (Vec<RoleWait>, Option<String>) {
    let key = format!("{}/{}", sources.cluster, waits_key(instance));
    match sources.store.get_first(&key, WAITS_LIMIT + 1).await {
        Ok(None) => (Vec::new(), None),
        Ok(Some(bytes)) => match read_waits(&bytes, instance) {
            Ok(reported) => (role_waits(reported, now), None),
            Err(why) => {
                let gap = format!("{key} in the store is not what protokube waits for: {why}");
                (Vec::new(), Some(gap))
            }
        },
        Err(error) => (Vec::new(), Some(error_chain(&error))),
    }
}

/// The last launch failures of groups that have fewer instances than they want. One call for each such group.
async fn launch_failures(
    sources: &FleetSources<'_>,
    aws: &AwsFleet,
) -> Result<BTreeMap<String, LaunchFailure>, Failure> {
    let groups = aws.scaling_groups.iter();
    let lacking = groups.filter(|group| group.lacks_instances(&aws.instances));
    stream::iter(lacking)
        .map(async |group| {
            let failure = last_launch_failure(sources.clients, &group.name).await?;
            Ok((group.name.clone(), failure))
        })
        .buffer_unordered(PARALLEL)
        .try_filter_map(async |(name, failure)| Ok(failure.map(|failure| (name, failure))))
        .try_collect()
        .await
}
