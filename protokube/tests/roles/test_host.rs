//! A test host in folders, a fake EC2 with volumes, and a fake kubelet that runs etcd as its manifest says.

use crate::store::store_in;
use anyhow::{Context, bail};
use aws_client::ec2_query::{Attachment, Instance, Volume};
use aws_client::store::Store;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use engine::{Class, Failure};
use etcd_member::ec2::{Ec2, Filter};
use etcd_member::{EtcdMembers, EtcdQuorum, RunningEtcd};
use etcd_rules::{
    LiveCluster, LiveMember, LogIdentity, LogPosition, MemberChange, Peers, RunningMember,
    log_identity,
};
use host::{DiskSpace, Host, LocalSystem, MountEntry, Output, System};
use node::config::{EtcdMember, NodeConfig, Role};
use node::manifests::{Pod, manifest_path};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::symlink;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;
use tempfile::TempDir;
use test_support::{full_spec, node_config_of, write_script};

pub const INSTANCE: &str = "i-0a";
pub const ZONE: &str = "eu-west-1a";

/// File of the host that says how much space its disks have.
const FREE_BYTES: &str = "free-bytes";

/// NodeConfig of a control plane with one member of each etcd cluster.
pub fn node_config() -> NodeConfig {
    static CONFIG: LazyLock<NodeConfig> =
        LazyLock::new(|| node_config_of(&full_spec(), Role::ControlPlane, ""));
    CONFIG.clone()
}

/// NodeConfig of a control plane whose etcd cluster main has three members; its group runs a.
pub fn config_of_three() -> NodeConfig {
    let mut config = node_config();
    let main = &mut config.control_plane.as_mut().unwrap().etcd[0];
    let own = main.members[0].clone();
    for (name, group) in [("b", "elsewhere-b"), ("c", "elsewhere-c")] {
        let mut member = own.clone();
        member.name = name.into();
        member.group = group.into();
        main.members.push(member);
    }
    config
}

/// NodeConfig of a control plane whose group runs all three members of main.
pub fn config_of_three_in_a_group() -> NodeConfig {
    let mut config = config_of_three();
    let members = &mut config.control_plane.as_mut().unwrap().etcd[0].members;
    let group = members[0].group.clone();
    let named = |member: &mut EtcdMember| member.group.clone_from(&group);
    members.iter_mut().for_each(named);
    config
}

/// Counts changes, and fails one of them as if the process died there.
#[derive(Debug, Default)]
pub struct ChangeFuse {
    pub done: usize,
    pub dies_at: Option<usize>,
}

impl ChangeFuse {
    /// True once the process has died.
    pub fn has_died(&self) -> bool {
        self.dies_at.is_some_and(|at| self.done >= at)
    }
}

pub type SharedFuse = Arc<Mutex<ChangeFuse>>;

pub fn pass_fuse(fuse: &SharedFuse) -> Result<(), String> {
    let mut fuse = fuse.lock().unwrap();
    fuse.done += 1;
    if fuse.dies_at == Some(fuse.done) {
        return Err("died here".to_owned());
    }
    Ok(())
}

/// A host in a temporary folder.
pub struct TestHost {
    pub folder: TempDir,
    pub fuse: SharedFuse,
    pub host: Host,
    pub cloud: Arc<FakeEc2>,
    pub kubelet: Arc<Mutex<FakeKubelet>>,
    pub flushed: Flushes,
    /// The state store, in a folder beside the host's.
    pub store: Store,
}

impl TestHost {
    pub async fn new() -> Self {
        let folder = TempDir::new().unwrap();
        let root = folder.path().to_owned();
        let fuse = SharedFuse::default();
        write_programs(&root);
        for made in ["etc/kubernetes/manifests", "dev/disk/by-id", "disks"] {
            fs::create_dir_all(root.join(made)).unwrap();
        }
        fs::write(root.join("etc/hosts"), "127.0.0.1 localhost\n").unwrap();
        let kubelet = Arc::new(Mutex::new(FakeKubelet {
            root: root.clone(),
            scratch_revision: 2700,
            ..FakeKubelet::default()
        }));
        let path = format!("{}:/usr/bin:/bin", root.join("programs").display());
        let flushed = Flushes::default();
        let system = HostWithLinks {
            root: root.clone(),
            programs: LocalSystem::with_programs(path),
            fuse: fuse.clone(),
            kubelet: Some(Arc::clone(&kubelet)),
            flushed: Arc::clone(&flushed),
        };
        let cloud = FakeEc2 {
            root: root.clone(),
            fuse: fuse.clone(),
            volumes: Mutex::default(),
            instances: Mutex::default(),
            down: Mutex::default(),
            asked: Mutex::default(),
            xen: Mutex::default(),
            answer: Mutex::default(),
        };
        Self {
            store: store_in(&root.join("store")).await,
            host: Host::new(&root, Arc::new(system)),
            cloud: Arc::new(cloud),
            kubelet,
            flushed,
            fuse,
            folder,
        }
    }

    /// A fake kubelet for the other etcd cluster.
    pub fn new_events_kubelet(&self) -> Arc<Mutex<FakeKubelet>> {
        Arc::new(Mutex::new(FakeKubelet {
            root: self.folder.path().to_owned(),
            events: true,
            ..FakeKubelet::default()
        }))
    }

