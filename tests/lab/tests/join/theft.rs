//! What a thief of a worker has: the token of flannel's pod there. It labels no Node, and reads no Secret.

use super::cluster;
use anyhow::{Context, Result, ensure};
use lab::scenario::Lab;

/// Asks the API server with the token and the trust that lie on the worker: method, path, and what is sent. The pod is
/// flannel's by its folder's name in kubelet's own.
const ASK: &str = r#"
token=$(find /var/lib/kubelet/pods/*/volumes/kubernetes.io~projected -name token | while read -r file; do
    payload=$(cut -d. -f2 "$file" | tr '_-' '/+')
    printf '%s===' "$payload" | base64 -d 2>/dev/null | grep -q '"system:serviceaccount:kube-flannel:flannel"' && cat "$file" && break
done)
[ -n "$token" ] || { echo 'no token of flannel on this machine'; exit 1; }
ca=$(find /var/lib/kubelet/pods/*/volumes/kubernetes.io~projected -name ca.crt | head -n 1)
server=$(sed -n 's/^ *server: *//p' /var/lib/kubelet/kubeconfig | head -n 1)
curl --silent --show-error --max-time 20 --cacert "$ca" --header "Authorization: Bearer $token" \
    --header 'Content-Type: application/strategic-merge-patch+json' --request "$1" --write-out '\n%{http_code}' \
    ${3:+--data "$3"} "$server$2"
"#;

/// From that machine, as its flannel: the status and what is said.
fn ask(lab: &Lab, host: &str, method: &str, path: &str, body: &str) -> Result<(u16, String)> {
    let said = lab.exec(host, &["sh", "-c", ASK, "sh", method, path, body])?;
    let (said, status) = said.trim_end().rsplit_once('\n').context("no answer")?;
    let status = status.parse().with_context(|| said.to_owned())?;
    Ok((status, said.to_owned()))
}

/// The attack: with a control plane's role the cloud controller manager's pod would come to the worker.
pub fn flannel_token(lab: &mut Lab) -> Result<()> {
    let workers = cluster::workers(lab)?;
    let [own, other] = workers.as_slice() else {
        anyhow::bail!("there are not two workers");
    };
    let role = r#"{"metadata":{"labels":{"node-role.kubernetes.io/control-plane":""}}}"#;
    let annotation =
        r#"{"metadata":{"annotations":{"flannel.alpha.coreos.com/public-ip":"198.51.100.1"}}}"#;
    for (node, change) in [(own, role), (other, role), (other, annotation)] {
        let path = format!("/api/v1/nodes/{}/status", node.id);
        let (status, said) = ask(lab, &own.id, "PATCH", &path, change)?;
        ensure!(
            status == 422 && said.contains("flannel may change"),
            "{status}: {said}"
        );
        let labels = &lab.objects(&["node", &node.id])?["metadata"]["labels"];
        ensure!(
            labels["node-role.kubernetes.io/control-plane"].is_null(),
            "{labels}"
        );
    }
    // The token is good: it may look at Nodes, as flannel must.
    let (status, said) = ask(lab, &own.id, "GET", "/api/v1/nodes?limit=1", "")?;
    ensure!(status == 200, "{status}: {said}");
    for path in ["/api/v1/secrets", "/api/v1/namespaces/kube-system/secrets"] {
        let (status, said) = ask(lab, &own.id, "GET", path, "")?;
        ensure!(status == 403, "{status}: {said}");
    }
    Ok(())
}
