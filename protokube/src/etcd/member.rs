//! This machine's member of one etcd cluster, from looking for its volume to serving.

use super::formation::Read;
use super::manifest::{self, Seen};
use super::volumes::{Found, Held, find};
use super::work::OwnDisk;
use super::{Disk, Formation, Running, Settings, Settled};
use crate::ec2::{self, Ec2, etcd_volumes};
use crate::log::Voice;
use crate::pace::{self, Rhythm};
use anyhow::{Context, anyhow, bail};
use host::Host;
use node::components::EtcdStart;
use node::etcd::{
    Content, Inside, Log, Own, Place, Record, SeenVolume, Step, decide, formed, stray, unseen,
};
use node::report::Status;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Time between looks at etcd's log while there is nothing else to do: at the machine's own disk only.
const WATCHED: Duration = Duration::from_secs(2);

/// The member.
#[derive(Debug)]
pub struct Member<E, R> {
    settings: Settings,
    ec2: Arc<E>,
    host: Host,
    formation: Formation,
    running: R,
    settled: Arc<Settled>,
    voice: Voice,
    /// The disk from which the member runs.
    runs_from: Mutex<Option<OwnDisk>>,
    /// The volume that EC2 has begun to attach and has not shown with this machine since: its answers may be older than that.
    asked: Mutex<Option<String>>,
}

/// How a look ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// A step was taken: there may be another.
    Stepped,
    /// Something else must happen first.
    Waits,
    /// There is nothing left to do.
    Settled,
}

/// What EC2 says at one look.
struct Known {
    /// Volumes of the etcd cluster, and recorded ones whatever their tags say.
    seen: Vec<SeenVolume>,
    /// Those that are no more.
    gone: BTreeSet<String>,
    /// What tags recorded ones lack.
    lacks: Vec<String>,
}

/// What is known of the volume at one look.
struct Look<'a> {
    held: &'a Held,
    disk: OwnDisk,
    content: Content,
    read: &'a Read,
}

impl<E: Ec2, R: Running> Member<E, R> {
    /// A member, and who says what becomes of it; nothing happens yet.
    pub fn new(
        settings: Settings,
        ec2: Arc<E>,
        host: Host,
        formation: Formation,
        running: R,
        settled: Arc<Settled>,
        voice: Voice,
    ) -> Self {
        Self {
            settings,
            ec2,
            host,
            formation,
            running,
            settled,
            voice,
            runs_from: Mutex::default(),
            asked: Mutex::default(),
        }
    }

    /// Brings it up and keeps it up. What keeps it from coming back by itself is told, and then decided with the record.
    pub async fn run(&self) -> anyhow::Result<()> {
        match manifest::resume(&self.host, &self.settings).await {
            Ok(trouble) => self.tell(trouble),
            Err(error) => self.voice.say(Status::Failed, &format!("{error:#}")),
        }
        let mut rhythm = Rhythm::new(self.settings.pace, &self.settings.instance);
        loop {
            let outcome = self.look().await?;
            self.settle(outcome == Outcome::Settled);
            if outcome == Outcome::Settled {
                self.tell_alarm().await;
            }
            match outcome {
                Outcome::Stepped => rhythm.restart(),
                Outcome::Waits => rhythm.wait(pace::Seen::Lack).await,
                Outcome::Settled => tokio::select! {
                    () = rhythm.settled() => {}
                    () = self.log_gone() => {}
                },
            }
        }
    }

    /// One look and at most one step.
    pub async fn look(&self) -> anyhow::Result<Outcome> {
        let read = self.formation.read().await?;
        let record = read.record.as_ref();
        let runs = manifest::runs_from(&self.host, &self.settings).await?;
        let mut known = self.describe_volumes(record, runs.as_deref()).await?;
        let held = match self.find(&known, runs.as_deref(), record).await? {
            Found::Held(held) => held,
            Found::Waiting(why) => return Ok(self.waits(&why)),
            Found::Asked(volume) => {
                let why = format!("{volume} is being attached");
                self.asked(|asked| *asked = Some(volume));
                return Ok(self.waits(&why));
            }
        };
        match &held.besides {
            Some(why) => self.voice.failed("volumes", &anyhow!("{why}")),
            None => self.voice.over("volumes"),
        }
        let names = self.settings.names();
        let disk = OwnDisk::new(&self.host, &held, &names.prefix);
        let settings = self.settings.clone();
        let looked = disk.work(move |host, disk, held| {
            manifest::mount_and_look(host, &settings, disk, &held.device)
        });
        let Seen { content, trouble } = looked.await?;
        self.tell(trouble);
        let own = (&self.settings.config.cluster, &self.settings.etcd.name);
        if let Content::FileSystem(Inside::Marked { marker, .. }) = &content
            && (&marker.cluster, &marker.etcd) == own
        {
            self.ask_for(&marker.volume, &mut known).await?;
        }
        let trace = match (record, &content) {
            (None, Content::Blank) => self.formation.trace().await?,
            _ => None,
        };
        let token = (self.settings.token)()?;
        let own = Own {
            cluster: &self.settings.config.cluster,
            etcd: &self.settings.etcd.name,
            members: &names.members,
            member: &held.member,
            volume: &held.volume,
            seen: &known.seen,
            gone: &known.gone,
            token: &token,
            trace: trace.as_deref(),
        };
        let step = decide(&own, record, &content);
        let look = Look {
            held: &held,
            disk,
            content,
            read: &read,
        };
        self.carry_out(step, look).await
    }

