//! Gathers it: one sweep of AWS beside one look at the API, then, only for machines of which neither says that they
//! joined, their report, and where that does not tell, their console; of every control plane what its protokube waits for.

use super::start::{self, Start};
use super::waiting::{Waiting, waiting};
use super::{Machine, Membership, NodeFacts, waits_or_goes};
use crate::api::{Answer, Trouble};
use aws_client::store::Store;
use aws_cloud::fleet::{Fleet, Instance, LaunchFailure, ScalingGroup, fleet, last_launch_failure};
use aws_cloud::{CloudClients, console};
use engine::Failure;
use futures::stream::{self, StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::Pod;
use node::report::{BootReport, report_key};
use node::waits::{WAITS_LIMIT, read_waits, waits_key};
use spec::api::InstanceGroup;
use std::collections::BTreeMap;
use time::OffsetDateTime;

/// Reports and consoles that are asked for at once; EC2 gives consoles slowly.
const AT_ONCE: usize = 8;

/// Where to look.
#[derive(Clone, Copy, Debug)]
pub struct Places<'a> {
    /// The cluster's name.
    pub cluster: &'a str,
    /// Its instance groups.
    pub groups: &'a [InstanceGroup],
    /// AWS in its region.
    pub clients: &'a CloudClients,
    /// Its store.
    pub store: &'a Store,
}

/// Everything that was seen at one moment.
#[derive(Clone, Debug)]
pub struct Gathered {
    /// Its Auto Scaling groups.
    pub scaling_groups: Vec<ScalingGroup>,
    /// Its machines, by group and id.
    pub machines: Vec<Machine>,
    /// Nodes of the API, or why it could not be asked.
    pub nodes: Result<Vec<NodeFacts>, Trouble>,
    /// Pods of kube-system, if they were asked for.
    pub pods: Vec<Pod>,
    /// Why groups that lack machines do, by Auto Scaling group.
    pub launch_failures: BTreeMap<String, LaunchFailure>,
    /// What could not be looked at: shown, and no reason to end.
    pub gaps: Vec<String>,
}

/// Looks at all of it; `asked` is the API's answer.
pub async fn gather(
    places: &Places<'_>,
    asked: impl Future<Output = Result<Answer, Trouble>>,
    now: fn() -> OffsetDateTime,
) -> Result<Gathered, Failure> {
    let (fleet, answer) = futures::join!(fleet(places.clients, places.cluster), asked);
    let fleet = fleet?;
    let (nodes, pods) = match answer {
        Ok(answer) => {
            let nodes: Vec<NodeFacts> = answer.nodes.iter().map(NodeFacts::of).collect();
            (Ok(nodes), answer.pods)
        }
        Err(trouble) => (Err(trouble), Vec::new()),
    };
    let known = nodes.as_deref().ok();
    let mut gaps = Vec::new();
    let machines = fleet
        .instances
        .iter()
        .map(|instance| (instance, Machine::of(instance, places.groups, known)));
    let found: Vec<(Machine, Option<String>)> = stream::iter(machines)
        .map(|(instance, machine)| with_words(places, instance, machine, now))
        .buffer_unordered(AT_ONCE)
        .collect()
        .await;
    let mut machines = Vec::new();
    for (machine, gap) in found {
        gaps.extend(gap);
        machines.push(machine);
    }
    let holders: BTreeMap<&str, &Instance> = fleet
        .instances
        .iter()
        .map(|instance| (instance.id.as_str(), instance))
        .collect();
    for machine in &mut machines {
        let waits = machine.waits.iter_mut();
        waits.for_each(|one| one.name_holders(&holders));
        if let Some(start) = &mut machine.start {
            start.name_holders(&holders);
        }
    }
    machines.sort_by(|a, b| (&a.group, &a.id).cmp(&(&b.group, &b.id)));
    gaps.sort();
    gaps.dedup();
    Ok(Gathered {
        launch_failures: launch_failures(places, &fleet).await?,
        scaling_groups: fleet.groups,
        machines,
        nodes,
        pods,
        gaps,
    })
}

