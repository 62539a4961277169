//! The trials: listeners start first, because the pods that try need their addresses.

use super::members::Member;
use super::namespace::forbid_more_pods;
use super::plan::{Planned, plan_connections, plan_packets};
use super::pods::{
    LIFE, START, TRIES, make_pods, nodeup_pod, read_listener, read_report, wait_for_pods,
};
use crate::commands::preflight::{CONNECTIONS, PACKETS};
use full::FullSpec;
use k8s_openapi::api::core::v1::Pod;
use kube::Client;
use node::probe::{
    LISTENER, MOST_TRIALS, Outcome, ProbeReport, Trial, listen_arguments, try_arguments,
};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

/// Time for the end of a pod to reach the API.
const NEWS: Duration = Duration::from_secs(15);

/// What was found.
#[derive(Debug, Default)]
pub(super) struct Findings {
    pub tried: Vec<Tried>,
    pub absent: Vec<Absent>,
}

/// A trial with its outcome.
#[derive(Clone, Debug)]
pub(super) struct Tried {
    pub planned: Planned,
    pub outcome: Outcome,
    /// Bytes of a full packet where it was tried.
    pub packet: Option<u32>,
}

/// A pod that did not do its work.
#[derive(Debug)]
pub(super) struct Absent {
    /// The check that lacks it.
    pub check: &'static str,
    /// Index of the member that it was to run on.
    pub member: usize,
    pub why: String,
}

/// All trials of one pod.
struct Job<'a> {
    check: &'static str,
    from: usize,
    member: &'a Member,
    planned: Vec<Planned>,
}

/// Makes the pods in a namespace, and reads what they report.
pub(super) async fn try_connections(
    client: &Client,
    namespace: &str,
    full: &FullSpec,
    members: &[Member],
) -> Result<Findings, String> {
    let mut findings = Findings::default();
    let listeners = listener_pods(full, members).map_err(|error| error.to_string())?;
    let refused = make_pods(client, namespace, &listeners).await;
    let started = wait_for_pods(client, namespace, &listeners, refused, START, read_listener).await;
    let mut addresses: Vec<Option<IpAddr>> = Vec::new();
    for (member, started) in started.into_iter().enumerate() {
        addresses.push(started.as_ref().ok().copied());
        findings.absent.extend(started.err().map(|why| Absent {
            check: PACKETS,
            member,
            why,
        }));
    }
    let mut jobs = jobs_of(CONNECTIONS, plan_connections(full, members), members);
    jobs.extend(jobs_of(PACKETS, plan_packets(full, &addresses), members));
    let pods: Result<Vec<Pod>, serde_json::Error> = jobs.iter().map(Job::pod).collect();
    let pods = pods.map_err(|error| error.to_string())?;
    let refused = make_pods(client, namespace, &pods).await;
    forbid_more_pods(client, namespace).await?;
    let limit = START + TRIES + NEWS;
    let reports = wait_for_pods(client, namespace, &pods, refused, limit, read_report).await;
    for (job, report) in jobs.into_iter().zip(reports) {
        match report {
            Ok(report) => findings.tried.extend(job.outcomes(report)),
            Err(why) => findings.absent.push(Absent {
                check: job.check,
                member: job.from,
                why,
            }),
        }
    }
    Ok(findings)
}

fn listener_pods(full: &FullSpec, members: &[Member]) -> Result<Vec<Pod>, serde_json::Error> {
    let any: IpAddr = match full.is_ipv6() {
        true => Ipv6Addr::UNSPECIFIED.into(),
        false => Ipv4Addr::UNSPECIFIED.into(),
    };
    let arguments = listen_arguments(SocketAddr::new(any, LISTENER), LIFE.as_secs());
    let pods = members.iter().enumerate();
    pods.map(|(index, member)| nodeup_pod(&format!("listener-{index}"), member, false, &arguments))
        .collect()
}

/// One job for each member that has something to try.
fn jobs_of<'a>(check: &'static str, planned: Vec<Planned>, members: &'a [Member]) -> Vec<Job<'a>> {
    let mut by_member: BTreeMap<usize, Vec<Planned>> = BTreeMap::new();
    for one in planned {
        by_member.entry(one.from).or_default().push(one);
    }
    let jobs = by_member.into_iter().filter_map(|(from, planned)| {
        Some(Job {
            check,
            from,
            member: members.get(from)?,
            planned,
        })
    });
    jobs.collect()
}

impl Job<'_> {
    /// Services of instances are tried from the network of the instance, pods from that of pods.
    fn pod(&self) -> Result<Pod, serde_json::Error> {
        let trials = self.planned.iter().take(MOST_TRIALS);
        let trials: Vec<Trial> = trials.map(|planned| planned.trial.clone()).collect();
        let arguments = try_arguments(&trials, TRIES.as_secs())?;
        let name = format!("{}-{}", self.check, self.from);
        nodeup_pod(&name, self.member, self.check == CONNECTIONS, &arguments)
    }

    /// The trials with what is reported of them: what is missing there was not tried.
    fn outcomes(self, report: ProbeReport) -> impl Iterator<Item = Tried> {
        let ProbeReport { packet, outcomes } = report;
        let outcomes = outcomes.into_iter();
        let outcomes = outcomes.chain(std::iter::repeat(Outcome::NotTried));
        let all = self.planned.into_iter().zip(outcomes);
        all.map(move |(planned, outcome)| Tried {
            planned,
            outcome,
            packet,
        })
    }
}