    /// The etcd cluster's volumes as EC2 shows them. The recorded ones, and the one that etcd runs from, are asked for by their ids where its
    /// list lacks them.
    async fn describe_volumes(
        &self,
        record: Option<&Record>,
        runs: Option<&str>,
    ) -> anyhow::Result<Known> {
        let volumes = etcd_volumes(&*self.ec2, &self.settings.config.cluster).await?;
        let mut known = Known {
            seen: ec2::seen(&volumes, &self.settings.etcd.name),
            gone: BTreeSet::new(),
            lacks: Vec::new(),
        };
        let own = self.settings.own_members();
        let recorded = record.map(|record| unseen(&own, &known.seen, record));
        for id in recorded.into_iter().flatten().chain(runs) {
            self.ask_for(id, &mut known).await?;
        }
        match known.lacks.as_slice() {
            [] => self.voice.over("tags"),
            lacks => {
                let why = anyhow!("{}: give it back", lacks.join(" and "));
                self.voice.failed("tags", &why);
            }
        }
        Ok(known)
    }

    /// Asks EC2 for a volume that its answer lacks: the answer may be older than the volume's tags, or somebody took one away.
    async fn ask_for(&self, id: &str, known: &mut Known) -> anyhow::Result<()> {
        if known.seen.iter().any(|one| one.id == id) || known.gone.contains(id) {
            return Ok(());
        }
        let found = self.ec2.volume(id).await;
        match found.with_context(|| format!("could not ask for {id}"))? {
            Some(volume) => {
                let (cluster, etcd) = (&self.settings.config.cluster, &self.settings.etcd.name);
                let lacks = ec2::lacking_tags(&volume, cluster, etcd);
                let lacks = lacks.iter().map(|tag| format!("{id} lacks {tag}"));
                known.lacks.extend(lacks);
                known.seen.push(ec2::as_seen(&volume, etcd));
            }
            None => drop(known.gone.insert(id.to_owned())),
        }
        Ok(())
    }

    async fn find(
        &self,
        Known { seen, gone, .. }: &Known,
        runs: Option<&str>,
        record: Option<&Record>,
    ) -> anyhow::Result<Found> {
        let members = self.settings.own_members();
        let instance = &self.settings.instance;
        let asked = self.asked(|asked| {
            let shown = |one: &SeenVolume| Some(&one.id) == asked.as_ref() && one.is_with(instance);
            if seen.iter().any(shown) {
                *asked = None;
            }
            asked.clone()
        });
        let place = Place {
            instance,
            zone: &self.settings.zone,
            members: &members,
            asked: asked.as_deref(),
            runs,
            gone,
        };
        let first = self.settings.first_device;
        find(&*self.ec2, &self.host, &place, seen, record, first).await
    }

    /// Ends where etcd's log goes from under it: a member that has forgotten what it voted for must not be started again, and kubelet
    /// asks nobody.
    async fn log_gone(&self) {
        while let Some(disk) = self.runs_from(|disk| disk.clone()) {
            tokio::time::sleep(WATCHED).await;
            let log = disk.work(|host, disk, _| disk.log(host)).await;
            if !matches!(log, Ok(Log::Of(_))) {
                return;
            }
        }
    }

