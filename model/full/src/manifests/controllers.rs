//! The static pods of kube-controller-manager and kube-scheduler.

use crate::FullSpec;
use node::components::{Component, KUBERNETES, VOLUME_PLUGINS};
use node::manifests::{
    Container, HostPaths, HttpGet, Pod, Probe, critical_pod, log_file, logged_command,
};
use node::ports;

pub fn controller_manager_pod(full: &FullSpec) -> Pod {
    let component = &full.control_plane.controller_manager;
    let plugins = component.flags.get("flex-volume-plugin-dir");
    let mounts = component_mounts("kube-controller-manager")
        .with_read_only("ca", &format!("{KUBERNETES}/ca.crt"))
        .with_writable(
            "volume-plugins",
            plugins.unwrap_or(VOLUME_PLUGINS),
            "DirectoryOrCreate",
        )
        .with_flag_files(&component.flags);
    component_pod(
        "kube-controller-manager",
        component,
        ports::CONTROLLER_MANAGER,
        mounts,
    )
}

pub fn scheduler_pod(full: &FullSpec) -> Pod {
    let component = &full.control_plane.scheduler;
    let mounts = component_mounts("kube-scheduler").with_flag_files(&component.flags);
    component_pod("kube-scheduler", component, ports::SCHEDULER, mounts)
}

fn component_mounts(name: &str) -> HostPaths {
    HostPaths::of_certificate_folders()
        .with_read_only("pki", &format!("{KUBERNETES}/{name}"))
        .with_read_only("config", &format!("/var/lib/{name}"))
        .with_writable("log", &log_file(name), "FileOrCreate")
        .with_tools()
}

fn component_pod(name: &str, component: &Component, port: u16, mounts: HostPaths) -> Pod {
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
        command: logged_command(name),
        env: component.env.clone(),
        image: component.image.clone(),
        liveness_probe: Some(probe(8)),
        name: name.to_owned(),
        resources: component.resources.clone(),
        startup_probe: Some(probe(24)),
        volume_mounts: mounts.mounts,
        ..Container::default()
    };
    critical_pod(name, "system-cluster-critical", container, mounts.volumes)
}
