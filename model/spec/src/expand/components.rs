//! The Kubernetes components of the full spec: image, flags, environment, requests and limits of each.

use super::{Findings, flags, profile};
use crate::api::cluster::ClusterSpec;
use crate::upgrade::emulated_version;
use full::ControlPlane;
use node::components::Component;
use node::components::authenticator;
use node::manifests::{EnvVar, Resources};
use std::collections::BTreeMap;
use std::error::Error;

/// CPU requests where the spec sets none, as in kOps.
const API_SERVER_CPU: &str = "150m";
const CPU: &str = "100m";

/// kube-apiserver, kube-controller-manager and kube-scheduler; `None` only where a problem was found.
pub(super) fn full_control_plane(
    spec: &ClusterSpec,
    findings: &mut Findings,
) -> Option<ControlPlane> {
    let config = spec.kube_api_server.clone().unwrap_or_default();
    let made = flags::make_api_server_flags(&config, spec.encryption_config == Some(true));
    let env = config.env.iter().map(|variable| EnvVar {
        name: variable.name.clone(),
        value: variable.value.clone(),
        value_from: variable.value_from.clone(),
    });
    let mut api_flags = value_or_error("spec.kubeAPIServer", made, findings);
    let authentication = spec.authentication.as_ref();
    if authentication.is_some_and(|of| of.aws.is_some()) {
        let file = authenticator::WEBHOOK_CONFIG;
        api_flags.set("authentication-token-webhook-config-file", file);
    }
    let mut api_server = Component {
        image: config.image.clone().unwrap_or_default(),
        flags: api_flags,
        env: env.collect(),
        resources: component_resources(
            API_SERVER_CPU,
            (&config.cpu_request, &config.memory_request),
            (&config.cpu_limit, &config.memory_limit),
        ),
    };
    let config = spec.kube_controller_manager.clone().unwrap_or_default();
    let made = flags::controller_manager_flags(&config);
    let mut controller_manager = Component {
        image: config.image.clone().unwrap_or_default(),
        flags: value_or_error("spec.kubeControllerManager", made, findings),
        env: Vec::new(),
        resources: component_resources(
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
    let made = flags::scheduler_flags(&config);
    let mut scheduler = Component {
        image: config.image.clone().unwrap_or_default(),
        flags: value_or_error("spec.kubeScheduler", made, findings),
        env: volumes.into_iter().collect(),
        resources: component_resources(
            CPU,
            (&config.cpu_request, &config.memory_request),
            (&config.cpu_limit, &config.memory_limit),
        ),
    };
    if let Some(emulated) = emulated_version(spec) {
        for component in [&mut api_server, &mut controller_manager, &mut scheduler] {
            component.flags.set("emulated-version", &emulated);
        }
        // The other two watch the newest version of what they need, which an API server that emulates would not serve (KEP-4330).
        api_server.flags.set("emulation-forward-compatible", "true");
    }
    if findings.has_errors() {
        return None;
    }
    let mut control_plane = ControlPlane {
        api_server,
        controller_manager,
        scheduler,
        scheduler_config: flags::scheduler_config(&config),
    };
    profile::set_flags(spec, &mut control_plane);
    Some(control_plane)
}

/// kube-proxy; `None` where the spec turns it off.
pub(super) fn full_kube_proxy(spec: &ClusterSpec, findings: &mut Findings) -> Option<Component> {
    let config = spec.kube_proxy.as_ref();
    let config = config.filter(|proxy| proxy.enabled != Some(false))?;
    Some(Component {
        image: config.image.clone().unwrap_or_default(),
        flags: value_or_error("spec.kubeProxy", flags::kube_proxy_flags(config), findings),
        env: Vec::new(),
        resources: component_resources(
            CPU,
            (&config.cpu_request, &config.memory_request),
            (&config.cpu_limit, &config.memory_limit),
        ),
    })
}

/// The value, or a default and a finding at `path` if it could not be made.
pub(super) fn value_or_error<T: Default>(
    path: &str,
    made: Result<T, flags::Error>,
    findings: &mut Findings,
) -> T {
    made.unwrap_or_else(|error| {
        let cause = error.source().map(|cause| format!(": {cause}"));
        let message = format!("{error}{}", cause.unwrap_or_default());
        findings.add_error(path, message, "correct its fields");
        T::default()
    })
}

/// Requests and limits, each CPU and memory, where the spec has them; `cpu` is requested where it requests none.
fn component_resources(
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
