//! The proof that lost writes are found: etcd does not flush its log, all control planes lose their power at once, and the judge has
//! to reject the history.

use super::super::{PATIENCE, etcd, start_lab};
use super::back::{ControlPlane, members_are_back, running};
use super::make_cluster;
use anyhow::{Context, Result, bail, ensure};
use lab::scenario::{Lab, Writers};

#[test]
#[ignore = "ten minutes: make soak"]
fn losses_are_found_without_fsync() -> Result<()> {
    let Some(mut lab) = start_lab("losses_are_found_without_fsync", "t-unsynced", 5)? else {
        return Ok(());
    };
    lab.run_step("kctl makes a cluster", make_cluster)?;
    for host in running(&lab)? {
        let title = format!("etcd-{} does not flush any more", host.member);
        lab.run_step(&title, |lab| stop_flushing(lab, &host))?;
    }
    let writers = lab.run_step("writes begin", |lab| lab.start_writers("writes"))?;
    lab.run_step("all control planes crash", |lab| crash_all(lab, &writers))?;
    lab.run_step("the judge finds what is lost", |_| {
        let history = writers.end()?;
        let acknowledged = history.attempts.iter().filter(|one| one.is_acknowledged());
        ensure!(acknowledged.count() > 0, "nothing was acknowledged");
        match history.judge() {
            Ok(tally) => bail!("the judge found nothing: {tally:?}"),
            // Then there was nothing to judge.
            Err(error) if error.to_string().contains("nobody listed") => Err(error),
            Err(error) => {
                eprintln!("       {error:#}");
                Ok(())
            }
        }
    })?;
    lab.take_down()
}

/// A spec cannot say this. The manifest on the volume can, and kubelet follows it.
fn stop_flushing(lab: &Lab, host: &ControlPlane) -> Result<()> {
    let folder = etcd::mount_point(&etcd::find_volume(lab, host.member)?);
    let manifest = format!("{folder}/k8s.io/manifests/etcd-main.manifest");
    let edit = format!(
        "sed -i 's/^\\( *\\)- name: ETCD_NAME$/\\1- name: ETCD_UNSAFE_NO_FSYNC\\n\\1  value: \"true\"\\n&/' {manifest}
        grep -q NO_FSYNC {manifest} || {{ cat {manifest}; exit 1; }}"
    );
    lab.run_script(&host.id, &edit)?;
    lab.wait_until("etcd runs with it", PATIENCE, |lab| {
        let look = "for pid in $(pgrep -x etcd); do tr '\\0' '\\n' </proc/$pid/environ; done | grep NO_FSYNC=true";
        lab.run_script(&host.id, look)?;
        members_are_back(lab)
    })
}

/// Each member's volume has what its etcd wrote until a moment before the crash, as if the process had been killed then, and nothing
/// of what came later: the kernel writes that only after some seconds.
fn crash_all(lab: &Lab, writers: &Writers) -> Result<()> {
    writers.goes_on(lab, PATIENCE)?;
    let hosts = running(lab)?;
    ensure!(hosts.len() == 3, "only {hosts:?} run");
    let mut folders = Vec::new();
    for host in &hosts {
        folders.push(etcd::mount_point(&etcd::find_volume(lab, host.member)?));
    }
    for (host, folder) in hosts.iter().zip(folders) {
        let flush = format!("pkill -STOP -x etcd; sync -f {folder}; pkill -CONT -x etcd");
        lab.run_script(&host.id, &flush)?;
    }
    writers.goes_on(lab, PATIENCE)?;
    let ids: Vec<&str> = hosts.iter().map(|host| host.id.as_str()).collect();
    writers.acknowledged_just_before(lab, || lab.kill_all(&ids))?;
    for id in ids {
        lab.start_host(id)?;
    }
    writers.goes_on(lab, PATIENCE).context("after the crash")?;
    lab.wait_until("all members are back", PATIENCE, members_are_back)
}
