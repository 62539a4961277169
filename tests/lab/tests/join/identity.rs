//! What machines may not: read what is not theirs, and join as somebody else.

use super::{CLUSTER, cluster};
use anyhow::{Context, Result, ensure};
use lab::scenario::Lab;
use lab::world::Instance;
use serde_json::{Value, json};

/// The tag that says whose an instance is.
const OWNER: &str = "KubernetesCluster";

/// A worker's role, against every object of the store.
pub fn store(lab: &mut Lab) -> Result<()> {
    let bucket = lab.bucket();
    let listed = lab.aws("s3", "ListObjectsV2", &json!({"Bucket": bucket}))?;
    let listed = listed["Contents"].as_array().context("objects")?;
    let worker = cluster::workers(lab)?.remove(0);
    let caller = lab.caller(&worker.id)?;
    let assets = format!("{CLUSTER}/assets/");
    let mut read = 0;
    for object in listed {
        let key = object["Key"].as_str().context("a key")?;
        let status = caller.object(bucket, key)?.status;
        let wanted = if key.starts_with(&assets) { 200 } else { 403 };
        ensure!(status == wanted, "{key}: {status}");
        read += usize::from(status == 200);
    }
    ensure!(
        read > 0 && read < listed.len(),
        "{read} of {}",
        listed.len()
    );
    let refused = caller.object(bucket, "?list-type=2")?;
    ensure!(refused.status == 403, "{refused:?}");
    Ok(())
}

/// A worker that has a Node asks with another key.
pub fn new_key(lab: &mut Lab) -> Result<()> {
    let worker = cluster::workers(lab)?.remove(0);
    refused(lab, &worker, "joined with another key")
}

/// From a worker, with credentials of the control plane's role.
pub fn other_role(lab: &mut Lab) -> Result<()> {
    let worker = cluster::workers(lab)?.remove(0);
    let control = cluster::control_plane(lab)?;
    let credentials = lab.caller(&control.id)?.credentials;
    let environment = format!(
        "AWS_ACCESS_KEY_ID={} AWS_SECRET_ACCESS_KEY={} AWS_SESSION_TOKEN={}",
        credentials.access_key_id, credentials.secret_access_key, credentials.token
    );
    let why = "is not the role of nodes of this cluster";
    refused_with(lab, &worker, &environment, why)
}

/// A worker asks whose tag says that it is another cluster's.
pub fn other_cluster(lab: &mut Lab) -> Result<()> {
    let worker = cluster::workers(lab)?.remove(0);
    let tag = |cluster: &str| -> Value {
        json!({"Resources": [worker.id], "Tags": [{"Key": OWNER, "Value": cluster}]})
    };
    lab.aws("ec2", "CreateTags", &tag("other.example.com"))?;
    let told = refused(lab, &worker, "the instance does not belong to");
    lab.aws("ec2", "CreateTags", &tag(CLUSTER))?;
    told
}

fn refused(lab: &Lab, host: &Instance, why: &str) -> Result<()> {
    refused_with(lab, host, "LANG=C", why)
}

/// Runs nodeup below another root, so that it has no keys and changes nothing of the machine, with those variables too. It is
/// refused for that reason, and nothing but its keys lies there then.
fn refused_with(lab: &Lab, host: &Instance, environment: &str, why: &str) -> Result<()> {
    let script = "root=$(mktemp -d); mkdir -p $root/etc; cp /etc/os-release $root/etc/
        export $1
        timeout 8 /opt/kctl/nodeup --boot-config /opt/kctl/boot.yaml --root $root 2>&1 || echo exit $?
        find $root -type f; rm -r $root";
    let said = lab.exec(&host.id, &["sh", "-ec", script, "sh", environment])?;
    ensure!(said.contains(why) && said.contains("\nexit "), "{said}");
    ensure!(!said.contains("\"stage\":\"apply\""), "{said}");
    let files = said.lines().filter(|line| line.starts_with("/tmp/"));
    let other: Vec<&str> = files
        .filter(|path| !path.contains("/keys/") && !path.ends_with("/etc/os-release"))
        .collect();
    ensure!(other.is_empty(), "it left {other:?}");
    Ok(())
}
