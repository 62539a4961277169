//! A machine in a folder: its files are real, its programs and mounts are played.

use engine::Resource;
use flate2::Compression;
use flate2::write::GzEncoder;
use host::{LocalSystem, Mounted, Output, System};
use node::config::{Asset, InstanceFacts, NodeConfig, Role};
use node::host::{HostResource, desired_resources};
use node::pki::{KeyAlgorithm, Keyset, SystemKeys, keyset_names, mint_keyset, trust_bundle};
use nodeup::host::{ApplyResult, HostContext, Signer, apply_desired, plan_changes};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::{fs, io};
use tempfile::TempDir;
use test_support::node_config_of;
use time::{Duration, OffsetDateTime};

pub fn today() -> OffsetDateTime {
    OffsetDateTime::UNIX_EPOCH + Duration::days(20_000)
}

/// A unit as systemd has it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Played {
    pub enabled: bool,
    pub state: String,
    /// kubelet's configuration when it was started last.
    pub saw: String,
    pub starts: usize,
}

/// What programs remember.
#[derive(Default)]
pub struct Memory {
    pub units: BTreeMap<String, Played>,
    pub packages: BTreeSet<String>,
    pub calls: Vec<String>,
    /// What the next calls of a program answer, before it works.
    pub answers: BTreeMap<String, Vec<Output>>,
    pub formatted: BTreeMap<String, String>,
    /// Names under which AWS attached disks, by device.
    pub attached: BTreeMap<String, String>,
}

pub struct Machine {
    pub folder: TempDir,
    pub memory: Arc<Mutex<Memory>>,
    pub signer: Arc<Signer>,
    pub trust_bundle: String,
    pub now: OffsetDateTime,
    pub told: Arc<Mutex<Vec<String>>>,
}

struct Programs {
    root: PathBuf,
    memory: Arc<Mutex<Memory>>,
}

/// Authorities, minted once for all tests.
pub fn keysets() -> BTreeMap<String, Keyset> {
    static ALL: OnceLock<BTreeMap<String, Keyset>> = OnceLock::new();
    let all = ALL.get_or_init(|| {
        let mut keys = SystemKeys::at(today());
        let names = keyset_names(["main", "events"]).into_iter();
        names
            .map(|name| {
                let keyset = mint_keyset(&name, KeyAlgorithm::EcdsaP256, &mut keys).unwrap();
                (name, keyset)
            })
            .collect()
    });
    all.clone()
}

pub fn hex(bytes: &[u8]) -> String {
    format!("{:x}", Sha256::digest(bytes))
}

/// A compressed tar archive of programs.
pub fn archive(members: &[&str]) -> Vec<u8> {
    let mut tar = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    for member in members {
        let mut header = tar::Header::new_gnu();
        let content = format!("program {member}");
        header.set_mode(if member.contains("README") {
            0o644
        } else {
            0o755
        });
        header.set_size(content.len() as u64);
        tar.append_data(&mut header, member, content.as_bytes())
            .unwrap();
    }
    tar.into_inner().unwrap().finish().unwrap()
}

fn download(name: &str) -> Vec<u8> {
    match name {
        "containerd" => archive(&[
            "bin/containerd",
            "bin/containerd-shim-runc-v2",
            "bin/ctr",
            "bin/containerd-stress",
        ]),
        "cni-plugins" => archive(&["./bridge", "./host-local", "./portmap", "./README.md"]),
        "crictl" => archive(&["crictl"]),
        other => format!("program {other}").into_bytes(),
    }
}

/// A group's configuration whose downloads are in `cache`.
pub fn config(role: Role, cache: &Path, change: impl FnOnce(&mut NodeConfig)) -> NodeConfig {
    let bundle = trust_bundle(&keysets()["kubernetes-ca"]);
    let mut config = node_config_of(&test_support::full(), role, &bundle);
    let keep = |name: &str| {
        let bytes = download(name);
        fs::write(cache.join(hex(&bytes)), &bytes).unwrap();
        hex(&bytes)
    };
    let known = |asset: &Asset| Asset {
        sha256: Some(keep(&asset.name)),
        ..asset.clone()
    };
    config.assets = config.assets.iter().map(known).collect();
    for agent in &mut config.agents.protokube {
        agent.sha256 = keep("protokube");
    }
    change(&mut config);
    config
}

