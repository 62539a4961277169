//! What the trials came to, as rows: one for each check in which all passed, otherwise one for each kind of trial and outcome, which names
//! all nodes between which it came to that.

use super::RUNNING_NODES;
use super::members::Member;
use super::run::{Absent, Findings, Tried};
use crate::commands::preflight::{CLUSTER_DNS, CONNECTIONS, PACKETS};
use crate::ui::preflight::{PreflightRow, RowState};
use node::ports::KUBELET;
use node::probe::{Outcome, Trial};
use std::collections::{BTreeMap, BTreeSet};

/// Trials of one kind that came to the same, and not to what they should.
struct Failure<'a> {
    check: &'static str,
    subject: &'a str,
    why: &'static str,
    outcome: Outcome,
    /// Bytes of a full packet.
    packet: Option<u32>,
    /// Who tried whom; `None`: no certain node.
    ways: Vec<(usize, Option<usize>)>,
}

/// `ports`: the rows of what AWS has.
pub(super) fn rows_of_trials(
    members: &[Member],
    findings: &Findings,
    ports: &[PreflightRow],
) -> Vec<PreflightRow> {
    let absent = findings.absent.iter();
    let mut rows: Vec<PreflightRow> = absent.map(|one| row_of_absent(members, one)).collect();
    for check in [CONNECTIONS, PACKETS, CLUSTER_DNS] {
        let tried = findings.tried.iter();
        let tried: Vec<&Tried> = tried.filter(|one| one.planned.check == check).collect();
        let failures = find_failures(&tried);
        if failures.is_empty() {
            rows.push(fine_row(check, &tried));
        }
        let failures = failures.iter();
        rows.extend(failures.map(|failure| row_of_failure(members, failure, ports)));
    }
    rows
}

fn row_of_absent(members: &[Member], absent: &Absent) -> PreflightRow {
    let subject = node_words(members, [absent.member]);
    PreflightRow::not_known(absent.check, subject, &absent.why)
}

/// A refused connection has passed: the other side has answered it. But a node that takes part is Ready, and its kubelet listens: what
/// refuses there is something else.
fn is_fine(tried: &Tried) -> bool {
    let may_be_refused =
        matches!(&tried.planned.trial, Trial::Connect { to } if to.port() != KUBELET);
    match tried.outcome {
        Outcome::Passed => true,
        Outcome::Refused => may_be_refused,
        _ => false,
    }
}

fn find_failures<'a>(tried: &[&'a Tried]) -> Vec<Failure<'a>> {
    let mut found: BTreeMap<(&str, Outcome), Failure<'a>> = BTreeMap::new();
    for one in tried.iter().copied().filter(|one| !is_fine(one)) {
        let planned = &one.planned;
        let key = (planned.subject.as_str(), one.outcome);
        let failure = found.entry(key).or_insert_with(|| Failure {
            check: planned.check,
            subject: &planned.subject,
            why: planned.why,
            outcome: one.outcome,
            packet: None,
            ways: Vec::new(),
        });
        failure.packet = failure.packet.max(one.packet);
        failure.ways.push((planned.from, planned.to));
    }
    found.into_values().collect()
}

/// The row of a check without a failure.
fn fine_row(check: &'static str, tried: &[&Tried]) -> PreflightRow {
    if tried.is_empty() {
        let why = "nothing was tried: for that it takes two nodes with pods";
        return PreflightRow::not_known(check, RUNNING_NODES, why);
    }
    let ends = tried.iter().map(|one| &one.planned);
    let ends = ends.flat_map(|planned| [Some(planned.from), planned.to]);
    let nodes: BTreeSet<usize> = ends.flatten().collect();
    let subject = match nodes.len() {
        1 => "1 node".to_owned(),
        count => format!("{count} nodes"),
    };
    let what = match check {
        CONNECTIONS => "TCP connections pass",
        PACKETS => "trials between pods pass",
        _ => "questions of pods are answered",
    };
    let count = tried.len();
    let mut message = format!("{what}: {count} of {count}");
    let packet = tried.iter().filter_map(|one| one.packet).max();
    if let Some(packet) = packet.filter(|_| check == PACKETS) {
        message.push_str(&format!(", with packets of {packet} bytes"));
    }
    let refused = tried.iter().filter(|one| one.outcome == Outcome::Refused);
    let ports = refused.filter_map(|one| match &one.planned.trial {
        Trial::Connect { to } => Some(to.port()),
        _ => None,
    });
    let ports: BTreeSet<u16> = ports.collect();
    if !ports.is_empty() {
        let ports: Vec<String> = ports.iter().map(u16::to_string).collect();
        let ports = ports.join(", ");
        message.push_str(&format!(
            "; on some nodes nothing listens at port {ports}, or something refuses for it"
        ));
    }
    PreflightRow::fine(check, subject, message)
}

