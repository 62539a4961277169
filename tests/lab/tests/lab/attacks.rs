//! Attacks by root on a worker: etcd's ports, kubelet's certificate, and the tokens of the network plugin and of the EBS CSI driver.

use super::PATIENCE;
use super::cluster::{self, CLUSTER};
use anyhow::{Context, Result, ensure};
use lab::scenario::{ConnectResult, Lab};
use serde_json::{Value, json};

/// etcd's peer and client ports. The security groups of kOps admit workers to the other ports of control planes.
const ETCD: [u16; 2] = [2380, 4001];

pub fn connect_to_etcd(lab: &mut Lab) -> Result<()> {
    let (worker, control) = (
        cluster::worker_instances(lab)?.remove(0),
        cluster::control_plane(lab, 0)?,
    );
    for port in ETCD {
        let seen = lab.connect_from(&worker.id, control.address.into(), port)?;
        ensure!(seen == ConnectResult::Silent, "{port} is {seen:?}");
    }
    let seen = lab.connect_from(&worker.id, control.address.into(), 3988)?;
    ensure!(seen == ConnectResult::Open, "3988 is {seen:?}");
    Ok(())
}

/// Makes two certificate requests, one for the worker's own address and one for the API server's names. It then combines them in two
/// texts: the first request is damaged so that Go's PEM reader skips it, the second follows. It submits both texts and the
/// honest request with kubelet's certificate, and prints the API's answers.
const REQUESTS: &str = r#"
node=$1 address=$2 cluster=$3
cd "$(mktemp -d)"
request() {
    openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$1.key" \
        -subj "/O=system:nodes/CN=system:node:$node" -addext "subjectAltName=$2" -out "$1" 2>/dev/null
}
post() {
    jq -n --arg name "$1" --arg request "$(base64 -w0 "$2")" '{
        apiVersion: "certificates.k8s.io/v1", kind: "CertificateSigningRequest", metadata: {name: $name},
        spec: {signerName: "kubernetes.io/kubelet-serving", request: $request, usages: ["digital signature", "server auth"]}}' |
        curl -sS --max-time 30 --cacert /srv/kubernetes/ca.crt --cert "$own" --key "$own" -o answer -w '%{http_code}' \
            -H 'Content-Type: application/json' --data @- "$server/apis/certificates.k8s.io/v1/certificatesigningrequests"
    echo " $1 $(jq -r '.message // ""' answer)"
}
own=/var/lib/kubelet/pki/kubelet-client-current.pem
server=$(sed -n 's/^ *server: *//p' /var/lib/kubelet/kubeconfig | tr -d "\"'")
request mine "IP:$address"
request other "DNS:kubernetes.default.svc,DNS:api.internal.$cluster"
{ sed '1s/$/x/' mine; cat other; } >begun
{ sed '$s/.*/-----END X-----/' mine; cat other; } >ended
post attack-begun begun
post attack-ended ended
post honest mine
"#;

/// The approver and the signer must not read different requests from the same text.
pub fn request_other_certificate(lab: &mut Lab) -> Result<()> {
    let worker = cluster::worker_instances(lab)?.remove(0);
    let address = worker.address.to_string();
    let words = [
        "sh", "-ec", REQUESTS, "requests", &worker.id, &address, CLUSTER,
    ];
    let said = lab.exec_in_host(&worker.id, &words)?;
    let taken = said.lines().all(|line| line.starts_with("201 "));
    ensure!(taken && said.lines().count() == 3, "{said}");
    // It was submitted last: the approver has seen the others by then.
    lab.wait_until("the honest request is approved", PATIENCE, |lab| {
        let honest = lab.get_objects(&["certificatesigningrequest", "honest"])?;
        ensure!(
            honest["status"]["certificate"].is_string(),
            "{}",
            honest["status"]
        );
        Ok(())
    })?;
    for name in ["attack-begun", "attack-ended"] {
        let attack = lab.get_objects(&["certificatesigningrequest", name])?;
        let status = &attack["status"];
        let untouched = status["conditions"].is_null() && status["certificate"].is_null();
        ensure!(untouched, "{name}: {status}");
    }
    Ok(())
}