pub fn facts() -> InstanceFacts {
    InstanceFacts {
        instance_id: "i-0abc".into(),
        zone: "eu-west-1a".into(),
        ..InstanceFacts::placeholder()
    }
}

impl Machine {
    pub fn new() -> Self {
        let folder = TempDir::new().unwrap();
        let root = folder.path().join("root");
        fs::create_dir_all(&root).unwrap();
        fs::create_dir_all(folder.path().join("cache")).unwrap();
        let about = fs::metadata(&root).unwrap();
        let put = |path: &str, text: String| {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        // Files belong to whoever runs the tests: here that is root.
        put(
            "etc/passwd",
            format!("root:x:{}:0:root:/root:/bin/sh\n", about.uid()),
        );
        put("etc/group", format!("root:x:{}:\n", about.gid()));
        put("etc/hosts", "127.0.0.1 localhost\n".to_owned());
        put("usr/bin/socat", "program socat".to_owned());
        put("proc/sys/kernel/random/boot_id", "boot-1\n".to_owned());
        put("proc/sys/net/ipv4/ip_forward", "0\n".to_owned());
        put(
            "proc/sys/net/ipv4/tcp_rmem",
            "4096\t131072\t6291456\n".to_owned(),
        );
        put(
            "proc/self/mountinfo",
            "22 1 259:1 / / rw,relatime - ext4 /dev/root rw\n".to_owned(),
        );
        fs::create_dir_all(root.join("sys/module/overlay")).unwrap();
        let keysets = keysets();
        Self {
            folder,
            memory: Arc::default(),
            trust_bundle: trust_bundle(&keysets["kubernetes-ca"]),
            signer: Arc::new(Signer {
                keysets,
                ..Signer::default()
            }),
            now: today(),
            told: Arc::default(),
        }
    }

    pub fn at(&self, path: &str) -> PathBuf {
        self.folder
            .path()
            .join("root")
            .join(path.trim_start_matches('/'))
    }

    pub fn cache(&self) -> PathBuf {
        self.folder.path().join("cache")
    }

    pub fn text(&self, path: &str) -> String {
        fs::read_to_string(self.at(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    pub fn context(&self) -> HostContext {
        let told = Arc::clone(&self.told);
        let now = self.now;
        HostContext {
            host: host::Host::new(
                self.at("/"),
                Arc::new(Programs {
                    root: self.at("/"),
                    memory: Arc::clone(&self.memory),
                }),
            ),
            cache: self.cache(),
            signer: Arc::clone(&self.signer),
            trust_bundle: self.trust_bundle.clone(),
            clock: Arc::new(move || now),
            tell: Arc::new(move |line| told.lock().unwrap().push(line.to_owned())),
        }
    }

    pub fn desired(&self, role: Role, change: impl FnOnce(&mut NodeConfig)) -> Vec<HostResource> {
        desired_resources(&config(role, &self.cache(), change), &facts()).unwrap()
    }

    pub fn apply(&self, desired: &[HostResource]) -> ApplyResult {
        run(apply_desired(desired.to_vec(), self.context())).unwrap()
    }

    /// Applies until the machine dies after that many changes; the number of changes that were begun.
    pub fn apply_and_die(&self, desired: &[HostResource], after: usize) -> usize {
        let asked = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&asked);
        let mut context = self.context();
        // The engine asks too, before it starts something: what counts is that nothing is changed from then on.
        let stop = move || counter.fetch_add(1, Ordering::SeqCst) >= after;
        context.host = context.host.with_stop(Arc::new(stop));
        // Forgetting what units were started with is a change too: it may be where the machine dies.
        let _ = run(apply_desired(desired.to_vec(), context));
        asked.load(Ordering::SeqCst)
    }

    /// Ids of what an apply would change.
    pub fn planned(&self, desired: &[HostResource]) -> Vec<String> {
        let plan = run(plan_changes(desired.to_vec(), self.context())).unwrap();
        plan.steps.keys().map(ToString::to_string).collect()
    }

    pub fn plan_text(&self, desired: &[HostResource]) -> String {
        let plan = run(plan_changes(desired.to_vec(), self.context())).unwrap();
        serde_json::to_string(&plan).unwrap()
    }

    /// The machine starts again: enabled units run, or systemd is about to start them; what is in memory is gone.
    pub fn reboot(&self, up_as: &str) {
        fs::write(self.at("/proc/sys/kernel/random/boot_id"), "boot-2\n").unwrap();
        let _ = fs::remove_dir_all(self.at("/run"));
        let mut memory = self.memory.lock().unwrap();
        for unit in memory.units.values_mut() {
            let up = unit.enabled && ["active", "queued"].contains(&unit.state.as_str());
            unit.state = if up { up_as } else { "inactive" }.to_owned();
        }
    }

    /// Everything on the machine: modes, links, and contents where those are the same each time.
    pub fn tree(&self) -> BTreeMap<String, String> {
        let mut tree = BTreeMap::new();
        walk(&self.at("/"), Path::new("/"), &mut tree);
        tree
    }
}

pub fn run<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.unwrap().block_on(work)
}

/// What differs between two machines, in a few words for a failed test.
pub fn difference<T: PartialEq + std::fmt::Debug>(
    one: &BTreeMap<String, T>,
    other: &BTreeMap<String, T>,
) -> Vec<String> {
    let names: BTreeSet<&String> = one.keys().chain(other.keys()).collect();
    let differing = names
        .into_iter()
        .filter(|name| one.get(*name) != other.get(*name));
    differing
        .map(|name| format!("{name}: {:?} and {:?}", one.get(name), other.get(name)))
        .collect()
}

pub fn needs_of(all: &[HostResource], name: &str) -> Vec<String> {
    let found = all
        .iter()
        .find(|resource| resource.id().to_string() == name);
    found
        .unwrap()
        .needs
        .iter()
        .map(ToString::to_string)
        .collect()
}

fn walk(folder: &Path, path: &Path, into: &mut BTreeMap<String, String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let path = path.join(entry.file_name());
        let about = fs::symlink_metadata(entry.path()).unwrap();
        let name = path.display().to_string();
        // Keys are others each time, and so are times.
        let kind = path
            .extension()
            .and_then(|kind| kind.to_str())
            .unwrap_or_default();
        let random =
            matches!(kind, "crt" | "key" | "pem") || name.starts_with("/var/lib/kctl/downloads");
        let what = if about.is_symlink() {
            format!("-> {}", fs::read_link(entry.path()).unwrap().display())
        } else if about.is_dir() {
            walk(&entry.path(), &path, into);
            "folder".to_owned()
        } else if random {
            "something".to_owned()
        } else {
            String::from_utf8_lossy(&fs::read(entry.path()).unwrap()).into_owned()
        };
        let mode = if about.is_symlink() {
            0
        } else {
            about.permissions().mode() & 0o7777
        };
        into.insert(name, format!("{mode:04o} {what}"));
    }
}

impl Programs {
    fn at(&self, path: &str) -> PathBuf {
        self.root.join(path.trim_start_matches('/'))
    }

