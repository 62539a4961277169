//! kube-scheduler's flags and configuration file, and the leader election flags of all components that have it.

use super::Error;
use super::naming::{Naming, collect_flags};
use crate::api::kube_controller_manager::LeaderElectionConfiguration;
use crate::api::kube_scheduler::KubeSchedulerConfig;
use node::components::{Flags, component_kubeconfig, component_pki};
use serde_json::{Value, json};

const COMPONENT: &str = "kube-scheduler";

/// Fields whose flags differ from the naming rule, as in kOps.
pub(super) const NAMING: Naming = Naming {
    component: COMPONENT,
    named: &[
        ("enableContentionProfiling", "contention-profiling"),
        ("enableProfiling", "profiling"),
        ("kubeAPIQPS", "kube-api-qps"),
        ("logFormat", "logging-format"),
        ("logLevel", "v"),
    ],
    none: &[
        "burst",
        "cpuLimit",
        "cpuRequest",
        "image",
        "leaderElection",
        "maxPersistentVolumes",
        "memoryLimit",
        "memoryRequest",
        "qps",
        "usePolicyConfigMap",
    ],
    empty: &[("logFormat", "text")],
    repeated: &[],
};

/// Naming exceptions of the leader election flags.
pub(super) const ELECTION: Naming = Naming {
    component: "leader election",
    named: &[(
        "leaderElectRenewDeadlineDuration",
        "leader-elect-renew-deadline",
    )],
    none: &[],
    empty: &[],
    repeated: &[],
};

pub(in crate::expand) fn scheduler_flags(config: &KubeSchedulerConfig) -> Result<Flags, Error> {
    let mut flags = collect_flags(config, &NAMING)?;
    add_leader_election(config.leader_election.as_ref(), COMPONENT, &mut flags)?;
    let kubeconfig = component_kubeconfig(COMPONENT);
    flags.set_if_missing("authentication-kubeconfig", &kubeconfig);
    flags.set_if_missing("authorization-kubeconfig", &kubeconfig);
    flags.set_if_missing("authentication-skip-lookup", "false");
    flags.set_if_missing("authentication-tolerate-lookup-failure", "false");
    flags.set_if_missing("config", "/var/lib/kube-scheduler/config.yaml");
    flags.set_if_missing("tls-cert-file", component_pki(COMPONENT, "server.crt"));
    flags.set_if_missing(
        "tls-private-key-file",
        component_pki(COMPONENT, "server.key"),
    );
    Ok(flags)
}

/// The file that `--config` names: KubeSchedulerConfiguration v1.
pub(in crate::expand) fn scheduler_config(config: &KubeSchedulerConfig) -> Value {
    let mut connection = json!({ "kubeconfig": component_kubeconfig(COMPONENT) });
    if let Value::Object(connection) = &mut connection {
        if let Some(burst) = config.burst {
            connection.insert("burst".into(), burst.into());
        }
        if let Some(qps) = config.qps.as_ref().and_then(|qps| qps.parse::<f64>().ok()) {
            connection.insert("qps".into(), qps.into());
        }
    }
    let mut file = json!({
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "clientConnection": connection,
    });
    // Beside a file the flags of profiling are ignored.
    for (name, on) in [
        (
            "enableContentionProfiling",
            config.enable_contention_profiling,
        ),
        ("enableProfiling", config.enable_profiling),
    ] {
        if let (Value::Object(file), Some(on)) = (&mut file, on) {
            file.insert(name.into(), on.into());
        }
    }
    file
}

/// Adds the flags of leader election.
pub(super) fn add_leader_election(
    election: Option<&LeaderElectionConfiguration>,
    component: &'static str,
    flags: &mut Flags,
) -> Result<(), Error> {
    let Some(election) = election else {
        return Ok(());
    };
    let election = collect_flags(
        election,
        &Naming {
            component,
            ..ELECTION
        },
    )?;
    for argument in election.arguments() {
        if let Some((name, value)) = argument.trim_start_matches('-').split_once('=') {
            flags.set(name, value);
        }
    }
    Ok(())
}
