//! This machine's member of one etcd cluster, from looking for its volume to serving.

use super::formation::Read;
use super::{Formation, Running, Settled};
use crate::ec2::{Ec2, etcd_volumes, seen};
use crate::host::{Disk, Host};
use crate::stage::Voice;
use crate::volumes::{Found, Held, find};
use anyhow::{Context, bail};
use aws::machine::Volume;
use model::api::write::to_yaml;
use model::components::{EtcdMemberNames, EtcdStart};
use model::etcd::{Own, Place, Step, decide, formed, manifest_on_volume, stray};
use model::manifests::{Pod, manifest_path};
use model::node::{NodeConfig, etcd_members, etcd_pod};
use model::report::Status;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Manifests hold no secrets, and nobody edits them.
const MANIFEST_MODE: u32 = 0o440;

/// etcd insists that nobody else reads its data.
const DATA_MODE: u32 = 0o700;

/// What a member is run with.
#[derive(Clone, Debug)]
pub struct Settings {
    /// NodeConfig.
    pub config: Arc<NodeConfig>,
    /// `main`, `events`.
    pub etcd: String,
    /// Where among names of devices to begin.
    pub first_device: usize,
    /// This machine, `i-...`.
    pub instance: String,
    /// Its availability zone.
    pub zone: String,
    /// Time between looks while something is to be done, and once nothing is.
    pub pace: (Duration, Duration),
    /// Makes a token that never was.
    pub token: fn() -> anyhow::Result<String>,
}

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
    memory: Mutex<Memory>,
}

/// What is remembered from look to look; a protokube that starts again does without.
#[derive(Debug, Default)]
struct Memory {
    /// When the process began that a new manifest is to replace.
    replaced: Option<f64>,
    /// The volume's size in GiB that its file system fills.
    grown: Option<u64>,
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

/// What is known of the volume at one look.
struct Look<'a> {
    held: &'a Held,
    read: &'a Read,
    mounted_now: bool,
}

impl<E: Ec2, R: Running> Member<E, R> {
    /// A member; nothing happens yet.
    pub fn new(
        settings: Settings,
        ec2: Arc<E>,
        host: Host,
        formation: Formation,
        running: R,
        settled: Arc<Settled>,
    ) -> Self {
        let voice = Voice::of(format!("etcd-{}", settings.etcd));
        Self {
            settings,
            ec2,
            host,
            formation,
            running,
            settled,
            voice,
            memory: Mutex::default(),
        }
    }

    /// Brings it up and keeps it up.
    pub async fn run(&self) -> anyhow::Result<()> {
        self.resume().await?;
        loop {
            let (busy, idle) = self.settings.pace;
            let outcome = self.look().await?;
            self.settle(outcome == Outcome::Settled);
            match outcome {
                Outcome::Stepped => {}
                Outcome::Waits => tokio::time::sleep(busy).await,
                Outcome::Settled => tokio::time::sleep(idle).await,
            }
        }
    }

    /// After a reboot the link says which volume was here: it is mounted without asking anybody, so that a machine comes back while AWS
    /// does not answer. What is on it was decided when the link was made.
    async fn resume(&self) -> anyhow::Result<()> {
        let path = manifest_path(&self.pod_name());
        let Some(volume) = self.host.link(&path).as_deref().and_then(volume_of) else {
            return Ok(());
        };
        let host = self.host.clone();
        let prefix = self.names().prefix;
        let mounted = blocking(move || {
            let disk = Disk {
                volume: &volume,
                asked: "",
                prefix: &prefix,
            };
            let Some(device) = host.device(&disk) else {
                return Ok(false);
            };
            Ok(host.look(&disk, &device)?.1)
        });
        if mounted.await? {
            self.relink()?;
        }
        Ok(())
    }

