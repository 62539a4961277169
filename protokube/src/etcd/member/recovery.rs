//! The steps of a recovery: the source restores its data, all other members stop for good. `node::etcd` decides them.

use super::super::log_files::read_last_entry_in;
use super::super::restore::{self, RestoreRequest};
use super::super::volumes::AttachedVolume;
use super::super::{EtcdDisk, EtcdQuorum, RunningEtcd};
use super::{EtcdMember, ObservedVolume, STOPPING, StepOutcome};
use crate::ec2::Ec2;
use anyhow::{Context, bail};
use host::Host;
use node::components::etcd_ports;
use node::etcd::{
    FormationRecord, LastEntry, LogIdentity, Marker, end_recovery, find_newer, mark_stopped,
};
use node::report::Status;

impl<E: Ec2, R: RunningEtcd, Q: EtcdQuorum> EtcdMember<E, R, Q> {
    /// Stops the member for a recovery, so that it never runs again with its data, and records how far its log reaches.
    pub(super) async fn stop_for_good(
        &self,
        marker: Option<Marker>,
        observed: &ObservedVolume<'_>,
    ) -> anyhow::Result<StepOutcome> {
        let Some(record) = &observed.read.record else {
            bail!("a recovery needs a record");
        };
        if !self.stop_etcd(&observed.disk).await? {
            return Ok(self.report_wait(STOPPING));
        }
        let has_data = marker.is_some();
        let mark = move |host: &Host, disk: &EtcdDisk<'_>, _: &AttachedVolume| {
            if let Some(marker) = marker {
                disk.write_marker(host, &marker)?;
            }
            if has_data {
                return read_last_entry_in(host, &disk.data_path());
            }
            Ok(Some(LastEntry::default()))
        };
        let last = observed.disk.run_on_disk(mark).await?;
        let next = mark_stopped(record, &observed.attached.member, last);
        self.formation.write_record(observed.read, &next).await?;
        Ok(StepOutcome::Stepped)
    }

    /// Makes sure that the data can be restored here, before any member is stopped for it.
    pub(super) async fn prepare_restore(
        &self,
        record: &FormationRecord,
        observed: &ObservedVolume<'_>,
    ) -> anyhow::Result<()> {
        let request = self.restore_request(observed, record.token().to_owned(), None)?;
        let prepare = move |host: &Host, disk: &EtcdDisk<'_>, _: &AttachedVolume| {
            restore::prepare_restore(host, disk, &request)
        };
        observed.disk.run_on_disk(prepare).await?;
        self.formation.write_record(observed.read, record).await?;
        Ok(())
    }

    /// Restores the data of the stopped member as the log of a new cluster, beside the old data, and records it.
    pub(super) async fn restore_data(
        &self,
        token: String,
        revision: Option<u64>,
        observed: &ObservedVolume<'_>,
    ) -> anyhow::Result<StepOutcome> {
        let Some(record) = &observed.read.record else {
            bail!("a recovery needs a record");
        };
        if !self.stop_etcd(&observed.disk).await? {
            return Ok(self.report_wait(STOPPING));
        }
        let read = |host: &Host, disk: &EtcdDisk<'_>, _: &AttachedVolume| {
            read_last_entry_in(host, &disk.data_path())
        };
        let last = observed.disk.run_on_disk(read).await?;
        if let Some(why) = find_newer(&self.settings.etcd.name, record, last) {
            bail!(why);
        }
        let request = self.restore_request(observed, token, revision)?;
        let what = format!("restoring the data of {}", request.name);
        self.role_log.report_status(Status::Started, &what);
        let restore = move |host: &Host, disk: &EtcdDisk<'_>, _: &AttachedVolume| {
            restore::restore_data(host, disk, &request)
        };
        let restored = observed.disk.run_on_disk(restore).await?;
        let next = end_recovery(record, &restored.log);
        let next = next.context("the record is not of a recovery")?;
        if self.formation.write_record(observed.read, &next).await? {
            let content = restored.content.unwrap_or_else(|| "as before".to_owned());
            let cluster = &restored.log.cluster_id;
            let detail = format!("restored {content}, as etcd cluster {cluster}");
            self.role_log.report_status(Status::Started, &detail);
        }
        Ok(StepOutcome::Stepped)
    }

    fn restore_request(
        &self,
        observed: &ObservedVolume<'_>,
        token: String,
        revision: Option<u64>,
    ) -> anyhow::Result<RestoreRequest> {
        let (etcd, member) = (&self.settings.etcd, &observed.attached.member);
        let names = self.settings.member_names();
        let ports = etcd_ports(&etcd.name).context("etcd clusters are main and events")?;
        Ok(RestoreRequest {
            image: etcd.image.clone(),
            etcd: etcd.name.clone(),
            name: names.member_name(member),
            peer_url: format!("https://{}:{}", names.member_host(member), ports.peer),
            token,
            revision,
            interval: self.settings.pace.quick,
        })
    }

    /// Puts the restored data in the place of the old.
    pub(super) async fn use_restored(
        &self,
        marker: Marker,
        restored: LogIdentity,
        observed: &ObservedVolume<'_>,
    ) -> anyhow::Result<StepOutcome> {
        if !self.stop_etcd(&observed.disk).await? {
            return Ok(self.report_wait(STOPPING));
        }
        let request = self.restore_request(observed, marker.token.clone(), None)?;
        let put = move |host: &Host, disk: &EtcdDisk<'_>, _: &AttachedVolume| {
            restore::use_restored(host, disk, &request, &marker, &restored)
        };
        if let Some(aside) = observed.disk.run_on_disk(put).await? {
            let detail = format!("kept the member's old data in {aside}");
            self.role_log.report_status(Status::Started, &detail);
        }
        Ok(StepOutcome::Stepped)
    }
}
