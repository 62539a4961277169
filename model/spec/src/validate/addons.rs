//! Rules of addons that a spec turns on.

use crate::api::cluster::ClusterSpec;
use crate::read::Problem;

/// The address of the node-local DNS cache on every node, as in kOps.
pub(crate) const CACHE_ADDRESS: &str = "169.254.20.10";

pub fn check(spec: &ClusterSpec, problems: &mut Vec<Problem>) {
    check_hosted_zones(spec, problems);
    check_lists(spec, problems);
    check_node_local_dns(spec, problems);
    let controller = spec.aws_load_balancer_controller.as_ref();
    if controller.is_some_and(|controller| controller.enabled == Some(true)) {
        needs_cert_manager(
            "spec.awsLoadBalancerController.enabled",
            "the AWS load balancer controller",
            spec,
            problems,
        );
    }
    check_pod_identity_webhook(spec, problems);
    let controller = spec.snapshot_controller.as_ref();
    if controller.is_some_and(|controller| controller.enabled == Some(true)) {
        needs_cert_manager(
            "spec.snapshotController.enabled",
            "the snapshot controller",
            spec,
            problems,
        );
    }
}

/// Where lists of addons may be. Whether they are in the bucket of the state store is seen when they are read.
fn check_lists(spec: &ClusterSpec, problems: &mut Vec<Problem>) {
    for (index, addon) in spec.addons.iter().enumerate() {
        let places = ["https://", "s3://", "file://"];
        if !places.iter().any(|place| addon.manifest.starts_with(place)) {
            let path = format!("spec.addons[{index}].manifest");
            let message = format!("{:?} is no place of a list of addons", addon.manifest);
            let hint = "write https://..., or the address of an object in the bucket of the state store, s3://BUCKET/...";
            problems.push(Problem::error(path, message).hint(hint));
        }
    }
}

/// While none of its pods runs, no other pod can be made.
fn check_pod_identity_webhook(spec: &ClusterSpec, problems: &mut Vec<Problem>) {
    let Some(webhook) = &spec.pod_identity_webhook else {
        return;
    };
    if webhook.enabled != Some(true) {
        return;
    }
    needs_cert_manager(
        "spec.podIdentityWebhook.enabled",
        "the pod identity webhook",
        spec,
        problems,
    );
    if webhook.replicas == Some(0) {
        let path = "spec.podIdentityWebhook.replicas";
        let problem = Problem::error(path, "without the webhook no pod can be made");
        problems.push(problem.hint("write 1 or more, or turn it off"));
    }
}

/// An addon whose certificates cert-manager issues; the user may install cert-manager.
pub(super) fn needs_cert_manager(
    path: &str,
    addon: &str,
    spec: &ClusterSpec,
    problems: &mut Vec<Problem>,
) {
    let manager = spec.cert_manager.as_ref();
    if manager.is_some_and(|manager| manager.enabled == Some(true)) {
        return;
    }
    let problem = Problem::error(path, format!("{addon} needs cert-manager"));
    problems.push(problem.hint(
        "set spec.certManager.enabled: true, and managed: false beside it if you install it yourself",
    ));
}

/// It asks CoreDNS, and kubelets tell pods to ask it.
fn check_node_local_dns(spec: &ClusterSpec, problems: &mut Vec<Problem>) {
    let Some(dns) = &spec.kube_dns else { return };
    let Some(cache) = dns.node_local_dns.as_ref() else {
        return;
    };
    if cache.enabled != Some(true) {
        return;
    }
    if dns.provider.as_deref() == Some("None") {
        let path = "spec.kubeDNS.nodeLocalDNS.enabled";
        let problem = Problem::error(path, "the node-local DNS cache needs CoreDNS");
        problems.push(problem.hint("turn it off, or leave out spec.kubeDNS.provider"));
    }
    let proxy = spec.kube_proxy.as_ref();
    let ipvs = proxy.and_then(|proxy| proxy.proxy_mode.as_deref()) == Some("ipvs");
    let address = cache.local_ip.as_deref().unwrap_or(CACHE_ADDRESS);
    for (field, kubelet) in [
        ("kubelet", spec.kubelet.as_ref()),
        ("masterKubelet", spec.master_kubelet.as_ref()),
    ] {
        let own = kubelet.and_then(|kubelet| kubelet.cluster_dns.as_deref());
        if ipvs && own.is_some_and(|own| own != address) {
            let problem = Problem::error(
                format!("spec.{field}.clusterDNS"),
                "with kube-proxy's mode ipvs pods must ask the node-local DNS cache",
            );
            problems.push(problem.hint(format!("leave it out, or write {address}")));
        }
    }
}

/// Whatever is not an id would give rights to other zones.
fn check_hosted_zones(spec: &ClusterSpec, problems: &mut Vec<Problem>) {
    let manager = spec.cert_manager.iter();
    let zones = manager.flat_map(|manager| manager.hosted_zone_ids.iter().enumerate());
    for (index, zone) in zones.filter(|(_, zone)| !is_zone_id(zone)) {
        let problem = Problem::error(
            format!("spec.certManager.hostedZoneIDs[{index}]"),
            format!("{zone:?} is not the id of a hosted zone"),
        );
        problems
            .push(problem.hint("write it as Route 53 does, without /hostedzone/: Z0123456789ABC"));
    }
}

fn is_zone_id(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit();
    text.starts_with('Z') && text.len() <= 32 && text.chars().all(plain)
}
