//! kube-apiserver's static pod.

use crate::{DnsKind, FullSpec};
use node::components::KUBERNETES;
use node::manifests::{
    Container, HostPaths, HttpGet, Pod, Port, Probe, critical_pod, log_file, logged_command,
};

const NAME: &str = "kube-apiserver";

pub fn api_server_pod(full: &FullSpec) -> Pod {
    let component = &full.control_plane.api_server;
    let flags = &component.flags;
    let port = flags
        .get("secure-port")
        .and_then(|port| port.parse().ok())
        .unwrap_or(node::ports::API);
    let mut mounts = HostPaths::of_certificate_folders()
        .with_read_only("ca", &format!("{KUBERNETES}/ca.crt"))
        .with_read_only("pki", &format!("{KUBERNETES}/{NAME}"))
        .with_writable("log", &log_file(NAME), "FileOrCreate")
        .with_tools();
    // Mount the folder, not the file: the API server renames the audit log to rotate it.
    let audit = flags
        .get("audit-log-path")
        .and_then(|path| path.rsplit_once('/'));
    if let Some((folder, _)) = audit.filter(|(folder, _)| !folder.is_empty()) {
        mounts = mounts.with_writable("audit-log", folder, "DirectoryOrCreate");
    }
    mounts = mounts.with_flag_files(flags);
    let container = Container {
        args: flags.arguments(),
        command: logged_command(NAME),
        env: component.env.clone(),
        image: component.image.clone(),
        liveness_probe: Some(http_probe("/livez", 10, 10, 8)),
        name: NAME.to_owned(),
        ports: vec![Port {
            container_port: port,
            host_port: port,
            name: "https".to_owned(),
        }],
        readiness_probe: Some(http_probe("/readyz", 0, 1, 3)),
        resources: component.resources.clone(),
        security_context: None,
        startup_probe: Some(http_probe("/livez", 10, 10, 30)),
        volume_mounts: mounts.mounts,
    };
    let mut pod = critical_pod(NAME, "system-cluster-critical", container, mounts.volumes);
    for (what, name) in published_names(full) {
        pod.metadata
            .annotations
            .insert(format!("dns.alpha.kubernetes.io/{what}"), name);
    }
    pod
}

fn http_probe(path: &str, delay: i32, period: i32, failures: i32) -> Probe {
    Probe {
        failure_threshold: failures,
        http_get: HttpGet {
            host: "127.0.0.1".to_owned(),
            path: path.to_owned(),
            port: node::ports::API_HEALTH,
            scheme: "HTTP".to_owned(),
        },
        initial_delay_seconds: delay,
        period_seconds: period,
        timeout_seconds: 15,
    }
}

/// The DNS names that protokube points at the control planes: none without DNS, and none that point at a load balancer.
fn published_names(full: &FullSpec) -> Vec<(&'static str, String)> {
    if full.dns.kind == DnsKind::None {
        return Vec::new();
    }
    let balancer = full.api.load_balancer.as_ref();
    let internal = balancer.is_none_or(|balancer| !balancer.use_for_internal_api);
    let external = balancer.is_none().then_some(&full.dns.api_public_name);
    let internal = internal.then_some(&full.dns.api_internal_name);
    let external = external.map(|name| ("external", name.clone()));
    external
        .into_iter()
        .chain(internal.map(|name| ("internal", name.clone())))
        .collect()
}
