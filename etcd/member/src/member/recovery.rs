//! The steps of a recovery: the source restores its data, all other members stop for good. `etcd_rules` decides them.

use super::super::data_restore;
use super::super::disk_worker::run_blocking;
use super::super::log_files::read_last_entry_in;
use super::super::restored_log::{RestoreRequest, Restored};
use super::super::snapshot_restore::restore_snapshot;
use super::super::unusable::UnusableSnapshot;
use super::super::volumes::AttachedVolume;
use super::super::{EtcdDisk, EtcdQuorum, RunningEtcd};
use super::{EtcdMember, ObservedVolume, StepOutcome};
use crate::api_manifests::{API_SERVER, find_encryption_config, kill_api_server, remove_manifests};
use crate::ec2::Ec2;
use anyhow::{Context, bail};
use etcd_rules::{
    EtcdLog, FormationRecord, FormationStep, LastEntry, LogIdentity, Marker, NextGeneration,
    RestoredSnapshot, Source, call_off_restore, end_recovery, find_newer, mark_stopped,
};
use host::Host;
use node::components::etcd_ports;
use node::report::Status;
use protokube_role::lock::lock_ignoring_poison;
use std::time::{Duration, Instant};

/// A restore that failed, and when it is tried again.
#[derive(Clone, Debug)]
pub(super) struct FailedRestore {
    token: String,
    why: String,
    pause: Duration,
    until: Instant,
}

/// The etcd cluster without which there is no API.
const MAIN: &str = "main";

impl<E: Ec2, R: RunningEtcd, Q: EtcdQuorum> EtcdMember<E, R, Q> {
    /// Takes a step of a recovery.
    pub(super) async fn carry_out_recovery(
        &self,
        step: FormationStep,
        observed: &ObservedVolume<'_>,
    ) -> anyhow::Result<StepOutcome> {
        match step {
            FormationStep::Stop { marker, damaged } => {
                self.stop_for_good(marker, damaged, observed).await
            }
            FormationStep::PrepareRestore(record) => {
                self.prepare_restore(&record, observed).await?;
                Ok(StepOutcome::Stepped)
            }
            FormationStep::Restore(next) => self.begin_generation(next, observed).await,
            FormationStep::UseRestored {
                marker,
                restored,
                snapshot,
            } => {
                self.use_restored(marker, restored, snapshot, observed)
                    .await
            }
            other => bail!("{other:?} is no step of a recovery"),
        }
    }

    /// Stops the API server and the controllers of this instance before etcd main.
    async fn stop_control_plane(&self) -> anyhow::Result<()> {
        if self.settings.etcd.name != MAIN {
            return Ok(());
        }
        self.set_settled(false);
        let host = self.host.clone();
        if run_blocking(move || remove_manifests(&host)).await? {
            // kubelet sees that first.
            (self.settings.pace.sleep)(self.settings.pace.quick).await;
        }
        let host = self.host.clone();
        // kubelet ends it, too, only later.
        match run_blocking(move || kill_api_server(&host)).await {
            Ok(()) => self.role_log.report_resolved(API_SERVER),
            Err(error) => self.role_log.report_error(API_SERVER, &error),
        }
        Ok(())
    }

    /// Stops what needs etcd, then etcd. False: they have not stopped yet.
    async fn stop_all(&self, observed: &ObservedVolume<'_>) -> anyhow::Result<bool> {
        self.stop_control_plane().await?;
        self.stop_etcd(&observed.disk).await
    }

