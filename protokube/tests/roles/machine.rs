//! A machine made of folders, a cloud with its volumes, and a kubelet that runs etcd as its manifest says.

use crate::store::store_in;
use crate::support::{agents, expanded};
use anyhow::{Context, bail};
use aws::machine::{Attachment, Instance, Volume};
use aws::store::Store;
use model::engine::{Class, Failure};
use model::manifests::{Pod, manifest_path};
use model::node::{NodeConfig, node_config};
use protokube::ec2::{Ec2, Filter};
use protokube::etcd::{Members, Running};
use protokube::host::{Host, Mounts};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, Mutex};
use tempfile::TempDir;

pub const INSTANCE: &str = "i-0a";
pub const ZONE: &str = "eu-west-1a";

/// NodeConfig of a control plane with one member of each etcd cluster.
pub fn config() -> NodeConfig {
    static CONFIG: LazyLock<NodeConfig> = LazyLock::new(|| {
        node_config(&expanded(), "control-plane-eu-west-1a", "", &agents())
            .unwrap()
            .unwrap()
    });
    CONFIG.clone()
}

/// Counts what is done to the outside, and lets one thing fail as if the process died there.
#[derive(Debug, Default)]
pub struct Fuse {
    pub done: usize,
    pub dies_at: Option<usize>,
}

pub type SharedFuse = Arc<Mutex<Fuse>>;

pub fn pass(fuse: &SharedFuse) -> Result<(), String> {
    let mut fuse = fuse.lock().unwrap();
    fuse.done += 1;
    if fuse.dies_at == Some(fuse.done) {
        return Err("died here".to_owned());
    }
    Ok(())
}

/// A machine below a temporary folder.
pub struct Machine {
    pub folder: TempDir,
    pub fuse: SharedFuse,
    pub host: Host,
    pub cloud: Arc<Cloud>,
    pub kubelet: Arc<Mutex<Kubelet>>,
    /// The state store, a folder beside the machine's.
    pub store: Store,
}

impl Machine {
    pub async fn new() -> Self {
        let folder = TempDir::new().unwrap();
        let root = folder.path().to_owned();
        let fuse = SharedFuse::default();
        programs(&root);
        for made in ["etc/kubernetes/manifests", "dev/disk/by-id", "disks"] {
            fs::create_dir_all(root.join(made)).unwrap();
        }
        fs::write(root.join("etc/hosts"), "127.0.0.1 localhost\n").unwrap();
        let kubelet = Arc::new(Mutex::new(Kubelet {
            root: root.clone(),
            ..Kubelet::default()
        }));
        let mounts = Links {
            root: root.clone(),
            fuse: fuse.clone(),
            kubelet: Some(Arc::clone(&kubelet)),
        };
        let path = format!("{}:/usr/bin:/bin", root.join("programs").display());
        let cloud = Cloud {
            root: root.clone(),
            fuse: fuse.clone(),
            volumes: Mutex::default(),
            instances: Mutex::default(),
            down: Mutex::default(),
            asked: Mutex::default(),
        };
        Self {
            store: store_in(&root.join("store")).await,
            host: Host::at(&root, path, Arc::new(mounts)),
            cloud: Arc::new(cloud),
            kubelet,
            fuse,
            folder,
        }
    }

    /// The part of kubelet that runs the other etcd.
    pub fn kubelet_of_events(&self) -> Arc<Mutex<Kubelet>> {
        Arc::new(Mutex::new(Kubelet {
            root: self.folder.path().to_owned(),
            events: true,
            ..Kubelet::default()
        }))
    }

    pub fn path(&self, path: &str) -> PathBuf {
        self.folder.path().join(path.trim_start_matches('/'))
    }

    /// The machine starts again: nothing is mounted and nothing runs; disks and files stay.
    pub fn reboot(&self) {
        for at in fs::read_dir(self.path("mnt")).into_iter().flatten() {
            let at = at.unwrap().path();
            if at.is_symlink() {
                fs::remove_file(&at).unwrap();
                fs::create_dir(&at).unwrap();
            }
        }
        let mut kubelet = self.kubelet.lock().unwrap();
        (kubelet.running, kubelet.read) = (None, None);
    }

    /// Everything that protokube and its programs wrote, by path.
    pub fn tree(&self) -> BTreeMap<String, String> {
        let mut tree = BTreeMap::new();
        for part in ["etc", "disks", "store"] {
            walk(&self.path(part), &mut tree);
        }
        let root = self.folder.path().display().to_string();
        let lock = |path: &String| !path.contains(".kctl-");
        tree.into_iter()
            .map(|(path, text)| (path.replace(&root, ""), text))
            .filter(|(path, _)| lock(path))
            .collect()
    }
}

