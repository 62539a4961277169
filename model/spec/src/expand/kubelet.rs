//! Defaults of kubelet, for all instances and for control planes.

use super::amazon_vpc::chosen_amazon_vpc;
use super::fill::{fill, overlay_fields};
use super::{Context, Findings};
use crate::api::cluster::ClusterSpec;
use crate::api::kubelet::KubeletConfigSpec;
use crate::validate::removed_flags::drop_idle_flags;

/// kubelet's hard eviction thresholds, as in kOps.
const EVICTION_HARD: &str = "memory.available<100Mi,nodefs.available<10%,nodefs.inodesFree<5%,\
                             imagefs.available<10%,imagefs.inodesFree<5%";

/// Fills in `spec.kubelet`, and makes `spec.masterKubelet` complete: `spec.kubelet` with the settings for
/// control planes on top.
pub(super) fn complete_kubelet(spec: &mut ClusterSpec, context: &Context, findings: &mut Findings) {
    let dns = spec.kube_dns.as_ref();
    // Pods ask the node-local cache, if there is one.
    let cache = dns.and_then(|dns| dns.node_local_dns.as_ref());
    let cache = cache.filter(|cache| cache.enabled == Some(true));
    let cache = cache.and_then(|cache| cache.local_ip.clone());
    let server = dns.and_then(|dns| dns.server_ip.clone());
    let cluster_dns = cache.or(server).unwrap_or_default();
    let domain = spec.cluster_dns_domain.clone().unwrap_or_default();
    let in_vpc = chosen_amazon_vpc(spec).is_some();
    let kubelet = spec.kubelet.get_or_insert_default();
    let master = spec.master_kubelet.get_or_insert_default();
    // Merge before any default is filled in: settings for all instances apply to control planes too.
    match overlay_fields(kubelet, master) {
        Ok(merged) => *master = merged,
        Err(error) => findings.add_error("spec.masterKubelet", error.to_string(), "correct it"),
    }
    // Enabled by default since Kubernetes 1.35. Control-plane containers restart soon after a crash.
    if context.version.minor >= 35 {
        let period = &mut master.crash_loop_back_off_max_container_restart_period;
        fill(period, "1m0s");
    }
    for kubelet in [kubelet, master] {
        drop_idle_flags(kubelet, context.version.minor);
        let critical = &mut kubelet.shutdown_grace_period_critical_pods;
        if in_vpc && kubelet.shutdown_grace_period.is_none() && critical.is_none() {
            // As in kOps.
            fill(&mut kubelet.shutdown_grace_period, "0s");
            fill(critical, "0s");
        }
        fill_defaults(kubelet, context);
        fill(&mut kubelet.cluster_dns, cluster_dns.as_str());
        fill(&mut kubelet.cluster_domain, domain.as_str());
    }
}

fn fill_defaults(kubelet: &mut KubeletConfigSpec, context: &Context) {
    fill(&mut kubelet.anonymous_auth, false);
    fill(&mut kubelet.authentication_token_webhook, true);
    fill(&mut kubelet.authorization_mode, "Webhook");
    fill(&mut kubelet.cgroup_driver, "systemd");
    fill(&mut kubelet.cgroup_root, "/");
    fill(&mut kubelet.cloud_provider, "external");
    fill(&mut kubelet.enable_debugging_handlers, true);
    fill(&mut kubelet.eviction_hard, EVICTION_HARD);
    fill(&mut kubelet.kubeconfig_path, "/var/lib/kubelet/kubeconfig");
    fill(&mut kubelet.log_level, 2);
    fill(&mut kubelet.pod_manifest_path, "/etc/kubernetes/manifests");
    fill(&mut kubelet.protect_kernel_defaults, true);
    if context.version.minor < 34 {
        fill(&mut kubelet.register_schedulable, true);
    }
    // Unlike in kOps, kubelet renews both its certificates, so old nodes keep working.
    fill(&mut kubelet.rotate_certificates, true);
    fill(&mut kubelet.runtime_request_timeout, "15m0s");
    fill(&mut kubelet.shutdown_grace_period, "30s");
    fill(&mut kubelet.shutdown_grace_period_critical_pods, "10s");
}