    /// Stops the member for a recovery, so that it never runs again with its data, and records how far its log reaches.
    async fn stop_for_good(
        &self,
        marker: Option<Marker>,
        damaged: bool,
        observed: &ObservedVolume<'_>,
    ) -> anyhow::Result<StepOutcome> {
        let Some(record) = &observed.read.record else {
            bail!("a recovery needs a record");
        };
        if !self.stop_all(observed).await? {
            return Ok(StepOutcome::Waits);
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
        let last = match damaged {
            true => None,
            false => observed.disk.run_on_disk(mark).await?,
        };
        let next = mark_stopped(record, &observed.attached.member, last);
        self.formation.write_record(observed.read, &next).await?;
        Ok(StepOutcome::Stepped)
    }

    /// Makes sure that the data can be restored here, before any member is stopped for it.
    async fn prepare_restore(
        &self,
        record: &FormationRecord,
        observed: &ObservedVolume<'_>,
    ) -> anyhow::Result<()> {
        // What needs etcd on this instance does not wait for a source that may never be ready.
        if observed.own.shown && self.running.find_problem().await.is_none() {
            self.set_settled(true);
        }
        let token = record.newest_token().to_owned();
        let request = self.restore_request(observed, token, None)?;
        if let Some(snapshot) = record.next.as_ref().and_then(NextGeneration::snapshot) {
            // What takes long happens while the members still serve.
            let restored = self.restore_with_pauses(&request, snapshot, observed).await;
            let unusable = match restored {
                Err(error) if error.is::<UnusableSnapshot>() => Some(error),
                restored => restored.map(|_| None)?,
            };
            if let Some(error) = unusable {
                return self.refuse_snapshot(observed, &error).await;
            }
            self.formation.write_record(observed.read, record).await?;
            return Ok(());
        }
        let prepare = move |host: &Host, disk: &EtcdDisk<'_>, _: &AttachedVolume| {
            data_restore::prepare_restore(host, disk, &request)
        };
        observed.disk.run_on_disk(prepare).await?;
        self.formation.write_record(observed.read, record).await?;
        Ok(())
    }

    /// Calls the restore off: nobody has stopped for it yet.
    async fn refuse_snapshot(
        &self,
        observed: &ObservedVolume<'_>,
        why: &anyhow::Error,
    ) -> anyhow::Result<()> {
        let why = format!("{why:#}");
        let detail = format!("the restore is called off, nothing was changed: {why}");
        self.role_log.report_status(Status::Failed, &detail);
        let record = observed.read.record.as_ref();
        let record = record.context("a restore needs a record")?;
        let next = call_off_restore(record, &why).map_err(anyhow::Error::msg)?;
        self.formation.write_record(observed.read, &next).await?;
        Ok(())
    }

    /// Restores a snapshot while the member may serve. What has failed is repeated after growing pauses, because each attempt writes the
    /// whole snapshot to the member's disk.
    async fn restore_with_pauses(
        &self,
        request: &RestoreRequest,
        snapshot: &RestoredSnapshot,
        observed: &ObservedVolume<'_>,
    ) -> anyhow::Result<Restored> {
        let failed = lock_ignoring_poison(&self.failed_restore).clone();
        let failed = failed.filter(|failed| failed.token == request.token);
        if let Some(failed) = &failed
            && Instant::now() < failed.until
        {
            bail!(failed.why.clone());
        }
        let restored = self.restore_snapshot(request, snapshot, observed).await;
        if let Err(error) = &restored
            && !error.is::<UnusableSnapshot>()
        {
            let rest = self.settings.pace.rest;
            let pause = failed.map_or(rest, |failed| (failed.pause * 2).min(rest * 4));
            *lock_ignoring_poison(&self.failed_restore) = Some(FailedRestore {
                token: request.token.clone(),
                why: format!("{error:#}"),
                pause,
                until: Instant::now() + pause,
            });
        }
        restored
    }

    /// Restores a snapshot beside the member's data, unless that was done before.
    async fn restore_snapshot(
        &self,
        request: &RestoreRequest,
        snapshot: &RestoredSnapshot,
        observed: &ObservedVolume<'_>,
    ) -> anyhow::Result<Restored> {
        observed.disk.require_mounted().await?;
        let what = format!("restoring the snapshot {}", snapshot.name);
        self.role_log.report_status(Status::Started, &what);
        let store = self.formation.open_backups(&snapshot.store)?;
        let restored = restore_snapshot(&observed.disk, &store, request, snapshot).await?;
        if let Some(content) = &restored.content {
            let detail = format!("the snapshot {} has {content}", snapshot.name);
            self.role_log.report_status(Status::Started, &detail);
        }
        Ok(restored)
    }

