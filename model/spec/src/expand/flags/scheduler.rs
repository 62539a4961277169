//! kube-scheduler's flags and configuration file; leader election of those who have it.

use super::Error;
use super::naming::{Naming, flags};
use crate::api::kube_controller_manager::LeaderElectionConfiguration;
use crate::api::kube_scheduler::KubeSchedulerConfig;
use node::components::{Flags, component_kubeconfig, component_pki};
use serde_json::{Value, json};

const COMPONENT: &str = "kube-scheduler";

/// kOps' exceptions.
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

/// kOps' exceptions.
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

/// Flags of kube-scheduler.
pub(in crate::expand) fn scheduler(config: &KubeSchedulerConfig) -> Result<Flags, Error> {
    let mut flags = flags(config, &NAMING)?;
    elect(config.leader_election.as_ref(), COMPONENT, &mut flags)?;
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
    json!({
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "clientConnection": connection,
    })
}

/// Adds the flags of leader election.
pub(super) fn elect(
    election: Option<&LeaderElectionConfiguration>,
    component: &'static str,
    into: &mut Flags,
) -> Result<(), Error> {
    let Some(election) = election else {
        return Ok(());
    };
    let election = flags(
        election,
        &Naming {
            component,
            ..ELECTION
        },
    )?;
    for argument in election.arguments() {
        if let Some((name, value)) = argument.trim_start_matches('-').split_once('=') {
            into.set(name, value);
        }
    }
    Ok(())
}
