//! Attacks by root on a worker: etcd's ports, kubelet's certificate and flannel's token.

use super::PATIENCE;
use super::cluster::{self, CLUSTER};
use anyhow::{Context, Result, ensure};
use lab::scenario::{ConnectResult, Lab};
use serde_json::Value;

/// etcd's peer and client ports. The security groups of kOps admit workers to the other ports of control planes.
const ETCD: [u16; 2] = [2380, 4001];

pub fn connect_to_etcd(lab: &mut Lab) -> Result<()> {
    let (worker, control) = (
        cluster::worker_instances(lab)?.remove(0),
        cluster::control_plane(lab, 0)?,
    );
    for port in ETCD {
        let seen = lab.connect_from(&worker.id, control.address, port)?;
        ensure!(seen == ConnectResult::Silent, "{port} is {seen:?}");
    }
    let seen = lab.connect_from(&worker.id, control.address, 3988)?;
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

/// Makes one API call with the token of flannel's service account that is on the worker, and prints body and status.
const FLANNEL: &str = r#"
method=$1 path=$2 body=$3
for file in /var/lib/kubelet/pods/*/volumes/kubernetes.io~projected/kube-api-access-*/token; do
    ! cut -d. -f2 "$file" | tr -- -_ +/ | base64 -d 2>/dev/null | grep -q system:serviceaccount:kube-flannel:flannel || token=$file
done
server=$(sed -n 's/^ *server: *//p' /var/lib/kubelet/kubeconfig | tr -d "\"'")
printf 'header = "Authorization: Bearer %s"\n' "$(cat "$token")" | curl -sS --max-time 30 --config - \
    --cacert /srv/kubernetes/ca.crt -X "$method" -H 'Content-Type: application/strategic-merge-patch+json' \
    ${body:+--data "$body"} -w '\n%{http_code}' "$server$path"
"#;

/// Returns status and body.
fn call_with_flannel_token(
    lab: &Lab,
    worker: &str,
    method: &str,
    path: &str,
    body: &str,
) -> Result<(u16, String)> {
    let words = ["sh", "-ec", FLANNEL, "flannel", method, path, body];
    let said = lab.exec_in_host(worker, &words)?;
    let (body, status) = said.rsplit_once('\n').context("curl says no status")?;
    Ok((status.trim().parse()?, body.to_owned()))
}

fn metadata_patch(annotations: &str, labels: &str) -> String {
    format!(r#"{{"metadata":{{"annotations":{annotations},"labels":{labels}}}}}"#)
}

/// The token may change flannel's annotations of the worker's own Node and nothing else: no label that attracts pods of the control
/// plane, no other Node, and it reads no Secret.
pub fn use_flannel_token(lab: &mut Lab) -> Result<()> {
    let mut workers = cluster::worker_instances(lab)?;
    let (worker, other) = (workers.remove(0).id, workers.remove(0).id);
    let status = |node: &str| format!("/api/v1/nodes/{node}/status");
    let before = lab.get_objects(&["node", &other])?["metadata"]["annotations"].clone();
    let own = metadata_patch(r#"{"flannel.alpha.coreos.com/attack":"none"}"#, "{}");
    let allowed = call_with_flannel_token(lab, &worker, "PATCH", &status(&worker), &own)?;
    ensure!(allowed.0 == 200, "its own annotation: {allowed:?}");

    let label = metadata_patch("{}", r#"{"node-role.kubernetes.io/control-plane":""}"#);
    let foreign = metadata_patch(
        r#"{"flannel.alpha.coreos.com/public-ip":"192.0.2.1"}"#,
        "{}",
    );
    let address = r#"{"status":{"addresses":[{"type":"InternalIP","address":"192.0.2.1"}]}}"#;
    let not_ready = r#"{"status":{"conditions":[{"type":"Ready","status":"False","reason":"Attack","message":"none"}]}}"#;
    for (what, method, path, body) in [
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
    ] {
        let (status, said) = call_with_flannel_token(lab, &worker, method, &path, body)?;
        let refused = status == 403 || status == 422;
        ensure!(refused, "flannel's token may {what}: {status} {said}");
        let said: Value = serde_json::from_str(&said)?;
        eprintln!("       {what}: {status} {}", said["message"]);
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
