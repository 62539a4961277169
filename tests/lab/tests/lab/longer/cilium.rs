//! Clusters whose network is cilium, in the place of kube-proxy or beside it: pods reach each other and Services, policies are enforced,
//! and no call fails while an agent and the operator are killed.

mod kills;
pub mod policies;
mod services;

use super::super::attacks;
use super::super::cluster::{self, CLUSTER, Network};
use super::super::{Step, pods};
use anyhow::{Result, ensure};
use lab::scenario::Lab;
use serde_json::Value;

/// Volumes of etcd as small as EC2 has them; node ports are open to the operator.
const SETTINGS: [&str; 3] = [
    "--dns=none",
    "--set=spec.etcdClusters[*].etcdMembers[*].volumeSize=1",
    "--set=spec.nodePortAccess[0]=0.0.0.0/0",
];

/// cilium answers for Services.
pub const WITHOUT_KUBE_PROXY: [Step; 12] = [
    ("kctl makes a cluster", |lab| make_cluster(lab, &[])),
    READY,
    HEALTHY,
    ("no node has kube-proxy", |lab| expect_proxies(lab, 0)),
    CONNECTED,
    AFFINE,
    NODE_PORTS,
    HOST_PORTS,
    POLICIES,
    NAMES,
    ATTACKS,
    KILLS,
];

/// kube-proxy answers for Services, and the plugin portmap for host ports.
pub const BESIDE_KUBE_PROXY: [Step; 12] = [
    ("kctl makes a cluster", |lab| {
        let settings = [
            "--set=spec.kubeProxy.enabled=true",
            "--set=spec.networking.cilium.enableNodePort=false",
            "--set=spec.networking.cilium.chainingMode=portmap",
        ];
        make_cluster(lab, &settings)
    }),
    READY,
    HEALTHY,
    ("every node has kube-proxy", |lab| expect_proxies(lab, 3)),
    CONNECTED,
    AFFINE,
    NODE_PORTS,
    HOST_PORTS,
    POLICIES,
    NAMES,
    ATTACKS,
    KILLS,
];

const READY: Step = ("three instances become Ready nodes", |lab| {
    cluster::expect_ready(lab, 1)
});
const HEALTHY: Step = ("kctl says that it is healthy", cluster::expect_healthy);
const CONNECTED: Step = ("pods reach each other and Services", |lab| {
    pods::run_pods(lab)?;
    pods::expect_connections(lab)
});
const AFFINE: Step = (
    "a Service keeps a client with one pod",
    services::keep_affinity,
);
const NODE_PORTS: Step = (
    "node ports answer, and keep addresses where the policy is Local",
    services::use_node_ports,
);
const HOST_PORTS: Step = (
    "host ports of a loopback and of a node's address",
    services::use_host_ports,
);
const POLICIES: Step = (
    "policies by label, port, namespace and range",
    policies::enforce_all,
);
const NAMES: Step = ("a policy by name", policies::enforce_names);
const ATTACKS: Step = (
    "a stolen worker uses the agent's token",
    attacks::use_plugin_token,
);
const KILLS: Step = (
    "an agent and the operator are killed, and no call fails",
    kills::kill_both,
);

fn make_cluster(lab: &Lab, settings: &[&str]) -> Result<()> {
    let network = [Network::Cilium.argument()];
    cluster::create_cluster(lab, &[&network[..], &SETTINGS, settings].concat())
}

fn expect_proxies(lab: &Lab, count: usize) -> Result<()> {
    let proxies = [
        "pods",
        "--namespace=kube-system",
        "-l",
        "k8s-app=kube-proxy",
    ];
    let proxies = lab.get_objects(&proxies)?;
    let found = proxies["items"].as_array().map(Vec::len);
    ensure!(found == Some(count), "{proxies}");
    let plan = lab.run_kctl(&["update", CLUSTER])?;
    ensure!(plan.contains("No changes."), "{plan}");
    Ok(())
}

/// Applies an object.
fn apply_object(lab: &Lab, object: &Value) -> Result<()> {
    let file = lab.place().run().join("object.json");
    std::fs::write(&file, object.to_string())?;
    lab.run_kubectl(&["apply", "--filename", &file.display().to_string()])
        .map(drop)
}
