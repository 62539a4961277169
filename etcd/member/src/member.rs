//! The role of one etcd member on this instance: finds its volume, starts the member and watches it.

mod joining;
mod recovery;
mod versions;

use super::disk_worker::{DiskWorker, run_blocking};
use super::log_files::newest_log_name;
use super::manifest;
use super::replacement::RepeatedAnswers;
use super::resume::{self, InspectedDisk};
use super::static_pod::end_without_kubelet;
use super::volumes::{AttachedVolume, VolumeSearch, find_or_attach};
use super::{EtcdDisk, EtcdQuorum, ListedRecords, MemberSettings, RunningEtcd, SettledClusters};
use crate::ec2::{self, Ec2, etcd_volumes};
use anyhow::{Context, anyhow, bail};
use etcd_rules::{
    EtcdLog, FileSystemContent, FirstLook, FormationRecord, FormationStep, FormedClusters,
    LiveCluster, Marker, OwnMember, Peers, SeenVolume, VolumeContent, VolumeRequest, decide_step,
    foreign_cluster, has_lost_log, mark_formed, may_open, must_stay_stopped, unseen_volumes,
};
use etcd_store::{FormationStore, StoredRecord};
use host::Host;
use node::components::EtcdStart;
use node::report::Status;
use protokube_role::lock::lock_ignoring_poison;
use protokube_role::log::RoleLog;
use protokube_role::pace::{self, PollTimer};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Time between checks of etcd's log on the local disk while the member runs.
const LOG_CHECK_INTERVAL: Duration = Duration::from_secs(2);

/// What is reported about the removal of other members.
const REMOVAL: &str = "removal";

/// What a member waits for that must not run.
const STOPPING: &str = "waiting until kubelet has stopped etcd";

/// The member of one etcd cluster on this instance.
#[derive(Debug)]
pub struct EtcdMember<E, R, Q> {
    settings: MemberSettings,
    ec2: Arc<E>,
    host: Host,
    formation: FormationStore,
    running: R,
    quorum: Q,
    settled: Arc<SettledClusters>,
    /// Versions of the records: a change wakes the member.
    records: Arc<ListedRecords>,
    role_log: RoleLog,
    /// Disk from which the member runs.
    runs_from: Mutex<Option<DiskWorker>>,
    /// Volume that EC2 accepted to attach but has not shown as attached yet; EC2's answers may be old.
    attaching: Mutex<Option<String>>,
    deleted: RepeatedAnswers,
    free: RepeatedAnswers,
    /// True once it is known that the state store says that the recorded cluster was formed, and shows no successor.
    is_current: AtomicBool,
    /// What was waited for last.
    last_wait: Mutex<String>,
    /// True if that has changed since the last pause.
    waits_anew: AtomicBool,
    failed_restore: Mutex<Option<recovery::FailedRestore>>,
}

/// Result of one step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepOutcome {
    /// A step was taken; another may follow at once.
    Stepped,
    /// The member waits for something else.
    Waits,
    /// Nothing is left to do.
    Settled,
}

/// What EC2 says about volumes.
struct KnownVolumes {
    /// Volumes with the etcd cluster's tag, and recorded ones whatever their tags.
    seen: Vec<SeenVolume>,
    /// Ids of volumes that do not exist any more, as EC2 says now.
    deleted: BTreeSet<String>,
    /// Missing tags of recorded volumes, described for a message.
    lacks: Vec<String>,
}

/// What a look at the volume showed.
enum VolumeLook {
    /// It is mounted, and checked before that.
    Mounted(VolumeContent),
    /// It is not mounted, and was not changed.
    First(FirstLook),
}

impl VolumeLook {
    fn content(&self) -> &VolumeContent {
        match self {
            Self::Mounted(content) | Self::First(FirstLook { content, .. }) => content,
        }
    }
}

/// What is known about this member's volume.
struct ObservedVolume<'a> {
    attached: &'a AttachedVolume,
    disk: DiskWorker,
    content: VolumeContent,
    read: &'a StoredRecord,
    own: OwnMember<'a>,
}