    fn systemctl(&self, memory: &mut Memory, arguments: &[&str]) -> Output {
        let file = |name: &str| {
            fs::read_to_string(self.at(&format!("/etc/systemd/system/{name}"))).unwrap_or_default()
        };
        match arguments {
            ["show", _, names @ ..] => {
                let show = |name: &&str| {
                    let unit = memory.units.get(*name).cloned().unwrap_or_default();
                    let kind = if file(name).contains("Type=oneshot") {
                        "oneshot"
                    } else {
                        "simple"
                    };
                    let (state, job) = match unit.state.as_str() {
                        "" => ("inactive", 0),
                        "queued" => ("inactive", 7),
                        state => (state, 0),
                    };
                    let remains = if file(name).contains("RemainAfterExit=yes") {
                        "yes"
                    } else {
                        "no"
                    };
                    let file = if unit.enabled { "enabled" } else { "disabled" };
                    format!(
                        "Id={name}\nType={kind}\nRemainAfterExit={remains}\nActiveState={state}\nSubState=x\nUnitFileState={file}\nResult=success\nExecMainStatus=0\nJob={job}\nConditionResult=yes\nConditionTimestampMonotonic=1\n",
                    )
                };
                let shown: Vec<String> = names.iter().map(show).collect();
                return said(&shown.join("\n"));
            }
            ["enable", name] => memory.units.entry((*name).to_owned()).or_default().enabled = true,
            ["restart", "--no-block", name] => {
                let text = file(name);
                let saw = fs::read_to_string(self.at("/var/lib/kubelet/kubelet.conf"))
                    .unwrap_or_default();
                let unit = memory.units.entry((*name).to_owned()).or_default();
                let ends = text.contains("Type=oneshot") && !text.contains("RemainAfterExit=yes");
                unit.state = if ends { "inactive" } else { "active" }.to_owned();
                unit.saw = if *name == "kubelet.service" {
                    saw
                } else {
                    String::new()
                };
                unit.starts += 1;
            }
            ["stop", name] => "inactive"
                .clone_into(&mut memory.units.entry((*name).to_owned()).or_default().state),
            ["daemon-reload"] | ["reset-failed", _] => {}
            other => panic!("systemctl {other:?}"),
        }
        said("")
    }
}

pub fn said(out: &str) -> Output {
    Output {
        code: Some(0),
        stdout: out.to_owned(),
        stderr: String::new(),
    }
}

pub fn failed(code: i32, err: &str) -> Output {
    Output {
        code: Some(code),
        stdout: String::new(),
        stderr: err.to_owned(),
    }
}

/// The device that a program was given last, whatever the path that leads to it.
fn device(arguments: &[&str]) -> String {
    let given = Path::new(arguments.last().unwrap());
    let device = given.canonicalize().unwrap_or_else(|_| given.to_owned());
    device.display().to_string()
}

impl System for Programs {
    fn run(&self, program: &str, arguments: &[&str]) -> io::Result<Output> {
        let mut memory = self.memory.lock().unwrap();
        memory
            .calls
            .push(format!("{program} {}", arguments.join(" ")));
        let called = match program.strip_prefix("mkfs.") {
            Some(_) => format!("{program} {}", device(arguments)),
            None => format!("{program} {}", arguments.first().unwrap_or(&"")),
        };
        if let Some(answer) = memory.answers.get_mut(&called).and_then(Vec::pop) {
            return Ok(answer);
        }
        Ok(match program {
            "systemctl" => self.systemctl(&mut memory, arguments),
            "dpkg-query" => {
                let lines = memory
                    .packages
                    .iter()
                    .map(|name| format!("{name}|installed|other-{name} (= 1)\n"));
                said(&lines.collect::<String>())
            }
            "dpkg" => said(""),
            "apt-get" => {
                if arguments.first() == Some(&"install") {
                    let names = arguments
                        .iter()
                        .skip(1)
                        .filter(|word| !word.starts_with('-') && !word.contains("::"));
                    memory.packages.extend(names.map(|name| (*name).to_owned()));
                }
                said("")
            }
            "modprobe" => {
                let sign = self.at("/proc/sys/net/bridge/bridge-nf-call-iptables");
                fs::create_dir_all(sign.parent().unwrap())?;
                fs::write(sign, "0\n")?;
                said("")
            }
            "blkid" => match memory.formatted.get(&device(arguments)) {
                Some(kind) => said(&format!("UUID=uuid-of-{kind}\nTYPE={kind}\n")),
                None => failed(2, ""),
            },
            other if other.starts_with("mkfs.") => {
                let kind = other.replace("mkfs.", "");
                memory.formatted.insert(device(arguments), kind);
                said("")
            }
            other => panic!("{other} {arguments:?}"),
        })
    }