/// Makes one API call with the token of a service account that is on the worker, and prints body and status.
const CALL: &str = r#"
account=$1 method=$2 path=$3 body=$4
case $method$path in
    PATCH/apis/cilium.io/*) type=application/merge-patch+json ;;
    PATCH*) type=application/strategic-merge-patch+json ;;
    *) type=application/json ;;
esac
for file in /var/lib/kubelet/pods/*/volumes/kubernetes.io~projected/kube-api-access-*/token; do
    ! cut -d. -f2 "$file" | tr -- -_ +/ | base64 -d 2>/dev/null | grep -q "system:serviceaccount:$account\"" || token=$file
done
server=$(sed -n 's/^ *server: *//p' /var/lib/kubelet/kubeconfig | tr -d "\"'")
printf 'header = "Authorization: Bearer %s"\n' "$(cat "$token")" | curl -sS --max-time 30 --config - \
    --cacert /srv/kubernetes/ca.crt -X "$method" -H "Content-Type: $type" \
    ${body:+--data "$body"} -w '\n%{http_code}' "$server$path"
"#;

/// Service accounts whose token is on every worker.
const CILIUM: &str = "kube-system:cilium";
const FLANNEL: &str = "kube-flannel:flannel";
const EBS_CSI_NODE: &str = "kube-system:ebs-csi-node-sa";

/// Returns status and body.
fn call_with_token(
    lab: &Lab,
    worker: &str,
    account: &str,
    (method, path, body): (&str, &str, &str),
) -> Result<(u16, String)> {
    let words = ["sh", "-ec", CALL, "call", account, method, path, body];
    let said = lab.exec_in_host(worker, &words)?;
    let (body, status) = said.rsplit_once('\n').context("curl says no status")?;
    Ok((status.trim().parse()?, body.to_owned()))
}

/// What is attempted, and by which method, path and body.
type Attempt<'a> = (&'a str, &'a str, String, &'a str);

fn expect_refused(
    lab: &Lab,
    worker: &str,
    account: &str,
    (what, method, path, body): Attempt<'_>,
) -> Result<()> {
    let (status, said) = call_with_token(lab, worker, account, (method, &path, body))?;
    let refused = status == 403 || status == 422;
    ensure!(
        refused,
        "the token of {account} may {what}: {status} {said}"
    );
    let said: Value = serde_json::from_str(&said)?;
    eprintln!("       {what}: {status} {}", said["message"]);
    Ok(())
}