impl<E: Ec2, R: RunningEtcd, Q: EtcdQuorum> EtcdMember<E, R, Q> {
    /// A member; nothing happens yet.
    pub fn new(
        settings: MemberSettings,
        ec2: Arc<E>,
        host: Host,
        formation: FormationStore,
        (running, quorum): (R, Q),
        settled: Arc<SettledClusters>,
        role_log: RoleLog,
    ) -> Self {
        Self {
            settings,
            ec2,
            host,
            formation,
            running,
            quorum,
            settled,
            records: Arc::default(),
            role_log,
            runs_from: Mutex::default(),
            attaching: Mutex::default(),
            deleted: RepeatedAnswers::default(),
            free: RepeatedAnswers::default(),
            is_current: AtomicBool::new(false),
            last_wait: Mutex::default(),
            waits_anew: AtomicBool::new(false),
            failed_restore: Mutex::default(),
        }
    }

    /// The same, but that it does not wait any longer once its record is listed with another version.
    #[must_use]
    pub fn waking_on(self, records: Arc<ListedRecords>) -> Self {
        Self { records, ..self }
    }

    /// Starts the member and keeps it running. A failed resume after a reboot is logged; then the record decides.
    pub async fn run_member(&self) -> anyhow::Result<()> {
        match resume::resume_member(&self.host, &self.settings).await {
            Ok(trouble) => self.report_volume(trouble),
            Err(error) => self
                .role_log
                .report_status(Status::Failed, &format!("{error:#}")),
        }
        let mut timer = PollTimer::new(self.settings.pace, &self.settings.instance);
        let (etcd, mut records) = (&self.settings.etcd.name, self.records.subscribe());
        loop {
            // Before the record is read, so that no change is missed.
            let listed = records.borrow_and_update().get(etcd).cloned();
            let mut is_changed = async || {
                // The sender lives as long as this member.
                let _ = records
                    .wait_for(|all| all.get(etcd) != listed.as_ref())
                    .await;
            };
            let outcome = self.take_step().await?;
            self.set_settled(outcome == StepOutcome::Settled);
            match outcome {
                StepOutcome::Stepped => timer.restart(),
                StepOutcome::Waits => {
                    if self.waits_anew.swap(false, Ordering::Relaxed) {
                        timer.restart();
                    }
                    tokio::select! {
                        () = timer.wait_after(pace::PollResult::Missing) => {}
                        () = is_changed() => timer.restart(),
                    }
                }
                StepOutcome::Settled => tokio::select! {
                    () = timer.wait_settled() => {}
                    () = self.wait_for_lost_log() => timer.restart(),
                    () = is_changed() => timer.restart(),
                },
            }
        }
    }

