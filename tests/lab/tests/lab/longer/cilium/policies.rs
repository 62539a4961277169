//! NetworkPolicies by label, port, namespace and range, and a CiliumNetworkPolicy by name.

use super::super::super::{
    PATIENCE,
    pods::{self, in_url},
};
use super::apply_object;
use super::services::{OPERATOR, is_reached_from_outside};
use anyhow::{Context, Result, ensure};
use lab::scenario::{LIMIT, Lab, Pod};
use serde_json::{Value, json};

/// The policy of all pods.
const POLICY: &str = "rule";

/// A name that pods may ask for and connect to, and one that they may not.
const NAME: &str = "dl.k8s.io.";
const OTHER_NAME: &str = "quay.io.";

/// Each rule takes the place of the one before. Those that admit somebody stand between those that do not, so that none is true already.
pub fn enforce_all(lab: &mut Lab) -> Result<()> {
    let port = |port: u16| json!([{"ports": [{"port": port}]}]);
    let from = |peer: Value| json!([{"from": [peer]}]);
    let namespace = |name: &str| {
        from(json!({"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": name}}}))
    };
    let range = |cidr: &str| from(json!({"ipBlock": {"cidr": cidr}}));
    let mut web = lab.web_pods()?;
    let asking = web.remove(0);
    // One pod of each node: a call that is denied takes ten seconds.
    web.sort_by(|one, other| one.node.cmp(&other.node));
    web.dedup_by(|one, other| one.node == other.node);
    let to = web;
    // Who is admitted: pods of the Deployment, and the operator.
    for (title, ingress, pods, operator) in [
        ("a label that no pod has", from_friends(), false, false),
        ("a port", port(8080), true, true),
        ("another port", port(9), false, false),
        ("the namespace", namespace("default"), true, false),
        ("another namespace", namespace("kube-system"), false, false),
        ("a range", range(&format!("{OPERATOR}/32")), false, true),
        ("another range", range("203.0.113.0/24"), false, false),
    ] {
        let spec = json!({"podSelector": {}, "policyTypes": ["Ingress"], "ingress": ingress});
        apply_object(lab, &policy(&spec))?;
        lab.wait_until(title, LIMIT, |lab| {
            expect_reached(lab, &asking, &to, pods)?;
            let seen = is_reached_from_outside(lab)?;
            ensure!(seen == operator, "reached from outside: {seen}");
            Ok(())
        })?;
    }
    admit_friends(lab, &asking, &to)
}

/// Pods of every node admit those with a label only: nodes know which label pods of other nodes have.
pub fn enforce_labels(lab: &mut Lab) -> Result<()> {
    let mut web = lab.web_pods()?;
    let asking = web.remove(0);
    admit_friends(lab, &asking, &web)
}

/// Ingress from pods with a label.
fn from_friends() -> Value {
    json!([{"from": [{"podSelector": {"matchLabels": {"friend": "yes"}}}]}])
}

fn admit_friends(lab: &mut Lab, asking: &Pod, to: &[Pod]) -> Result<()> {
    let spec = json!({"podSelector": {}, "policyTypes": ["Ingress"], "ingress": from_friends()});
    apply_object(lab, &policy(&spec))?;
    lab.wait_until("nobody is a friend", LIMIT, |lab| {
        expect_reached(lab, asking, to, false)
    })?;
    lab.run_kubectl(&["label", "pod", &asking.name, "friend=yes"])?;
    lab.wait_until("the friend reaches all", LIMIT, |lab| {
        expect_reached(lab, asking, to, true)
    })?;
    lab.run_kubectl(&["delete", "networkpolicy", POLICY])?;
    lab.rolled_out("default", "deployment/web", PATIENCE)?;
    pods::expect_connections(lab)
}

fn policy(spec: &Value) -> Value {
    json!({
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": POLICY, "namespace": "default"},
        "spec": spec,
    })
}

fn expect_reached(lab: &Lab, from: &Pod, to: &[Pod], wanted: bool) -> Result<()> {
    for pod in to {
        let seen = lab.from_pod(from, &format!("http://{}:8080/", in_url(&pod.address)));
        let (name, asking) = (&pod.name, &from.name);
        ensure!(seen.is_ok() == wanted, "{name} from {asking}: {seen:?}");
    }
    Ok(())
}

/// The friend of [`enforce_all`] may ask for one name only, and reaches only what is behind it.
pub fn enforce_names(lab: &mut Lab) -> Result<()> {
    let name = NAME.trim_end_matches('.');
    let policy = json!({
        "apiVersion": "cilium.io/v2",
        "kind": "CiliumNetworkPolicy",
        "metadata": {"name": "names", "namespace": "default"},
        "spec": {
            "endpointSelector": {"matchLabels": {"friend": "yes"}},
            "egress": [
                {
                    "toEndpoints": [{"matchLabels": {"k8s:io.kubernetes.pod.namespace": "kube-system", "k8s:k8s-app": "kube-dns"}}],
                    "toPorts": [{"ports": [{"port": "53", "protocol": "ANY"}], "rules": {"dns": [{"matchName": name}]}}],
                },
                {"toFQDNs": [{"matchName": name}]},
            ],
        },
    });
    let web = lab.web_pods()?;
    let other = web.last().context("a pod")?.address.clone();
    let friends = lab.get_objects(&["pods", "--selector=friend=yes"])?;
    let friend = friends["items"][0]["metadata"]["name"].as_str();
    let friend = web
        .into_iter()
        .find(|pod| Some(pod.name.as_str()) == friend);
    let friend = friend.context("no pod is a friend")?;
    apply_object(lab, &policy)?;
    lab.wait_until("only that name", LIMIT, |lab| {
        lab.in_pod(&friend, &["-lookup", NAME])?;
        let refused = lab.in_pod(&friend, &["-lookup", OTHER_NAME]);
        ensure!(refused.is_err(), "{OTHER_NAME} is {refused:?}");
        // The site has nothing there.
        let reached = lab.in_pod(&friend, &["-get", &format!("https://{NAME}/")]);
        let said = format!("{reached:?}");
        ensure!(said.contains("404 Not Found"), "{NAME} says {said}");
        let denied = lab.from_pod(&friend, &format!("http://{other}:8080/"));
        ensure!(denied.is_err(), "{other} says {denied:?}");
        Ok(())
    })?;
    lab.run_kubectl(&["delete", "ciliumnetworkpolicy", "names"])?;
    pods::expect_connections(lab)
}
