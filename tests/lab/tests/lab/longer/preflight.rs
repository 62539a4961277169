//! `kctl preflight --live` tries what a cluster needs: all passes, and a rule that is put into the network is named with its nodes.

use super::super::cluster::{self, CLUSTER};
use super::super::{PATIENCE, Step};
use anyhow::{Context, Result, bail, ensure};
use lab::network::faults::{LossyWay, Lost, Partition};
use lab::scenario::Lab;
use serde_json::Value;

pub const STEPS: [Step; 4] = [
    ("a cluster is born", be_born),
    ("every connection passes", pass),
    ("a port that is closed is named", lose_port),
    ("full packets that are lost are named", lose_full_packets),
];

/// The checks of `--live`.
const CHECKS: [&str; 3] = ["connections", "packets", "cluster DNS"];

fn be_born(lab: &mut Lab) -> Result<()> {
    cluster::create_cluster(lab, &["--networking=flannel", "--dns=none"])?;
    cluster::expect_ready(lab, 1)?;
    cluster::expect_healthy(lab)
}

/// The exit code and the rows of `--live`. No namespace is left.
fn preflight(lab: &Lab) -> Result<(Option<i32>, Vec<Value>)> {
    let (code, text) = lab.end_of_kctl(&["preflight", CLUSTER, "--live", "-o", "json"])?;
    let said: Value = serde_json::from_str(&text).with_context(|| text.clone())?;
    let rows = said["checks"].as_array().context("rows")?.iter();
    let is_live = |row: &&Value| CHECKS.iter().any(|check| row["check"] == *check);
    let rows: Vec<Value> = rows.filter(is_live).cloned().collect();
    let left = lab.get_objects(&["namespaces", "--selector=kctl.dev/preflight"])?;
    let left = left["items"].as_array().context("namespaces")?;
    ensure!(left.is_empty(), "{left:?}");
    Ok((code, rows))
}

fn pass(lab: &mut Lab) -> Result<()> {
    // CoreDNS may just be starting.
    lab.wait_until("every connection passes", PATIENCE, |lab| {
        let (_, rows) = preflight(lab)?;
        let checks: Vec<&Value> = rows.iter().map(|row| &row["check"]).collect();
        ensure!(checks == CHECKS, "{rows:#?}");
        ensure!(rows.iter().all(|row| row["state"] == "ok"), "{rows:#?}");
        Ok(())
    })
}

/// What is found of a check and a subject that is a problem.
fn problem_message(rows: &[Value], check: &str, subject: &str) -> Result<String> {
    let problems = rows.iter().filter(|row| row["state"] == "problem");
    let of_check: Vec<&Value> = problems.filter(|row| row["check"] == check).collect();
    let mut of_subject = of_check.iter().filter(|row| row["subject"] == subject);
    let found = of_subject.next().with_context(|| format!("{rows:#?}"))?;
    let message = found["message"].as_str().context("a message")?;
    Ok(message.to_owned())
}

fn lose_port(lab: &mut Lab) -> Result<()> {
    let control_plane = cluster::control_plane(lab, 0)?.id;
    let workers = cluster::worker_instances(lab)?;
    let [one, other] = &workers[..] else {
        bail!("there are {} workers", workers.len());
    };
    lab.partition_host(&Partition::Way(LossyWay {
        from: control_plane.clone(),
        to: one.id.clone(),
        lost: Lost::TcpPort(10250),
    }))?;
    let (code, rows) = preflight(lab)?;
    ensure!(code == Some(4), "{code:?}: {rows:#?}");
    let subject = "control planes to nodes, tcp 10250";
    let message = problem_message(&rows, "connections", subject)?;
    let named = [&control_plane, &one.id].map(|id| message.contains(id.as_str()));
    ensure!(named == [true, true], "{message}");
    ensure!(!message.contains(&other.id), "{message}");
    let problems = rows.iter().filter(|row| row["state"] == "problem");
    ensure!(problems.count() == 1, "{rows:#?}");
    lab.heal_host(&one.id)
}

fn lose_full_packets(lab: &mut Lab) -> Result<()> {
    let control_plane = cluster::control_plane(lab, 0)?.id;
    let workers = cluster::worker_instances(lab)?;
    let [one, other] = &workers[..] else {
        bail!("there are {} workers", workers.len());
    };
    // flannel puts all packets of pods into UDP.
    lab.partition_host(&Partition::Way(LossyWay {
        from: one.id.clone(),
        to: other.id.clone(),
        lost: Lost::UdpLargerThan(1000),
    }))?;
    let (code, rows) = preflight(lab)?;
    ensure!(code == Some(4), "{code:?}: {rows:#?}");
    for subject in ["pods to pods, udp", "pods to pods, tcp"] {
        let message = problem_message(&rows, "packets", subject)?;
        ensure!(message.contains("small packets pass"), "{message}");
        let named = [&one.id, &other.id].map(|id| message.contains(id.as_str()));
        ensure!(named == [true, true], "{message}");
        ensure!(!message.contains(&control_plane), "{message}");
    }
    lab.heal_host(&one.id)
}