    /// One look and at most one step.
    pub async fn look(&self) -> anyhow::Result<Outcome> {
        let read = self.formation.read().await?;
        let volumes = etcd_volumes(&*self.ec2, &self.settings.config.cluster).await?;
        let seen = seen(&volumes, &self.settings.etcd);
        let members = self.own_members();
        let place = Place {
            instance: &self.settings.instance,
            zone: &self.settings.zone,
            members: &members,
        };
        let record = read.record.as_ref();
        let first = self.settings.first_device;
        let held = match find(&*self.ec2, &self.host, &place, &seen, record, first).await? {
            Found::Held(held) => held,
            Found::Waiting(why) => return Ok(self.waits(&why)),
        };
        let (content, mounted_now) = self
            .on_disk(&held, |host, disk, held| host.look(disk, &held.device))
            .await?;
        let token = (self.settings.token)()?;
        let all = self.all_members();
        let own = Own {
            cluster: &self.settings.config.cluster,
            etcd: &self.settings.etcd,
            members: &all,
            member: &held.member,
            volume: &held.volume,
            seen: &seen,
            token: &token,
        };
        let step = decide(&own, record, &content);
        let look = Look {
            held: &held,
            read: &read,
            mounted_now,
        };
        let outcome = self.carry_out(step, &look).await?;
        if outcome == Outcome::Settled {
            self.grow(&held, &volumes).await?;
        }
        Ok(outcome)
    }

    async fn carry_out(&self, step: Step, look: &Look<'_>) -> anyhow::Result<Outcome> {
        let held = look.held;
        match step {
            Step::Record(record) => {
                if self.formation.write(look.read, &record).await? {
                    self.voice.say(Status::Started, "its formation is recorded");
                }
                Ok(Outcome::Stepped)
            }
            Step::Format => {
                let detail = format!("makes a file system on {}, which is blank", held.volume);
                self.voice.say(Status::Started, &detail);
                self.on_disk(held, |host, disk, held| host.format(disk, &held.device))
                    .await?;
                Ok(Outcome::Stepped)
            }
            Step::Mark { marker, new } => {
                self.on_disk(held, move |host, disk, _| {
                    host.mark(disk, &marker)?;
                    if new {
                        host.make_folder(&host.data(disk), DATA_MODE)?;
                    }
                    Ok(())
                })
                .await?;
                Ok(Outcome::Stepped)
            }
            Step::Start(start) => self.start(&start, look).await,
            Step::Wait(why) => Ok(self.waits(&why)),
            Step::Refuse(why) => bail!(why),
        }
    }