fn walk(at: &Path, tree: &mut BTreeMap<String, String>) {
    for item in fs::read_dir(at).into_iter().flatten() {
        let path = item.unwrap().path();
        let name = path.display().to_string();
        if path.is_symlink() {
            let to = fs::read_link(&path).unwrap();
            tree.insert(name, format!("-> {}", to.display()));
        } else if path.is_dir() {
            tree.insert(format!("{name}/"), String::new());
            walk(&path, tree);
        } else {
            tree.insert(name, fs::read_to_string(&path).unwrap());
        }
    }
}

/// Programs that know one file system: a disk that begins with its name.
fn programs(root: &Path) {
    let folder = root.join("programs");
    fs::create_dir_all(&folder).unwrap();
    let programs = [
        (
            "blkid",
            "for device; do :; done\n[ \"$(head -c4 \"$device\" | tr -d '\\0')\" = ext4 ] && echo TYPE=ext4 || exit 2",
        ),
        (
            "mkfs.ext4",
            "for device; do :; done\nprintf ext4 | dd of=\"$device\" conv=notrunc status=none",
        ),
        ("fsck.ext4", "exit 1"),
        ("resize2fs", "echo \"$1\" >> \"$(dirname \"$0\")/resized\""),
    ];
    for (name, text) in programs {
        let file = folder.join(name);
        fs::write(&file, format!("#!/bin/sh\n{text}\n")).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
    }
}

/// Mounts as links to where a disk's files are.
#[derive(Debug)]
pub struct Links {
    pub root: PathBuf,
    pub fuse: SharedFuse,
    /// Looks as soon as something is mounted.
    pub kubelet: Option<Arc<Mutex<Kubelet>>>,
}

impl Mounts for Links {
    fn device_at(&self, folder: &Path) -> std::io::Result<Option<PathBuf>> {
        let disk = fs::read_link(folder).ok();
        let name = disk.and_then(|disk| Some(disk.file_name()?.to_owned()));
        Ok(name.map(|name| self.root.join("dev").join(name)))
    }

    fn mount(&self, device: &Path, folder: &Path) -> std::io::Result<()> {
        pass(&self.fuse).map_err(std::io::Error::other)?;
        let disk = self.root.join("disks").join(device.file_name().unwrap());
        fs::create_dir_all(disk.join("lost+found"))?;
        fs::remove_dir(folder)?;
        symlink(disk, folder)?;
        if let Some(kubelet) = &self.kubelet {
            kubelet.lock().unwrap().look();
        }
        Ok(())
    }
}

/// EC2 with volumes and instances.
#[derive(Debug)]
pub struct Cloud {
    root: PathBuf,
    fuse: SharedFuse,
    pub volumes: Mutex<Vec<Volume>>,
    pub instances: Mutex<Vec<Instance>>,
    /// It does not answer.
    pub down: Mutex<bool>,
    asked: Mutex<usize>,
}

fn failed(why: impl Into<String>) -> Failure {
    Failure {
        class: Class::Unknown,
        call: "ec2:Test".into(),
        code: String::new(),
        message: why.into(),
        hint: None,
        request_id: None,
    }
}

impl Cloud {
    /// A free volume of member a of an etcd cluster.
    pub fn add_volume(&self, id: &str, etcd: &str) {
        let tags = [
            (format!("k8s.io/etcd/{etcd}"), "a/a".to_owned()),
            ("k8s.io/role/control-plane".into(), "1".into()),
        ];
        self.volumes.lock().unwrap().push(Volume {
            id: id.into(),
            state: "available".into(),
            zone: ZONE.into(),
            size: 20,
            tags: tags.into(),
            attachment: None,
        });
    }

    /// How often it was asked.
    pub fn calls(&self) -> usize {
        *self.asked.lock().unwrap()
    }

    /// Another machine has it.
    pub fn give(&self, volume: &str, instance: &str) {
        let mut volumes = self.volumes.lock().unwrap();
        let found = volumes.iter_mut().find(|one| one.id == volume).unwrap();
        found.state = "in-use".into();
        found.attachment = Some(Attachment {
            instance: instance.into(),
            device: "/dev/xvdu".into(),
            state: "attached".into(),
        });
    }

    fn answers(&self) -> Result<(), Failure> {
        *self.asked.lock().unwrap() += 1;
        if *self.down.lock().unwrap() {
            return Err(failed("nobody answers"));
        }
        pass(&self.fuse).map_err(failed)
    }
}