    /// Observes everything and takes at most one step.
    pub async fn take_step(&self) -> anyhow::Result<StepOutcome> {
        let read = self.formation.read_record().await?;
        let record = read.record.as_ref();
        let runs = manifest::runs_from(&self.host, &self.settings).await?;
        let mut known = self.describe_volumes(record, runs.as_deref()).await?;
        let attached = match self.find_volume(&known, runs.as_deref(), record).await? {
            VolumeSearch::Attached(held) => held,
            VolumeSearch::Waiting(why) => return Ok(self.report_wait(&why)),
            VolumeSearch::Asked(volume) => return Ok(self.wait_for_attachment(volume)),
        };
        let names = self.settings.member_names();
        let disk = DiskWorker::new(&self.host, &attached, &names.prefix);
        let members = etcd_rules::all_members(&names.members, &known.seen, record);
        // A member without its log is stopped before the others are asked.
        self.look_at_volume(&attached, &disk).await?;
        // A member that is listed as started has had its log, so it is looked for after they have answered.
        let (live, peers) = self.ask_members(&members, record).await;
        let look = self.look_at_volume(&attached, &disk).await?;
        let own = (&self.settings.config.cluster, &self.settings.etcd.name);
        if let VolumeContent::FileSystem(FileSystemContent::Marked { marker, .. }) = look.content()
            && (&marker.cluster, &marker.etcd) == own
        {
            self.describe_missing(&marker.volume, &mut known).await?;
        }
        let trace = self.find_trace(record, look.content()).await?;
        let formed = self.list_formed(record, runs.as_deref()).await?;
        let token = (self.settings.token)()?;
        let deleted = &known.deleted;
        let deleted_twice = self.deleted.confirm(deleted, self.settings.confirm_after);
        let free_twice = self.confirm_free(&known.seen);
        let mut own = OwnMember {
            cluster: &self.settings.config.cluster,
            etcd: &self.settings.etcd.name,
            members: &members,
            version: &self.settings.etcd.version,
            member: &attached.member,
            volume: &attached.volume,
            seen: &known.seen,
            gone: deleted,
            gone_twice: &deleted_twice,
            free_twice: &free_twice,
            live: live.as_ref().map_err(String::as_str),
            peers: &peers,
            manifest_version: None,
            shown: runs.as_ref() == Some(&attached.volume),
            token: &token,
            trace: trace.as_deref(),
            formed: formed.as_ref(),
        };
        let content = self.open_volume(look, &own, record, &disk).await?;
        if must_stay_stopped(&attached.member, record, &content) && !self.stop_etcd(&disk).await? {
            return Ok(StepOutcome::Waits);
        }
        let manifest_version = self.read_version(&disk, &content).await?;
        own.manifest_version = manifest_version.as_deref();
        let step = decide_step(&own, record, &content);
        if let (Some(formed), Some(record)) = (&formed, record) {
            self.show_formed(formed, record, &step).await?;
        }
        let observed = ObservedVolume {
            attached: &attached,
            disk,
            content,
            read: &read,
            own,
        };
        self.carry_out(step, observed).await
    }

    /// etcd's list of the members, and what each of them says about itself. Nobody is asked while there is no etcd cluster.
    async fn ask_members(
        &self,
        members: &[String],
        record: Option<&FormationRecord>,
    ) -> (Result<LiveCluster, String>, Peers) {
        if record.is_none_or(FormationRecord::is_forming) {
            let why = "the etcd cluster does not exist yet".to_owned();
            return (Err(why), Peers::new());
        }
        let (live, peers) = tokio::join!(
            self.quorum.list_live_members(members),
            self.quorum.describe_members(members)
        );
        (live.map_err(|error| format!("{error:#}")), peers)
    }

    fn wait_for_attachment(&self, volume: String) -> StepOutcome {
        let why = format!("waiting until {volume} is attached");
        self.with_attaching_volume(|attaching| *attaching = Some(volume));
        self.report_wait(&why)
    }

    /// Volumes that EC2 has shown as attached to nothing for a while.
    fn confirm_free(&self, seen: &[SeenVolume]) -> BTreeSet<String> {
        let free = seen.iter().filter(|one| one.holder.is_none());
        let free = free.map(|one| one.id.clone()).collect();
        self.free.confirm(&free, self.settings.confirm_after)
    }

    /// What shows that the etcd cluster existed, if there is no record and the volume is blank.
    async fn find_trace(
        &self,
        record: Option<&FormationRecord>,
        content: &VolumeContent,
    ) -> anyhow::Result<Option<String>> {
        match (record, content) {
            (None, VolumeContent::Blank) => self.formation.find_trace().await,
            _ => Ok(None),
        }
    }

    /// The etcd clusters that were formed. It is looked up before a member is started, and once by each protokube.
    async fn list_formed(
        &self,
        record: Option<&FormationRecord>,
        runs: Option<&str>,
    ) -> anyhow::Result<Option<FormedClusters>> {
        if record.is_some() && runs.is_some() && self.is_current.load(Ordering::Relaxed) {
            return Ok(None);
        }
        self.formation.list_formed().await.map(Some)
    }