    /// Lets kubelet run the member like that, and sees to it that its cluster is recorded as formed.
    async fn start(&self, start: &EtcdStart, look: &Look<'_>) -> anyhow::Result<Outcome> {
        self.put_manifest(start, look).await?;
        if let Some(why) = self.running.unhealthy().await {
            return Ok(self.waits(&format!("etcd is not healthy yet: {why}")));
        }
        let replaced = self.memory(|memory| memory.replaced);
        if replaced.is_some() && replaced == self.running.began().await {
            return Ok(self.waits("kubelet is to start it again as a member of what exists"));
        }
        self.memory(|memory| memory.replaced = None);
        let members = self.running.members(&look.held.member).await?;
        let Some(record) = &look.read.record else {
            bail!("etcd runs without a record of its formation");
        };
        if let Some(why) = stray(record, &members.cluster_id) {
            self.host.remove(&manifest_path(&self.pod_name()))?;
            bail!(why);
        }
        let Some(formed) = formed(record, &members.cluster_id) else {
            return Ok(Outcome::Settled);
        };
        let names = self.names();
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

    /// The manifest on the volume, and the link to it in kubelet's folder.
    async fn put_manifest(&self, start: &EtcdStart, look: &Look<'_>) -> anyhow::Result<()> {
        let new = matches!(start, EtcdStart::New { .. });
        let held = look.held;
        let disk = self.disk(held, "");
        let on_volume = format!("{}/{}", disk.folder(), manifest_on_volume(&self.pod_name()));
        let pod = self.pod(&held.member, start, held)?;
        let text = to_yaml(&pod)?;
        let before = self.host.read(&on_volume)?;
        if !new && before.as_deref().is_some_and(|before| before != text) {
            // To be asked before the manifest is there: kubelet may be quick.
            let began = self.running.began().await;
            self.memory(|memory| memory.replaced = began);
        }
        if new {
            self.on_disk(held, |host, disk, _| {
                host.make_folder(&host.data(disk), DATA_MODE)
            })
            .await?;
        }
        let changed = self.host.write(&on_volume, &text, MANIFEST_MODE)?;
        let link = self.host.link(&manifest_path(&self.pod_name()));
        let same = link.is_some_and(|to| to.as_os_str() == on_volume.as_str());
        if changed || look.mounted_now || !same {
            self.host
                .make_link(&manifest_path(&self.pod_name()), &on_volume)?;
        }
        Ok(())
    }

    /// Makes the link again: kubelet watches the folder and not what its links lead to.
    fn relink(&self) -> anyhow::Result<()> {
        let path = manifest_path(&self.pod_name());
        match self.host.link(&path).as_deref().and_then(|to| to.to_str()) {
            Some(to) => self.host.make_link(&path, to),
            None => Ok(()),
        }
    }

    /// The file system follows the volume's size. Once for each size, and once after each start.
    async fn grow(&self, held: &Held, volumes: &[Volume]) -> anyhow::Result<()> {
        let own = volumes.iter().find(|volume| volume.id == held.volume);
        let size = own.map(|volume| volume.size);
        if size.is_none() || size == self.memory(|memory| memory.grown) {
            return Ok(());
        }
        self.on_disk(held, |host, disk, held| host.grow(disk, &held.device))
            .await?;
        self.memory(|memory| memory.grown = size);
        Ok(())
    }

    fn pod(&self, member: &str, start: &EtcdStart, held: &Held) -> anyhow::Result<Pod> {
        let prefix = self.names().prefix;
        let data = self.host.data(&self.disk(held, &prefix));
        let Settings { config, etcd, .. } = &self.settings;
        let pod = etcd_pod(config, etcd, member, start, &data);
        pod.with_context(|| format!("NodeConfig has no image of etcd {etcd}"))
    }

    fn pod_name(&self) -> String {
        format!("etcd-{}", self.settings.etcd)
    }

    fn disk<'a>(&self, held: &'a Held, prefix: &'a str) -> Disk<'a> {
        Disk {
            volume: &held.volume,
            asked: &held.asked,
            prefix,
        }
    }

    fn spec(&self) -> Option<&model::api::etcd::EtcdClusterSpec> {
        let control_plane = self.settings.config.control_plane.as_ref()?;
        let mut all = control_plane.etcd.iter();
        all.find(|one| one.name == self.settings.etcd)
    }

    fn names(&self) -> EtcdMemberNames {
        let none = model::api::etcd::EtcdClusterSpec::default();
        EtcdMemberNames::of(self.spec().unwrap_or(&none), &self.settings.config.cluster)
    }

    fn own_members(&self) -> Vec<String> {
        let spec = self.spec();
        spec.map(|spec| etcd_members(&self.settings.config, spec))
            .unwrap_or_default()
    }

    fn all_members(&self) -> Vec<String> {
        self.names().members
    }

    fn waits(&self, why: &str) -> Outcome {
        self.voice.say(Status::Started, why);
        Outcome::Waits
    }

    fn settle(&self, settled: bool) {
        if settled {
            self.voice.say(Status::Finished, "");
        }
        let etcd = &self.settings.etcd;
        self.settled
            .send_if_modified(|all| all.insert(etcd.clone(), settled) != Some(settled));
    }

    fn memory<T>(&self, with: impl FnOnce(&mut Memory) -> T) -> T {
        with(&mut self.memory.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Work on the disk, which may take its time.
    async fn on_disk<T: Send + 'static>(
        &self,
        held: &Held,
        work: impl FnOnce(&Host, &Disk<'_>, &Held) -> anyhow::Result<T> + Send + 'static,
    ) -> anyhow::Result<T> {
        let (host, held, prefix) = (self.host.clone(), held.clone(), self.names().prefix);
        blocking(move || {
            let disk = Disk {
                volume: &held.volume,
                asked: &held.asked,
                prefix: &prefix,
            };
            work(&host, &disk, &held)
        })
        .await
    }
}

/// The volume that a link in the folder of manifests leads to: `/mnt/master-VOLUME/...`.
fn volume_of(link: &std::path::Path) -> Option<String> {
    let rest = link.to_str()?.strip_prefix("/mnt/master-")?;
    rest.split('/').next().map(str::to_owned)
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> anyhow::Result<T> + Send + 'static,
) -> anyhow::Result<T> {
    tokio::task::spawn_blocking(work)
        .await
        .context("work on a disk was given up")?
}
