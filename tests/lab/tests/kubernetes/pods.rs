//! Pods, and what they reach.

use super::machines::PODS;
use super::{Cluster, PATIENCE};
use anyhow::{Context, Result, ensure};
use lab::scenario::{LIMIT, Lab, Pod};
use serde_json::json;

/// Of a node.
fn pod(lab: &Lab, node: &str) -> Result<Pod> {
    let mut pods = lab.pods()?.into_iter();
    let found = pods.find(|pod| pod.node == node);
    found.with_context(|| format!("no pod on {node}"))
}

fn both(lab: &Lab, cluster: &Cluster) -> Result<(Pod, Pod)> {
    Ok((
        pod(lab, &cluster.nodes.control)?,
        pod(lab, &cluster.nodes.worker)?,
    ))
}

pub fn run(lab: &Lab, cluster: &Cluster) -> Result<()> {
    lab.web(2, PATIENCE)?;
    lab.rolled_out("kube-system", "deployment/coredns", PATIENCE)?;
    let (first, second) = both(lab, cluster)?;
    for (pod, range) in [(first, PODS[0]), (second, PODS[1])] {
        let range: ipnet::Ipv4Net = range.parse()?;
        ensure!(
            range.contains(&pod.address.parse::<std::net::Ipv4Addr>()?),
            "{}",
            pod.address
        );
    }
    Ok(())
}

pub fn logs(lab: &Lab, cluster: &Cluster) -> Result<()> {
    let (first, second) = both(lab, cluster)?;
    for pod in [first, second] {
        let said = lab.kubectl(&["logs", &pod.name])?;
        ensure!(
            said.contains(&format!("{} serves at :8080", pod.name)),
            "{said}"
        );
    }
    Ok(())
}

/// CoreDNS runs on either node: only a pod beside it reaches it by now.
pub fn names(lab: &Lab, cluster: &Cluster) -> Result<()> {
    let selector = "--selector=k8s-app=kube-dns";
    let dns = lab.objects(&["pods", "--namespace=kube-system", selector])?;
    let node = dns["items"][0]["spec"]["nodeName"]
        .as_str()
        .context("no CoreDNS")?;
    let pod = pod(lab, node)?;
    let service = lab.objects(&["service", "web"])?;
    let address = service["spec"]["clusterIP"]
        .as_str()
        .context("an address")?
        .to_owned();
    for (name, wanted) in [
        ("web", address.as_str()),
        ("web.default.svc.cluster.local", &address),
        ("kubernetes.default", "100.64.0.1"),
        // The lab's download sites, as the VPC's resolver has them.
        ("dl.k8s.io", "198.18.0.1"),
        (&cluster.nodes.control, super::machines::API),
    ] {
        let seen = lab.in_pod(&pod, &["-lookup", name])?;
        ensure!(seen.trim() == wanted, "{name} is {seen}");
    }
    Ok(())
}

/// Neither reaches the other.
fn apart(lab: &Lab, cluster: &Cluster) -> Result<()> {
    let (first, second) = both(lab, cluster)?;
    for (from, to) in [(&first, &second), (&second, &first)] {
        let seen = lab.from_pod(from, &format!("http://{}:8080/", to.address));
        ensure!(seen.is_err(), "{} answers {}", to.name, from.name);
        // The pod itself serves.
        let own = lab.from_pod(from, &format!("http://{}:8080/", from.address))?;
        ensure!(own["host"] == from.name, "{own}");
    }
    Ok(())
}

pub fn no_route(lab: &Lab, cluster: &Cluster) -> Result<()> {
    apart(lab, cluster)
}

fn instances(cluster: &Cluster) -> [&str; 2] {
    [&cluster.machines.control, &cluster.machines.worker]
}

pub fn checked_source(lab: &Lab, cluster: &Cluster) -> Result<()> {
    for (id, range) in instances(cluster).into_iter().zip(PODS) {
        let route = json!({
            "RouteTableId": cluster.network.routes, "DestinationCidrBlock": range, "InstanceId": id,
        });
        lab.aws("ec2", "CreateRoute", &route)?;
    }
    apart(lab, cluster)
}

/// Now they do, and see each other's own addresses.
pub fn reach(lab: &Lab, cluster: &Cluster) -> Result<()> {
    for id in instances(cluster) {
        let off = json!({"InstanceId": id, "SourceDestCheck": {"Value": false}});
        lab.aws("ec2", "ModifyInstanceAttribute", &off)?;
    }
    let (first, second) = both(lab, cluster)?;
    for (from, to) in [(&first, &second), (&second, &first)] {
        let url = format!("http://{}:8080/", to.address);
        let seen = lab.until("the route is there", LIMIT, |lab| lab.from_pod(from, &url))?;
        ensure!(seen["host"] == to.name, "{seen}");
        let client = seen["client"].as_str().context("a client")?;
        ensure!(
            client
                .rsplit_once(':')
                .is_some_and(|(host, _)| host == from.address),
            "{seen}"
        );
        // By name through the service, and each of its pods in time.
        lab.until("the service leads to the other pod", LIMIT, |lab| {
            let seen = lab.from_pod(from, "http://web/")?;
            ensure!(seen["host"] == to.name, "{seen}");
            Ok(())
        })?;
    }
    Ok(())
}