    /// Sets how much space the disks of the host have.
    pub fn set_free_bytes(&self, bytes: u64) {
        fs::write(self.path(FREE_BYTES), bytes.to_string()).unwrap();
    }

    pub fn path(&self, path: &str) -> PathBuf {
        self.folder.path().join(path.trim_start_matches('/'))
    }

    /// Simulates a reboot: nothing is mounted and nothing runs; disks and files stay.
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

    /// Path of the first disk's files on the host.
    pub fn path_on_disk(&self, path: &str) -> PathBuf {
        self.path(&format!("disks/nvme1n1/{path}"))
    }

    /// Path of etcd's log on the first disk.
    pub fn wal_path(&self) -> PathBuf {
        self.path_on_disk("var/etcd/data/member/wal")
    }

    /// All files that protokube and its programs wrote, by path.
    pub fn file_tree(&self) -> BTreeMap<String, String> {
        let mut tree = BTreeMap::new();
        for part in ["etc", "disks", "store"] {
            walk_folder(&self.path(part), &mut tree);
        }
        let root = self.folder.path().display().to_string();
        let lock = |path: &String| !path.contains("/.kctl-");
        tree.into_iter()
            .map(|(path, text)| (path.replace(&root, ""), text))
            .filter(|(path, _)| lock(path))
            .collect()
    }
}

fn walk_folder(at: &Path, tree: &mut BTreeMap<String, String>) {
    for item in fs::read_dir(at).into_iter().flatten() {
        let path = item.unwrap().path();
        let name = path.display().to_string();
        if path.is_symlink() {
            let to = fs::read_link(&path).unwrap();
            tree.insert(name, format!("-> {}", to.display()));
        } else if path.is_dir() {
            tree.insert(format!("{name}/"), String::new());
            walk_folder(&path, tree);
        } else if !path.is_file() {
            // A socket of a scratch etcd.
            tree.insert(name, String::new());
        } else {
            let bytes = fs::read(&path).unwrap();
            tree.insert(name, String::from_utf8_lossy(&bytes).into_owned());
        }
    }
}

/// Writes the size of the last argument in KiB to the place of the file system's size in the superblock.
const FILL: &str = r#"for device; do :; done
put() { printf "$2" | dd of="$device" bs=1 seek="$1" conv=notrunc status=none; }
n=$(($(stat -Lc %s "$device") / 1024))
put 1028 "$(printf '\\%03o\\%03o\\%03o\\000' $((n & 255)) $((n >> 8 & 255)) $((n >> 16 & 255)))"
"#;

/// Fake disk tools for one file system. Its superblock has the size in KiB, of which 256 are a group.
fn write_programs(root: &Path) {
    let folder = root.join("programs");
    fs::create_dir_all(&folder).unwrap();
    let made = format!("{FILL}put 1056 '\\000\\001'\nput 1080 '\\123\\357'\nput 0 ext4");
    // Files that were moved away because the disk was full come back.
    let resized = format!(
        "{FILL}here=$(dirname \"$0\")\necho \"$device\" >> \"$here/resized\"\ncd \"$here/..\"\n\
         [ ! -e full ] || {{ rm disks/nvme1n1/k8s.io/manifests && mv full disks/nvme1n1/k8s.io/manifests; }}"
    );
    let programs = [
        (
            "blkid",
            "for device; do :; done\n[ \"$(head -c4 \"$device\" | tr -d '\\0')\" = ext4 ] && echo TYPE=ext4 || exit 2",
        ),
        ("mkfs.ext4", &made),
        (
            "fsck.ext4",
            "cd \"$(dirname \"$0\")\"\n[ ! -e broken ] || { echo inodes; exit 4; }\nexit 1",
        ),
        ("resize2fs", &resized),
    ];
    for (name, text) in programs {
        write_script(&folder.join(name), text);
    }
}

/// Simulates mounts by links to the folders with a disk's files.
#[derive(Debug)]
pub struct HostWithLinks {
    pub root: PathBuf,
    pub programs: LocalSystem,
    pub fuse: SharedFuse,
    /// Called after each mount.
    pub kubelet: Option<Arc<Mutex<FakeKubelet>>>,
    pub flushed: Flushes,
}

/// The files of a disk at each flush.
pub type Flushes = Arc<Mutex<Vec<BTreeMap<String, String>>>>;

impl System for HostWithLinks {
    fn run(&self, program: &str, arguments: &[&str]) -> std::io::Result<Output> {
        if program == "ctr" {
            pass_fuse(&self.fuse).map_err(std::io::Error::other)?;
            if let Some(kubelet) = &self.kubelet {
                kubelet.lock().unwrap().run_container(arguments)?;
            }
        }
        // The disks are files here.
        if program == "blockdev" {
            return Ok(Output {
                code: Some(0),
                ..Output::default()
            });
        }
        self.programs.run(program, arguments)
    }

    /// Writes fail once the kernel has put a file there that marks the file system as read-only.
    fn mounts(&self) -> std::io::Result<Vec<MountEntry>> {
        let folders = fs::read_dir(self.root.join("mnt")).into_iter().flatten();
        let mounted = folders.filter_map(|folder| {
            let path = folder.unwrap().path();
            let disk = fs::read_link(&path).ok()?;
            Some(MountEntry {
                source: self.root.join("dev").join(disk.file_name()?),
                shared: false,
                read_only: path.join("lost+found/read-only").exists(),
                path,
            })
        });
        Ok(mounted.collect())
    }