    /// Makes the state store show permanently that the recorded cluster was formed, before its member goes on.
    async fn show_formed(
        &self,
        formed: &FormedClusters,
        record: &FormationRecord,
        step: &FormationStep,
    ) -> anyhow::Result<()> {
        let Some(cluster_id) = record.cluster_id() else {
            return Ok(());
        };
        if matches!(step, FormationStep::Refuse(_) | FormationStep::Ask(_)) {
            return Ok(());
        }
        if !formed.contains_key(cluster_id) {
            self.formation.write_formed(record).await?;
        }
        self.is_current.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Looks at the volume. If it is not mounted, nothing on it is changed.
    async fn look_at_volume(
        &self,
        attached: &AttachedVolume,
        disk: &DiskWorker,
    ) -> anyhow::Result<VolumeLook> {
        match &attached.surplus_message {
            Some(why) => self.role_log.report_error("volumes", &anyhow!("{why}")),
            None => self.role_log.report_resolved("volumes"),
        }
        let look = |host: &Host, disk: &EtcdDisk<'_>, attached: &AttachedVolume| match disk
            .is_mounted(host, &attached.device)?
        {
            true => Ok(None),
            false => disk.look_first(host, &attached.device).map(Some),
        };
        Ok(match disk.run_on_disk(look).await? {
            Some(first) => VolumeLook::First(first),
            None => VolumeLook::Mounted(self.inspect_volume(disk).await?),
        })
    }

    /// Opens the file system of the volume if this member may use it. Otherwise nothing on it is changed.
    async fn open_volume(
        &self,
        look: VolumeLook,
        own: &OwnMember<'_>,
        record: Option<&FormationRecord>,
        disk: &DiskWorker,
    ) -> anyhow::Result<VolumeContent> {
        match look {
            VolumeLook::First(first) if may_open(own, record, &first) => {
                self.inspect_volume(disk).await
            }
            VolumeLook::First(first) => Ok(first.content),
            VolumeLook::Mounted(content) => Ok(content),
        }
    }

    /// Mounts the volume and determines its content. A member that has lost its log stops at once, whatever is decided next.
    async fn inspect_volume(&self, disk: &DiskWorker) -> anyhow::Result<VolumeContent> {
        let settings = self.settings.clone();
        let inspected = disk.run_on_disk(move |host, disk, attached| {
            resume::mount_and_look(host, &settings, disk, &attached.device)
        });
        let InspectedDisk { content, warning } = inspected.await?;
        self.report_volume(warning);
        if has_lost_log(&content) {
            self.withdraw_member(disk).await?;
        }
        Ok(content)
    }

    /// Hides the member's manifest from kubelet.
    async fn withdraw_member(&self, disk: &DiskWorker) -> anyhow::Result<()> {
        self.set_settled(false);
        let settings = self.settings.clone();
        let withdraw = move |host: &Host, disk: &EtcdDisk<'_>, _: &AttachedVolume| {
            manifest::withdraw_manifest(host, &settings, disk)
        };
        disk.run_on_disk(withdraw).await
    }

    /// Describes the etcd cluster's volumes. Recorded volumes and the one from which etcd runs are described by id if the list lacks
    /// them.
    async fn describe_volumes(
        &self,
        record: Option<&FormationRecord>,
        runs: Option<&str>,
    ) -> anyhow::Result<KnownVolumes> {
        let volumes = etcd_volumes(&*self.ec2, &self.settings.config.cluster).await?;
        let mut known = KnownVolumes {
            seen: ec2::seen_volumes(&volumes, &self.settings.etcd.name),
            deleted: BTreeSet::new(),
            lacks: Vec::new(),
        };
        let asked = record.map_or_else(Vec::new, |record| match &record.next {
            // All other members must have stopped.
            Some(_) => record.members.keys().cloned().collect(),
            None => self.settings.own_members(),
        });
        let recorded = record.map(|record| unseen_volumes(&asked, &known.seen, record));
        for id in recorded.into_iter().flatten().chain(runs) {
            self.describe_missing(id, &mut known).await?;
        }
        match known.lacks.as_slice() {
            [] => self.role_log.report_resolved("tags"),
            lacks => {
                let why = anyhow!("{}: add it again", lacks.join(" and "));
                self.role_log.report_error("tags", &why);
            }
        }
        Ok(known)
    }