    async fn begin_generation(
        &self,
        next: NextGeneration,
        observed: &ObservedVolume<'_>,
    ) -> anyhow::Result<StepOutcome> {
        let token = next.token;
        match next.source {
            Source::Snapshot(snapshot) => {
                self.restore_from_snapshot(token, &snapshot, observed).await
            }
            Source::Member(source) => {
                self.restore_from_data(token, source.revision, observed)
                    .await
            }
        }
    }

    /// Restores the snapshot that the record names as the log of a new cluster, beside the old data of the stopped member, and records
    /// it.
    async fn restore_from_snapshot(
        &self,
        token: String,
        snapshot: &RestoredSnapshot,
        observed: &ObservedVolume<'_>,
    ) -> anyhow::Result<StepOutcome> {
        let record = observed.read.record.as_ref();
        let record = record.context("a restore needs a record")?;
        let request = self.restore_request(observed, token, None)?;
        let restored = self.restore_snapshot(&request, snapshot, observed).await?;
        if !self.stop_all(observed).await? {
            return Ok(StepOutcome::Waits);
        }
        self.record_restored(record, &restored, observed).await?;
        Ok(StepOutcome::Stepped)
    }

    async fn record_restored(
        &self,
        record: &FormationRecord,
        restored: &Restored,
        observed: &ObservedVolume<'_>,
    ) -> anyhow::Result<()> {
        let next = end_recovery(record, &restored.log);
        let next = next.context("the record is not of a recovery")?;
        if self.formation.write_record(observed.read, &next).await? {
            let content = restored.content.as_deref().unwrap_or("as before");
            let cluster = &restored.log.cluster_id;
            let detail = format!("restored {content}, as etcd cluster {cluster}");
            self.role_log.report_status(Status::Started, &detail);
        }
        Ok(())
    }

    /// Restores the data of the stopped member as the log of a new cluster, beside the old data, and records it.
    async fn restore_from_data(
        &self,
        token: String,
        revision: Option<u64>,
        observed: &ObservedVolume<'_>,
    ) -> anyhow::Result<StepOutcome> {
        let Some(record) = &observed.read.record else {
            bail!("a recovery needs a record");
        };
        if !self.stop_all(observed).await? {
            return Ok(StepOutcome::Waits);
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
            data_restore::restore_data(host, disk, &request)
        };
        let restored = observed.disk.run_on_disk(restore).await?;
        self.record_restored(record, &restored, observed).await?;
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
            encryption_config: find_encryption_config(&self.settings.config),
        })
    }

    /// Restores the snapshot again if what was restored is neither in its place nor beside it.
    async fn provide_restored(
        &self,
        request: &RestoreRequest,
        snapshot: &RestoredSnapshot,
        restored: &LogIdentity,
        observed: &ObservedVolume<'_>,
    ) -> anyhow::Result<()> {
        let read = |host: &Host, disk: &EtcdDisk<'_>, _: &AttachedVolume| disk.read_log(host);
        let in_place = observed.disk.run_on_disk(read).await?;
        if in_place != EtcdLog::Of(restored.clone()) {
            self.restore_snapshot(request, snapshot, observed).await?;
        }
        Ok(())
    }

    /// Puts the restored data in the place of the old.
    async fn use_restored(
        &self,
        marker: Marker,
        restored: LogIdentity,
        snapshot: Option<RestoredSnapshot>,
        observed: &ObservedVolume<'_>,
    ) -> anyhow::Result<StepOutcome> {
        if !self.stop_all(observed).await? {
            return Ok(StepOutcome::Waits);
        }
        let request = self.restore_request(observed, marker.token.clone(), None)?;
        let request = match &snapshot {
            None => Some(request),
            Some(snapshot) => {
                self.provide_restored(&request, snapshot, &restored, observed)
                    .await?;
                None
            }
        };
        let put = move |host: &Host, disk: &EtcdDisk<'_>, _: &AttachedVolume| {
            data_restore::use_restored(host, disk, request.as_ref(), &marker, &restored)
        };
        if let Some(aside) = observed.disk.run_on_disk(put).await? {
            let detail = format!("kept the member's old data in {aside}");
            self.role_log.report_status(Status::Started, &detail);
        }
        Ok(StepOutcome::Stepped)
    }
}
