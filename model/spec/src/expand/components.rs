//! The components of Kubernetes of a completed spec, in full: image, flags, environment, requests and limits of each.

use super::{Found, flags};
use crate::api::cluster::ClusterSpec;
use full::ControlPlane;
use node::components::Component;
use node::manifests::{EnvVar, Resources};
use std::collections::BTreeMap;
use std::error::Error;

/// Requested where the spec requests nothing. kOps'.
const API_SERVER_CPU: &str = "150m";
const CPU: &str = "100m";

/// kube-apiserver, kube-controller-manager and kube-scheduler; `None` only where a problem was found.
pub(super) fn control_plane(spec: &ClusterSpec, found: &mut Found) -> Option<ControlPlane> {
    let config = spec.kube_api_server.clone().unwrap_or_default();
    let made = flags::api_server(&config, spec.encryption_config == Some(true));
    let env = config.env.iter().map(|variable| EnvVar {
        name: variable.name.clone(),
        value: variable.value.clone(),
        value_from: variable.value_from.clone(),
    });
    let api_server = Component {
        image: config.image.clone().unwrap_or_default(),
        flags: made_of("spec.kubeAPIServer", made, found),
        env: env.collect(),
        resources: resources(
            API_SERVER_CPU,
            (&config.cpu_request, &config.memory_request),
            (&config.cpu_limit, &config.memory_limit),
        ),
    };
    let config = spec.kube_controller_manager.clone().unwrap_or_default();
    let made = flags::controller_manager(&config);
    let controller_manager = Component {
        image: config.image.clone().unwrap_or_default(),
        flags: made_of("spec.kubeControllerManager", made, found),
        env: Vec::new(),
        resources: resources(
            CPU,
            (&config.cpu_request, &config.memory_request),
            (&config.cpu_limit, &config.memory_limit),
        ),
    };
    let config = spec.kube_scheduler.clone().unwrap_or_default();
    let volumes = config.max_persistent_volumes.map(|most| EnvVar {
        name: "KUBE_MAX_PD_VOLS".to_owned(),
        value: Some(most.to_string()),
        value_from: None,
    });
    let made = flags::scheduler(&config);
    let scheduler = Component {
        image: config.image.clone().unwrap_or_default(),
        flags: made_of("spec.kubeScheduler", made, found),
        env: volumes.into_iter().collect(),
        resources: resources(
            CPU,
            (&config.cpu_request, &config.memory_request),
            (&config.cpu_limit, &config.memory_limit),
        ),
    };
    (!found.has_errors()).then(|| ControlPlane {
        api_server,
        controller_manager,
        scheduler,
        scheduler_config: flags::scheduler_config(&config),
    })
}

/// kube-proxy; `None` where the spec turns it off.
pub(super) fn kube_proxy(spec: &ClusterSpec, found: &mut Found) -> Option<Component> {
    let config = spec.kube_proxy.as_ref();
    let config = config.filter(|proxy| proxy.enabled != Some(false))?;
    Some(Component {
        image: config.image.clone().unwrap_or_default(),
        flags: made_of("spec.kubeProxy", flags::proxy(config), found),
        env: Vec::new(),
        resources: resources(
            CPU,
            (&config.cpu_request, &config.memory_request),
            (&config.cpu_limit, &config.memory_limit),
        ),
    })
}

/// What was made of a part of the spec; a failure is a problem at its path.
pub(super) fn made_of<T: Default>(
    path: &str,
    made: Result<T, flags::Error>,
    found: &mut Found,
) -> T {
    made.unwrap_or_else(|error| {
        let cause = error.source().map(|cause| format!(": {cause}"));
        let message = format!("{error}{}", cause.unwrap_or_default());
        found.error(path, message, "correct its fields");
        T::default()
    })
}

/// Requests and limits, each CPU and memory, where the spec has them; `cpu` is requested where it requests none.
fn resources(
    cpu: &str,
    requests: (&Option<String>, &Option<String>),
    limits: (&Option<String>, &Option<String>),
) -> Resources {
    let map = |(cpu, memory): (&Option<String>, &Option<String>)| {
        let cpu = cpu.iter().map(|cpu| ("cpu".to_owned(), cpu.clone()));
        let memory = memory.iter();
        let memory = memory.map(|memory| ("memory".to_owned(), memory.clone()));
        cpu.chain(memory).collect::<BTreeMap<_, _>>()
    };
    let mut requests = map(requests);
    requests
        .entry("cpu".to_owned())
        .or_insert_with(|| cpu.to_owned());
    Resources {
        limits: map(limits),
        requests,
    }
}