    /// Describes a volume by id if the list lacks it, because the list may be old or a tag may have been removed.
    async fn describe_missing(&self, id: &str, known: &mut KnownVolumes) -> anyhow::Result<()> {
        if known.seen.iter().any(|one| one.id == id) || known.deleted.contains(id) {
            return Ok(());
        }
        let found = self.ec2.describe_volume(id).await;
        match found.with_context(|| format!("could not describe {id}"))? {
            Some(volume) => {
                let (cluster, etcd) = (&self.settings.config.cluster, &self.settings.etcd.name);
                let lacks = ec2::lacking_tags(&volume, cluster, etcd);
                let lacks = lacks.iter().map(|tag| format!("{id} lacks {tag}"));
                known.lacks.extend(lacks);
                known.seen.push(ec2::to_seen_volume(&volume, etcd));
            }
            None => drop(known.deleted.insert(id.to_owned())),
        }
        Ok(())
    }

    async fn find_volume(
        &self,
        KnownVolumes {
            seen,
            deleted: gone,
            ..
        }: &KnownVolumes,
        runs: Option<&str>,
        record: Option<&FormationRecord>,
    ) -> anyhow::Result<VolumeSearch> {
        let members = self.settings.own_members();
        let instance = &self.settings.instance;
        let attaching = self.with_attaching_volume(|attaching| {
            let shown =
                |one: &SeenVolume| Some(&one.id) == attaching.as_ref() && one.is_with(instance);
            if seen.iter().any(shown) {
                *attaching = None;
            }
            attaching.clone()
        });
        let place = VolumeRequest {
            instance,
            zone: &self.settings.zone,
            members: &members,
            asked: attaching.as_deref(),
            runs,
            gone,
        };
        let first = self.settings.first_device;
        find_or_attach(&*self.ec2, &self.host, &place, seen, record, first).await
    }

