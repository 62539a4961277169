//! A control plane and a worker in virtual machines, with a kernel, cgroups of version 2, a clock and disks of their own.
//! docs/lab/machines.md says what is real in them.

use super::super::cluster::{self, CLUSTER, Network, WORKERS};
use super::super::etcd;
use anyhow::{Context, Result, bail, ensure};
use lab::aws_state::Instance;
use lab::content::Versions;
use lab::host::Release;
use lab::scenario::{self, LIMIT, Lab, Settings, unix_time};
use serde_json::json;
use std::time::Duration;

/// Limit for anything: two processors are emulated for each of two machines, on two cores.
const PATIENCE: Duration = Duration::from_hours(1);

/// What a machine says of itself, a line each: distribution, kernel, cgroups, platform, cloud.
const LOOK: &str = "\
. /etc/os-release; echo $VERSION_ID
uname --kernel-release
stat --file-system --format=%T /sys/fs/cgroup
systemd-detect-virt
cloud-init query cloud_name";

/// Prints the name of the disk with the serial number `$1`, if it is there.
const FIND_DISK: &str =
    "for disk in /sys/block/nvme*; do ! grep -q $1 $disk/device/serial || basename $disk; done";

/// Where the test mounts a volume of its own.
const PLUGGED: &str = "/mnt/plugged";

pub fn run(test: &str, name: &str, release: Release) -> Result<()> {
    let Some(mut lab) = start_lab(test, name)? else {
        return Ok(());
    };
    lab.run_step("kctl makes a cluster of two virtual machines", |lab| {
        make_cluster(lab, release)
    })?;
    lab.run_step("both become Ready nodes", expect_ready)?;
    lab.run_step("kernel, cgroups, platform and clock are their own", |lab| {
        expect_own_kernels(lab, release)
    })?;
    lab.run_step(
        "a pod answers behind a Service, from both nodes",
        call_service,
    )?;
    lab.run_step("a volume comes and goes while a worker runs", plug_volume)?;
    lab.run_step(
        "the control plane loses its power and comes back",
        lose_power,
    )?;
    lab.run_step("kctl says that it is healthy", |lab| {
        let wait = ["--wait=60m", "--interval=10s"];
        lab.run_kctl(&[&["validate", CLUSTER], &wait[..]].concat())
            .map(drop)
    })?;
    lab.take_down()
}

fn start_lab(test: &str, name: &str) -> Result<Option<Lab>> {
    if scenario::is_skipped(test) || !scenario::are_machines_built(test)? {
        return Ok(None);
    }
    let Some(served) = scenario::built_content(test, Versions::Newest)? else {
        return Ok(None);
    };
    let settings = Settings {
        content: Some(served),
        machines: true,
        ..Settings::new(name, env!("CARGO_BIN_EXE_lab"))
    };
    Lab::start_lab(&settings).map(Some)
}

/// Controllers keep their leases for longer: an emulated processor is about ten times slower, and who cannot renew within ten seconds ends.
fn patient_leaders() -> Vec<String> {
    let times = [
        ("LeaseDuration", "2m"),
        ("RenewDeadlineDuration", "100s"),
        ("RetryPeriod", "20s"),
    ];
    let components = [
        "kubeControllerManager",
        "kubeScheduler",
        "cloudControllerManager",
    ];
    let set = |component| {
        times.map(|(name, time)| {
            format!("--set=spec.{component}.leaderElection.leaderElect{name}={time}")
        })
    };
    components.into_iter().flat_map(set).collect()
}

fn make_cluster(lab: &Lab, release: Release) -> Result<()> {
    let image = format!("--image={}", release.spec_image());
    let mut words = vec![
        Network::Flannel.argument().to_owned(),
        "--dns=none".to_owned(),
        image,
        "--set=spec.etcdClusters[*].etcdMembers[*].volumeSize=1".to_owned(),
    ];
    words.extend(patient_leaders());
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    cluster::create_cluster_of(lab, "1", &words)
}

fn worker(lab: &Lab) -> Result<Instance> {
    Ok(lab.wait_for_members(WORKERS, 1)?.remove(0))
}

fn both(lab: &Lab) -> Result<[Instance; 2]> {
    Ok([cluster::control_plane(lab, 0)?, worker(lab)?])
}

fn expect_ready(lab: &mut Lab) -> Result<()> {
    for instance in both(lab)? {
        lab.becomes_ready(&instance.id, PATIENCE)?;
    }
    Ok(())
}

