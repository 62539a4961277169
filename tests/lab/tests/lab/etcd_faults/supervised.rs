//! containerd and kubelet are killed, and systemd starts them again: containers go on, services answer, and no Node is taken for lost.

use super::super::PATIENCE;
use super::super::cluster::WORKERS;
use super::kinds::choose_one;
use super::schedule::{Chance, Due, Fault};
use anyhow::{Context, Result, ensure};
use lab::scenario::{Lab, ServiceCalls, unix_time};
use serde_json::Value;
use std::cell::RefCell;
use std::collections::BTreeSet;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// Seconds after which a Node would be reported as not ready, if kubelet were not back (40 s by default), with room to spare.
const OBSERVED: f64 = 60.0;

/// A kubelet that starts says that its Node is not ready if it is asked before it has asked containerd, and corrects that at once
/// (`runtimeState` of Kubernetes' `pkg/kubelet/runtime.go`). Seconds after which it must have done so.
const CORRECTED: f64 = 20.0;

/// Ids of the processes in kubelet's containers, pauses included: children of containerd's shims.
const CONTAINERS: &str = "
for shim in $(pgrep --full containerd-shim-runc-v2); do
    for process in $(pgrep --parent \"$shim\"); do
        ! grep -q kubepods /proc/\"$process\"/cgroup || echo \"$process\"
    done
done";

/// What must be the same afterwards.
struct Before {
    host: String,
    containers: BTreeSet<String>,
    /// Since when its Node is ready, in seconds since 1970.
    ready_since: f64,
}

/// Kills a unit's program on a control plane and on a worker at once. If there is a service `web`, two pods call it meanwhile.
pub fn kill_unit(lab: &Lab, chance: &mut Chance, unit: &'static str) -> Result<Fault> {
    let worker = lab.group_instances(WORKERS)?.pop().context("a worker")?;
    let hosts = [choose_one(lab, chance)?.id, worker.id];
    let calls = match lab.get_objects(&["service", "web"]) {
        Ok(_) => Some(lab.start_service_calls(PATIENCE)?),
        Err(_) => None,
    };
    let before = hosts.each_ref().map(|host| observe_host(lab, host));
    let before = before.into_iter().collect::<Result<Vec<_>>>()?;
    let calls = RefCell::new(calls);
    Ok(Box::new(move |lab| {
        for host in &hosts {
            let kill = format!("systemctl kill --signal=KILL --kill-whom=main {unit}");
            lab.run_script(host, &kill)?;
        }
        let killed = unix_time()?;
        Ok(vec![Due::once(OBSERVED, move |lab| {
            for one in &before {
                expect_unharmed(lab, unit, one, killed)?;
            }
            calls
                .take()
                .map_or(Ok(()), |calls| expect_calls(lab, calls))
        })])
    }))
}

fn observe_host(lab: &Lab, host: &str) -> Result<Before> {
    Ok(Before {
        host: host.to_owned(),
        containers: container_processes(lab, host)?,
        ready_since: ready_since(lab, host)?,
    })
}

fn container_processes(lab: &Lab, host: &str) -> Result<BTreeSet<String>> {
    let text = lab.run_script(host, CONTAINERS)?;
    let all: BTreeSet<String> = text.lines().map(str::to_owned).collect();
    ensure!(!all.is_empty(), "{host} runs no container of kubelet");
    Ok(all)
}

/// The time of the last change of a Node's condition Ready, which must be true.
fn ready_since(lab: &Lab, host: &str) -> Result<f64> {
    let node = lab.get_objects(&["node", host])?;
    let conditions = node.pointer("/status/conditions").and_then(Value::as_array);
    let mut conditions = conditions.context("conditions")?.iter();
    let ready = conditions.find(|one| one["type"] == "Ready");
    let ready = ready.context("nothing is said of Ready")?;
    ensure!(ready["status"] == "True", "{host} is not ready: {ready}");
    let since = ready["lastTransitionTime"].as_str();
    let since = since.context("lastTransitionTime")?;
    let since = OffsetDateTime::parse(since, &Rfc3339)?.unix_timestamp();
    #[expect(clippy::cast_precision_loss, reason = "whole seconds")]
    Ok(since as f64)
}

fn expect_unharmed(lab: &Lab, unit: &str, before: &Before, killed: f64) -> Result<()> {
    let Before {
        host,
        containers,
        ready_since: since,
    } = before;
    lab.run_script(host, &format!("systemctl is-active {unit}"))?;
    let now = container_processes(lab, host)?;
    let ended: Vec<&String> = containers.difference(&now).collect();
    ensure!(
        ended.is_empty(),
        "{host}: {unit} took processes {ended:?} with it"
    );
    let now = ready_since(lab, host)?;
    ensure!(
        now <= since.max(killed + CORRECTED),
        "{host} was not ready meanwhile: since {since}, {unit} was killed at {killed}, now since {now}"
    );
    Ok(())
}

fn expect_calls(lab: &Lab, calls: ServiceCalls) -> Result<()> {
    let calls = calls.end()?;
    // Until its pods are gone: what is observed next must not count them.
    lab.run_kubectl(&["delete", "deployment", "caller", "--cascade=foreground"])?;
    let failed: Vec<_> = calls.iter().filter(|one| !one.failure.is_empty()).collect();
    ensure!(!calls.is_empty() && failed.is_empty(), "{failed:#?}");
    Ok(())
}
