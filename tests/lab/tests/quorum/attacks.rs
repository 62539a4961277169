//! What root on a worker tries with what lies there: kubelet's own certificate, and flannel's token.

use super::{CLUSTER, PATIENCE, cluster};
use anyhow::{Context, Result, ensure};
use lab::scenario::Lab;
use serde_json::Value;

/// Two requests of the worker: for its own address, and for the API server's names. Then two texts that begin with the first in a
/// form that Go's reader passes over, and go on with the second. Posts the three under the names that are arguments, with
/// kubelet's certificate, and prints the API's answers.
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

/// Two certificates in one request: the approver and the signer may not read two different ones.
pub fn certificates(lab: &mut Lab) -> Result<()> {
    let worker = cluster::workers(lab)?.remove(0);
    let address = worker.address.to_string();
    let words = [
        "sh", "-ec", REQUESTS, "requests", &worker.id, &address, CLUSTER,
    ];
    let said = lab.exec(&worker.id, &words)?;
    let taken = said.lines().all(|line| line.starts_with("201 "));
    ensure!(taken && said.lines().count() == 3, "{said}");
    // It was posted last: who decides about it has seen the others.
    lab.until("the honest request is approved", PATIENCE, |lab| {
        let honest = lab.objects(&["certificatesigningrequest", "honest"])?;
        ensure!(
            honest["status"]["certificate"].is_string(),
            "{}",
            honest["status"]
        );
        Ok(())
    })?;
    for name in ["attack-begun", "attack-ended"] {
        let attack = lab.objects(&["certificatesigningrequest", name])?;
        let status = &attack["status"];
        let untouched = status["conditions"].is_null() && status["certificate"].is_null();
        ensure!(untouched, "{name}: {status}");
    }
    Ok(())
}

/// With the token of flannel's service account that lies on the worker: prints status and body of one call of the API.
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

/// Status and body.
fn with_flannel(
    lab: &Lab,
    worker: &str,
    method: &str,
    path: &str,
    body: &str,
) -> Result<(u16, String)> {
    let words = ["sh", "-ec", FLANNEL, "flannel", method, path, body];
    let said = lab.exec(worker, &words)?;
    let (body, status) = said.rsplit_once('\n').context("curl says no status")?;
    Ok((status.trim().parse()?, body.to_owned()))
}

fn patch(annotations: &str, labels: &str) -> String {
    format!(r#"{{"metadata":{{"annotations":{annotations},"labels":{labels}}}}}"#)
}

/// It may say flannel's own of its own Node, and nothing else: no label that draws the control plane's pods to the worker, nothing of
/// another Node, no Secret.
pub fn flannel_token(lab: &mut Lab) -> Result<()> {
    let mut workers = cluster::workers(lab)?;
    let (worker, other) = (workers.remove(0).id, workers.remove(0).id);
    let status = |node: &str| format!("/api/v1/nodes/{node}/status");
    let before = lab.objects(&["node", &other])?["metadata"]["annotations"].clone();
    let own = patch(r#"{"flannel.alpha.coreos.com/attack":"none"}"#, "{}");
    let allowed = with_flannel(lab, &worker, "PATCH", &status(&worker), &own)?;
    ensure!(allowed.0 == 200, "its own annotation: {allowed:?}");

    let label = patch("{}", r#"{"node-role.kubernetes.io/control-plane":""}"#);
    let foreign = patch(
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
        let (status, said) = with_flannel(lab, &worker, method, &path, body)?;
        let refused = status == 403 || status == 422;
        ensure!(refused, "flannel's token may {what}: {status} {said}");
        let said: Value = serde_json::from_str(&said)?;
        eprintln!("       {what}: {status} {}", said["message"]);
    }
    let labels = lab.objects(&["node", &worker])?["metadata"]["labels"].clone();
    ensure!(
        labels["node-role.kubernetes.io/control-plane"].is_null(),
        "{labels}"
    );
    let now = lab.objects(&["node", &other])?["metadata"]["annotations"].clone();
    ensure!(
        now["flannel.alpha.coreos.com/public-ip"] == before["flannel.alpha.coreos.com/public-ip"],
        "{now}"
    );
    cluster::healthy(lab)
}
