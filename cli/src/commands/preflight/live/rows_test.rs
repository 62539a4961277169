//! Whatever the trials come to, each that failed is in one row, and a check is ok only if all of its trials passed.

use super::*;
use crate::commands::preflight::PORTS;
use crate::commands::preflight::live::plan::Planned;
use proptest::prelude::*;
use std::net::{Ipv4Addr, SocketAddr};

fn members() -> Vec<Member> {
    let member = |index: usize| Member {
        name: format!("i-{index}"),
        group: ["masters", "a", "a", "b"][index].to_owned(),
        address: Ipv4Addr::LOCALHOST.into(),
        image: String::new(),
        selinux: false,
    };
    (0..4).map(member).collect()
}

/// What is tried, with its check.
const SUBJECTS: [(&str, &str); 4] = [
    (CONNECTIONS, "control planes to nodes, tcp 10250"),
    (CONNECTIONS, "nodes to control planes, tcp 3988"),
    (PACKETS, "pods to pods, udp"),
    (CLUSTER_DNS, "pods to 100.64.0.10, udp 53"),
];

fn tried(subject: usize, from: usize, to: usize, outcome: Outcome) -> Tried {
    let (check, words) = SUBJECTS[subject];
    let port = if words.ends_with("3988") { 3988 } else { 10250 };
    let at = SocketAddr::from(([127, 0, 0, 1], port));
    Tried {
        planned: Planned {
            check,
            subject: words.to_owned(),
            why: "a reason",
            from,
            to: (check != CLUSTER_DNS).then_some(to),
            trial: match check {
                CONNECTIONS => Trial::Connect { to: at },
                _ => Trial::Datagrams { to: at },
            },
        },
        outcome,
        packet: Some(8951),
    }
}

/// The numbers of the nodes that a text names.
fn nodes_in(text: &str) -> Vec<usize> {
    let names = text.split("i-").skip(1);
    names.map(|name| name[..1].parse().unwrap()).collect()
}

/// The ways that a row names: its subject, who tried and who was tried.
fn ways_of(row: &PreflightRow) -> Vec<(String, usize, Option<usize>)> {
    let (_, ways) = row.message.split_once(" from ").unwrap();
    let mut all = Vec::new();
    for block in ways.split("; ") {
        let (from, to) = block.split_once(" to ").unwrap_or((block, ""));
        let to: Vec<Option<usize>> = match to {
            "" => vec![None],
            to => nodes_in(to).into_iter().map(Some).collect(),
        };
        for from in nodes_in(from) {
            all.extend(to.iter().map(|to| (row.subject.clone(), from, *to)));
        }
    }
    all
}

proptest! {
    #[test]
    fn each_trial_that_failed_is_named_once_and_ok_means_that_all_passed(
        drawn in prop::collection::btree_map((0..4_usize, 0..4_usize, 0..4_usize), prop::sample::select(Outcome::ALL.to_vec()), 0..40),
        all_pass in any::<bool>(),
    ) {
        let all: BTreeMap<(usize, usize, Option<usize>), Tried> = drawn
            .into_iter()
            .map(|((subject, from, to), outcome)| {
                let outcome = if all_pass { Outcome::Passed } else { outcome };
                let one = tried(subject, from, to, outcome);
                ((subject, from, one.planned.to), one)
            })
            .collect();
        let findings = Findings { tried: all.into_values().collect(), absent: Vec::new() };
        let rows = rows_of_trials(&members(), &findings, &[]);

        let failed = findings.tried.iter().filter(|one| !is_fine(one));
        let mut expected: Vec<_> = failed
            .map(|one| (one.planned.subject.clone(), one.planned.from, one.planned.to))
            .collect();
        let of_failures = |row: &&PreflightRow| row.state != RowState::Ok && row.message.contains(" from ");
        let named = rows.iter().filter(of_failures);
        let mut named: Vec<_> = named.flat_map(ways_of).collect();
        expected.sort();
        named.sort();
        prop_assert_eq!(named, expected);

        for check in [CONNECTIONS, PACKETS, CLUSTER_DNS] {
            let of_check: Vec<&Tried> = findings.tried.iter().filter(|one| one.planned.check == check).collect();
            let states: Vec<RowState> = rows.iter().filter(|row| row.check == check).map(|row| row.state).collect();
            let is_ok = !of_check.is_empty() && of_check.iter().all(|one| is_fine(one));
            prop_assert_eq!(is_ok, states == [RowState::Ok]);
            prop_assert_eq!(is_ok, states.contains(&RowState::Ok));
            let is_known = |one: &&&Tried| one.outcome != Outcome::NotTried;
            let has_problem = of_check.iter().filter(is_known).any(|one| !is_fine(one));
            prop_assert_eq!(has_problem, states.contains(&RowState::Problem));
        }
    }
}

