//! The static pods of kube-controller-manager and kube-scheduler.

use crate::FullSpec;
use node::components::{Component, KUBERNETES, VOLUME_PLUGINS};
use node::manifests::{Container, HttpGet, Mounts, Pod, Probe, critical, log_file, logged};
use node::ports;

/// kube-controller-manager's pod.
pub fn controller_manager(full: &FullSpec) -> Pod {
    let component = &full.control_plane.controller_manager;
    let plugins = component.flags.get("flex-volume-plugin-dir");
    let mounts = mounts("kube-controller-manager")
        .reads("ca", &format!("{KUBERNETES}/ca.crt"))
        .writes(
            "volume-plugins",
            plugins.unwrap_or(VOLUME_PLUGINS),
            "DirectoryOrCreate",
        )
        .reads_files(&component.flags);
    pod(
        "kube-controller-manager",
        component,
        ports::CONTROLLER_MANAGER,
        mounts,
    )
}

/// kube-scheduler's pod.
pub fn scheduler(full: &FullSpec) -> Pod {
    let component = &full.control_plane.scheduler;
    let mounts = mounts("kube-scheduler").reads_files(&component.flags);
    pod("kube-scheduler", component, ports::SCHEDULER, mounts)
}

fn mounts(name: &str) -> Mounts {
    Mounts::certificates()
        .reads("pki", &format!("{KUBERNETES}/{name}"))
        .reads("config", &format!("/var/lib/{name}"))
        .writes("log", &log_file(name), "FileOrCreate")
}

fn pod(name: &str, component: &Component, port: u16, mounts: Mounts) -> Pod {
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
        args: component.flags.arguments(),
        command: logged(name),
        env: component.env.clone(),
        image: component.image.clone(),
        liveness_probe: Some(probe(8)),
        name: name.to_owned(),
        resources: component.resources.clone(),
        startup_probe: Some(probe(24)),
        volume_mounts: mounts.mounts,
        ..Container::default()
    };
    critical(name, "system-cluster-critical", container, mounts.volumes)
}
