//! The volume of a StatefulSet follows its pod, also from an instance that has ended, and grows; volumes go with their claims and with
//! the cluster.

use super::super::cluster::{self, CLUSTER};
use super::super::faults::full::may_grow;
use super::super::volumes::{self, find_claim_volume, in_pod};
use super::super::{PATIENCE, Step, attacks};
use anyhow::{Context, Result, ensure};
use lab::scenario::{Lab, unix_time};
use serde_json::json;

const STATEFUL_SET: &str = include_str!("../volumes/stateful-set.yaml");

/// The StatefulSet's pod and its claim.
const POD: &str = "data-0";
const CLAIM: &str = "data-data-0";

pub const STEPS: [Step; 13] = [
    ("kctl makes a cluster", |lab| {
        let small = "--set=spec.etcdClusters[*].etcdMembers[*].volumeSize=1";
        cluster::create_cluster(lab, &["--networking=flannel", "--dns=none", small])
    }),
    ("three instances become Ready nodes", |lab| {
        cluster::expect_ready(lab, 1)
    }),
    ("kctl says that it is healthy", cluster::expect_healthy),
    (
        "the EBS CSI driver runs on every node",
        volumes::expect_driver,
    ),
    (
        "a stolen worker uses the driver's token",
        attacks::use_ebs_token,
    ),
    ("a StatefulSet writes to its claim", write_data),
    ("its pod moves to another node", move_pod),
    ("the instance of the pod ends", end_instance),
    ("the claim is enlarged", enlarge),
    (
        "a pod writes to the volume of another claim",
        volumes::use_claim,
    ),
    ("so it does with an older class", volumes::use_older_class),
    ("the volumes of deleted claims are deleted", |lab| {
        volumes::expect_only_volumes(lab, &[CLAIM])
    }),
    ("the cluster is deleted with its volumes", delete_cluster),
];

fn write_data(lab: &mut Lab) -> Result<()> {
    let file = lab.place().run().join("stateful-set.yaml");
    std::fs::write(&file, STATEFUL_SET)?;
    lab.run_kubectl(&["apply", "--filename", &file.display().to_string()])?;
    volumes::wait_for_pod(lab, POD)?;
    in_pod(lab, POD, "echo written >/data/file; sync")?;
    volumes::expect_volume_of(lab, CLAIM, "gp3", "us-east-1a").map(drop)
}

fn pod_node(lab: &Lab) -> Result<String> {
    let pod = lab.get_objects(&["pod", POD])?;
    let node = pod["spec"]["nodeName"].as_str();
    Ok(node.context("the pod has no node")?.to_owned())
}

/// Waits until the pod runs on another node than that one, with its data on the same volume.
fn expect_moved(lab: &Lab, from: &str, volume: &str, begun: f64) -> Result<()> {
    lab.wait_until("the pod has another node", PATIENCE, |lab| {
        let node = pod_node(lab)?;
        ensure!(node != from, "it is on {node}");
        Ok(())
    })?;
    volumes::wait_for_pod(lab, POD)?;
    let (node, seconds) = (pod_node(lab)?, unix_time()? - begun);
    eprintln!("       it runs on the other node after {seconds:.1} s");
    let said = in_pod(lab, POD, "cat /data/file")?;
    ensure!(said == "written", "the file has {said:?}");
    let now = find_claim_volume(lab, CLAIM)?;
    ensure!(now.id == volume, "{} is not {volume}", now.id);
    ensure!(now.instance() == Some(&node), "{}", now.described);
    Ok(())
}

fn move_pod(lab: &mut Lab) -> Result<()> {
    let (from, volume) = (pod_node(lab)?, find_claim_volume(lab, CLAIM)?.id);
    lab.run_kubectl(&["cordon", &from])?;
    let begun = unix_time()?;
    lab.run_kubectl(&["delete", "pod", POD])?;
    expect_moved(lab, &from, &volume, begun)?;
    lab.run_kubectl(&["uncordon", &from]).map(drop)
}

fn end_instance(lab: &mut Lab) -> Result<()> {
    let (from, volume) = (pod_node(lab)?, find_claim_volume(lab, CLAIM)?.id);
    let begun = unix_time()?;
    let ended = json!({"InstanceIds": [from]});
    lab.call_aws("ec2", "TerminateInstances", &ended)?;
    expect_moved(lab, &from, &volume, begun)?;
    cluster::expect_healthy(lab)?;
    volumes::expect_driver(lab)
}

/// Size of the pod's file system in MiB.
fn file_system_size(lab: &Lab) -> Result<u64> {
    let said = in_pod(lab, POD, "df -m /data | tail -1 | awk '{print $2}'")?;
    said.parse().with_context(|| format!("df says {said:?}"))
}

fn enlarge(lab: &mut Lab) -> Result<()> {
    let before = file_system_size(lab)?;
    ensure!(before < 1024, "{before} MiB");
    let larger = r#"{"spec":{"resources":{"requests":{"storage":"2Gi"}}}}"#;
    let begun = unix_time()?;
    lab.run_kubectl(&["patch", "pvc", CLAIM, "--patch", larger])?;
    lab.wait_until("the volume is larger", PATIENCE, |lab| {
        let volume = find_claim_volume(lab, CLAIM)?;
        ensure!(volume.described["Size"] == 2, "{}", volume.described);
        Ok(())
    })?;
    if !may_grow()? {
        eprintln!(
            "       NOT TESTED: that it grows while it is mounted, because this machine lacks CAP_SYS_RESOURCE"
        );
        lab.run_kubectl(&["delete", "pod", POD])?;
    }
    lab.wait_until("the file system is larger", PATIENCE, |lab| {
        let size = file_system_size(lab)?;
        let claim = lab.get_objects(&["pvc", CLAIM])?;
        ensure!(size > 1024, "{size} MiB; the claim: {}", claim["status"]);
        ensure!(
            claim["status"]["capacity"]["storage"] == "2Gi",
            "{}",
            claim["status"]
        );
        eprintln!(
            "       from {before} to {size} MiB after {:.1} s",
            unix_time()? - begun
        );
        Ok(())
    })?;
    let said = in_pod(lab, POD, "cat /data/file")?;
    ensure!(said == "written", "the file has {said:?}");
    Ok(())
}

/// The plan names the claim's volume, and afterwards EC2 has no volume of the cluster.
fn delete_cluster(lab: &mut Lab) -> Result<()> {
    let plan = lab.run_kctl(&["delete", "cluster", CLUSTER, "--yes"])?;
    let named = format!("2 GiB gp3 in us-east-1a, data of PersistentVolumeClaim default/{CLAIM}");
    ensure!(plan.contains(&named), "{plan}");
    let told = lab.call_aws("ec2", "DescribeVolumes", &json!({}))?;
    let left = told["Volumes"].as_array().context("volumes")?;
    ensure!(left.is_empty(), "{left:?}");
    Ok(())
}