fn metadata_patch(annotations: &str, labels: &str) -> String {
    format!(r#"{{"metadata":{{"annotations":{annotations},"labels":{labels}}}}}"#)
}

/// The token of the network plugin's pod on a worker.
pub fn use_plugin_token(lab: &mut Lab) -> Result<()> {
    let cilium = [
        "daemonsets",
        "--namespace=kube-system",
        "-l",
        "k8s-app=cilium",
    ];
    if lab.get_objects(&cilium)?["items"] == json!([]) {
        use_flannel_token(lab)
    } else {
        use_cilium_token(lab)
    }
}

/// A patch of a CiliumEndpoint by which a pod has this address.
fn endpoint_patch(address: &str) -> String {
    let family = if address.contains(':') {
        "ipv6"
    } else {
        "ipv4"
    };
    let pairs = json!([{family: address}]);
    json!({"status": {"networking": {"addressing": pairs}}}).to_string()
}

/// The worker's CiliumNode with half of all addresses, with one of nobody, and with that of another node's pod.
fn greedy_nodes(lab: &Lab, worker: &str, of_other: &str) -> Result<[String; 3]> {
    let own = lab.get_objects(&["ciliumnode", worker])?;
    let [half, elsewhere] = if of_other.contains(':') {
        ["::/1", "2001:db8::1"]
    } else {
        ["0.0.0.0/1", "192.0.2.1"]
    };
    let mut nodes = [own.clone(), own.clone(), own];
    nodes[0]["spec"]["ipam"]["podCIDRs"] = json!([half]);
    nodes[1]["spec"]["addresses"] = json!([{"type": "CiliumInternalIP", "ip": elsewhere}]);
    nodes[2]["spec"]["addresses"] = json!([{"type": "InternalIP", "ip": of_other}]);
    Ok(nodes.map(|node| node.to_string()))
}

/// The token may write the worker's own CiliumNode, CiliumEndpoints with addresses of the worker's range, and new identities of pods.
fn use_cilium_token(lab: &mut Lab) -> Result<()> {
    let mut workers = cluster::worker_instances(lab)?;
    let (worker, other) = (workers.remove(0).id, workers.remove(0).id);
    let pods = lab.web_pods()?;
    let pod_of = |node: &str| pods.iter().find(|pod| pod.node == node).context("a pod");
    let (own_pod, other_pod) = (pod_of(&worker)?, pod_of(&other)?);
    let endpoint =
        |pod: &str| format!("/apis/cilium.io/v2/namespaces/default/ciliumendpoints/{pod}");
    let node = |node: &str| format!("/apis/cilium.io/v2/ciliumnodes/{node}");
    let identities = "/apis/cilium.io/v2/ciliumidentities";

    let marked = r#"{"metadata":{"annotations":{"attack":"none"}}}"#;
    let patch = ("PATCH", &endpoint(&own_pod.name), marked);
    let allowed = call_with_token(lab, &worker, CILIUM, (patch.0, patch.1, patch.2))?;
    ensure!(allowed.0 == 200, "its own CiliumEndpoint: {allowed:?}");

    let taken = endpoint_patch(&other_pod.address);
    let moved = json!({"status": {"networking": {"node": "192.0.2.1"}}}).to_string();
    let other_node = lab.get_objects(&["ciliumnode", &other])?.to_string();
    let [wider, outside, over_pod] = greedy_nodes(lab, &worker, &other_pod.address)?;
    let known = lab.get_objects(&["ciliumidentities"])?["items"][0].clone();
    let name = known["metadata"]["name"].as_str().context("an identity")?;
    let name = format!("{identities}/{name}");
    let mut other_labels = known.clone();
    other_labels["security-labels"] = json!({"k8s:app": "attack"});
    let other_labels = other_labels.to_string();
    let reserved = json!({
        "apiVersion": "cilium.io/v2",
        "kind": "CiliumIdentity",
        "metadata": {"name": "1"},
        "security-labels": {"k8s:app": "attack"},
    });
    let reserved = reserved.to_string();
    for attempt in [
        (
            "move another node's pod",
            "PATCH",
            endpoint(&other_pod.name),
            moved.as_str(),
        ),
        (
            "take a pod's address",
            "PATCH",
            endpoint(&own_pod.name),
            &taken,
        ),
        (
            "delete another node's endpoint",
            "DELETE",
            endpoint(&other_pod.name),
            "",
        ),
        ("write another CiliumNode", "PUT", node(&other), &other_node),
        ("take half of all addresses", "PUT", node(&worker), &wider),
        ("take an address outside", "PUT", node(&worker), &outside),
        (
            "be the instance of a pod's address",
            "PUT",
            node(&worker),
            &over_pod,
        ),
        ("change an identity", "PUT", name, &other_labels),
        (
            "make a reserved identity",
            "POST",
            identities.to_owned(),
            &reserved,
        ),
        ("read every Secret", "GET", "/api/v1/secrets".to_owned(), ""),
    ] {
        expect_refused(lab, &worker, CILIUM, attempt)?;
    }
    cluster::expect_healthy(lab)
}

/// The token may change flannel's annotations of the worker's own Node and nothing else: no label that attracts pods of the control
/// plane, no other Node, and it reads no Secret.
fn use_flannel_token(lab: &mut Lab) -> Result<()> {
    let mut workers = cluster::worker_instances(lab)?;
    let (worker, other) = (workers.remove(0).id, workers.remove(0).id);
    let status = |node: &str| format!("/api/v1/nodes/{node}/status");
    let before = lab.get_objects(&["node", &other])?["metadata"]["annotations"].clone();
    let own = metadata_patch(r#"{"flannel.alpha.coreos.com/attack":"none"}"#, "{}");
    let allowed = call_with_token(lab, &worker, FLANNEL, ("PATCH", &status(&worker), &own))?;
    ensure!(allowed.0 == 200, "its own annotation: {allowed:?}");

    let label = metadata_patch("{}", r#"{"node-role.kubernetes.io/control-plane":""}"#);
    let foreign = metadata_patch(
        r#"{"flannel.alpha.coreos.com/public-ip":"192.0.2.1"}"#,
        "{}",
    );
    let address = r#"{"status":{"addresses":[{"type":"InternalIP","address":"192.0.2.1"}]}}"#;
    let not_ready = r#"{"status":{"conditions":[{"type":"Ready","status":"False","reason":"Attack","message":"none"}]}}"#;
    let refused = [
        ("label its Node", "PATCH", status(&worker), label.as_str()),
        ("move its Node", "PATCH", status(&worker), address),
        ("end its Node", "PATCH", status(&worker), not_ready),
        (
            "move another Node's overlay",
            "PATCH",
            status(&other),
            &foreign,
        ),
        ("end another Node", "PATCH", status(&other), not_ready),
        ("read every Secret", "GET", "/api/v1/secrets".to_owned(), ""),
    ];
    for attempt in refused {
        expect_refused(lab, &worker, FLANNEL, attempt)?;
    }
    let labels = lab.get_objects(&["node", &worker])?["metadata"]["labels"].clone();
    ensure!(
        labels["node-role.kubernetes.io/control-plane"].is_null(),
        "{labels}"
    );
    let now = lab.get_objects(&["node", &other])?["metadata"]["annotations"].clone();
    ensure!(
        now["flannel.alpha.coreos.com/public-ip"] == before["flannel.alpha.coreos.com/public-ip"],
        "{now}"
    );
    cluster::expect_healthy(lab)
}

/// The taint that the driver takes from its own Node, and another one.
const EBS_TAINT: &str = "ebs.csi.aws.com/agent-not-ready=:PreferNoSchedule";
const OTHER_TAINT: &str = "kctl.dev/attack=:PreferNoSchedule";

/// The token may take the driver's taint from the worker's own Node and nothing else, though its account may patch every Node.
pub fn use_ebs_token(lab: &mut Lab) -> Result<()> {
    let mut workers = cluster::worker_instances(lab)?;
    let (worker, other) = (workers.remove(0).id, workers.remove(0).id);
    let node = |node: &str| format!("/api/v1/nodes/{node}");
    for name in [&worker, &other] {
        lab.run_kubectl(&["taint", "node", name, EBS_TAINT, OTHER_TAINT])?;
    }
    let label = metadata_patch("{}", r#"{"node-role.kubernetes.io/control-plane":""}"#);
    let annotation = metadata_patch(
        r#"{"flannel.alpha.coreos.com/public-ip":"192.0.2.1"}"#,
        "{}",
    );
    let taints = |keys: &[&str]| {
        let all = keys
            .iter()
            .map(|key| json!({"key": key, "effect": "PreferNoSchedule"}));
        json!({"spec": {"taints": all.collect::<Vec<_>>()}}).to_string()
    };
    let only_other = taints(&["kctl.dev/attack"]);
    let (none, only_own) = (taints(&[]), taints(&["ebs.csi.aws.com/agent-not-ready"]));
    let added = taints(&[
        "ebs.csi.aws.com/agent-not-ready",
        "kctl.dev/attack",
        "kctl.dev/more",
    ]);
    let cordon = r#"{"spec":{"unschedulable":true}}"#;
    let not_ready = r#"{"status":{"conditions":[{"type":"Ready","status":"False","reason":"Attack","message":"none"}]}}"#;
    for attempt in [
        ("label its Node", "PATCH", node(&worker), label.as_str()),
        ("annotate its Node", "PATCH", node(&worker), &annotation),
        (
            "take all taints from its Node",
            "PATCH",
            node(&worker),
            &none,
        ),
        ("take another's taint", "PATCH", node(&worker), &only_own),
        ("add a taint", "PATCH", node(&worker), &added),
        ("cordon its Node", "PATCH", node(&worker), cordon),
        (
            "end its Node",
            "PATCH",
            node(&worker) + "/status",
            not_ready,
        ),
        ("delete its Node", "DELETE", node(&worker), ""),
        (
            "take the driver's taint from another Node",
            "PATCH",
            node(&other),
            &only_other,
        ),
        ("cordon another Node", "PATCH", node(&other), cordon),
        ("read every Secret", "GET", "/api/v1/secrets".to_owned(), ""),
    ] {
        expect_refused(lab, &worker, EBS_CSI_NODE, attempt)?;
    }
    let patch = ("PATCH", node(&worker), &only_other);
    let allowed = call_with_token(lab, &worker, EBS_CSI_NODE, (patch.0, &patch.1, patch.2))?;
    ensure!(allowed.0 == 200, "its own taint: {allowed:?}");
    for (name, wanted) in [(&worker, 1), (&other, 2)] {
        let spec = lab.get_objects(&["node", name])?["spec"].clone();
        let left = spec["taints"].as_array().map_or(0, Vec::len);
        ensure!(left == wanted && spec["unschedulable"].is_null(), "{spec}");
    }
    lab.run_kubectl(&["taint", "node", &worker, "kctl.dev/attack-"])?;
    let both = ["ebs.csi.aws.com/agent-not-ready-", "kctl.dev/attack-"];
    lab.run_kubectl(&[&["taint", "node", &other], &both[..]].concat())?;
    Ok(())
}
