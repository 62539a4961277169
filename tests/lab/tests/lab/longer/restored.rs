//! Snapshots are taken, verified and restored: while all members serve, and when nothing is left but the bucket.

use super::super::PATIENCE;
use super::super::cluster::{self, CLUSTER, CONTROL_PLANES};
use super::super::etcd;
use super::backups_stopped::refuse_backups;
use super::snapshots_here::{RECIPIENT, carry_snapshot};
use super::store_lost::lose_store_too;
use anyhow::{Context, Result, bail, ensure};
use lab::scenario::{Lab, number_from_environment, random_fraction, unix_time};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

const CONFIGMAPS: &str = "/api/v1/namespaces/default/configmaps";

pub fn run(lab: &mut Lab) -> Result<()> {
    lab.run_step("kctl makes a cluster", |lab| {
        let recipients = format!(
            "--set=spec.etcdClusters[*].manager.env=[{{name: KCTL_ETCD_BACKUP_AGE_RECIPIENTS, value: {RECIPIENT}}}]"
        );
        make_cluster(lab, 3, &[&recipients])
    })?;
    lab.run_step(
        "each etcd cluster has a verified snapshot",
        etcd::expect_snapshots,
    )?;
    lab.run_step(
        "kctl validate says within two intervals that backups stop",
        refuse_backups,
    )?;
    lab.run_step(
        "a snapshot that is asked for is stored, verified and downloaded",
        |lab| {
            make_configmap(lab, "before")?;
            snapshot(lab, &["save", "asked"])?;
            let said = snapshot(lab, &["verify", "asked"])?;
            ensure!(said.contains("/registry/namespaces"), "{said}");
            let folder = tempfile::tempdir()?;
            let file = folder.path().join("etcd.db");
            let file = file.to_str().context("a path in UTF-8")?;
            snapshot(lab, &["download", "asked", "--file", file])?;
            import_others(lab, folder.path())
        },
    )?;
    lab.run_step("control planes give each other snapshots", carry_snapshot)?;
    lab.run_step("a damaged snapshot stops nobody", refuse_damaged)?;
    lab.run_step(
        "it takes the place of what was written since",
        restore_serving,
    )?;
    lab.run_step(
        "a member that was off during a restore does not serve the past",
        restore_without_one,
    )?;
    lab.run_step(
        "kctl and all protokubes are killed during a restore, again and again",
        restore_while_killed,
    )?;
    lab.run_step("nothing is left but the bucket", |lab| lose_all(lab, 3))?;
    lab.run_step(
        "what was restored is lost before another member votes",
        lose_founder,
    )?;
    lab.run_step("a snapshot begins the cluster anew", |lab| {
        restore_lost(lab, 3, &["--snapshot", "asked"])?;
        expect_before(lab).map(drop)
    })?;
    etcd::expect_reported(lab)?;
    lab.run_step(
        "the bucket is lost too, and the sealed state brings the cluster back",
        lose_store_too,
    )
}

/// The cluster that `kctl create cluster` makes by default: one control plane. Nobody else has its data.
pub fn run_with_one_control_plane(lab: &mut Lab) -> Result<()> {
    lab.run_step("kctl makes a cluster of one control plane", |lab| {
        make_cluster(lab, 1, &[])
    })?;
    lab.run_step("a snapshot is stored", |lab| {
        make_configmap(lab, "before")?;
        snapshot(lab, &["save", "asked"])?;
        make_configmap(lab, "after")
    })?;
    lab.run_step("nothing is left but the bucket", |lab| lose_all(lab, 1))?;
    lab.run_step("the snapshot begins the cluster anew", |lab| {
        restore_lost(lab, 1, &["--snapshot", "asked"])?;
        expect_before(lab).map(drop)
    })
}

/// A healthy cluster with one or three control planes. `more`: words of `kctl create cluster`.
pub fn make_cluster(lab: &mut Lab, count: usize, more: &[&str]) -> Result<()> {
    let mut words = vec![
        "--networking=flannel",
        "--dns=none",
        "--set=spec.etcdClusters[*].etcdMembers[*].volumeSize=1",
    ];
    if count == 3 {
        words.push("--control-plane-zones=us-east-1a,us-east-1b,us-east-1c");
    }
    words.extend(more);
    cluster::create_cluster(lab, &words)?;
    cluster::expect_ready(lab, count)?;
    cluster::expect_healthy(lab)?;
    etcd::expect_voters(lab, count)
}

