//! A cluster whose network is cilium, without kube-proxy: pods reach each other and Services, and policies are enforced.

use super::super::cluster::{self, CLUSTER};
use super::super::{PATIENCE, Step, pods};
use anyhow::{Context, Result, ensure};
use lab::scenario::{LIMIT, Lab, Pod};
use serde_json::json;

/// Calls from pods without the label are dropped.
const POLICY: &str = "only-friends";

pub const STEPS: [Step; 6] = [
    ("kctl makes a cluster", |lab| {
        let small = "--set=spec.etcdClusters[*].etcdMembers[*].volumeSize=1";
        cluster::create_cluster(lab, &["--networking=cilium", "--dns=none", small])
    }),
    ("three instances become Ready nodes", |lab| {
        cluster::expect_ready(lab, 1)
    }),
    ("kctl says that it is healthy", cluster::expect_healthy),
    ("no node has kube-proxy", expect_no_proxy),
    ("pods reach each other and Services", |lab| {
        pods::run_pods(lab)?;
        pods::expect_connections(lab)
    }),
    ("a NetworkPolicy is enforced, and lifted", enforce_policy),
];

fn expect_no_proxy(lab: &mut Lab) -> Result<()> {
    let proxies = lab.get_objects(&[
        "pods",
        "--namespace=kube-system",
        "-l",
        "k8s-app=kube-proxy",
    ])?;
    ensure!(proxies["items"] == json!([]), "{proxies}");
    let plan = lab.run_kctl(&["update", CLUSTER])?;
    ensure!(plan.contains("No changes."), "{plan}");
    Ok(())
}

/// Pods that serve are reached by nobody, and then again.
fn enforce_policy(lab: &mut Lab) -> Result<()> {
    let web = lab.web_pods()?;
    let from = web.first().context("a pod")?.clone();
    let to: Vec<Pod> = web
        .into_iter()
        .filter(|pod| pod.name != from.name)
        .collect();
    let policy = json!({
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": POLICY, "namespace": "default"},
        "spec": {"podSelector": {}, "policyTypes": ["Ingress"], "ingress": [{"from": [{"podSelector": {"matchLabels": {"friend": "yes"}}}]}]},
    });
    let file = lab.place().run().join("policy.json");
    std::fs::write(&file, policy.to_string())?;
    lab.run_kubectl(&["apply", "--filename", &file.display().to_string()])?;
    lab.wait_until("no pod is reached", LIMIT, |lab| {
        expect_reached(lab, &from, &to, false)
    })?;
    lab.run_kubectl(&["label", "pod", &from.name, "friend=yes"])?;
    lab.wait_until("the friend reaches all", LIMIT, |lab| {
        expect_reached(lab, &from, &to, true)
    })?;
    lab.run_kubectl(&["delete", "networkpolicy", POLICY])?;
    lab.rolled_out("default", "deployment/web", PATIENCE)?;
    pods::expect_connections(lab)
}

fn expect_reached(lab: &Lab, from: &Pod, to: &[Pod], wanted: bool) -> Result<()> {
    for pod in to {
        let seen = lab.from_pod(from, &format!("http://{}:8080/", pod.address));
        ensure!(
            seen.is_ok() == wanted,
            "{} from {}: {seen:?}",
            pod.name,
            from.name
        );
    }
    Ok(())
}