    async fn carry_out(&self, step: Step, look: Look<'_>) -> anyhow::Result<Outcome> {
        match step {
            Step::Record(record) => {
                if self.formation.write(look.read, &record).await? {
                    self.voice.say(Status::Started, "its formation is recorded");
                }
            }
            Step::Format => {
                let volume = &look.held.volume;
                let detail = format!("makes a file system on {volume}, which is blank");
                self.voice.say(Status::Started, &detail);
                let Look { disk, content, .. } = look;
                let format = move |host: &Host, disk: &Disk<'_>, held: &Held| {
                    disk.format(host, &held.device, &content)
                };
                disk.work(format).await?;
            }
            Step::Mark { marker, new } => {
                let mark = move |host: &Host, disk: &Disk<'_>, _: &Held| {
                    disk.mark(host, &marker)?;
                    if new {
                        disk.make_data(host)?;
                    }
                    Ok(())
                };
                look.disk.work(mark).await?;
            }
            Step::Start(start) => return self.start(start, &look).await,
            Step::Wait(why) => return Ok(self.waits(&why)),
            Step::Ask(why) => bail!(why),
            Step::Refuse(why) => {
                self.settle(false);
                let settings = self.settings.clone();
                let withdraw = move |host: &Host, disk: &Disk<'_>, _: &Held| {
                    manifest::withdraw(host, &settings, disk)
                };
                look.disk.work(withdraw).await?;
                bail!(why);
            }
        }
        Ok(Outcome::Stepped)
    }

    /// Lets kubelet run the member like that, and sees to it that its cluster is recorded as formed.
    async fn start(&self, start: EtcdStart, look: &Look<'_>) -> anyhow::Result<Outcome> {
        let settings = self.settings.clone();
        let put = move |host: &Host, disk: &Disk<'_>, held: &Held| {
            manifest::put(host, &settings, disk, &held.member, &start)
        };
        look.disk.work(put).await?;
        self.runs_from(|disk| *disk = Some(look.disk.clone()));
        if let Some(why) = self.running.unhealthy().await {
            return Ok(self.waits(&format!("etcd is not healthy yet: {why}")));
        }
        let members = self.running.members(&look.held.member).await?;
        let Some(record) = &look.read.record else {
            bail!("etcd runs without a record of its formation");
        };
        if let Some(why) = stray(record, &members.cluster_id) {
            bail!(why);
        }
        let Some(formed) = formed(record, &members.cluster_id) else {
            return Ok(Outcome::Settled);
        };
        let names = self.settings.names();
        let missing = names.members.iter().map(|member| names.name(member));
        let missing: Vec<String> = missing
            .filter(|name| !members.named.contains(name))
            .collect();
        if !missing.is_empty() {
            return Ok(self.waits(&format!("{} has not come up yet", missing.join(", "))));
        }
        if self.formation.write(look.read, &formed).await? {
            let detail = format!("formed as cluster {}", members.cluster_id);
            self.voice.say(Status::Started, &detail);
        }
        Ok(Outcome::Stepped)
    }

    /// An alarm is told, and stops nothing: reads go on, and a machine that comes new can help.
    async fn tell_alarm(&self) {
        match self.running.alarm().await {
            Some(alarm) => self.voice.failed("alarm", &alarm_told(&alarm)),
            None => self.voice.over("alarm"),
        }
    }

    fn waits(&self, why: &str) -> Outcome {
        self.voice.say(Status::Started, why);
        Outcome::Waits
    }

    fn settle(&self, settled: bool) {
        if settled {
            self.voice.say(Status::Finished, "");
        }
        let etcd = &self.settings.etcd.name;
        self.settled
            .send_if_modified(|all| all.insert(etcd.clone(), settled) != Some(settled));
    }

    /// What is wrong with the volume is told whatever becomes of the member, and stands until it is over.
    fn tell(&self, trouble: Option<String>) {
        const ABOUT: &str = "volume";
        match trouble {
            Some(why) => self.voice.failed(ABOUT, &anyhow!(why)),
            None => self.voice.over(ABOUT),
        }
    }

    fn runs_from<T>(&self, with: impl FnOnce(&mut Option<OwnDisk>) -> T) -> T {
        with(&mut locked(&self.runs_from))
    }

    fn asked<T>(&self, with: impl FnOnce(&mut Option<String>) -> T) -> T {
        with(&mut locked(&self.asked))
    }
}

fn locked<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What an alarm means, and what ends it (<https://etcd.io/docs/v3.6/op-guide/maintenance/#space-quota>).
fn alarm_told(alarm: &str) -> anyhow::Error {
    match alarm {
        "NOSPACE" => anyhow!(
            "etcd's database is at its quota (NOSPACE): it answers reads and refuses writes until objects are deleted, it is compacted \
             and defragmented, and the alarm is disarmed with etcdctl"
        ),
        "CORRUPT" => anyhow!(
            "etcd found that members' data differ (CORRUPT): it refuses writes; compare etcdctl endpoint hashkv of all members before \
             anything else"
        ),
        other => anyhow!("etcd raised the alarm {other}"),
    }
}
