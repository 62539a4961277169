//! Roles of IAM as users of the cluster: the AWS IAM authenticator knows whose token it is, and what it is for.

use super::super::PATIENCE;
use super::super::cluster::{self, CLUSTER};
use super::roles::role_arn;
use anyhow::{Result, ensure};
use lab::scenario::Lab;
use serde_json::Value;

const POD: &str = include_str!("identities.yaml");

/// For `kctl create cluster`: the role of the service account `reader` is a user.
pub fn mapping_settings() -> [String; 4] {
    let aws = "--set=spec.authentication.aws";
    let mapping = format!("{aws}.identityMappings[0]");
    [
        format!("{aws}.backendMode=CRD"),
        format!("{mapping}.arn={}", role_arn()),
        format!("{mapping}.username=iam:{{{{SessionName}}}}"),
        format!("{mapping}.groups[0]=readers"),
    ]
}

/// Asks the API, from a worker, whose token it is.
const REVIEW: &str = r#"
server=$(sed -n 's/^ *server: *//p' /var/lib/kubelet/kubeconfig | tr -d "\"'")
curl -sS --max-time 30 --cacert /srv/kubernetes/ca.crt -H "Authorization: Bearer $1" -H 'Content-Type: application/json' \
    --data '{"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}' \
    "$server/apis/authentication.k8s.io/v1/selfsubjectreviews"
"#;

/// A token of the role for this cluster is its user; one for another cluster is nobody's.
pub fn use_identity(lab: &mut Lab) -> Result<()> {
    let said = review_token(lab, &make_token(lab, "own", CLUSTER)?)?;
    let user = &said["status"]["userInfo"];
    ensure!(user["username"] == "iam:jo", "{said}");
    let groups = user["groups"].as_array().into_iter().flatten();
    ensure!(groups.clone().any(|group| group == "readers"), "{said}");
    ensure!(
        !groups.clone().any(|group| group == "system:masters"),
        "{said}"
    );
    let said = review_token(lab, &make_token(lab, "other", "other.example.com")?)?;
    ensure!(said["code"] == 401, "{said}");
    Ok(())
}

fn review_token(lab: &Lab, token: &str) -> Result<Value> {
    let worker = cluster::worker_instances(lab)?.remove(0);
    let said = lab.exec_in_host(&worker.id, &["sh", "-ec", REVIEW, "review", token])?;
    Ok(serde_json::from_str(&said)?)
}

/// What `aws-iam-authenticator token` says in a pod that has the role.
fn make_token(lab: &Lab, name: &str, cluster: &str) -> Result<String> {
    let pod = POD.replace("@NAME@", name).replace("@NAMESPACE@", "shop");
    let pod = pod
        .replace("@ROLE@", &role_arn())
        .replace("@CLUSTER@", cluster);
    let file = lab.place().run().join("identities.yaml");
    std::fs::write(&file, pod)?;
    lab.run_kubectl(&["apply", "--filename", &file.display().to_string()])?;
    lab.wait_until(&format!("pod {name} has made a token"), PATIENCE, |lab| {
        let found = lab.get_objects(&["pod", name, "--namespace=shop"])?;
        ensure!(
            found["status"]["phase"] == "Succeeded",
            "{}",
            found["status"]
        );
        let said = lab.run_kubectl(&["logs", name, "--namespace=shop"])?;
        Ok(said.trim().to_owned())
    })
}
