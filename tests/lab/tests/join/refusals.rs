//! Workers that cannot join: `kctl get instances` names stage and cause. Once the cause is gone they become nodes.

use super::reports::{key, object};
use super::{CLUSTER, PATIENCE, cluster, kills};
use anyhow::{Context, Result, ensure};
use lab::host::PANICS;
use lab::scenario::Lab;
use serde_json::{Value, json};

/// The start of a machine as kctl tells it.
fn start(lab: &Lab, id: &str) -> Result<Value> {
    let said = lab.kctl(&["get", "instances", "--name", CLUSTER, "-o", "json"])?;
    let said: Value = serde_json::from_str(&said)?;
    let machines = said.as_array().context("a list of machines")?;
    let machine = machines.iter().find(|one| one["id"] == id);
    Ok(machine.with_context(|| format!("no {id} in {said}"))?["start"].clone())
}

/// Does the harm, has a worker replaced, waits until kctl names `stage` and one of the words of a cause for the new one; and
/// in the next step that one; then undoes the harm, and waits for a Ready node.
fn told(
    lab: &mut Lab,
    (stage, words, step): (&str, &[&str], &str),
    harm: impl FnOnce(&Lab) -> Result<()>,
    undo: impl FnOnce(&Lab) -> Result<()>,
) -> Result<()> {
    let kept = cluster::workers(lab)?.remove(0);
    harm(lab)?;
    let worker = kills::another(lab, &kept)?;
    let start = lab.until("kctl names the cause", PATIENCE, |lab| {
        let start = start(lab, &worker.id)?;
        let error = start["error"].as_str().unwrap_or_default();
        let named = words.iter().all(|word| error.contains(word));
        ensure!(start["stage"] == stage && named, "it says {start}");
        Ok(start)
    })?;
    eprintln!("       {start}");
    let next = start["next"].as_str().context("a next step")?;
    ensure!(next.contains(step), "{next}");
    undo(lab)?;
    if stage == "boot" {
        // No machine gets another image.
        let mut others = cluster::workers(lab)?;
        others.retain(|one| one.id != worker.id);
        let kept = others.first().context("the other worker")?;
        let new = kills::another(lab, kept)?;
        return cluster::becomes_ready(lab, &new.id);
    }
    cluster::becomes_ready(lab, &worker.id)
}

pub fn broken_image(lab: &mut Lab) -> Result<()> {
    let name = ["nodes-us-east-1a", "--name", CLUSTER];
    let said = lab.kctl(&[&["get", "instancegroups"], &name[..], &["-o", "json"]].concat())?;
    let group: Value = serde_json::from_str(&said)?;
    let image = group.pointer("/spec/image").and_then(Value::as_str);
    let image = image.with_context(|| said.clone())?;
    let edit = |lab: &Lab, image: &str| {
        let image = format!("spec.image={image}");
        lab.kctl(&[&["edit", "instancegroup"], &name[..], &["--set", &image]].concat())?;
        lab.kctl(&["update", CLUSTER, "--yes"]).map(drop)
    };
    told(
        lab,
        ("boot", &["Kernel panic"], "image"),
        |lab| edit(lab, &format!("136693071363/{PANICS}")),
        |lab| edit(lab, image),
    )
}

pub fn closed_port(lab: &mut Lab) -> Result<()> {
    let rules = rules(lab)?;
    told(
        lab,
        (
            "nodeup/fetch",
            &["3988", "did not answer in time"],
            "security group",
        ),
        |lab| change(lab, "RevokeSecurityGroupIngress", &rules),
        |lab| change(lab, "AuthorizeSecurityGroupIngress", &rules),
    )
}

/// Rules of the control plane that let workers and load balancers reach port 3988, by group.
fn rules(lab: &Lab) -> Result<Vec<(Value, Value)>> {
    let name = format!("masters.{CLUSTER}");
    let asked = json!({"Filters": [{"Name": "group-name", "Values": [name]}]});
    let groups = lab.aws("ec2", "DescribeSecurityGroups", &asked)?;
    let groups = groups["SecurityGroups"].as_array().context("groups")?;
    let mut found = Vec::new();
    for group in groups {
        let all = group["IpPermissions"].as_array().context("rules")?;
        let open = |rule: &&Value| {
            let port = |name: &str| rule[name].as_i64();
            rule["IpProtocol"] == "tcp"
                && port("FromPort") <= Some(3988)
                && port("ToPort") >= Some(3988)
        };
        let open: Vec<&Value> = all.iter().filter(open).collect();
        if !open.is_empty() {
            found.push((group["GroupId"].clone(), json!(open)));
        }
    }
    ensure!(!found.is_empty(), "no rule opens port 3988: {groups:?}");
    Ok(found)
}

fn change(lab: &Lab, operation: &str, rules: &[(Value, Value)]) -> Result<()> {
    for (group, rules) in rules {
        let asked = json!({"GroupId": group, "IpPermissions": rules});
        lab.aws("ec2", operation, &asked)?;
    }
    Ok(())
}

/// Keys of the store that begin with `prefix` and contain `word`.
fn keys(lab: &Lab, prefix: &str, word: &str) -> Result<Vec<String>> {
    let asked = json!({"Bucket": lab.bucket(), "Prefix": prefix});
    let listed = lab.aws("s3", "ListObjectsV2", &asked)?;
    let listed = listed["Contents"].as_array().context("objects")?;
    let keys = listed.iter().filter_map(|one| one["Key"].as_str());
    let found: Vec<String> = keys
        .filter(|key| key.contains(word))
        .map(str::to_owned)
        .collect();
    ensure!(!found.is_empty(), "the store has no {word} in {listed:?}");
    Ok(found)
}

/// Copies an object within the store.
fn copy(lab: &Lab, from: &str, to: &str) -> Result<()> {
    let bucket = lab.bucket();
    let source = json!({"Bucket": bucket, "Key": from});
    let asked = json!({"Bucket": bucket, "Key": to, "CopySource": source});
    lab.aws("s3", "CopyObject", &asked).map(drop)
}

const ASIDE: &str = "aside/";

pub fn wrong_hash(lab: &mut Lab) -> Result<()> {
    let keys = keys(lab, "", "/nodeup")?;
    told(
        lab,
        (
            "user-data/fetch",
            &["sha256"],
            "kctl update --yes uploads it",
        ),
        |lab| {
            for key in &keys {
                copy(lab, key, &format!("{ASIDE}{key}"))?;
                let other = json!({"Bucket": lab.bucket(), "Key": key, "Body": "another program"});
                lab.aws("s3", "PutObject", &other)?;
            }
            Ok(())
        },
        |lab| {
            keys.iter()
                .try_for_each(|key| copy(lab, &format!("{ASIDE}{key}"), key))
        },
    )
}

pub fn missing_object(lab: &mut Lab) -> Result<()> {
    let keys = keys(lab, &key(""), "igconfig/node/nodes-us-east-1a/")?;
    let texts: Vec<String> = keys
        .iter()
        .map(|key| object(lab, key))
        .collect::<Result<_>>()?;
    told(
        lab,
        ("nodeup/fetch", &["NodeConfig"], "kctl update --yes writes"),
        |lab| {
            for key in &keys {
                let asked = json!({"Bucket": lab.bucket(), "Key": key});
                lab.aws("s3", "DeleteObject", &asked)?;
            }
            Ok(())
        },
        |lab| {
            for (key, text) in keys.iter().zip(&texts) {
                let asked = json!({"Bucket": lab.bucket(), "Key": key, "Body": text});
                lab.aws("s3", "PutObject", &asked)?;
            }
            Ok(())
        },
    )
}
