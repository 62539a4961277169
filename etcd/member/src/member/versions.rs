//! Versions of etcd: which one ran with the data of a member, and the proof that the next minor can. `etcd_rules` decides.

use super::super::disk_worker::DiskWorker;
use super::super::upgrade::{self, UpgradeRequest};
use super::super::volumes::AttachedVolume;
use super::super::{EtcdDisk, EtcdQuorum, RunningEtcd, manifest};
use super::{EtcdMember, ObservedVolume, StepOutcome};
use crate::ec2::Ec2;
use etcd_rules::{FileSystemContent, Marker, VolumeContent, mark_version};
use host::Host;
use node::report::Status;

impl<E: Ec2, R: RunningEtcd, Q: EtcdQuorum> EtcdMember<E, R, Q> {
    /// The version in the manifest of a member's volume.
    pub(super) async fn read_version(
        &self,
        disk: &DiskWorker,
        content: &VolumeContent,
    ) -> anyhow::Result<Option<String>> {
        let VolumeContent::FileSystem(FileSystemContent::Marked { .. }) = content else {
            return Ok(None);
        };
        let settings = self.settings.clone();
        let read = move |host: &Host, disk: &EtcdDisk<'_>, _: &AttachedVolume| {
            manifest::read_version(host, &settings, disk)
        };
        disk.run_on_disk(read).await
    }

    /// Proves a copy of the stopped member's data with this instance's etcd, which is of the next minor, and keeps another copy.
    pub(super) async fn upgrade_data(
        &self,
        marker: Marker,
        compare_members: bool,
        observed: &ObservedVolume<'_>,
    ) -> anyhow::Result<StepOutcome> {
        if !self.stop_etcd(&observed.disk).await? {
            return Ok(StepOutcome::Waits);
        }
        let etcd = &self.settings.etcd;
        let request = UpgradeRequest {
            image: etcd.image.clone(),
            version: etcd.version.clone(),
            etcd: etcd.name.clone(),
            compare_members,
            interval: self.settings.pace.quick,
        };
        let what = format!("proving a copy of the data with etcd {}", etcd.version);
        self.role_log.report_status(Status::Started, &what);
        let prove = move |host: &Host, disk: &EtcdDisk<'_>, _: &AttachedVolume| {
            let lacks = upgrade::prove_and_copy(host, disk, &request)?;
            if lacks.is_none() {
                disk.write_marker(host, &marker)?;
            }
            Ok(lacks)
        };
        Ok(match observed.disk.run_on_disk(prove).await? {
            Some(lacks) => self.report_wait(&lacks),
            None => {
                let detail = format!("etcd {} can run with the data", etcd.version);
                self.role_log.report_status(Status::Started, &detail);
                StepOutcome::Stepped
            }
        })
    }

    /// Writes the version that runs to the marker, if it has another.
    pub(super) async fn mark_version(&self, observed: &ObservedVolume<'_>) -> anyhow::Result<()> {
        let VolumeContent::FileSystem(FileSystemContent::Marked { marker, .. }) = &observed.content
        else {
            return Ok(());
        };
        let (marker, settings) = (marker.clone(), self.settings.clone());
        let mark = move |host: &Host, disk: &EtcdDisk<'_>, _: &AttachedVolume| {
            let runs = manifest::read_version(host, &settings, disk)?;
            let runs = runs.unwrap_or_else(|| settings.etcd.version.clone());
            match mark_version(&marker, &runs) {
                Some(marker) => disk.write_marker(host, &marker),
                None => Ok(()),
            }
        };
        observed.disk.run_on_disk(mark).await
    }
}