/// Imports the snapshot as etcd-manager and RKE store it.
fn import_others(lab: &Lab, folder: &Path) -> Result<()> {
    const PACK: &str = "import gzip, sys, zipfile
data = open('etcd.db', 'rb').read()
gzip.open('etcd.backup.gz', 'wb').write(data)
with zipfile.ZipFile('rke.zip', 'w', zipfile.ZIP_DEFLATED) as zip:
    zip.writestr('/backup/asked', data)
    zip.writestr('/etc/kubernetes/asked.rkestate', '{}')";
    let mut python = Command::new("python3");
    let packed = python.args(["-c", PACK]).current_dir(folder).status()?;
    ensure!(packed.success(), "python3 packs no files");
    for (name, file) in [
        ("manager", "etcd.backup.gz"),
        ("rke", "rke.zip"),
        ("damaged", "etcd.db"),
    ] {
        let file = folder.join(file);
        let file = file.to_str().context("a path in UTF-8")?;
        snapshot(lab, &["import", name, "--file", file])?;
        snapshot(lab, &["verify", name])?;
    }
    Ok(())
}

/// A snapshot whose file is another one than its manifest says.
fn refuse_damaged(lab: &mut Lab) -> Result<()> {
    let bucket = lab.store_bucket();
    let key = format!("{CLUSTER}/backups/etcd/main/damaged/etcd.backup.gz");
    let data = json!({"Bucket": bucket, "Key": key, "Body": "x"});
    lab.call_aws("s3", "PutObject", &data)?;
    let begun = unix_time()?;
    let words = [
        "etcd",
        "restore",
        CLUSTER,
        "--snapshot",
        "damaged",
        "--yes",
        "--timeout=2m",
    ];
    let Err(why) = lab.run_kctl(&words) else {
        bail!("a damaged snapshot was restored");
    };
    let why = format!("{why:#}");
    eprintln!("       refused after {:.1} s: {why}", unix_time()? - begun);
    ensure!(why.contains("nothing was changed"), "{why}");
    make_configmap(lab, "while-refused")?;
    etcd::expect_three_voters(lab)?;
    lab.run_kubectl(&["delete", "configmap", "while-refused"])
        .map(drop)
}

/// One control plane has no power when the restore begins, and comes back later.
fn restore_without_one(lab: &mut Lab) -> Result<()> {
    let off = cluster::control_plane(lab, 2)?.id;
    make_configmap(lab, "after")?;
    lab.kill_host(&off)?;
    // Its last report is young, so kctl begins; all others stop, and wait for it.
    let words = ["etcd", "restore", CLUSTER, "--snapshot", "manager", "--yes"];
    let waits = [&words[..], &["--timeout=2m"]].concat();
    ensure!(lab.run_kctl(&waits).is_err(), "it waits for the member");
    // They reach no API server any more, and so end no pod, etcd's neither.
    for plane in 0..2 {
        let id = cluster::control_plane(lab, plane)?.id;
        lab.run_script(&id, "systemctl restart kubelet")?;
    }
    let begun = unix_time()?;
    lab.start_host(&off)?;
    lab.wait_until("the snapshot is restored", PATIENCE, |lab| {
        lab.run_kctl(&words).map(drop)
    })?;
    eprintln!(
        "       etcd serves the snapshot {:.1} s after the member is back",
        unix_time()? - begun
    );
    expect_snapshot(lab)
}

/// All members serve the data of the snapshot.
pub fn expect_snapshot(lab: &mut Lab) -> Result<()> {
    expect_before(lab)?;
    etcd::expect_three_voters(lab)?;
    cluster::expect_healthy(lab)?;
    etcd::expect_equal_hashes(lab, &[0, 1, 2])
}

/// Waits until the API shows the data of the snapshot. Returns the revision.
pub fn expect_before(lab: &Lab) -> Result<u64> {
    lab.wait_until("the API shows the snapshot", PATIENCE, |lab| {
        let (names, revision) = list_configmaps(lab)?;
        ensure!(names == ["before"], "{names:?}");
        Ok(revision)
    })
}

/// A restore goes on wherever kctl and the protokubes die.
fn restore_while_killed(lab: &mut Lab) -> Result<()> {
    const LONGEST: f64 = 12.0;
    const KILL: &str = "kill -9 $(systemctl show --property=MainPID --value protokube)";
    make_configmap(lab, "after")?;
    let planes = cluster::control_planes(lab, 3)?;
    let seed = number_from_environment("KCTL_LAB_SEED")?.unwrap_or(1);
    let words = ["etcd", "restore", CLUSTER, "--snapshot", "asked", "--yes"];
    let begun = unix_time()?;
    let mut kills = 0;
    // The snapshot of the present comes first, so the first one lives longer.
    let mut least = 8.0;
    while lab.kill_kctl(
        &words,
        Duration::from_secs_f64(least + LONGEST * random_fraction(seed, kills)),
    )? {
        for plane in &planes {
            lab.run_script(&plane.id, KILL)?;
        }
        kills += 1;
        least = 1.0;
        ensure!(kills < 40, "it does not end");
    }
    eprintln!(
        "       over after {kills} kills of everything, {:.1} s",
        unix_time()? - begun
    );
    expect_snapshot(lab)
}

