//! metrics-server with the kubelets' own certificates: `kubectl top`, a HorizontalPodAutoscaler that scales, and its end.

use super::super::PATIENCE;
use super::super::cluster::CLUSTER;
use anyhow::{Context, Result, ensure};
use lab::scenario::{LIMIT, Lab};

const SCALED: &str = include_str!("metrics.yaml");

/// For `kctl create cluster`.
pub const SETTINGS: [&str; 2] = [
    "--set=spec.metricsServer.enabled=true",
    "--set=spec.metricsServer.insecure=true",
];

/// `kubectl top` has a line for each of `nodes` Nodes, and pods.
pub fn show_usage(lab: &Lab, nodes: usize) -> Result<()> {
    lab.wait_until("kubectl top nodes shows all", PATIENCE, |lab| {
        let said = lab.run_kubectl(&["top", "nodes", "--no-headers"])?;
        let known = said
            .lines()
            .filter(|line| line.contains('%') && !line.contains("<unknown>"));
        ensure!(known.count() == nodes, "{said}");
        Ok(())
    })?;
    let pods = [
        "top",
        "pods",
        "--no-headers",
        "--namespace=kube-system",
        "--selector=k8s-app=metrics-server",
    ];
    lab.wait_until(
        "kubectl top pods shows metrics-server itself",
        LIMIT,
        |lab| {
            let said = lab.run_kubectl(&pods)?;
            ensure!(said.contains("Mi"), "{said}");
            Ok(())
        },
    )
}

/// A Deployment whose pod is busy gets three pods, and one when they are idle.
pub fn scale_by_usage(lab: &mut Lab) -> Result<()> {
    let file = lab.place().run().join("metrics.yaml");
    std::fs::write(&file, SCALED)?;
    lab.run_kubectl(&["apply", "--filename", &file.display().to_string()])?;
    expect_replicas(lab, 3)?;
    let idle = ["set", "env", "deployment/busy", "PAUSE=1"];
    lab.run_kubectl(&idle)?;
    expect_replicas(lab, 1)?;
    lab.run_kubectl(&["delete", "--filename", &file.display().to_string()])
        .map(drop)
}

fn expect_replicas(lab: &Lab, wanted: u64) -> Result<()> {
    lab.wait_until(&format!("{wanted} busy pods"), PATIENCE, |lab| {
        let deployment = lab.get_objects(&["deployment", "busy"])?;
        let replicas = deployment["spec"]["replicas"]
            .as_u64()
            .context("replicas")?;
        let autoscaler = lab.get_objects(&["hpa", "busy"])?;
        ensure!(replicas == wanted, "{replicas}: {}", autoscaler["status"]);
        Ok(())
    })
}

/// Without its field nothing of metrics-server is left, and the API answers no question for metrics.
pub fn remove_server(lab: &mut Lab) -> Result<()> {
    lab.run_kctl(&["edit", "cluster", CLUSTER, "--unset=spec.metricsServer"])?;
    lab.run_kctl(&["update", CLUSTER, "--yes"])?;
    let objects = [
        "get",
        "deployments,services,apiservices,clusterroles,rolebindings",
        "--all-namespaces",
        "--output=name",
        "--selector=addon.kops.k8s.io/name=metrics-server.addons.k8s.io",
    ];
    lab.wait_until("metrics-server is gone", PATIENCE, |lab| {
        let left = lab.run_kubectl(&objects)?;
        ensure!(left.trim().is_empty(), "{left}");
        Ok(())
    })?;
    ensure!(lab.run_kubectl(&["top", "nodes"]).is_err(), "kubectl top");
    Ok(())
}