/// A machine with what its protokube waits for and what is known of its start, where that is of interest; and what could not be
/// looked at.
async fn with_words(
    places: &Places<'_>,
    instance: &Instance,
    machine: Machine,
    now: fn() -> OffsetDateTime,
) -> (Machine, Option<String>) {
    let asked =
        machine.is_control_plane() && instance.state == "running" && !waits_or_goes(instance);
    let (waits, unread) = if asked {
        waits(places, &instance.id, now()).await
    } else {
        (Vec::new(), None)
    };
    let machine = Machine { waits, ..machine };
    if !matches!(
        machine.membership,
        Membership::NotJoined | Membership::Unknown
    ) {
        return (machine, unread);
    }
    let (start, gap) = match start::of_state(instance, now()) {
        Some(start) => (start, None),
        None => told(places, instance, &machine, now).await,
    };
    let start = Some(start);
    (Machine { start, ..machine }, unread.or(gap))
}

/// What a running machine has told: its report, and where that does not tell enough what its protokube waits for, or its console,
/// which is asked for then only.
async fn told(
    places: &Places<'_>,
    instance: &Instance,
    machine: &Machine,
    now: fn() -> OffsetDateTime,
) -> (Start, Option<String>) {
    let (report, unread) = match report(places, &instance.id).await {
        Ok(report) => (report, None),
        Err(gap) => (None, Some(gap)),
    };
    let reported = report.as_ref().map(start::of_report);
    if let Some(start) = reported
        .clone()
        .filter(|start| tells_enough(start, machine))
    {
        return (start, unread);
    }
    if let Some(cause) = machine.waits.first() {
        return (start::of_waiting(cause), unread);
    }
    let (heard, gap) = match console(places.clients, &instance.id).await {
        Ok(console) => {
            let start = |console| start::of_console(instance, &console, now());
            (console.map(start), unread)
        }
        Err(failure) => (None, Some(unread.unwrap_or(failure.to_string()))),
    };
    // What a console says of nodeup without an error, a report of its end says better.
    let older = |heard: &Start| heard.error.is_none() && !heard.stage.starts_with("protokube/");
    let start = match (heard, reported) {
        (Some(heard), Some(reported)) if older(&heard) => reported,
        (Some(heard), _) => heard,
        (None, Some(reported)) => reported,
        (None, None) => start::unknown(instance, now()),
    };
    (start, gap)
}

/// An error does. So does a good end where the API cannot be asked: the machine has most likely joined, unless it is a
/// control plane, whose protokube may be what the API waits for.
fn tells_enough(start: &Start, machine: &Machine) -> bool {
    let joined = machine.membership == Membership::Unknown && !machine.is_control_plane();
    start.error.is_some() || joined
}

/// A machine's report in the store.
async fn report(places: &Places<'_>, instance: &str) -> Result<Option<BootReport>, String> {
    let key = format!("{}/{}", places.cluster, report_key(instance));
    let object = places.store.get(&key).await;
    let object = object.map_err(|error| chain(&error))?;
    let Some(object) = object else {
        return Ok(None);
    };
    serde_json::from_slice(&object.bytes)
        .map(Some)
        .map_err(|error| format!("{key} in the store is not a boot report: {error}"))
}

/// What a control plane's protokube waits for, or why that is not known.
async fn waits(
    places: &Places<'_>,
    instance: &str,
    now: OffsetDateTime,
) -> (Vec<Waiting>, Option<String>) {
    let key = format!("{}/{}", places.cluster, waits_key(instance));
    match places.store.get_first(&key, WAITS_LIMIT + 1).await {
        Ok(None) => (Vec::new(), None),
        Ok(Some(bytes)) => match read_waits(&bytes, instance) {
            Ok(said) => (waiting(said, now), None),
            Err(why) => {
                let gap = format!("{key} in the store is not what protokube waits for: {why}");
                (Vec::new(), Some(gap))
            }
        },
        Err(error) => (Vec::new(), Some(chain(&error))),
    }
}

fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        text.push_str(&format!(": {cause}"));
        next = cause.source();
    }
    text
}

/// Why groups lack machines: asked for each that does.
async fn launch_failures(
    places: &Places<'_>,
    fleet: &Fleet,
) -> Result<BTreeMap<String, LaunchFailure>, Failure> {
    let has = |group: &ScalingGroup| {
        let members = fleet.instances.iter();
        members
            .filter(|one| one.scaling_group.as_ref() == Some(&group.name))
            .count()
    };
    let lacking = fleet
        .groups
        .iter()
        .filter(|group| has(group) < usize::try_from(group.desired).unwrap_or_default());
    stream::iter(lacking)
        .map(async |group| {
            let failure = last_launch_failure(places.clients, &group.name).await?;
            Ok((group.name.clone(), failure))
        })
        .buffer_unordered(AT_ONCE)
        .try_filter_map(async |(name, failure)| Ok(failure.map(|failure| (name, failure))))
        .try_collect()
        .await
}