    /// Returns when etcd's log disappears or loses its newest file: a member without its log must not be restarted, and kubelet would restart it without
    /// asking.
    async fn wait_for_lost_log(&self) {
        let mut newest = None;
        while let Some(disk) = self.with_running_disk(|disk| disk.clone()) {
            tokio::time::sleep(LOG_CHECK_INTERVAL).await;
            let look = |host: &Host, disk: &EtcdDisk<'_>, _: &AttachedVolume| {
                Ok((
                    disk.read_log(host)?,
                    newest_log_name(host, &disk.data_path())?,
                ))
            };
            match disk.run_on_disk(look).await {
                Ok((EtcdLog::Of(_), name)) if name >= newest => newest = name,
                _ => return,
            }
        }
    }

    async fn carry_out(
        &self,
        step: FormationStep,
        observed: ObservedVolume<'_>,
    ) -> anyhow::Result<StepOutcome> {
        if step.writes_to_volume() {
            observed.disk.require_mounted().await?;
        }
        match step {
            FormationStep::Record(record) => {
                if self.formation.write_record(observed.read, &record).await? {
                    self.role_log
                        .report_status(Status::Started, "wrote the formation record");
                }
            }
            FormationStep::Format => {
                let volume = &observed.attached.volume;
                let detail = format!("making a file system on {volume}, which is blank");
                self.role_log.report_status(Status::Started, &detail);
                let ObservedVolume { disk, content, .. } = observed;
                let format = move |host: &Host, disk: &EtcdDisk<'_>, attached: &AttachedVolume| {
                    disk.make_file_system(host, &attached.device, &content)
                };
                disk.run_on_disk(format).await?;
            }
            FormationStep::Mark { marker, new } => {
                Self::write_marker(marker, new, &observed).await?;
            }
            FormationStep::Join { marker, joins } => {
                let initial_cluster = joins.initial_cluster;
                let start = EtcdStart::Join { initial_cluster };
                return self.join_cluster(marker, start, &observed).await;
            }
            FormationStep::SetAside { marker } => return self.set_aside(marker, &observed).await,
            step @ (FormationStep::Stop { .. }
            | FormationStep::PrepareRestore(_)
            | FormationStep::Restore(_)
            | FormationStep::UseRestored { .. }) => {
                return self.carry_out_recovery(step, &observed).await;
            }
            FormationStep::Start(start) => {
                self.report_removal(None);
                return self.start_member(start, &observed).await;
            }
            FormationStep::Continue { waits } => {
                self.report_removal(Some(waits));
                return self.start_member(EtcdStart::Existing, &observed).await;
            }
            FormationStep::Upgrade {
                marker,
                compare_members,
            } => return self.upgrade_data(marker, compare_members, &observed).await,
            FormationStep::Change(change) => return self.change_members(&change, &observed).await,
            FormationStep::Wait(why) => return Ok(self.report_wait(&why)),
            FormationStep::Withdraw(why) => {
                self.withdraw_member(&observed.disk).await?;
                return Ok(self.report_wait(&why));
            }
            FormationStep::Ask(why) => bail!(why),
            FormationStep::Refuse(why) => {
                self.withdraw_member(&observed.disk).await?;
                bail!(why);
            }
        }
        Ok(StepOutcome::Stepped)
    }

    /// Writes the marker; `new`: and makes the data folder.
    async fn write_marker(
        marker: Marker,
        new: bool,
        observed: &ObservedVolume<'_>,
    ) -> anyhow::Result<()> {
        let mark = move |host: &Host, disk: &EtcdDisk<'_>, _: &AttachedVolume| {
            disk.write_marker(host, &marker)?;
            if new {
                disk.make_data_folder(host)?;
            }
            Ok(())
        };
        observed.disk.run_on_disk(mark).await
    }

    /// Writes the manifest if there is none, and shows it to kubelet.
    async fn show_manifest(
        &self,
        start: EtcdStart,
        observed: &ObservedVolume<'_>,
    ) -> anyhow::Result<()> {
        let settings = self.settings.clone();
        let put = move |host: &Host, disk: &EtcdDisk<'_>, attached: &AttachedVolume| {
            manifest::put_manifest(host, &settings, disk, &attached.member, &start)
        };
        observed.disk.run_on_disk(put).await
    }

    /// Hides the member from kubelet. True once its etcd has ended; what is waited for is reported here. This step waits for that, because
    /// each one begins with questions to all other members, which takes long while they are stopped, too.
    async fn stop_etcd(&self, disk: &DiskWorker) -> anyhow::Result<bool> {
        self.withdraw_member(disk).await?;
        let pace = self.settings.pace;
        let begun = Instant::now();
        while !self.has_etcd_ended(disk).await? {
            self.report_wait(STOPPING);
            if begun.elapsed() >= pace.rest {
                let why =
                    "kubelet does not stop etcd: it is restarted, and etcd is stopped without it";
                self.role_log.report_status(Status::Started, why);
                let (host, pod) = (self.host.clone(), self.settings.pod_name());
                run_blocking(move || end_without_kubelet(&host, &pod)).await?;
                return Ok(false);
            }
            (pace.sleep)(pace.quick / 2).await;
        }
        Ok(true)
    }

    async fn has_etcd_ended(&self, disk: &DiskWorker) -> anyhow::Result<bool> {
        if self.running.is_answering().await {
            return Ok(false);
        }
        let in_use = disk.run_on_disk(|host, disk, _| Ok(disk.is_in_use(host)?));
        Ok(!in_use.await?)
    }

    /// Lets kubelet start the member, and records the cluster as formed once all members have come up.
    async fn start_member(
        &self,
        start: EtcdStart,
        observed: &ObservedVolume<'_>,
    ) -> anyhow::Result<StepOutcome> {
        self.show_manifest(start, observed).await?;
        self.with_running_disk(|disk| *disk = Some(observed.disk.clone()));
        if let Some(why) = self.running.find_problem().await {
            return Ok(self.report_wait(&format!("etcd is not healthy yet: {why}")));
        }
        let members = self.running.list_members(&observed.attached.member).await?;
        let Some(record) = &observed.read.record else {
            bail!("etcd runs but the state store has no formation record");
        };
        if let Some(why) = foreign_cluster(record, &members.cluster_id) {
            bail!(why);
        }
        let Some(formed) = mark_formed(record, &members.cluster_id) else {
            self.mark_version(observed).await?;
            self.keep_last_seen(&observed.disk).await;
            let next = record.next.as_ref();
            // The source of the next generation goes on with it.
            let goes_on = next.is_some_and(|next| next.from == observed.attached.member);
            return Ok(match goes_on {
                true => StepOutcome::Stepped,
                false => StepOutcome::Settled,
            });
        };
        let names = self.settings.member_names();
        // Those of the record found it; the spec of this instance may have others.
        let founders = record.members.keys();
        let missing = founders.map(|member| names.member_name(member));
        let missing: Vec<String> = missing
            .filter(|name| !members.named.contains(name))
            .collect();
        if !missing.is_empty() {
            return Ok(self.report_wait(&format!("{} has not come up yet", missing.join(", "))));
        }
        if self.formation.write_record(observed.read, &formed).await? {
            let detail = format!("formed as cluster {}", members.cluster_id);
            self.role_log.report_status(Status::Started, &detail);
        }
        Ok(StepOutcome::Stepped)
    }

    /// Keeps on the volume how far the log reaches. The member runs whether or not that can be written.
    async fn keep_last_seen(&self, disk: &DiskWorker) {
        const ABOUT: &str = "position of the log";
        let keep = |host: &Host, disk: &EtcdDisk<'_>, _: &AttachedVolume| disk.keep_last_seen(host);
        match disk.run_on_disk(keep).await {
            Ok(()) => self.role_log.report_resolved(ABOUT),
            Err(error) => self.role_log.report_error(ABOUT, &error),
        }
    }

    /// A wait for something else than before, or for kubelet, is likely to be short.
    fn report_wait(&self, why: &str) -> StepOutcome {
        let mut before = lock_ignoring_poison(&self.last_wait);
        if *before != why || why == STOPPING {
            why.clone_into(&mut before);
            self.waits_anew.store(true, Ordering::Relaxed);
        }
        drop(before);
        self.role_log.report_status(Status::Started, why);
        StepOutcome::Waits
    }

    fn set_settled(&self, settled: bool) {
        if settled {
            self.role_log.report_status(Status::Finished, "");
        }
        let etcd = &self.settings.etcd.name;
        self.settled
            .send_if_modified(|all| all.insert(etcd.clone(), settled) != Some(settled));
    }

    /// Reports what the removal of other members waits for, until it waits no longer.
    fn report_removal(&self, waits: Option<String>) {
        match waits {
            Some(why) => self.role_log.report_error(REMOVAL, &anyhow!(why)),
            None => self.role_log.report_resolved(REMOVAL),
        }
    }

    /// Reports a problem with the volume until it is resolved, independent of the member's state.
    fn report_volume(&self, trouble: Option<String>) {
        const ABOUT: &str = "volume";
        match trouble {
            Some(why) => self.role_log.report_error(ABOUT, &anyhow!(why)),
            None => self.role_log.report_resolved(ABOUT),
        }
    }

    fn with_running_disk<T>(&self, with: impl FnOnce(&mut Option<DiskWorker>) -> T) -> T {
        with(&mut lock_ignoring_poison(&self.runs_from))
    }

    fn with_attaching_volume<T>(&self, with: impl FnOnce(&mut Option<String>) -> T) -> T {
        with(&mut lock_ignoring_poison(&self.attaching))
    }
}