    fn mount(&self, device: &Path, folder: &Path, _: &str, _: &str) -> std::io::Result<()> {
        pass_fuse(&self.fuse).map_err(std::io::Error::other)?;
        let disk = self.root.join("disks").join(device.file_name().unwrap());
        fs::create_dir_all(disk.join("lost+found"))?;
        fs::remove_dir(folder)?;
        symlink(disk, folder)?;
        if let Some(kubelet) = &self.kubelet {
            kubelet.lock().unwrap().read_manifest();
        }
        Ok(())
    }

    fn unmount(&self, folder: &Path) -> std::io::Result<()> {
        fs::remove_file(folder)?;
        fs::create_dir(folder)
    }

    fn share_mount(&self, mount_point: &Path) -> std::io::Result<()> {
        panic!("protokube shares {}", mount_point.display());
    }

    fn attached_as(&self, device: &Path) -> std::io::Result<Option<String>> {
        panic!("protokube asks {} for its name", device.display());
    }

    /// The machine that runs the tests loses no power.
    fn flush(&self, folder: &Path) -> std::io::Result<()> {
        let mut tree = BTreeMap::new();
        walk_folder(folder, &mut tree);
        self.flushed.lock().unwrap().push(tree);
        Ok(())
    }

    /// That of the machine which runs the tests says nothing.
    fn disk_space(&self, _: &Path) -> std::io::Result<DiskSpace> {
        let free = fs::read_to_string(self.root.join(FREE_BYTES));
        Ok(DiskSpace {
            total: 0,
            free: free.map_or(u64::MAX, |free| free.parse().unwrap()),
        })
    }
}

/// A fake EC2 with volumes and instances.
#[derive(Debug)]
pub struct FakeEc2 {
    root: PathBuf,
    fuse: SharedFuse,
    pub volumes: Mutex<Vec<Volume>>,
    pub instances: Mutex<Vec<Instance>>,
    /// True if EC2 is unavailable.
    pub down: Mutex<bool>,
    asked: Mutex<usize>,
    /// True if disks have the requested device names and no serial numbers.
    pub xen: Mutex<bool>,
    /// Volumes to return in place of the real ones, because EC2's answers may be old.
    pub answer: Mutex<Option<Vec<Volume>>>,
}

fn cloud_failure(why: impl Into<String>) -> Failure {
    Failure {
        class: Class::Unknown,
        call: "ec2:Test".into(),
        code: String::new(),
        message: why.into(),
        hint: None,
        request_id: None,
    }
}

impl FakeEc2 {
    /// A free volume of member a of an etcd cluster with one member.
    pub fn add_volume(&self, id: &str, etcd: &str) {
        self.add_volume_of(id, etcd, "a/a", None);
    }

    /// Volumes of three members, two of which are attached to other instances.
    pub fn add_volumes_of_three(&self) {
        self.add_volume_of("vol-0a", "main", "a/a,b,c", None);
        self.add_volume_of("vol-0b", "main", "b/a,b,c", Some("i-0b"));
        self.add_volume_of("vol-0c", "main", "c/a,b,c", Some("i-0c"));
    }

    pub fn add_volume_of(&self, id: &str, etcd: &str, tag: &str, holder: Option<&str>) {
        let tags = [
            (format!("k8s.io/etcd/{etcd}"), tag.to_owned()),
            ("k8s.io/role/control-plane".into(), "1".into()),
        ];
        let attachment = holder.map(|instance| Attachment {
            instance: instance.into(),
            device: "/dev/xvdu".into(),
            state: "attached".into(),
        });
        self.volumes.lock().unwrap().push(Volume {
            id: id.into(),
            state: if holder.is_some() {
                "in-use"
            } else {
                "available"
            }
            .into(),
            zone: ZONE.into(),
            size: 20,
            tags: tags.into(),
            attachment,
        });
    }

    /// The volumes that are attached to an instance.
    pub fn attached_volumes(&self, instance: &str) -> Vec<String> {
        let volumes = self.volumes.lock().unwrap();
        let with = |one: &&Volume| {
            one.attachment
                .as_ref()
                .is_some_and(|holder| holder.instance == instance)
        };
        volumes
            .iter()
            .filter(with)
            .map(|one| one.id.clone())
            .collect()
    }

    pub fn count_calls(&self) -> usize {
        *self.asked.lock().unwrap()
    }

    /// Attaches a volume to another instance.
    pub fn give_volume(&self, volume: &str, instance: &str) {
        let mut volumes = self.volumes.lock().unwrap();
        let found = volumes.iter_mut().find(|one| one.id == volume).unwrap();
        found.state = "in-use".into();
        found.attachment = Some(Attachment {
            instance: instance.into(),
            device: "/dev/xvdu".into(),
            state: "attached".into(),
        });
    }

    /// Detaches the first disk's volume by force and attaches it again: the kernel shows it under another name.
    pub fn reattach_volume(&self, volume: &str) {
        for below in ["dev", "disks"] {
            let path_of = |name: &str| self.root.join(below).join(name);
            fs::rename(path_of("nvme1n1"), path_of("nvme7n1")).unwrap();
        }
        let link = self.volume_link_path(volume);
        fs::remove_file(&link).unwrap();
        symlink(self.root.join("dev/nvme7n1"), link).unwrap();
    }