/// Runs `kctl etcd snapshot` on the cluster.
pub fn snapshot(lab: &Lab, words: &[&str]) -> Result<String> {
    let begin = ["etcd", "snapshot"];
    let said = lab.run_kctl(&[&begin[..], words, &["--name", CLUSTER]].concat())?;
    eprintln!("       {}", said.trim());
    Ok(said)
}

pub fn make_configmap(lab: &Lab, name: &str) -> Result<()> {
    let literal = format!("--from-literal=name={name}");
    lab.run_kubectl(&["create", "configmap", name, &literal])
        .map(drop)
}

/// The objects that are left, and the revision at which they were listed.
pub fn list_configmaps(lab: &Lab) -> Result<(Vec<String>, u64)> {
    let said: Value = serde_json::from_str(&lab.run_kubectl(&["get", "--raw", CONFIGMAPS])?)?;
    let items = said["items"].as_array().context("items")?;
    let names = items
        .iter()
        .filter_map(|one| one["metadata"]["name"].as_str());
    let names = names.filter(|name| ["before", "after"].contains(name));
    let revision = said["metadata"]["resourceVersion"].as_str();
    let revision = revision.context("a resourceVersion")?.parse()?;
    Ok((names.map(str::to_owned).collect(), revision))
}

/// How often the containers of the control plane have restarted, by pod.
fn count_restarts(lab: &Lab) -> Result<BTreeMap<String, u64>> {
    let said = lab.run_kubectl(&["get", "pods", "--namespace=kube-system", "-o", "json"])?;
    let said: Value = serde_json::from_str(&said)?;
    let pods = said["items"].as_array().context("items")?;
    let count = pods.iter().filter_map(|pod| {
        let name = pod["metadata"]["name"].as_str()?;
        let all = pod["status"]["containerStatuses"].as_array()?;
        let restarts = all.iter().filter_map(|one| one["restartCount"].as_u64());
        Some((name.to_owned(), restarts.sum()))
    });
    Ok(count.collect())
}

fn restore_serving(lab: &mut Lab) -> Result<()> {
    lab.run_kubectl(&["delete", "configmap", "before"])?;
    make_configmap(lab, "after")?;
    let (names, newest) = list_configmaps(lab)?;
    ensure!(names == ["after"], "{names:?}");
    let before = count_restarts(lab)?;
    let begun = unix_time()?;
    lab.run_kctl(&["etcd", "restore", CLUSTER, "--snapshot", "asked", "--yes"])?;
    eprintln!(
        "       etcd serves the snapshot {:.1} s after kctl asked",
        unix_time()? - begun
    );
    let revision = expect_before(lab)?;
    eprintln!(
        "       the API shows it after {:.1} s",
        unix_time()? - begun
    );
    ensure!(revision > newest + 900_000_000, "{revision} after {newest}");
    etcd::expect_three_voters(lab)?;
    eprintln!(
        "       three members vote after {:.1} s",
        unix_time()? - begun
    );
    cluster::expect_healthy(lab)?;
    etcd::expect_reported(lab)?;
    expect_gone(lab, newest)?;
    expect_kept(lab)?;
    expect_restarts(lab, &before)
}

/// The controller manager and the scheduler do not end again and again in a restore. Others that lose a lease, such as the cloud
/// controller manager, are restarted (docs/operations/backups.md).
fn expect_restarts(lab: &Lab, before: &BTreeMap<String, u64>) -> Result<()> {
    for (pod, restarts) in count_restarts(lab)? {
        let more = restarts.saturating_sub(before.get(&pod).copied().unwrap_or_default());
        if more > 0 {
            eprintln!("       {pod} restarted {more} times");
        }
        let waits = ["kube-controller-manager-", "kube-scheduler-"];
        let waits = waits.iter().any(|name| pod.starts_with(name));
        // One ends with its lease if it leads on the member that restores, which stops last. And the container that is taken away counts, if
        // kubelet still has it when the pod comes back: it has the same UID.
        ensure!(more <= 2 || !waits, "{pod} restarted {more} times");
    }
    Ok(())
}

