//! The agent of a worker and the operator are killed with -9 while pods call a Service.

use super::super::super::{PATIENCE, cluster, pods};
use super::super::rolled::check_calls;
use anyhow::{Context, Result, ensure};
use lab::scenario::Lab;

/// Kills a program of the host, by the number of its process.
const KILL: &str = r#"
for process in /proc/[0-9]*; do
    [ "$(cat "$process/comm" 2>/dev/null)" = "$1" ] && kill -9 "${process#/proc/}" && exit
done
exit 1"#;

pub fn kill_both(lab: &mut Lab) -> Result<()> {
    let calls = lab.start_service_calls(PATIENCE)?;
    let worker = cluster::worker_instances(lab)?.remove(0);
    let control_plane = cluster::control_plane(lab, 0)?;
    let agents = ("k8s-app=cilium", "cilium-agent", &worker.id);
    let operators = ("name=cilium-operator", "cilium-operator", &control_plane.id);
    for (pods, program, host) in [agents, operators] {
        let before = count_restarts(lab, pods, host)?;
        lab.exec_in_host(host, &["sh", "-c", KILL, "kill", program])?;
        lab.wait_until(&format!("{program} is back"), PATIENCE, |lab| {
            let restarts = count_restarts(lab, pods, host)?;
            ensure!(restarts > before, "it has been started {restarts} times");
            Ok(())
        })?;
    }
    check_calls(calls)?;
    pods::run_pods_again(lab)
}

/// How often the container of a host's pod was started again. An error if it is not ready.
fn count_restarts(lab: &Lab, pods: &str, host: &str) -> Result<u64> {
    let on = format!("--field-selector=spec.nodeName={host}");
    let pods = lab.get_objects(&["pods", "--namespace=kube-system", "-l", pods, &on])?;
    let status = &pods["items"][0]["status"]["containerStatuses"][0];
    ensure!(status["ready"] == true, "it is not ready: {status}");
    status["restartCount"].as_u64().context("restartCount")
}
