//! Health checks of targets, from the balancer's own address, at the target group's pace.

mod probe;

use super::balancing::{TargetHealth, target_key};
use super::error::{Error, Result, add_context};
use super::netns;
use super::topology::Topology;
use crate::aws_state::{AwsState, HealthCheck};
use crate::lab_paths::LabPaths;
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

/// One target to check: who it is, and from where to where.
#[derive(Debug, Clone, PartialEq)]
pub struct HealthSubject {
    pub group: String,
    /// Target in the form `INSTANCE:PORT`.
    pub target: String,
    pub from: Ipv4Addr,
    pub to: SocketAddrV4,
    pub check: HealthCheck,
}

/// Counts of one target's checks in a row.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Streak {
    pub passed: u32,
    pub failed: u32,
    pub healthy: Option<bool>,
}

impl Streak {
    /// The streak after one more check. The first check decides alone, as on AWS: a target leaves `initial` with it.
    #[must_use]
    pub fn after_check(self, pass: bool, check: &HealthCheck) -> Self {
        let (passed, failed) = if pass {
            (self.passed.saturating_add(1), 0)
        } else {
            (0, self.failed.saturating_add(1))
        };
        let healthy = match self.healthy {
            None => pass,
            Some(false) => passed >= check.healthy_threshold,
            Some(true) => failed < check.unhealthy_threshold,
        };
        Self {
            passed,
            failed,
            healthy: Some(healthy),
        }
    }
}

/// Every target that a balancer in use can send to, by group and target; from the address of its zone.
pub fn list_subjects(world: &AwsState) -> Result<Vec<HealthSubject>> {
    let topology = Topology::from_world(world)?;
    let mut subjects = BTreeMap::new();
    for balancer in &topology.balancers {
        for listener in &balancer.listeners {
            let groups = world
                .target_groups
                .iter()
                .filter(|group| group.arn == listener.target_group);
            for (group, target) in
                groups.flat_map(|group| group.targets.iter().map(move |target| (group, target)))
            {
                let Some(host) = topology.find_host(&target.instance) else {
                    continue;
                };
                let near = balancer
                    .addresses
                    .iter()
                    .find(|at| at.zone == host.instance.zone);
                let any = balancer.addresses.first().filter(|_| balancer.cross_zone);
                let Some(at) = near.or(any).filter(|_| target.state != "draining") else {
                    continue;
                };
                // A target is registered by its IPv4 address, which is also that of its checks.
                let Some(address) = host.instance.private_address() else {
                    continue;
                };
                let to = SocketAddrV4::new(address, group.health_check.port);
                let subject = HealthSubject {
                    group: group.arn.clone(),
                    target: target_key(target),
                    from: at.address,
                    to,
                    check: group.health_check.clone(),
                };
                subjects.insert((group.arn.clone(), target_key(target)), subject);
            }
        }
    }
    Ok(subjects.into_values().collect())
}

/// Checks targets of the world as it changes, and sends what is known of all of them whenever a verdict changes; `pace` 2.0
/// checks twice as often as the target group says. Returns when either end is closed. Blocks: it enters the router's
/// namespace with a runtime of its own, so give it a thread.
pub fn check_health(
    place: &LabPaths,
    worlds: watch::Receiver<Arc<AwsState>>,
    verdicts: &watch::Sender<TargetHealth>,
    pace: f64,
) -> Result<()> {
    let netns = place.router_netns();
    let work = || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        runtime
            .map_err(add_context("starting a runtime for health checks"))?
            .block_on(follow_worlds(worlds, verdicts, pace))
    };
    netns::run_inside(&netns, work)?
}

type Key = (String, String);

async fn follow_worlds(
    mut worlds: watch::Receiver<Arc<AwsState>>,
    verdicts: &watch::Sender<TargetHealth>,
    pace: f64,
) -> Result<()> {
    let (results, mut received) = mpsc::unbounded_channel::<(HealthSubject, bool)>();
    let mut running: BTreeMap<Key, (HealthSubject, tokio::task::AbortHandle)> = BTreeMap::new();
    let mut tasks = JoinSet::new();
    let mut streaks: BTreeMap<Key, Streak> = BTreeMap::new();
    loop {
        let wanted = list_subjects(&worlds.borrow_and_update().clone())?;
        running.retain(|_, (subject, handle)| {
            let stays = wanted.contains(subject);
            if !stays {
                handle.abort();
            }
            stays
        });
        let key = |subject: &HealthSubject| (subject.group.clone(), subject.target.clone());
        for subject in wanted {
            running.entry(key(&subject)).or_insert_with(|| {
                let handle = tasks.spawn(repeat_probe(subject.clone(), results.clone(), pace));
                (subject, handle)
            });
        }
        streaks.retain(|key, _| running.contains_key(key));
        publish_verdicts(verdicts, &streaks);
        loop {
            tokio::select! {
                changed = worlds.changed() => match changed {
                    Ok(()) => break,
                    Err(_) => return Ok(()),
                },
                () = verdicts.closed() => return Ok(()),
                Some((subject, pass)) = received.recv() => {
                    if running.get(&key(&subject)).is_some_and(|(current, _)| *current == subject) {
                        let streak = streaks.entry(key(&subject)).or_default();
                        *streak = streak.after_check(pass, &subject.check);
                        publish_verdicts(verdicts, &streaks);
                    }
                }
                Some(ended) = tasks.join_next() => if ended.is_err_and(|error| error.is_panic()) {
                    return Err(Error::Panicked { netns: "of the router".to_owned(), doing: "checking a target".to_owned() });
                },
            }
        }
    }
}

fn publish_verdicts(verdicts: &watch::Sender<TargetHealth>, streaks: &BTreeMap<Key, Streak>) {
    let mut health = TargetHealth::new();
    for ((group, target), streak) in streaks {
        let word = if streak.healthy == Some(true) {
            "healthy"
        } else {
            "unhealthy"
        };
        health
            .entry(group.clone())
            .or_default()
            .insert(target.clone(), word.to_owned());
    }
    verdicts.send_if_modified(|before| {
        let changed = *before != health;
        *before = health;
        changed
    });
}

async fn repeat_probe(
    subject: HealthSubject,
    results: mpsc::UnboundedSender<(HealthSubject, bool)>,
    pace: f64,
) {
    let seconds = |value: u32| Duration::from_secs_f64(f64::from(value.max(1)) / pace.max(0.001));
    let mut ticks = tokio::time::interval(seconds(subject.check.interval));
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let limit = seconds(subject.check.timeout);
        let result = tokio::time::timeout(limit, probe::probe_target(&subject)).await;
        let outcome = result.unwrap_or_else(|_| Err("no answer in time".to_owned()));
        if let Err(problem) = &outcome {
            tracing::debug!(
                target = subject.target,
                problem,
                "a target failed its check"
            );
        }
        if results.send((subject.clone(), outcome.is_ok())).is_err() {
            return;
        }
    }
}