/// Every API server tells a client with an old resourceVersion that it is gone.
fn expect_gone(lab: &Lab, old: u64) -> Result<()> {
    for _ in 0..6 {
        let watch = format!("{CONFIGMAPS}?watch=1&resourceVersion={old}&timeoutSeconds=2");
        let said = match lab.run_kubectl(&["get", "--raw", &watch]) {
            Ok(said) => said,
            Err(error) => format!("{error:#}"),
        };
        ensure!(said.contains("410") || said.contains("too old"), "{said}");
    }
    Ok(())
}

/// Each volume of main keeps what was there before.
fn expect_kept(lab: &Lab) -> Result<()> {
    for instance in cluster::control_planes(lab, 3)? {
        let list = "ls -d /mnt/master-*/var/etcd/data.lost-*/member/wal | wc -l";
        let kept = lab.run_script(&instance.id, list)?;
        ensure!(kept == "1", "{kept} old logs on {}", instance.id);
    }
    Ok(())
}

/// Terminates the control planes and deletes all volumes of etcd.
pub fn lose_all(lab: &mut Lab, count: usize) -> Result<()> {
    let lost: Vec<String> = cluster::control_planes(lab, count)?
        .into_iter()
        .map(|instance| instance.id)
        .collect();
    set_launches(lab, "SuspendProcesses", &CONTROL_PLANES[..count])?;
    lab.call_aws("ec2", "TerminateInstances", &json!({"InstanceIds": lost}))?;
    for volume in etcd::list_volumes(lab)?.into_keys() {
        delete_volume(lab, &volume)?;
    }
    Ok(())
}

pub fn delete_volume(lab: &Lab, volume: &str) -> Result<()> {
    lab.wait_until("the volume is deleted", PATIENCE, |lab| {
        lab.call_aws("ec2", "DeleteVolume", &json!({"VolumeId": volume}))
            .map(drop)
    })
}

/// The groups launch control planes again.
pub fn resume_launches(lab: &Lab) -> Result<()> {
    set_launches(lab, "ResumeProcesses", &CONTROL_PLANES)
}

fn set_launches(lab: &Lab, operation: &str, groups: &[&str]) -> Result<()> {
    for group in groups {
        let launch = json!({"AutoScalingGroupName": group, "ScalingProcesses": ["Launch"]});
        lab.call_aws("autoscaling", operation, &launch)?;
    }
    Ok(())
}

/// Only the first control plane comes back. Once it serves the snapshot, its machine and its volume are gone too, and the others, which come
/// now, have nothing.
fn lose_founder(lab: &mut Lab) -> Result<()> {
    let first = &CONTROL_PLANES[..1];
    lab.run_kctl(&["update", CLUSTER, "--yes"])?;
    set_launches(lab, "ResumeProcesses", first)?;
    restore(lab, &["--snapshot", "rke"])?;
    let founder = cluster::control_plane(lab, 0)?.id;
    let volume = etcd::find_volume(lab, "a")?;
    set_launches(lab, "SuspendProcesses", first)?;
    lab.call_aws(
        "ec2",
        "TerminateInstances",
        &json!({"InstanceIds": [founder]}),
    )?;
    delete_volume(lab, &volume)
}

/// Restores as soon as a control plane can. `what`: the options that say what.
fn restore(lab: &mut Lab, what: &[&str]) -> Result<()> {
    let words = [&["etcd", "restore", CLUSTER], what].concat();
    lab.wait_until("a control plane can restore", PATIENCE, |lab| {
        lab.run_kctl(&words).map(drop)
    })?;
    lab.wait_until("etcd is restored", PATIENCE, |lab| {
        lab.run_kctl(&[&words[..], &["--yes"]].concat()).map(drop)
    })
}

/// The documented commands, on `count` control planes. `what`: the options that say what is restored.
pub fn restore_lost(lab: &mut Lab, count: usize, what: &[&str]) -> Result<()> {
    let begun = unix_time()?;
    set_launches(lab, "ResumeProcesses", &CONTROL_PLANES[..count])?;
    lab.run_kctl(&["update", CLUSTER, "--yes"])?;
    restore(lab, what)?;
    eprintln!(
        "       etcd serves {:.1} s after kctl update",
        unix_time()? - begun
    );
    let events = [
        "etcd", "forget", CLUSTER, "--etcd", "events", "--all", "--yes",
    ];
    lab.run_kctl(&events)?;
    lab.wait_until("the API answers", PATIENCE, list_configmaps)?;
    eprintln!(
        "       the API is back {:.1} s after kctl update",
        unix_time()? - begun
    );
    etcd::expect_voters(lab, count)?;
    cluster::expect_healthy(lab)
}