fn row_of_failure(
    members: &[Member],
    failure: &Failure<'_>,
    ports: &[PreflightRow],
) -> PreflightRow {
    let Failure {
        check,
        subject,
        why,
        outcome,
        packet,
        ways,
    } = failure;
    let came_to = outcome_words(*outcome, *packet);
    let message = format!("{why}: {came_to} {}", way_words(members, ways));
    if *outcome == Outcome::NotTried {
        return PreflightRow::not_known(check, *subject, message);
    }
    PreflightRow::problem(check, *subject, message, next_step(failure, ports))
}

fn outcome_words(outcome: Outcome, packet: Option<u32>) -> String {
    let size = packet.map_or_else(String::new, |bytes| format!(" ({bytes} bytes)"));
    match outcome {
        Outcome::Passed => "passed".to_owned(),
        Outcome::Refused => "refused".to_owned(),
        Outcome::Silent => "no answer".to_owned(),
        Outcome::Unreachable => "unreachable".to_owned(),
        Outcome::LargeLost => format!("small packets pass, full ones{size} are lost"),
        Outcome::TooLarge => {
            format!("small packets pass, full ones{size} are too large, of which senders are told,")
        }
        Outcome::CutOff => "the connection is cut off".to_owned(),
        Outcome::NotTried => "not tried to the end".to_owned(),
    }
}

/// Who does not reach whom: `from GROUP (NODE) to GROUP (NODE, NODE); from ...`. Each way is in it once.
fn way_words(members: &[Member], ways: &[(usize, Option<usize>)]) -> String {
    let mut sources: BTreeMap<Option<usize>, BTreeSet<usize>> = BTreeMap::new();
    for (from, to) in ways {
        sources.entry(*to).or_default().insert(*from);
    }
    let mut targets: BTreeMap<BTreeSet<usize>, Vec<usize>> = BTreeMap::new();
    for (to, from) in sources {
        targets.entry(from).or_default().extend(to);
    }
    let words = targets.into_iter().map(|(from, to)| {
        let from = node_words(members, from);
        match to.is_empty() {
            true => format!("from {from}"),
            false => format!("from {from} to {}", node_words(members, to)),
        }
    });
    words.collect::<Vec<String>>().join("; ")
}

/// Nodes by instance group: `GROUP (NODE, NODE), GROUP (NODE)`.
fn node_words(members: &[Member], indices: impl IntoIterator<Item = usize>) -> String {
    let mut by_group: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let nodes = indices.into_iter().filter_map(|index| members.get(index));
    for node in nodes {
        by_group.entry(&node.group).or_default().push(&node.name);
    }
    let words = by_group
        .iter()
        .map(|(group, nodes)| format!("{group} ({})", nodes.join(", ")));
    words.collect::<Vec<String>>().join(", ")
}

fn next_step(failure: &Failure<'_>, ports: &[PreflightRow]) -> String {
    use Outcome::{CutOff, LargeLost, Refused, TooLarge};
    let text = match (failure.check, failure.outcome) {
        // Security groups, network ACLs and routes drop, and never refuse.
        (CONNECTIONS, Refused) => {
            "a kubelet runs on each of these nodes, so something refuses for it: look for a packet filter on the instances that rejects, \
             a network policy for their own network, and an appliance on the way"
        }
        (CONNECTIONS, _) => return next_of_connection(failure.subject, ports),
        (PACKETS, LargeLost | TooLarge) => {
            "the network plugin's MTU is greater than what passes between these nodes: set a smaller one, or find what drops or limits \
             packets on the way"
        }
        (PACKETS, CutOff) => {
            "the pod on the other node ends no connection: look for an appliance on the way, a packet filter on the instances, and a \
             network policy that resets connections"
        }
        (PACKETS, _) => {
            "see the rows `ports`, the pods of the network plugin on these nodes, and network policies for all namespaces"
        }
        _ => {
            "see the pods of the DNS server (`kubectl -n kube-system get pods -l k8s-app=kube-dns`), the other rows of these nodes, and what \
             makes Services there"
        }
    };
    text.to_owned()
}

/// What AWS has against a connection, if that is known.
fn next_of_connection(subject: &str, ports: &[PreflightRow]) -> String {
    let problems = || {
        let all = ports.iter();
        all.filter(|row| row.state == RowState::Problem)
    };
    if let Some(row) = problems().find(|row| row.subject == subject) {
        let next = row.next.as_deref().unwrap_or_default();
        return format!("{}: {next}", row.message);
    }
    if problems().next().is_some() {
        return "see the problems of `ports` first".to_owned();
    }
    let known = match ports.iter().all(|row| row.state == RowState::Ok) {
        true => "security groups, network ACLs and routes allow it",
        false => "what is known of security groups, network ACLs and routes allows it",
    };
    format!(
        "{known}: look for a packet filter on the instances, a network policy for their own network, and an appliance on the way"
    )
}

#[cfg(test)]
#[path = "rows_test.rs"]
mod tests;
