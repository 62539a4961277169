//! Connections of pods and of the operator.

use super::{PATIENCE, cluster};
use anyhow::{Context, Result, ensure};
use lab::scenario::{LIMIT, Lab, Pod};
use std::collections::BTreeSet;

/// Replicas of the deployment.
const PODS: usize = 6;

/// Forwards a local port to a pod, and sends a request to it.
const FORWARD: &str = "
kubectl port-forward deployment/web 18080:8080 >/dev/null &
trap 'kill $!' EXIT
for try in $(seq 60); do
    curl --silent --fail --max-time 5 http://127.0.0.1:18080/ && exit
    sleep 1
done
exit 1";

pub fn run_pods(lab: &mut Lab) -> Result<()> {
    let pods = lab.deploy_web(PODS, PATIENCE)?;
    let on: BTreeSet<&str> = pods.iter().map(|pod| pod.node.as_str()).collect();
    let workers = cluster::worker_instances(lab)?;
    let wanted: BTreeSet<&str> = workers.iter().map(|one| one.id.as_str()).collect();
    ensure!(pods.len() == PODS && on == wanted, "{pods:?}");
    Ok(())
}

/// Creates the pods anew, on the current workers, and tests them again.
pub fn run_pods_again(lab: &mut Lab) -> Result<()> {
    lab.run_kubectl(&["delete", "deployment", "web"])?;
    lab.wait_until("no pod is left", PATIENCE, |lab| {
        let left = lab.web_pods()?;
        ensure!(left.is_empty(), "{left:?}");
        Ok(())
    })?;
    run_pods(lab)?;
    expect_connections(lab)
}

/// One pod of each node.
fn one_of_each(lab: &Lab) -> Result<Vec<Pod>> {
    let mut pods = lab.web_pods()?;
    pods.sort_by(|one, other| one.node.cmp(&other.node));
    pods.dedup_by(|one, other| one.node == other.node);
    ensure!(pods.len() > 1, "all pods are on one node: {pods:?}");
    Ok(pods)
}

/// One pod of each node reaches all pods, the service by address and name, and resolves names inside and outside the cluster.
pub fn expect_connections(lab: &mut Lab) -> Result<()> {
    lab.rolled_out("default", "deployment/web", PATIENCE)?;
    let service = lab.get_objects(&["service", "web"])?;
    let address = service["spec"]["clusterIP"].as_str();
    let address = address.context("the service has no address")?;
    for from in one_of_each(lab)? {
        lab.wait_until(&format!("{} reaches all", from.name), LIMIT, |lab| {
            expect_all_reached(lab, &from, address)
        })?;
    }
    Ok(())
}

fn expect_all_reached(lab: &Lab, from: &Pod, service: &str) -> Result<()> {
    let pods = lab.web_pods()?;
    for to in &pods {
        let seen = lab.from_pod(from, &format!("http://{}:8080/", in_url(&to.address)))?;
        ensure!(
            seen["host"] == to.name,
            "{} instead of {}",
            seen["host"],
            to.name
        );
        let client = seen["client"].as_str().context("a client")?;
        let own = client
            .rsplit_once(':')
            .is_some_and(|(host, _)| host == in_url(&from.address));
        ensure!(
            own || to.node == from.node,
            "{} is seen as {client}",
            from.name
        );
    }
    for url in [
        format!("http://{}/", in_url(service)),
        "http://web.default/".to_owned(),
    ] {
        let seen = lab.from_pod(from, &url)?;
        let known = pods.iter().any(|pod| seen["host"] == pod.name);
        ensure!(known, "{url} is answered by {seen}");
    }
    // A download site of the lab; on IPv6 as NAT64 takes its address.
    let site = if service.contains(':') {
        "64:ff9b::c612:1"
    } else {
        "198.18.0.1"
    };
    for (name, wanted) in [
        ("web.default.svc.cluster.local", service),
        ("dl.k8s.io", site),
    ] {
        let seen = lab.in_pod(from, &["-lookup", name])?;
        let found = seen.lines().any(|line| line == wanted);
        ensure!(found, "{name} is {seen}");
    }
    Ok(())
}

/// An address as it stands in a URL, and before a port.
pub fn in_url(address: &str) -> String {
    if address.contains(':') {
        format!("[{address}]")
    } else {
        address.to_owned()
    }
}

/// Uses the connections from the API server to kubelets.
pub fn read_logs_and_forward(lab: &mut Lab) -> Result<()> {
    let pods = lab.web_pods()?;
    for pod in &pods {
        let said = lab.run_kubectl(&["logs", &pod.name])?;
        ensure!(
            said.contains(&format!("{} serves at :8080", pod.name)),
            "{said}"
        );
    }
    let seen = lab.run(&["sh", "-c", FORWARD])?;
    let seen: serde_json::Value = serde_json::from_str(&seen)?;
    ensure!(pods.iter().any(|pod| seen["host"] == pod.name), "{seen}");
    Ok(())
}