#[test]
fn a_refused_connection_has_passed_but_at_a_kubelets_port() {
    let connection_row = |subject: usize| {
        let findings = Findings {
            tried: vec![tried(subject, 0, 1, Outcome::Refused)],
            absent: Vec::new(),
        };
        let rows = rows_of_trials(&members(), &findings, &[]);
        let mut of_check = rows.into_iter().filter(|row| row.check == CONNECTIONS);
        of_check.next().unwrap()
    };
    let kubelet = connection_row(0);
    assert_eq!(kubelet.state, RowState::Problem);
    assert_eq!(
        kubelet.message,
        "a reason: refused from masters (i-0) to a (i-1)"
    );
    let next = kubelet.next.unwrap();
    assert!(next.contains("something refuses for it"), "{next}");
    let other = connection_row(1);
    assert_eq!(other.state, RowState::Ok);
    assert!(other.message.contains("at port 3988"), "{}", other.message);
}

#[test]
fn a_row_says_between_which_nodes_what_aws_has_against_it_and_what_to_do_otherwise() {
    let findings = Findings {
        tried: vec![
            tried(0, 0, 1, Outcome::Silent),
            tried(0, 0, 2, Outcome::Silent),
            tried(0, 0, 3, Outcome::Passed),
            tried(2, 1, 2, Outcome::LargeLost),
            tried(2, 2, 1, Outcome::Passed),
            tried(3, 1, 1, Outcome::Passed),
        ],
        absent: vec![Absent {
            check: PACKETS,
            member: 3,
            why: "not after 60 s: ErrImagePull".to_owned(),
        }],
    };
    let subject = SUBJECTS[0].1;
    let rule = PreflightRow::problem(PORTS, subject, "no rule of sg-1 allows it", "add it");
    let fine = PreflightRow::fine(PORTS, "routes", "");
    let rows = rows_of_trials(&members(), &findings, &[fine.clone(), rule]);
    let texts: Vec<String> = rows
        .iter()
        .map(|row| format!("{} | {} | {}", row.check, row.subject, row.message))
        .collect();
    assert_eq!(
        texts,
        [
            "packets | b (i-3) | not after 60 s: ErrImagePull",
            "connections | control planes to nodes, tcp 10250 | a reason: no answer from masters (i-0) to a (i-1, i-2)",
            "packets | pods to pods, udp | a reason: small packets pass, full ones (8951 bytes) are lost from a (i-1) to a (i-2)",
            "cluster DNS | 1 node | questions of pods are answered: 1 of 1",
        ]
    );
    let next = |ports: &[PreflightRow]| {
        let rows = rows_of_trials(&members(), &findings, ports);
        rows[1].next.clone().unwrap()
    };
    assert_eq!(
        rows[1].next.as_deref(),
        Some("no rule of sg-1 allows it: add it")
    );
    let unknown = PreflightRow::not_known(PORTS, "network ACLs", "");
    let other = PreflightRow::problem(PORTS, "elsewhere", "", "");
    assert!(next(std::slice::from_ref(&fine)).starts_with("security groups, "));
    assert!(next(&[fine.clone(), unknown]).starts_with("what is known of "));
    assert!(next(&[fine, other]).starts_with("see the problems of `ports`"));
}
