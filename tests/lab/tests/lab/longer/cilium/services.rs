//! Services with session affinity, node ports of both traffic policies, and host ports as Kubernetes' conformance tests have them.

use super::super::super::{PATIENCE, cluster};
use super::apply_object;
use anyhow::{Context, Result, ensure};
use lab::aws_state::Instance;
use lab::scenario::{LIMIT, Lab};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Node ports of the Services `outside` and `outside-local`.
const ANYWHERE: u16 = 30_080;
const LOCAL: u16 = 30_081;

/// The operator's address, where clients outside the cluster come from.
pub const OPERATOR: &str = "198.18.0.10";

/// Calls after which pods chosen at random would not all be the same.
const CALLS: usize = 20;

/// The port of Kubernetes' test "validates that there is no conflict between pods with same hostPort but different hostIP and protocol".
const HOST_PORT: u16 = 54_323;

/// Sends a datagram to an address and port, and prints the answer.
const ASK_BY_UDP: &str = "\
import socket, sys
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
    asking.settimeout(3)
    asking.sendto(b'?', (sys.argv[1], int(sys.argv[2])))
    print(asking.recv(1000).decode())
";

pub fn keep_affinity(lab: &mut Lab) -> Result<()> {
    let spec = json!({"selector": {"app": "web"}, "sessionAffinity": "ClientIP", "ports": [{"port": 80, "targetPort": 8080}]});
    apply_object(lab, &service("sticky", &spec))?;
    for from in lab.web_pods()? {
        let ask = |lab: &Lab| lab.from_pod(&from, "http://sticky.default/");
        lab.wait_until("the Service answers", LIMIT, |lab| ask(lab).map(drop))?;
        let answers = (0..CALLS).map(|_| Ok(ask(lab)?["host"].to_string()));
        let answers = answers.collect::<Result<BTreeSet<_>>>()?;
        ensure!(answers.len() == 1, "{} got {answers:?}", from.name);
    }
    Ok(())
}

/// Clients outside reach pods by every worker; with the policy Local by the pod's worker only, and the pod sees their address.
pub fn use_node_ports(lab: &mut Lab) -> Result<()> {
    let pods = lab.web_pods()?;
    let only = pods.first().context("a pod")?;
    lab.run_kubectl(&["label", "pod", &only.name, "only=yes"])?;
    let ports = |port: u16| json!([{"port": 80, "targetPort": 8080, "nodePort": port}]);
    let anywhere =
        json!({"type": "NodePort", "selector": {"only": "yes"}, "ports": ports(ANYWHERE)});
    let local = json!({"type": "NodePort", "selector": {"only": "yes"}, "ports": ports(LOCAL), "externalTrafficPolicy": "Local"});
    apply_object(lab, &service("outside", &anywhere))?;
    apply_object(lab, &service("outside-local", &local))?;
    for worker in cluster::worker_instances(lab)? {
        let has_pod = worker.id == only.node;
        lab.wait_until(&format!("{} answers", worker.id), LIMIT, |lab| {
            let seen = call_from_outside(lab, &worker, ANYWHERE)?;
            ensure!(seen["host"] == only.name, "{seen}");
            let seen = call_from_outside(lab, &worker, LOCAL);
            ensure!(seen.is_ok() == has_pod, "of {}: {seen:?}", worker.id);
            let client =
                seen.map_or_else(|_| OPERATOR.to_owned(), |seen| seen["client"].to_string());
            ensure!(client.contains(OPERATOR), "the client is {client}");
            Ok(())
        })?;
    }
    Ok(())
}

/// Whether the operator reaches the Service whose traffic policy is Local.
pub fn is_reached_from_outside(lab: &Lab) -> Result<bool> {
    let mut reached = false;
    for worker in cluster::worker_instances(lab)? {
        reached |= call_from_outside(lab, &worker, LOCAL).is_ok();
    }
    Ok(reached)
}

fn call_from_outside(lab: &Lab, worker: &Instance, port: u16) -> Result<Value> {
    let address = worker.public_address.context("no public address")?;
    let url = format!("http://{address}:{port}/");
    let said = lab.run(&["curl", "-sSf", "--max-time", "3", &url])?;
    Ok(serde_json::from_str(&said)?)
}

/// Three pods of one node have one port: on its loopback address, and on its own for TCP and for UDP.
pub fn use_host_ports(lab: &mut Lab) -> Result<()> {
    let workers = cluster::worker_instances(lab)?;
    let [node, other] = &workers[..] else {
        anyhow::bail!("two workers, not {}", workers.len())
    };
    let address = node.address.to_string();
    for (name, ip, protocol) in [
        ("port-loopback", "127.0.0.1", "TCP"),
        ("port-tcp", &address, "TCP"),
        ("port-udp", &address, "UDP"),
    ] {
        let port = json!({"containerPort": 8080, "hostPort": HOST_PORT, "hostIP": ip, "protocol": protocol});
        let pod = json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "labels": {"app": "ports"}},
            "spec": {
                "nodeName": node.id,
                "terminationGracePeriodSeconds": 1,
                "containers": [{"name": "web", "image": "ghcr.io/kctl/lab-test:v1", "ports": [port]}],
            },
        });
        apply_object(lab, &pod)?;
    }
    let limit = format!("--timeout={}s", PATIENCE.as_secs());
    lab.run_kubectl(&[
        "wait",
        "--for=condition=Ready",
        "pod",
        "-l",
        "app=ports",
        &limit,
    ])?;
    let loopback = format!("http://127.0.0.1:{HOST_PORT}/");
    let own = format!("http://{address}:{HOST_PORT}/");
    let port = HOST_PORT.to_string();
    let curl = ["curl", "-sSf", "--max-time", "3"];
    lab.wait_until("each address has its pod", LIMIT, |lab| {
        let from_own = [&curl[..], &["--interface", &address, &loopback]].concat();
        expect_answer(lab, &node.id, &from_own, "port-loopback")?;
        for from in [node, other] {
            expect_answer(lab, &from.id, &[&curl[..], &[&own]].concat(), "port-tcp")?;
            let by_udp = ["python3", "-c", ASK_BY_UDP, &address, &port];
            expect_answer(lab, &from.id, &by_udp, "port-udp")?;
        }
        Ok(())
    })?;
    lab.run_kubectl(&["delete", "pod", "-l", "app=ports"])
        .map(drop)
}

fn expect_answer(lab: &Lab, host: &str, words: &[&str], pod: &str) -> Result<()> {
    let said = lab.exec_in_host(host, words)?;
    ensure!(said.contains(pod), "{host}: {words:?} says {said}");
    Ok(())
}

fn service(name: &str, spec: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "namespace": "default"}, "spec": spec})
}
