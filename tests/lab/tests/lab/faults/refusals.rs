//! Workers that cannot join: `kctl get instances` names stage, cause and next step. Without the fault they become nodes.

use super::super::PATIENCE;
use super::super::cluster::{self, CLUSTER};
use super::super::reports::{read_object, store_key};
use super::kills;
use anyhow::{Context, Result, ensure};
use lab::host::PANICS;
use lab::scenario::Lab;
use serde_json::{Value, json};

/// What `kctl get instances` says about the start of an instance.
fn read_start(lab: &Lab, id: &str) -> Result<Value> {
    let said = lab.run_kctl(&["get", "instances", "--name", CLUSTER, "-o", "json"])?;
    let said: Value = serde_json::from_str(&said)?;
    let instances = said.as_array().context("a list of instances")?;
    let instance = instances.iter().find(|one| one["id"] == id);
    Ok(instance.with_context(|| format!("no {id} in {said}"))?["start"].clone())
}

/// Causes the fault, replaces a worker, and waits until kctl names `stage`, a cause with all `words`, and a next step that contains
/// `step` for the new worker. Then removes the fault, and waits for a Ready node.
fn expect_named(
    lab: &mut Lab,
    (stage, words, step): (&str, &[&str], &str),
    harm: impl FnOnce(&Lab) -> Result<()>,
    undo: impl FnOnce(&Lab) -> Result<()>,
) -> Result<()> {
    let kept = cluster::worker_instances(lab)?.remove(0);
    harm(lab)?;
    let worker = kills::replace_worker(lab, &kept)?;
    let start = lab.wait_until("kctl names the cause", PATIENCE, |lab| {
        let start = read_start(lab, &worker.id)?;
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
        // The instance keeps its image: only a replacement becomes a node.
        let mut others = cluster::worker_instances(lab)?;
        others.retain(|one| one.id != worker.id);
        let kept = others.first().context("the other worker")?;
        let new = kills::replace_worker(lab, kept)?;
        return cluster::becomes_ready(lab, &new.id);
    }
    cluster::becomes_ready(lab, &worker.id)
}

pub fn break_image(lab: &mut Lab) -> Result<()> {
    let name = ["nodes-us-east-1a", "--name", CLUSTER];
    let said = lab.run_kctl(&[&["get", "instancegroups"], &name[..], &["-o", "json"]].concat())?;
    let group: Value = serde_json::from_str(&said)?;
    let image = group.pointer("/spec/image").and_then(Value::as_str);
    let image = image.with_context(|| said.clone())?;
    let edit = |lab: &Lab, image: &str| {
        let image = format!("spec.image={image}");
        lab.run_kctl(&[&["edit", "instancegroup"], &name[..], &["--set", &image]].concat())?;
        lab.run_kctl(&["update", CLUSTER, "--yes"]).map(drop)
    };
    expect_named(
        lab,
        ("boot", &["Kernel panic"], "image"),
        |lab| edit(lab, &format!("136693071363/{PANICS}")),
        |lab| edit(lab, image),
    )
}

pub fn close_port(lab: &mut Lab) -> Result<()> {
    let rules = list_rules(lab)?;
    expect_named(
        lab,
        ("nodeup/fetch", &["3988", "timed out"], "security group"),
        |lab| change_rules(lab, "RevokeSecurityGroupIngress", &rules),
        |lab| change_rules(lab, "AuthorizeSecurityGroupIngress", &rules),
    )
}

/// The ingress rules of the control plane for port 3988, by security group.
fn list_rules(lab: &Lab) -> Result<Vec<(Value, Value)>> {
    let name = format!("masters.{CLUSTER}");
    let asked = json!({"Filters": [{"Name": "group-name", "Values": [name]}]});
    let groups = lab.call_aws("ec2", "DescribeSecurityGroups", &asked)?;
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

fn change_rules(lab: &Lab, operation: &str, rules: &[(Value, Value)]) -> Result<()> {
    for (group, rules) in rules {
        let asked = json!({"GroupId": group, "IpPermissions": rules});
        lab.call_aws("ec2", operation, &asked)?;
    }
    Ok(())
}

/// Keys in the state store that start with `prefix` and contain `word`.
fn list_keys(lab: &Lab, prefix: &str, word: &str) -> Result<Vec<String>> {
    let asked = json!({"Bucket": lab.store_bucket(), "Prefix": prefix});
    let listed = lab.call_aws("s3", "ListObjectsV2", &asked)?;
    let listed = listed["Contents"].as_array().context("objects")?;
    let keys = listed.iter().filter_map(|one| one["Key"].as_str());
    let found: Vec<String> = keys
        .filter(|key| key.contains(word))
        .map(str::to_owned)
        .collect();
    ensure!(!found.is_empty(), "the store has no {word} in {listed:?}");
    Ok(found)
}

/// Copies an object in the state store.
fn copy_object(lab: &Lab, from: &str, to: &str) -> Result<()> {
    let bucket = lab.store_bucket();
    let source = json!({"Bucket": bucket, "Key": from});
    let asked = json!({"Bucket": bucket, "Key": to, "CopySource": source});
    lab.call_aws("s3", "CopyObject", &asked).map(drop)
}

const ASIDE: &str = "aside/";

pub fn exchange_nodeup(lab: &mut Lab) -> Result<()> {
    let keys = list_keys(lab, "", "/nodeup")?;
    expect_named(
        lab,
        (
            "user-data/fetch",
            &["sha256"],
            "kctl update --yes uploads it",
        ),
        |lab| {
            for key in &keys {
                copy_object(lab, key, &format!("{ASIDE}{key}"))?;
                let other =
                    json!({"Bucket": lab.store_bucket(), "Key": key, "Body": "another program"});
                lab.call_aws("s3", "PutObject", &other)?;
            }
            Ok(())
        },
        |lab| {
            keys.iter()
                .try_for_each(|key| copy_object(lab, &format!("{ASIDE}{key}"), key))
        },
    )
}

pub fn delete_node_config(lab: &mut Lab) -> Result<()> {
    let keys = list_keys(lab, &store_key(""), "igconfig/node/nodes-us-east-1a/")?;
    let texts: Vec<String> = keys
        .iter()
        .map(|key| read_object(lab, key))
        .collect::<Result<_>>()?;
    expect_named(
        lab,
        ("nodeup/fetch", &["NodeConfig"], "kctl update --yes writes"),
        |lab| {
            for key in &keys {
                let asked = json!({"Bucket": lab.store_bucket(), "Key": key});
                lab.call_aws("s3", "DeleteObject", &asked)?;
            }
            Ok(())
        },
        |lab| {
            for (key, text) in keys.iter().zip(&texts) {
                let asked = json!({"Bucket": lab.store_bucket(), "Key": key, "Body": text});
                lab.call_aws("s3", "PutObject", &asked)?;
            }
            Ok(())
        },
    )
}