    fn volume_link_path(&self, volume: &str) -> PathBuf {
        let serial = volume.replace('-', "");
        let name = format!("nvme-Amazon_Elastic_Block_Store_{serial}");
        self.root.join("dev/disk/by-id").join(name)
    }

    fn check_available(&self) -> Result<(), Failure> {
        *self.asked.lock().unwrap() += 1;
        if *self.down.lock().unwrap() {
            return Err(cloud_failure("nobody answers"));
        }
        pass_fuse(&self.fuse).map_err(cloud_failure)
    }
}

impl Ec2 for FakeEc2 {
    async fn describe_volumes(&self, filters: &[Filter<'_>]) -> Result<Vec<Volume>, Failure> {
        self.check_available()?;
        let old_answer = self.answer.lock().unwrap().clone();
        let mut volumes = old_answer.unwrap_or_else(|| self.volumes.lock().unwrap().clone());
        if filters[0].0 == "attachment.instance-id" {
            volumes.retain(|volume| volume.attachment.is_some());
        }
        for (name, values) in filters {
            if *name == "tag:KubernetesCluster" {
                // Volumes of tests belong to the cluster unless they say otherwise.
                let own = |volume: &Volume| volume.tags.get("KubernetesCluster").cloned();
                volumes.retain(|volume| own(volume).is_none_or(|own| values.contains(&&*own)));
            }
        }
        Ok(volumes)
    }

    async fn describe_volume(&self, id: &str) -> Result<Option<Volume>, Failure> {
        self.check_available()?;
        let volumes = self.volumes.lock().unwrap();
        Ok(volumes.iter().find(|one| one.id == id).cloned())
    }

    async fn describe_instances(&self, _filters: &[Filter<'_>]) -> Result<Vec<Instance>, Failure> {
        self.check_available()?;
        Ok(self.instances.lock().unwrap().clone())
    }

    async fn attach_volume(
        &self,
        volume: &str,
        instance: &str,
        device: &str,
    ) -> Result<(), Failure> {
        self.check_available()?;
        let mut volumes = self.volumes.lock().unwrap();
        let number = volumes
            .iter()
            .filter_map(|one| one.attachment.as_ref())
            .filter(|one| one.instance == instance)
            .count()
            + 1;
        let found = volumes.iter_mut().find(|one| one.id == volume).unwrap();
        if found.attachment.is_some() {
            return Err(cloud_failure("it is attached"));
        }
        found.state = "in-use".into();
        found.attachment = Some(Attachment {
            instance: instance.into(),
            device: device.into(),
            state: "attached".into(),
        });
        let xen = *self.xen.lock().unwrap();
        let name = if xen {
            device.trim_start_matches("/dev/").to_owned()
        } else {
            format!("nvme{number}n1")
        };
        let node = self.root.join("dev").join(&name);
        fs::write(&node, vec![0; 2 << 20]).unwrap();
        let _ = fs::remove_dir_all(self.root.join("disks").join(name));
        if !xen {
            symlink(&node, self.volume_link_path(volume)).unwrap();
        }
        Ok(())
    }
}

/// A fake kubelet and the etcd that it runs.
#[derive(Debug, Default)]
pub struct FakeKubelet {
    root: PathBuf,
    /// True for the etcd cluster events, false for main.
    events: bool,
    /// The manifest that it read first after its start.
    read: Option<String>,
    /// Text of the running manifest.
    pub running: Option<String>,
    pub starts: usize,
    pub founded: usize,
    /// Number of logs that etcd has created.
    pub lives: usize,
    /// Ids of etcd in its cluster, as its peers know them.
    known: Option<LogIdentity>,
    /// True if the peers answer.
    pub peers: bool,
    /// The list of members that the peers agree on; empty until somebody asks.
    live: Vec<LiveMember>,
    /// Number of members that were added.
    added: usize,
    /// True if etcd cannot write its log.
    pub full: bool,
    /// True if it has not reached an API server since its start: it ends no pod.
    pub ends_nothing: bool,
    /// What a scratch etcd lists as members; `None` if it does not run.
    pub scratch_members: Option<String>,
    /// Revision of a scratch etcd.
    pub scratch_revision: u64,
    /// Version of the peers.
    pub peer_version: String,
    /// Peers that do not answer for themselves.
    pub silent: BTreeSet<String>,
    /// Id of the leader; `None`: this member.
    pub leader: Option<String>,
}

impl FakeKubelet {
    fn host_path(&self, path: &str) -> PathBuf {
        self.root.join(path.trim_start_matches('/'))
    }

    /// Runs a scratch etcd that answers on sockets, or ends it.
    fn run_container(&mut self, arguments: &[&str]) -> std::io::Result<()> {
        let mount = arguments
            .iter()
            .find_map(|one| one.strip_prefix("type=bind,src="));
        let folder = mount.and_then(|mount| mount.split(',').next());
        let has_socket = |one: &&str| one.contains(&format!("unix://{GATEWAY}"));
        if let Some(folder) = folder
            && arguments.iter().any(has_socket)
        {
            let socket = self.host_path(folder).join(GATEWAY);
            return answer_as_gateway(&socket, self.root.clone(), self.scratch_revision);
        }
        let (Some(folder), Some(members)) = (folder, &self.scratch_members) else {
            return Ok(());
        };
        if !arguments.contains(&"--listen-metrics-urls") {
            return Ok(());
        }
        let folder = self.host_path(folder);
        let applied = "etcd_server_proposals_applied_total 0\n".to_owned();
        answer_on_socket(&folder.join("localhost:2380"), members.clone())?;
        answer_on_socket(&folder.join("localhost:2381"), applied)
    }

    fn pod_prefix(&self) -> &'static str {
        if self.events { "etcd-events" } else { "etcd" }
    }

    /// The manifest in kubelet's folder, if there is one.
    fn read_manifest(&mut self) -> Option<String> {
        let pod = if self.events {
            "etcd-events"
        } else {
            "etcd-main"
        };
        let link = fs::read_link(self.host_path(&manifest_path(pod))).ok()?;
        let manifest = fs::read_to_string(self.host_path(link.to_str()?)).ok()?;
        self.read.get_or_insert_with(|| manifest.clone());
        Some(manifest)
    }

    /// Runs or stops etcd according to the folder of manifests.
    fn sync_manifest(&mut self) -> anyhow::Result<()> {
        let Some(manifest) = self.read_manifest() else {
            if !self.ends_nothing {
                self.running = None;
            }
            bail!("kubelet sees no manifest");
        };
        if self.running.as_ref() == Some(&manifest) {
            return Ok(());
        }
        self.running = None;
        // kubelet ends the known pod first, and none before it can reach an API server, which needs etcd.
        if self.read.as_ref() != Some(&manifest) && !self.peers {
            bail!("kubelet waits for the end of the pod that it read first");
        }
        self.start_etcd(manifest)
    }

    /// Restarts etcd's container as kubelet does after its process ends, without reading the manifest.
    pub fn restart_container(&mut self) -> anyhow::Result<()> {
        let manifest = self.running.take().context("nothing runs")?;
        self.start_etcd(manifest)
    }

    fn start_etcd(&mut self, manifest: String) -> anyhow::Result<()> {
        if self.full {
            bail!("no space left on device");
        }
        let pod: Pod = serde_saphyr::from_str(&manifest)?;
        let container = &pod.spec.containers[0];
        let variable = |name: &str| {
            let found = container.env.iter().find(|one| one.name == name);
            found.and_then(|one| one.value.clone()).unwrap_or_default()
        };
        let data = pod.spec.volumes.iter().find(|one| one.name == "data");
        let data = data.context("no data")?;
        let folder = self.host_path(&data.host_path.path);
        if data.host_path.kind.as_deref() != Some("Directory") || !folder.is_dir() {
            bail!("the pod's data folder is not there");
        }
        if log_files(&folder.join("member/wal")).is_empty() {
            self.create_log(&folder.join("member/wal"), variable)?;
        }
        self.starts += 1;
        self.running = Some(manifest);
        Ok(())
    }

    /// Creates a log as etcd 3.6 does if there is none (`server/etcdserver/bootstrap.go`).
    fn create_log(&mut self, log: &Path, variable: impl Fn(&str) -> String) -> anyhow::Result<()> {
        let all = variable("ETCD_INITIAL_CLUSTER");
        let own = format!("{}=", variable("ETCD_NAME"));
        let others = all.split(',').filter(|one| !one.starts_with(&own)).count();
        let urls = |member: &str| {
            let own = all.split(',').filter_map(|one| one.split_once('='));
            let own = own.filter(|(name, _)| *name == member);
            own.map(|(_, url)| url.to_owned()).collect::<Vec<_>>()
        };
        // etcd requires the manifest to name what the peers have in their list.
        let listed = self.live.iter().find(|one| {
            let known = self.known.as_ref();
            known.is_some_and(|known| known.member_id == one.id)
        });
        if let Some(listed) = listed
            && others > 0
            && variable("ETCD_INITIAL_CLUSTER_STATE") == "existing"
            && listed.peer_urls != urls(&variable("ETCD_NAME"))
        {
            bail!("unmatched member while checking PeerURLs");
        }
        let known_identity = self.known.clone().filter(|_| others > 0 && self.peers);
        let identity = match (
            variable("ETCD_INITIAL_CLUSTER_STATE").as_str(),
            known_identity,
        ) {
            ("new", Some(identity)) => bail!(
                "member {} has already been bootstrapped",
                identity.member_id
            ),
            ("new", None) => {
                self.founded += 1;
                founder_identity(&variable("ETCD_INITIAL_CLUSTER_TOKEN"))
            }
            (_, Some(identity)) => identity,
            (_, None) => bail!("cannot fetch cluster info from peer urls"),
        };
        write_log(log, &identity);
        self.lives += 1;
        self.known = Some(identity);
        Ok(())
    }

    /// The list of members, of which the peers are b and c.
    fn list_live(&mut self) -> anyhow::Result<LiveCluster> {
        if !self.peers {
            bail!("nobody answers");
        }
        let member = |member: &str, id: &str| LiveMember {
            id: id.to_owned(),
            name: format!("etcd-{member}"),
            peer_urls: vec![peer_url(member)],
            learner: false,
        };
        if self.live.is_empty() {
            let own = self.known.as_ref().context("a has not run")?;
            self.live = vec![
                member("a", &own.member_id),
                member("b", "b"),
                member("c", "c"),
            ];
        }
        if let Some(own) = self.known.as_ref().filter(|_| self.running.is_some()) {
            let mut live = self.live.iter_mut();
            if let Some(own) = live.find(|one| one.id == own.member_id) {
                own.name = "etcd-a".to_owned();
            }
        }
        Ok(LiveCluster {
            cluster_id: founder_identity("token").cluster_id,
            members: self.live.clone(),
        })
    }

    /// Changes the list of members as etcd does.
    fn change_live(&mut self, change: &MemberChange) -> anyhow::Result<Option<String>> {
        self.list_live()?;
        match change {
            MemberChange::Remove { id, .. } => {
                if self.leader.as_ref() == Some(id) {
                    bail!("{id} leads");
                }
                self.live.retain(|one| one.id != *id);
                self.known = self.known.take().filter(|known| known.member_id != *id);
            }
            MemberChange::MoveLeader { from, to } => {
                let leader = self.leader.as_ref();
                let leads = |one: &&LiveMember| Some(&one.id) == leader;
                let leader = self.live.iter().find(leads).context("a leads")?;
                if !leader.peer_urls.contains(&peer_url(from)) {
                    bail!("{from} does not lead");
                }
                self.leader = Some(to.clone());
            }
            MemberChange::EndJoin { id, peer_url } => {
                let mut live = self.live.iter_mut();
                let own = live.find(|one| one.id == *id).context("no member")?;
                own.peer_urls = vec![peer_url.clone()];
            }
            MemberChange::AddLearner { peer_urls } => {
                self.added += 1;
                let id = format!("ad{}", self.added);
                self.live.push(LiveMember {
                    id: id.clone(),
                    name: String::new(),
                    peer_urls: peer_urls.clone(),
                    learner: true,
                });
                self.known = Some(LogIdentity {
                    cluster_id: founder_identity("token").cluster_id,
                    member_id: id.clone(),
                });
                return Ok(Some(id));
            }
            MemberChange::Promote { id } => {
                self.sync_manifest()?;
                let mut live = self.live.iter_mut();
                live.find(|one| one.id == *id).context("no member")?.learner = false;
            }
        }
        Ok(None)
    }

    /// What the member with this short name says about itself, if it is in the list and runs.
    fn describe(&self, member: &str) -> Result<RunningMember, String> {
        let url = peer_url(member);
        let mut live = self.live.iter();
        let listed = live.find(|one| one.peer_urls.contains(&url));
        let own = self.known.as_ref().map(|known| &known.member_id);
        let answers = |one: &&LiveMember| match Some(&one.id) == own {
            true => self.running.is_some(),
            false => !self.silent.contains(&one.id),
        };
        let listed = listed.filter(answers).ok_or("nobody answers")?;
        Ok(RunningMember {
            id: listed.id.clone(),
            cluster_id: founder_identity("token").cluster_id,
            leader: self.leader.as_ref().or(own).cloned(),
            term: 2,
            revision: 7,
            version: self.peer_version.clone(),
            ..RunningMember::default()
        })
    }

    /// The others remove this member.
    pub fn remove_member(&mut self, id: &str) {
        self.list_live().unwrap();
        self.live.retain(|one| one.id != id);
        self.known = None;
    }

    /// Names of all members in the list.
    pub fn listed_names(&self) -> Vec<String> {
        self.live.iter().map(|one| one.name.clone()).collect()
    }

    /// Ids of the member a in the list of members, with whether it votes.
    pub fn listed(&self) -> Vec<(String, bool)> {
        let own = self
            .live
            .iter()
            .filter(|one| one.peer_urls.contains(&peer_url("a")));
        own.map(|one| (one.id.clone(), !one.learner)).collect()
    }

    /// Path of the log on the first disk that has one.
    pub fn cluster_id(&self) -> anyhow::Result<String> {
        for disk in fs::read_dir(self.root.join("disks"))? {
            let log = format!("var/{}/data/member/wal", self.pod_prefix());
            let files = log_files(&disk?.path().join(log));
            if let Some(file) = files.first() {
                return Ok(log_identity(&fs::read(file)?)?.cluster_id);
            }
        }
        bail!("no data")
    }
}

/// Gives each connection to a socket to `answer`, until the file of the socket is removed.
fn serve_socket(
    path: &Path,
    mut answer: impl FnMut(UnixStream) + Send + 'static,
) -> std::io::Result<()> {
    let listener = UnixListener::bind(path)?;
    listener.set_nonblocking(true)?;
    let path = path.to_owned();
    std::thread::spawn(move || {
        while path.exists() {
            let Ok((stream, _)) = listener.accept() else {
                std::thread::sleep(Duration::from_millis(1));
                continue;
            };
            let _ = stream.set_nonblocking(false);
            answer(stream);
        }
    });
    Ok(())
}

/// Answers every request on a socket until its file is removed.
fn answer_on_socket(path: &Path, body: String) -> std::io::Result<()> {
    serve_socket(path, move |mut stream| {
        let mut request = [0; 256];
        let _ = stream.read(&mut request);
        let _ = stream.write_all(format!("HTTP/1.0 200 OK\r\n\r\n{body}").as_bytes());
    })
}

/// Name of the socket of a scratch etcd for clients.
const GATEWAY: &str = "localhost:2379";

/// Answers as the JSON gateway of a scratch etcd at this revision, each of whose transactions succeeds, and writes down what it is asked, until
/// the file of the socket is removed. Every third request that changes no key comes to it when it is too busy. It has 233 keys at revision 2700, and one more at each after it. Files below `root` say which alarms and
/// Secrets it has, as etcd answers, and why it reads no keys.
fn answer_as_gateway(path: &Path, root: PathBuf, mut revision: u64) -> std::io::Result<()> {
    let mut asked = 0;
    serve_socket(path, move |mut stream| {
        let (method, body) = read_request(&mut stream);
        asked += 1;
        let is_change = ["/kv/txn", "/lease/"]
            .iter()
            .any(|one| method.contains(one));
        if asked % 3 == 0 && !is_change {
            let _ = stream.write_all(b"HTTP/1.0 503 Service Unavailable\r\n\r\n{}");
            return;
        }
        let mut file = fs::File::options()
            .create(true)
            .append(true)
            .open(root.join("gateway-calls"))
            .unwrap();
        writeln!(file, "{method} {}", body.trim()).unwrap();
        revision += u64::from(method.ends_with("/kv/txn"));
        let fails = fs::read_to_string(root.join("fails"));
        let answer = match fails {
            Ok(why) if method.ends_with("/kv/range") => {
                format!("HTTP/1.0 500 Internal Server Error\r\n\r\n{why}")
            }
            _ => {
                let said = answer_of_gateway(&method, &body, &root, revision);
                format!("HTTP/1.0 200 OK\r\n\r\n{said}")
            }
        };
        let _ = stream.write_all(answer.as_bytes());
    })
}

/// What the gateway of a scratch etcd at this revision says.
fn answer_of_gateway(method: &str, body: &str, root: &Path, revision: u64) -> Value {
    let stored = |name: &str| {
        let text = fs::read_to_string(root.join(name)).ok();
        text.map_or(json!({}), |text| serde_json::from_str(&text).unwrap())
    };
    let header = json!({"revision": revision.to_string()});
    // A stream of requests is no value.
    let asked: Value = serde_json::from_str(body).unwrap_or_default();
    let number = |name: &str| {
        asked[name]
            .as_str()
            .map_or(0_u64, |text| text.parse().unwrap())
    };
    // Zero is the newest.
    let at = Some(number("revision")).filter(|at| *at > 0);
    let at = at.unwrap_or(revision);
    match method.rsplit_once("/v3/").map_or("", |(_, method)| method) {
        "lease/leases" => json!({"leases": [{"ID": "7"}]}),
        "kv/txn" => json!({"header": header, "succeeded": true}),
        "maintenance/status" => json!({"header": header}),
        "maintenance/alarm" if asked["action"] == "GET" => stored("alarms"),
        "maintenance/hashkv" => {
            json!({"header": header, "hash": at.saturating_sub(2693), "compact_revision": "2500"})
        }
        "kv/range" if asked["count_only"] == true => {
            json!({"header": header, "count": at.saturating_sub(2467).to_string()})
        }
        "kv/range" => {
            let decode = |key: &Value| STANDARD.decode(key.as_str().unwrap()).unwrap();
            let (from, end) = (decode(&asked["key"]), decode(&asked["range_end"]));
            let all = stored("secrets");
            let of_range = all["kvs"].as_array().into_iter().flatten().filter(|one| {
                let key = decode(&one["key"]);
                from <= key && key < end
            });
            let limit = usize::try_from(number("limit")).unwrap();
            json!({"header": header, "kvs": of_range.take(limit).collect::<Vec<_>>()})
        }
        _ => json!({}),
    }
}

/// Method with path, and body, of a request.
fn read_request(stream: &mut impl Read) -> (String, String) {
    let (mut request, mut piece) = (Vec::new(), [0; 4096]);
    loop {
        let count = stream.read(&mut piece).unwrap_or_default();
        request.extend_from_slice(&piece[..count]);
        let text = String::from_utf8_lossy(&request).into_owned();
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
        let mut lines = head.lines();
        let first = lines.next().unwrap_or_default();
        let length = lines.find_map(|line| line.strip_prefix("Content-Length: "));
        let length: usize = length.map_or(0, |length| length.parse().unwrap());
        if count == 0 || text.contains("\r\n\r\n") && body.len() >= length {
            let method = first.trim_end_matches(" HTTP/1.0");
            return (method.to_owned(), body.to_owned());
        }
    }
}

fn peer_url(member: &str) -> String {
    format!(
        "https://etcd-{member}.internal.{}:2380",
        node_config().cluster
    )
}

/// Cluster and member id of a founder with this token.
pub fn founder_identity(token: &str) -> LogIdentity {
    let sum = token.bytes().fold(7_u64, |sum, byte| {
        sum.wrapping_mul(31).wrapping_add(u64::from(byte))
    });
    LogIdentity {
        cluster_id: format!("{:x}", sum | (1 << 63)),
        member_id: format!("{:x}", !sum | (1 << 63)),
    }
}

pub fn log_files(folder: &Path) -> Vec<PathBuf> {
    let items = fs::read_dir(folder).into_iter().flatten();
    let files = items.map(|item| item.unwrap().path());
    files
        .filter(|file| file.extension().is_some_and(|extension| extension == "wal"))
        .collect()
}

/// Writes the first file of a log, as etcd has it before its first entry.
pub fn write_log(folder: &Path, identity: &LogIdentity) {
    write_log_to(folder, identity, LogPosition::default());
}

/// Writes the first file of a log that reaches to a position.
pub fn write_log_to(folder: &Path, identity: &LogIdentity, position: LogPosition) {
    fs::create_dir_all(folder).unwrap();
    let file = folder.join("0000000000000000-0000000000000000.wal");
    fs::write(file, encode_log(identity, position)).unwrap();
}

/// A file of a log as etcd writes it: a checksum, the ids, and the state, if there is one.
pub fn encode_log(identity: &LogIdentity, position: LogPosition) -> Vec<u8> {
    let state = [
        &[0x08][..],
        &encode_varint(position.term),
        &[0x10, 0, 0x18],
        &encode_varint(position.index),
    ]
    .concat();
    let has_state = position != LogPosition::default();
    encode_records(identity, has_state.then_some((3, state)))
}

/// A file of a log with these records behind the ids, each with its kind.
pub fn encode_records(
    identity: &LogIdentity,
    records: impl IntoIterator<Item = (u8, Vec<u8>)>,
) -> Vec<u8> {
    let id = |id: &str| encode_varint(u64::from_str_radix(id, 16).unwrap());
    let ids = [
        &[0x08][..],
        &id(&identity.member_id),
        &[0x10],
        &id(&identity.cluster_id),
    ]
    .concat();
    let mut file = Vec::new();
    append_frame(&mut file, &[0x08, 4, 0x10, 0]);
    let mut data = Vec::new();
    for (kind, record) in std::iter::once((1, ids)).chain(records) {
        data.extend(&record);
        let checksum = encode_varint(checksum_of(&data).into());
        let length = encode_varint(record.len() as u64);
        let whole = [
            &[0x08, kind, 0x10][..],
            &checksum,
            &[0x1a],
            &length,
            &record,
        ]
        .concat();
        append_frame(&mut file, &whole);
    }
    file
}

fn append_frame(file: &mut Vec<u8>, record: &[u8]) {
    let filled = record.len().next_multiple_of(8) - record.len();
    let high = if filled > 0 { 0x80 | filled as u64 } else { 0 };
    file.extend((record.len() as u64 | (high << 56)).to_le_bytes());
    file.extend(record);
    file.resize(file.len() + filled, 0);
}

/// CRC-32C, bit by bit.
fn checksum_of(data: &[u8]) -> u32 {
    let shift = |sum: u32| (sum >> 1) ^ if sum & 1 == 1 { 0x82f6_3b78 } else { 0 };
    let step = |sum: u32, byte: &u8| (0..8).fold(sum ^ u32::from(*byte), |sum, _| shift(sum));
    !data.iter().fold(!0, step)
}

pub fn encode_varint(mut number: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while number > 0x7f {
        bytes.push(number.to_le_bytes()[0] | 0x80);
        number >>= 7;
    }
    bytes.push(number.to_le_bytes()[0]);
    bytes
}

/// A client of the etcd that the fake kubelet runs.
pub struct FakeEtcd {
    pub kubelet: Arc<Mutex<FakeKubelet>>,
    pub fuse: SharedFuse,
}

impl RunningEtcd for FakeEtcd {
    async fn find_problem(&self) -> Option<String> {
        if let Err(died) = pass_fuse(&self.fuse) {
            return Some(died);
        }
        let synced = self.kubelet.lock().unwrap().sync_manifest();
        synced.err().map(|error| error.to_string())
    }