fn expect_own_kernels(lab: &mut Lab, release: Release) -> Result<()> {
    let version = match release {
        Release::Bookworm => "12",
        Release::Trixie => "13",
    };
    for instance in both(lab)? {
        let said = lab.run_script(&instance.id, LOOK)?;
        let lines: Vec<&str> = said.lines().collect();
        let [distribution, kernel, cgroups, platform, cloud] = lines[..] else {
            bail!("{said}");
        };
        let seen = (distribution, cgroups, platform, cloud);
        ensure!(seen == (version, "cgroup2fs", "amazon", "aws"), "{said}");
        ensure!(kernel.ends_with("cloud-amd64"), "{said}");
    }
    // This machine's clock does not follow.
    let ahead = "date --set='+20 seconds' >/dev/null; date +%s.%N";
    let theirs: f64 = lab.run_script(&worker(lab)?.id, ahead)?.parse()?;
    let seconds = theirs - unix_time()?;
    ensure!(seconds > 5.0, "it is {seconds} s ahead");
    Ok(())
}

fn call_service(lab: &mut Lab) -> Result<()> {
    let pods = lab.deploy_web(1, PATIENCE)?;
    let service = lab.get_objects(&["service", "web"])?;
    let address = service["spec"]["clusterIP"].as_str();
    let address = address.context("the service has no address")?;
    let call = format!("curl --silent --show-error --fail --max-time 30 http://{address}/");
    for instance in both(lab)? {
        let id = &instance.id;
        lab.wait_until(&format!("{id} gets an answer"), PATIENCE, |lab| {
            let said = lab.run_script(id, &call)?;
            ensure!(said.contains(&pods[0].name), "{said}");
            Ok(())
        })?;
    }
    Ok(())
}

/// The disk with a volume's serial number in an instance; empty if there is none.
fn find_disk(lab: &Lab, instance: &str, volume: &str) -> Result<String> {
    let serial = volume.replace('-', "");
    let said = lab.exec_in_host(instance, &["sh", "-ec", FIND_DISK, "find", &serial]);
    Ok(said?.trim().to_owned())
}

/// As on EC2: it stays until nobody uses it.
fn plug_volume(lab: &mut Lab) -> Result<()> {
    let Instance { id, zone, .. } = worker(lab)?;
    let wanted = json!({"AvailabilityZone": zone, "Size": 1});
    let made = lab.call_aws("ec2", "CreateVolume", &wanted)?;
    let volume = made["VolumeId"].as_str().context("an id")?;
    let attachment = json!({"VolumeId": volume, "InstanceId": &id, "Device": "/dev/xvdf"});
    // Refused until it is made.
    lab.wait_until("EC2 attaches it", LIMIT, |lab| {
        lab.call_aws("ec2", "AttachVolume", &attachment).map(drop)
    })?;
    let disk = lab.wait_until("its disk is there", PATIENCE, |lab| {
        let disk = find_disk(lab, &id, volume)?;
        ensure!(!disk.is_empty(), "no disk has its serial number");
        Ok(disk)
    })?;
    let write = format!(
        "mkfs.ext4 -q /dev/{disk}; mkdir -p {PLUGGED}; mount /dev/{disk} {PLUGGED}; echo is there >{PLUGGED}/file"
    );
    lab.run_script(&id, &write)?;
    let asked = json!({"VolumeId": volume});
    lab.call_aws("ec2", "DetachVolume", &asked)?;
    let read = lab.run_script(&id, &format!("cat {PLUGGED}/file; umount {PLUGGED}"))?;
    ensure!(read == "is there", "{read}");
    lab.wait_until("its disk is gone", PATIENCE, |lab| {
        let disk = find_disk(lab, &id, volume)?;
        ensure!(disk.is_empty(), "{disk} is there");
        // Refused while EC2 has it attached.
        lab.call_aws("ec2", "DeleteVolume", &asked).map(drop)
    })
}

/// What was flushed is there afterwards and the rest is not, on the volume of etcd and on the root disk.
fn lose_power(lab: &mut Lab) -> Result<()> {
    let id = cluster::control_plane(lab, 0)?.id;
    let folders = [
        etcd::mount_point(&etcd::find_volume(lab, "a")?),
        "/var/lib/misc".to_owned(),
    ];
    let write =
        "echo is there >flushed; sync flushed; echo is gone >unflushed; cat flushed unflushed";
    let write = folders
        .each_ref()
        .map(|folder| format!("mkdir -p {folder}; cd {folder}; {write}"));
    // By itself the kernel writes after 30 s, which may pass here before the power goes.
    let waits = "sysctl -q vm.dirty_expire_centisecs=60000 vm.dirty_writeback_centisecs=0";
    let wrote = lab.run_script(&id, &format!("{waits}; {}", write.join("; ")))?;
    ensure!(wrote == ["is there\nis gone"; 2].join("\n"), "{wrote}");
    lab.kill_host(&id)?;
    lab.start_host(&id)?;
    lab.ready_again(&id, PATIENCE)?;
    for folder in &folders {
        let left = format!("cd {folder}; cat flushed; cat unflushed 2>/dev/null || true");
        let left = lab.run_script(&id, &left)?;
        ensure!(left == "is there", "{folder} has {left:?}");
        lab.run_script(&id, &format!("cd {folder}; rm -f flushed unflushed"))?;
    }
    Ok(())
}
