//! kube-apiserver's static pod.

use super::mounts::Mounts;
use super::{Container, EnvVar, HttpGet, Pod, Port, Probe, critical, log_file, logged, resources};
use crate::api::DnsType;
use crate::api::cluster::ClusterSpec;
use crate::components::{self, Error, KUBERNETES};

const NAME: &str = "kube-apiserver";

/// Where protokube answers probes for the API server, with its own client certificate: anonymous access stays
/// off. The port of kOps' health check.
pub const HEALTH_PORT: u16 = 3990;

/// The pod, of a completed spec.
pub fn api_server(spec: &ClusterSpec) -> Result<Pod, Error> {
    let config = spec.kube_api_server.clone().unwrap_or_default();
    let flags = components::api_server(&config, spec.encryption_config == Some(true))?;
    let port = flags
        .get("secure-port")
        .and_then(|port| port.parse().ok())
        .unwrap_or(443);
    let mut mounts = Mounts::certificates()
        .reads("ca", &format!("{KUBERNETES}/ca.crt"))
        .reads("pki", &format!("{KUBERNETES}/{NAME}"))
        .writes("log", &log_file(NAME), "FileOrCreate");
    // The folder, not the file: the API server rotates its audit log by renaming it.
    let audit = flags
        .get("audit-log-path")
        .and_then(|path| path.rsplit_once('/'));
    if let Some((folder, _)) = audit.filter(|(folder, _)| !folder.is_empty()) {
        mounts = mounts.writes("audit-log", folder, "DirectoryOrCreate");
    }
    mounts = mounts.reads_files(&flags);
    let env = config.env.iter().map(|variable| EnvVar {
        name: variable.name.clone(),
        value: variable.value.clone(),
        value_from: variable.value_from.clone(),
    });
    let container = Container {
        args: flags.arguments(),
        command: logged(NAME),
        env: env.collect(),
        image: config.image.unwrap_or_default(),
        liveness_probe: Some(probe("/livez", 10, 10, 8)),
        name: NAME.to_owned(),
        ports: vec![Port {
            container_port: port,
            host_port: port,
            name: "https".to_owned(),
        }],
        readiness_probe: Some(probe("/readyz", 0, 1, 3)),
        resources: resources(
            "150m",
            (config.cpu_request.as_ref(), config.memory_request.as_ref()),
            (config.cpu_limit.as_ref(), config.memory_limit.as_ref()),
        ),
        security_context: None,
        startup_probe: Some(probe("/livez", 10, 10, 30)),
        volume_mounts: mounts.mounts,
    };
    let mut pod = critical(NAME, "system-cluster-critical", container, mounts.volumes);
    for (what, name) in names(spec) {
        pod.metadata
            .annotations
            .insert(format!("dns.alpha.kubernetes.io/{what}"), name);
    }
    Ok(pod)
}

fn probe(path: &str, delay: i32, period: i32, failures: i32) -> Probe {
    Probe {
        failure_threshold: failures,
        http_get: HttpGet {
            host: "127.0.0.1".to_owned(),
            path: path.to_owned(),
            port: HEALTH_PORT,
            scheme: "HTTP".to_owned(),
        },
        initial_delay_seconds: delay,
        period_seconds: period,
        timeout_seconds: 15,
    }
}

/// The names that follow the control plane's addresses: none without DNS, and not those that a load balancer has.
fn names(spec: &ClusterSpec) -> Vec<(&'static str, String)> {
    let dns = spec
        .topology
        .as_ref()
        .and_then(|topology| topology.dns.as_ref())
        .and_then(|dns| dns.type_);
    if dns == Some(DnsType::None) {
        return Vec::new();
    }
    let balancer = spec.api.as_ref().and_then(|api| api.load_balancer.as_ref());
    let internal = balancer.is_none_or(|balancer| balancer.use_for_internal_api != Some(true));
    let external = spec
        .master_public_name
        .clone()
        .filter(|_| balancer.is_none());
    let internal = spec.master_internal_name.clone().filter(|_| internal);
    let external = external.map(|name| ("external", name));
    external
        .into_iter()
        .chain(internal.map(|name| ("internal", name)))
        .collect()
}