    async fn is_answering(&self) -> bool {
        let mut kubelet = self.kubelet.lock().unwrap();
        let _ = kubelet.sync_manifest();
        kubelet.running.is_some()
    }

    async fn list_members(&self, member: &str) -> anyhow::Result<EtcdMembers> {
        pass_fuse(&self.fuse).map_err(anyhow::Error::msg)?;
        let kubelet = self.kubelet.lock().unwrap();
        Ok(EtcdMembers {
            cluster_id: kubelet.cluster_id()?,
            named: ["a", "b", "c", member]
                .map(|one| format!("{}-{one}", kubelet.pod_prefix()))
                .into(),
        })
    }
}

/// The peers of the etcd that the fake kubelet runs.
pub struct FakeQuorum {
    pub kubelet: Arc<Mutex<FakeKubelet>>,
    pub fuse: SharedFuse,
}

impl EtcdQuorum for FakeQuorum {
    async fn list_live_members(&self, _: &[String]) -> anyhow::Result<LiveCluster> {
        let mut kubelet = self.kubelet.lock().unwrap();
        // kubelet works while protokube waits.
        let _ = kubelet.sync_manifest();
        kubelet.list_live()
    }

    async fn describe_members(&self, members: &[String]) -> Peers {
        let mut kubelet = self.kubelet.lock().unwrap();
        // It knows its peers from then on.
        let _ = kubelet.list_live();
        let describe = |member: &String| (member.clone(), kubelet.describe(member));
        members.iter().map(describe).collect()
    }

    async fn change_members(
        &self,
        _: &[String],
        change: &MemberChange,
    ) -> anyhow::Result<Option<String>> {
        pass_fuse(&self.fuse).map_err(anyhow::Error::msg)?;
        let changed = self.kubelet.lock().unwrap().change_live(change)?;
        // It may also die before it gets the answer.
        pass_fuse(&self.fuse).map_err(anyhow::Error::msg)?;
        Ok(changed)
    }
}