impl Ec2 for Cloud {
    async fn volumes(&self, filters: &[Filter<'_>]) -> Result<Vec<Volume>, Failure> {
        self.answers()?;
        let mut volumes = self.volumes.lock().unwrap().clone();
        if filters[0].0 == "attachment.instance-id" {
            volumes.retain(|volume| volume.attachment.is_some());
        }
        Ok(volumes)
    }

    async fn instances(&self, _filters: &[Filter<'_>]) -> Result<Vec<Instance>, Failure> {
        self.answers()?;
        Ok(self.instances.lock().unwrap().clone())
    }

    async fn attach_volume(
        &self,
        volume: &str,
        instance: &str,
        device: &str,
    ) -> Result<(), Failure> {
        self.answers()?;
        let mut volumes = self.volumes.lock().unwrap();
        let number = volumes
            .iter()
            .filter(|one| one.attachment.is_some())
            .count()
            + 1;
        let found = volumes.iter_mut().find(|one| one.id == volume).unwrap();
        if found.attachment.is_some() {
            return Err(failed("it is attached"));
        }
        found.state = "in-use".into();
        found.attachment = Some(Attachment {
            instance: instance.into(),
            device: device.into(),
            state: "attached".into(),
        });
        let node = self.root.join(format!("dev/nvme{number}n1"));
        fs::write(&node, vec![0; 2 << 20]).unwrap();
        let serial = volume.replace('-', "");
        let by_id = format!("dev/disk/by-id/nvme-Amazon_Elastic_Block_Store_{serial}");
        symlink(&node, self.root.join(by_id)).unwrap();
        Ok(())
    }
}

/// kubelet and the etcd that it runs.
#[derive(Debug, Default)]
pub struct Kubelet {
    root: PathBuf,
    /// Which etcd cluster's; `main` if nothing is said.
    events: bool,
    /// What it read first since it started.
    read: Option<String>,
    /// The manifest's text.
    pub running: Option<String>,
    pub starts: usize,
    pub founded: usize,
}

impl Kubelet {
    fn below(&self, path: &str) -> PathBuf {
        self.root.join(path.trim_start_matches('/'))
    }

    fn prefix(&self) -> &'static str {
        if self.events { "etcd-events" } else { "etcd" }
    }

    /// The manifest that it sees now.
    fn look(&mut self) -> Option<String> {
        let pod = if self.events {
            "etcd-events"
        } else {
            "etcd-main"
        };
        let link = fs::read_link(self.below(&manifest_path(pod))).ok()?;
        let manifest = fs::read_to_string(self.below(link.to_str()?)).ok()?;
        self.read.get_or_insert_with(|| manifest.clone());
        Some(manifest)
    }

    /// What kubelet does with the folder of manifests, and etcd with its data.
    fn sync(&mut self) -> anyhow::Result<()> {
        let Some(manifest) = self.look() else {
            self.running = None;
            bail!("kubelet sees no manifest");
        };
        if self.running.as_ref() == Some(&manifest) {
            return Ok(());
        }
        self.running = None;
        // It ends the pod it knows first, and ends none before it has heard of the API server, which needs etcd.
        if self.read.as_ref() != Some(&manifest) {
            bail!("kubelet waits for the end of the pod that it read first");
        }
        let below = |path: &str| self.below(path);
        let pod: Pod = serde_saphyr::from_str(&manifest)?;
        let container = &pod.spec.containers[0];
        let variable = |name: &str| {
            let found = container.env.iter().find(|one| one.name == name);
            found.and_then(|one| one.value.clone()).unwrap_or_default()
        };
        let data = pod.spec.volumes.iter().find(|one| one.name == "data");
        let data = data.context("no data")?;
        let folder = below(&data.host_path.path);
        if data.host_path.kind.as_deref() != Some("Directory") || !folder.is_dir() {
            bail!("the pod's data folder is not there");
        }
        let log = folder.join("member/wal");
        if !log.is_dir() {
            if variable("ETCD_INITIAL_CLUSTER_STATE") != "new" {
                bail!("etcd knows nobody of an existing cluster");
            }
            fs::create_dir_all(&log)?;
            let token = variable("ETCD_INITIAL_CLUSTER_TOKEN");
            fs::write(log.join("0.wal"), format!("cluster-of-{token}"))?;
            self.founded += 1;
        }
        self.starts += 1;
        self.running = Some(manifest);
        Ok(())
    }

    fn cluster_id(&self) -> anyhow::Result<String> {
        let disks = self.root.join("disks");
        let mut found = Vec::new();
        for disk in fs::read_dir(disks)? {
            let log = format!("var/{}/data/member/wal/0.wal", self.prefix());
            let log = disk?.path().join(log);
            found.extend(fs::read_to_string(log).ok());
        }
        found.into_iter().next().context("no data")
    }
}

/// The etcd that the kubelet runs.
pub struct Etcd {
    pub kubelet: Arc<Mutex<Kubelet>>,
    pub fuse: SharedFuse,
}

impl Running for Etcd {
    async fn unhealthy(&self) -> Option<String> {
        if let Err(died) = pass(&self.fuse) {
            return Some(died);
        }
        let synced = self.kubelet.lock().unwrap().sync();
        synced.err().map(|error| error.to_string())
    }

    async fn alarm(&self) -> Option<String> {
        None
    }

    async fn members(&self, member: &str) -> anyhow::Result<Members> {
        pass(&self.fuse).map_err(anyhow::Error::msg)?;
        let kubelet = self.kubelet.lock().unwrap();
        Ok(Members {
            cluster_id: kubelet.cluster_id()?,
            named: vec![format!("{}-{member}", kubelet.prefix())],
        })
    }
}
