//! The static pods of kube-controller-manager and kube-scheduler.

use super::mounts::Mounts;
use super::{
    Container, EnvVar, HttpGet, Pod, Probe, Resources, critical, log_file, logged, resources,
};
use crate::api::cluster::ClusterSpec;
use crate::components::{self, Error, Flags, KUBERNETES, VOLUME_PLUGINS};

/// kube-controller-manager's pod, of a completed spec.
pub fn controller_manager(spec: &ClusterSpec) -> Result<Pod, Error> {
    let config = spec.kube_controller_manager.clone().unwrap_or_default();
    let resources = resources(
        "100m",
        (config.cpu_request.as_ref(), config.memory_request.as_ref()),
        (config.cpu_limit.as_ref(), config.memory_limit.as_ref()),
    );
    let flags = components::controller_manager(&config)?;
    let plugins = flags
        .get("flex-volume-plugin-dir")
        .unwrap_or(VOLUME_PLUGINS)
        .to_owned();
    let mounts = mounts("kube-controller-manager")
        .reads("ca", &format!("{KUBERNETES}/ca.crt"))
        .writes("volume-plugins", &plugins, "DirectoryOrCreate")
        .reads_files(&flags);
    Ok(pod(
        "kube-controller-manager",
        config.image,
        &flags,
        10257,
        resources,
        mounts,
        Vec::new(),
    ))
}

/// kube-scheduler's pod, of a completed spec.
pub fn scheduler(spec: &ClusterSpec) -> Result<Pod, Error> {
    let config = spec.kube_scheduler.clone().unwrap_or_default();
    let resources = resources(
        "100m",
        (config.cpu_request.as_ref(), config.memory_request.as_ref()),
        (config.cpu_limit.as_ref(), config.memory_limit.as_ref()),
    );
    let flags = components::scheduler(&config)?;
    let volumes = config.max_persistent_volumes.map(|most| EnvVar {
        name: "KUBE_MAX_PD_VOLS".to_owned(),
        value: Some(most.to_string()),
        value_from: None,
    });
    let env = volumes.into_iter().collect();
    Ok(pod(
        "kube-scheduler",
        config.image,
        &flags,
        10259,
        resources,
        mounts("kube-scheduler").reads_files(&flags),
        env,
    ))
}

fn mounts(name: &str) -> Mounts {
    Mounts::certificates()
        .reads("pki", &format!("{KUBERNETES}/{name}"))
        .reads("config", &format!("/var/lib/{name}"))
        .writes("log", &log_file(name), "FileOrCreate")
}

fn pod(
    name: &str,
    image: Option<String>,
    flags: &Flags,
    port: u16,
    resources: Resources,
    mounts: Mounts,
    env: Vec<EnvVar>,
) -> Pod {
    let probe = |failures| Probe {
        failure_threshold: failures,
        http_get: HttpGet {
            host: "127.0.0.1".to_owned(),
            path: "/healthz".to_owned(),
            port,
            scheme: "HTTPS".to_owned(),
        },
        initial_delay_seconds: 15,
        period_seconds: 10,
        timeout_seconds: 15,
    };
    let container = Container {
        args: flags.arguments(),
        command: logged(name),
        env,
        image: image.unwrap_or_default(),
        liveness_probe: Some(probe(8)),
        name: name.to_owned(),
        resources,
        startup_probe: Some(probe(24)),
        volume_mounts: mounts.mounts,
        ..Container::default()
    };
    critical(name, "system-cluster-critical", container, mounts.volumes)
}
