//! A cluster of three control planes and two workers, from `kctl create cluster` on: it becomes healthy, attacks from a worker fail,
//! and it survives a crash and the faults that a seed draws. All that clients of its API servers wrote, read and watched meanwhile fits one order of writes.

use super::faults::{self, crashes, reboots};
use super::{
    Step, attacks, cluster, etcd, etcd_faults, identity, pods, start_lab_with, users_files,
    volumes, wait_for_turn,
};
use anyhow::Result;
use cluster::Network;
use lab::host::Release;
use lab::scenario::Lab;
use serde_json::json;

#[test]
fn a_cluster_is_born_and_survives() -> Result<()> {
    let test = "a_cluster_is_born_and_survives";
    run_cluster_life(test, "t-cluster", "none", Network::Flannel)
}

#[test]
#[ignore = "the same with a hosted zone: make soak"]
fn a_cluster_with_a_zone_is_born_and_survives() -> Result<()> {
    let test = "a_cluster_with_a_zone_is_born_and_survives";
    run_cluster_life(test, "t-zoned", "public", Network::Flannel)
}

#[test]
#[ignore = "the same with cilium, which has to be built: make soak"]
fn a_cluster_with_cilium_is_born_and_survives() -> Result<()> {
    let test = "a_cluster_with_cilium_is_born_and_survives";
    run_cluster_life(test, "t-cil-life", "none", Network::Cilium)
}

/// What every cluster must pass before any fault.
const STEPS: [Step; 25] = [
    ("five instances become Ready nodes", |lab| {
        cluster::expect_ready(lab, 3)
    }),
    ("kctl says that it is healthy", cluster::expect_healthy),
    (
        "every image of their first pods was pulled in advance",
        |lab| cluster::expect_images(lab, 3),
    ),
    (
        "every member of etcd reports itself, and one leads",
        etcd::expect_reported,
    ),
    (
        "the EBS CSI driver runs on every node",
        volumes::expect_driver,
    ),
    (
        "a pod writes to the volume of its claim",
        volumes::use_claim,
    ),
    (
        "another pod does in a zone without workers",
        volumes::use_other_zone,
    ),
    ("six pods run, on both workers", pods::run_pods),
    (
        "pods reach each other across nodes, and services by name",
        pods::expect_connections,
    ),
    ("logs, exec and port-forward", pods::read_logs_and_forward),
    (
        "the user's hooks, user data and volume are on the hosts",
        users_files::expect_hook,
    ),
    (
        "an API server logs by the user's audit policy",
        users_files::expect_audit,
    ),
    (
        "static pods have the tools of the release",
        users_files::expect_tools,
    ),
    (
        "nodeup's second run changes nothing",
        reboots::run_nodeup_again,
    ),
    (
        "a worker's role reads nothing but assets",
        identity::read_store,
    ),
    (
        "a new key is refused to an instance that has a Node",
        identity::join_with_new_key,
    ),
    (
        "a control plane may not join as a worker",
        identity::join_with_other_role,
    ),
    (
        "nor an instance of another cluster",
        identity::join_from_other_cluster,
    ),
    ("a worker reaches no etcd", attacks::connect_to_etcd),
    (
        "a stolen worker asks for another's certificate",
        attacks::request_other_certificate,
    ),
    (
        "a stolen worker uses the network plugin's token",
        attacks::use_plugin_token,
    ),
    (
        "a stolen worker uses the EBS CSI driver's token",
        attacks::use_ebs_token,
    ),
    ("the volume of the deleted claim is deleted", |lab| {
        volumes::expect_only_volumes(lab, &[])
    }),
    (
        "each etcd cluster has a verified snapshot",
        etcd::expect_snapshots,
    ),
    ("a drill reads the newest snapshot", etcd::run_drill),
];

fn run_cluster_life(test: &str, name: &str, dns: &str, network: Network) -> Result<()> {
    // First: a mistyped name fails before the lab starts.
    let faults = faults::choose_faults()?;
    let _turn = wait_for_turn();
    let Some(mut lab) = start_lab_with(test, name, 5, network.content())? else {
        return Ok(());
    };
    if dns != "none" {
        lab.run_step("a hosted zone", |lab| {
            let zone = json!({"Name": "example.com", "CallerReference": test});
            lab.call_aws("route53", "CreateHostedZone", &zone).map(drop)
        })?;
    }
    lab.run_step("kctl makes a cluster", |lab| {
        make_cluster(lab, dns, network)
    })?;
    for (title, step) in STEPS {
        lab.run_step(title, step)?;
    }
    let writers = lab.run_step("writes begin", |lab| lab.start_writers("writes"))?;
    lab.run_step("one control plane crashes", |lab| {
        crashes::crash_one(lab, &writers)
    })?;
    etcd_faults::run_quick(&mut lab, &writers, QUICK)?;
    for fault in &faults {
        lab.run_step(fault.name, |lab| (fault.happen)(lab, &writers))?;
    }
    lab.run_step(
        "all that clients did and saw fits one order of writes",
        |lab| crashes::check_history(lab, writers, &[0, 1, 2]),
    )?;
    lab.take_down()
}

/// How many of the quick kinds of [`etcd_faults`] happen in each run.
const QUICK: usize = 6;

/// etcd's quota in bytes: a test can reach it, and nothing else does.
const QUOTA: &str = "67108864";

/// Creates the cluster with the smallest etcd volumes that EC2 has.
pub fn make_cluster(lab: &Lab, dns: &str, network: Network) -> Result<()> {
    let words = [&cluster_words(dns, network)[..], &users_files::spec_words()].concat();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    cluster::create_spec(lab, &words)?;
    users_files::edit_workers(lab)?;
    cluster::make_cluster(lab)
}

/// Its arguments.
pub fn cluster_words(dns: &str, network: Network) -> [String; 7] {
    let env = "spec.etcdClusters[0].manager.env[0]";
    [
        "--control-plane-zones=us-east-1a,us-east-1b,us-east-1c".to_owned(),
        network.argument().to_owned(),
        format!("--dns={dns}"),
        // Beside the default of the control planes, Debian 13.
        format!("--node-image={}", Release::Bookworm.spec_image()),
        "--set=spec.etcdClusters[*].etcdMembers[*].volumeSize=1".to_owned(),
        format!("--set={env}.name=ETCD_QUOTA_BACKEND_BYTES"),
        format!("--set={env}.value={QUOTA}"),
    ]
}
