//! An instance cannot read objects that its role does not need, and cannot join under another identity.

use super::cluster::{self, CLUSTER};
use anyhow::{Context, Result, ensure};
use lab::aws_state::Instance;
use lab::scenario::Lab;
use serde_json::{Value, json};

/// The tag that names an instance's cluster.
const OWNER: &str = "KubernetesCluster";

/// Reads every object of the state store with a worker's role.
pub fn read_store(lab: &mut Lab) -> Result<()> {
    let bucket = lab.store_bucket();
    let listed = lab.call_aws("s3", "ListObjectsV2", &json!({"Bucket": bucket}))?;
    let listed = listed["Contents"].as_array().context("objects")?;
    let worker = cluster::worker_instances(lab)?.remove(0);
    let caller = lab.instance_caller(&worker.id)?;
    let assets = format!("{CLUSTER}/assets/");
    let mut read = 0;
    for object in listed {
        let key = object["Key"].as_str().context("a key")?;
        let status = caller.get_object(bucket, key)?.status;
        let wanted = if key.starts_with(&assets) { 200 } else { 403 };
        ensure!(status == wanted, "{key}: {status}");
        read += usize::from(status == 200);
    }
    ensure!(
        read > 0 && read < listed.len(),
        "{read} of {}",
        listed.len()
    );
    let refused = caller.get_object(bucket, "?list-type=2")?;
    ensure!(refused.status == 403, "{refused:?}");
    Ok(())
}

/// A worker that has a Node sends a bootstrap request with another key.
pub fn join_with_new_key(lab: &mut Lab) -> Result<()> {
    let worker = cluster::worker_instances(lab)?.remove(0);
    expect_refusal(lab, &worker, "joined with another key")
}

/// A worker sends a request with the credentials of a control plane.
pub fn join_with_other_role(lab: &mut Lab) -> Result<()> {
    let worker = cluster::worker_instances(lab)?.remove(0);
    let control = cluster::control_plane(lab, 0)?;
    let credentials = lab.instance_caller(&control.id)?.credentials;
    let environment = format!(
        "AWS_ACCESS_KEY_ID={} AWS_SECRET_ACCESS_KEY={} AWS_SESSION_TOKEN={}",
        credentials.access_key_id, credentials.secret_access_key, credentials.token
    );
    let why = "is not the role of this cluster's nodes";
    expect_refusal_with(lab, &worker, &environment, why)
}

/// A worker whose tag names another cluster sends a request.
pub fn join_from_other_cluster(lab: &mut Lab) -> Result<()> {
    let worker = cluster::worker_instances(lab)?.remove(0);
    let tag = |cluster: &str| -> Value {
        json!({"Resources": [worker.id], "Tags": [{"Key": OWNER, "Value": cluster}]})
    };
    lab.call_aws("ec2", "CreateTags", &tag("other.example.com"))?;
    let told = expect_refusal(lab, &worker, "the instance does not belong to");
    lab.call_aws("ec2", "CreateTags", &tag(CLUSTER))?;
    told
}

fn expect_refusal(lab: &Lab, host: &Instance, why: &str) -> Result<()> {
    expect_refusal_with(lab, host, "LANG=C", why)
}

/// Runs nodeup with another root directory, where it has no keys and cannot change the instance, and with these environment variables.
/// It must be refused for this reason, and write nothing but its keys.
fn expect_refusal_with(lab: &Lab, host: &Instance, environment: &str, why: &str) -> Result<()> {
    let script = "root=$(mktemp -d); mkdir -p $root/etc; cp /etc/os-release $root/etc/
        export $1
        timeout 8 /opt/kctl/nodeup --boot-config /opt/kctl/boot.yaml --root $root 2>&1 || echo exit $?
        find $root -type f; rm -r $root";
    let said = lab.exec_in_host(&host.id, &["sh", "-ec", script, "sh", environment])?;
    ensure!(said.contains(why) && said.contains("\nexit "), "{said}");
    ensure!(!said.contains("\"stage\":\"apply\""), "{said}");
    let files = said.lines().filter(|line| line.starts_with("/tmp/"));
    let other: Vec<&str> = files
        .filter(|path| !path.contains("/keys/") && !path.ends_with("/etc/os-release"))
        .collect();
    ensure!(other.is_empty(), "it left {other:?}");
    Ok(())
}
