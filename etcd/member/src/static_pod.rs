//! Ends static pods of this instance where kubelet would take long, or would never do it.

use super::scratch::run_ctr;
use anyhow::bail;
use host::Host;

/// Sends a signal to the containers of a static pod. `pod`: its name without that of the node. Those that have ended are left out.
pub(crate) fn signal_containers(host: &Host, pod: &str, signal: &str) -> anyhow::Result<()> {
    let of_pod = format!(
        "labels.\"io.kubernetes.pod.namespace\"==kube-system,labels.\"io.kubernetes.pod.name\"~=^{pod}-"
    );
    let listed = run_ctr(host, &["containers", "list", "--quiet", &of_pod])?;
    for container in listed.lines() {
        // Fails for those that ended before, which kubelet keeps: they have no process.
        let _ = run_ctr(host, &["tasks", "kill", "--signal", signal, container]);
    }
    Ok(())
}

/// Ends a static pod whose manifest was taken away, but which kubelet does not end: one that was started anew ends no pod before it has reached
/// an API server (kubelet: `deletePod`, "sources aren't ready yet"), and the one of this instance may need what is ended here.
/// kubelet is started anew first, so that it does not know the pod: it would start none of that name before the end of the old one (kubelet:
/// `allowStaticPodStart`).
pub(crate) fn end_without_kubelet(host: &Host, pod: &str) -> anyhow::Result<()> {
    let restarted = host.run_program("systemctl", &["restart", "kubelet"])?;
    if !restarted.is_success() {
        bail!("kubelet was not restarted: {}", restarted.error_output());
    }
    signal_containers(host, pod, "SIGTERM")
}
