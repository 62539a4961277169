//! The steps of a member that joins a cluster in the place of another one, and the changes of the list of members.

use super::super::replacement;
use super::super::volumes::AttachedVolume;
use super::super::{EtcdDisk, EtcdQuorum, RunningEtcd};
use super::{EtcdMember, ObservedVolume, StepOutcome};
use crate::ec2::Ec2;
use anyhow::bail;
use etcd_rules::{EtcdLog, FileSystemContent, Marker, MemberChange, VolumeContent};
use host::Host;
use node::components::EtcdStart;
use node::report::Status;

impl<E: Ec2, R: RunningEtcd, Q: EtcdQuorum> EtcdMember<E, R, Q> {
    /// Starts a member that has no log, under the id that it was given. What an earlier start left behind is moved aside.
    pub(super) async fn join_cluster(
        &self,
        marker: Marker,
        start: EtcdStart,
        observed: &ObservedVolume<'_>,
    ) -> anyhow::Result<StepOutcome> {
        if self.set_aside(marker, observed).await? == StepOutcome::Waits {
            return Ok(StepOutcome::Waits);
        }
        self.show_manifest(start, observed).await?;
        Ok(self.report_wait("the new member starts, and asks the others for their data"))
    }

    /// Moves the old data aside and marks the volume for a new member, once kubelet has stopped the old one.
    pub(super) async fn set_aside(
        &self,
        marker: Marker,
        observed: &ObservedVolume<'_>,
    ) -> anyhow::Result<StepOutcome> {
        if !self.stop_etcd(&observed.disk).await? {
            return Ok(StepOutcome::Waits);
        }
        let expected = match &observed.content {
            VolumeContent::FileSystem(FileSystemContent::Marked { log, .. }) => match log {
                EtcdLog::Shorter { log, .. } => EtcdLog::Of(log.clone()),
                log => log.clone(),
            },
            _ => EtcdLog::Missing,
        };
        let move_data = move |host: &Host, disk: &EtcdDisk<'_>, _: &AttachedVolume| {
            if disk.read_log(host)? != expected {
                bail!("etcd's log changed meanwhile");
            }
            let aside = disk.set_data_aside(host)?;
            disk.write_marker(host, &marker)?;
            disk.make_data_folder(host)?;
            Ok(aside)
        };
        if let Some(aside) = observed.disk.run_on_disk(move_data).await? {
            let detail = format!("kept the member's old data in {aside}; a new member begins");
            self.role_log.report_status(Status::Started, &detail);
        }
        Ok(StepOutcome::Stepped)
    }

    /// Changes the list of members. A refusal of etcd is waited out: it checks that a quorum remains and that a learner has caught up.
    pub(super) async fn change_members(
        &self,
        change: &MemberChange,
        observed: &ObservedVolume<'_>,
    ) -> anyhow::Result<StepOutcome> {
        let (read, own) = (observed.read, &observed.own);
        let what = replacement::describe_change(own, change);
        match change {
            // etcd promotes a learner that does not run, and a cluster of one that gets a dead voter has no quorum.
            MemberChange::Promote { .. } => {
                self.show_manifest(EtcdStart::Existing, observed).await?;
                if let Some(why) = self.running.find_problem().await {
                    return Ok(self.report_wait(&format!("{what}: it is not healthy yet: {why}")));
                }
            }
            // What ran here before has no place in the cluster any more.
            MemberChange::AddLearner { .. } => self.withdraw_member(&observed.disk).await?,
            MemberChange::Remove { .. }
            | MemberChange::MoveLeader { .. }
            | MemberChange::EndJoin { .. } => {}
        }
        let changed =
            replacement::change_members(&self.quorum, &self.formation, read, own, change).await;
        Ok(match changed {
            Ok(()) => {
                self.role_log.report_status(Status::Started, &what);
                StepOutcome::Stepped
            }
            Err(error) => self.report_wait(&format!("{what}: not yet: {error:#}")),
        })
    }
}