    fn mounts(&self) -> io::Result<Vec<Mounted>> {
        LocalSystem::with_root(&self.root).mounts()
    }

    fn mount(&self, device: &Path, folder: &Path, kind: &str, _: &str) -> io::Result<()> {
        let root = self.root.to_str().unwrap().trim_end_matches('/');
        let inside = |path: &Path| path.to_str().unwrap().replace(root, "");
        let table = self.at("/proc/self/mountinfo");
        let line = format!(
            "30 22 259:2 / {} rw - {} {} rw\n",
            inside(folder),
            kind,
            inside(device)
        );
        fs::write(&table, fs::read_to_string(&table)? + &line)
    }

    fn unmount(&self, folder: &Path) -> io::Result<()> {
        panic!("nodeup unmounts {}", folder.display());
    }

    fn attached_as(&self, device: &Path) -> io::Result<Option<String>> {
        let memory = self.memory.lock().unwrap();
        Ok(memory.attached.get(&device.display().to_string()).cloned())
    }

    fn share_mount(&self, mount_point: &Path) -> io::Result<()> {
        assert_eq!(mount_point, self.root);
        let table = self.at("/proc/self/mountinfo");
        fs::write(
            &table,
            fs::read_to_string(&table)?.replace("relatime -", "relatime shared:1 -"),
        )
    }
}
