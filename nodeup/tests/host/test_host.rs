//! A test host in a folder: files are real, programs and mounts are simulated.

use engine::Resource;
use flate2::Compression;
use flate2::write::GzEncoder;
use host::{LocalSystem, MountEntry, Output, System};
use node::config::{Arch, Asset, ImageArchive, InstanceFacts, NodeConfig, Role};
use node::host::{HostResource, desired_resources};
use node::pki::{KeyAlgorithm, Keyset, SystemKeys, keyset_names, mint_keyset, trust_bundle};
use nodeup::host::{ApplyResult, HostContext, Signer, apply_desired, plan_changes};
use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::{fs, io};
use tempfile::TempDir;
use test_support::node_config_of;
use time::{Duration, OffsetDateTime};

pub fn test_date() -> OffsetDateTime {
    OffsetDateTime::UNIX_EPOCH + Duration::days(20_000)
}

/// State of a simulated unit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SimulatedUnit {
    pub enabled: bool,
    pub state: String,
    /// kubelet's configuration at its last start.
    pub saw: String,
    pub starts: usize,
}

/// State of the simulated programs.
#[derive(Default)]
pub struct SimulatedSystem {
    pub units: BTreeMap<String, SimulatedUnit>,
    pub packages: BTreeSet<String>,
    pub calls: Vec<String>,
    /// Queued answers to the next calls of a program, before it works normally.
    pub answers: BTreeMap<String, Vec<Output>>,
    pub formatted: BTreeMap<String, String>,
    /// True if programs and calls that change something report success and change nothing.
    pub does_nothing: bool,
    /// Device names in the attach requests, by device.
    pub attached: BTreeMap<String, String>,
    /// Digests and labels of containerd's images, by name.
    pub images: BTreeMap<String, (String, String)>,
    pub containerd_version: String,
}

pub struct TestHost {
    pub folder: TempDir,
    pub memory: Arc<Mutex<SimulatedSystem>>,
    pub signer: Arc<Signer>,
    pub trust_bundle: String,
    pub now: OffsetDateTime,
    /// With `--force`: paths of the certificates that the run has issued.
    pub forced: Option<Arc<Mutex<BTreeSet<String>>>>,
    pub notes: Arc<Mutex<Vec<String>>>,
}

struct Programs {
    root: PathBuf,
    memory: Arc<Mutex<SimulatedSystem>>,
}

/// Keysets, created once for all tests.
pub fn minted_keysets() -> BTreeMap<String, Keyset> {
    static ALL: OnceLock<BTreeMap<String, Keyset>> = OnceLock::new();
    let all = ALL.get_or_init(|| {
        let mut keys = SystemKeys::issuing_at(test_date());
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

pub fn sha256_hex(bytes: &[u8]) -> String {
    let mut digest = nodeup::digest::Sha256::default();
    digest.update(bytes);
    digest.hex()
}

/// A compressed tar archive of programs.
pub fn pack_programs(members: &[&str]) -> Vec<u8> {
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

fn download_content(name: &str) -> Vec<u8> {
    match name {
        "containerd" => pack_programs(&[
            "bin/containerd",
            "bin/containerd-shim-runc-v2",
            "bin/ctr",
            "bin/containerd-stress",
        ]),
        "cni-plugins" => pack_programs(&["./bridge", "./host-local", "./portmap", "./README.md"]),
        "crictl" => pack_programs(&["crictl"]),
        other => format!("program {other}").into_bytes(),
    }
}

/// Images whose archives are in `cache`, in the form that [`run_ctr`] reads.
pub fn image_archives(cache: &Path) -> Vec<ImageArchive> {
    let archive = |name: &str| {
        let digest = format!("sha256:{}", sha256_hex(name.as_bytes()));
        let content = format!("{name} {digest}");
        let sha256 = sha256_hex(content.as_bytes());
        fs::write(cache.join(&sha256), content).unwrap();
        ImageArchive {
            image: name.to_owned(),
            arch: Arch::Amd64,
            digest,
            sha256,
            urls: Vec::new(),
        }
    };
    ["registry.k8s.io/pause:3.10.1", "docker.io/flannel/x:v1"]
        .map(archive)
        .into()
}

/// A NodeConfig whose downloads are in `cache`.
pub fn node_config(role: Role, cache: &Path, change: impl FnOnce(&mut NodeConfig)) -> NodeConfig {
    let bundle = trust_bundle(&minted_keysets()["kubernetes-ca"]);
    let mut config = node_config_of(&test_support::full_spec(), role, &bundle);
    let keep = |name: &str| {
        let bytes = download_content(name);
        fs::write(cache.join(sha256_hex(&bytes)), &bytes).unwrap();
        sha256_hex(&bytes)
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

pub fn instance_facts() -> InstanceFacts {
    InstanceFacts {
        instance_id: "i-0abc".into(),
        zone: "eu-west-1a".into(),
        ..InstanceFacts::placeholder()
    }
}

impl TestHost {
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
        // Files belong to the user that runs the tests; the test treats that user as root.
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
        let keysets = minted_keysets();
        Self {
            folder,
            memory: Arc::default(),
            trust_bundle: trust_bundle(&keysets["kubernetes-ca"]),
            signer: Arc::new(Signer {
                keysets,
                ..Signer::default()
            }),
            now: test_date(),
            forced: None,
            notes: Arc::default(),
        }
    }

    pub fn host_path(&self, path: &str) -> PathBuf {
        self.folder
            .path()
            .join("root")
            .join(path.trim_start_matches('/'))
    }

    pub fn cache_folder(&self) -> PathBuf {
        self.folder.path().join("cache")
    }

    pub fn read_text(&self, path: &str) -> String {
        fs::read_to_string(self.host_path(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    pub fn host_context(&self) -> HostContext {
        let notes = Arc::clone(&self.notes);
        let now = self.now;
        HostContext {
            host: host::Host::new(
                self.host_path("/"),
                Arc::new(Programs {
                    root: self.host_path("/"),
                    memory: Arc::clone(&self.memory),
                }),
            ),
            cache: self.cache_folder(),
            signer: Arc::clone(&self.signer),
            trust_bundle: self.trust_bundle.clone(),
            clock: Arc::new(move || now),
            forced: self.forced.clone(),
            note: Arc::new(move |line| notes.lock().unwrap().push(line.to_owned())),
        }
    }

    pub fn desired_state(
        &self,
        role: Role,
        change: impl FnOnce(&mut NodeConfig),
    ) -> Vec<HostResource> {
        desired_resources(
            &node_config(role, &self.cache_folder(), change),
            &instance_facts(),
        )
        .unwrap()
    }

    pub fn apply(&self, desired: &[HostResource]) -> ApplyResult {
        run(apply_desired(desired.to_vec(), self.host_context())).unwrap()
    }

    /// Applies until the host dies after this many changes. Returns the number of changes that were begun.
    pub fn apply_and_die(&self, desired: &[HostResource], after: usize) -> usize {
        let asked = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&asked);
        let mut context = self.host_context();
        // The engine also calls this before it starts something; from then on nothing may change.
        let stop = move || counter.fetch_add(1, Ordering::SeqCst) >= after;
        context.host = context.host.with_stop(Arc::new(stop));
        // Deleting start records is a change too, so the host may die there.
        let _ = run(apply_desired(desired.to_vec(), context));
        asked.load(Ordering::SeqCst)
    }

    /// Ids of what an apply would change.
    pub fn planned_changes(&self, desired: &[HostResource]) -> Vec<String> {
        let plan = run(plan_changes(desired.to_vec(), self.host_context())).unwrap();
        plan.steps.keys().map(ToString::to_string).collect()
    }

    pub fn plan_text(&self, desired: &[HostResource]) -> String {
        let plan = run(plan_changes(desired.to_vec(), self.host_context())).unwrap();
        serde_json::to_string(&plan).unwrap()
    }

    /// Simulates a reboot: enabled units run or are queued, and state in memory is lost.
    pub fn reboot(&self, up_as: &str) {
        fs::write(
            self.host_path("/proc/sys/kernel/random/boot_id"),
            "boot-2\n",
        )
        .unwrap();
        let _ = fs::remove_dir_all(self.host_path("/run"));
        let mut memory = self.memory.lock().unwrap();
        for unit in memory.units.values_mut() {
            let up = unit.enabled && ["active", "queued"].contains(&unit.state.as_str());
            unit.state = if up { up_as } else { "inactive" }.to_owned();
        }
    }

    /// All files with mode and link target, and with content where it is reproducible.
    pub fn file_tree(&self) -> BTreeMap<String, String> {
        let mut tree = BTreeMap::new();
        walk_folder(&self.host_path("/"), Path::new("/"), &mut tree);
        tree
    }
}

pub fn run<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.unwrap().block_on(work)
}

/// The differences between two hosts, short enough for a failed assertion.
pub fn describe_difference<T: PartialEq + std::fmt::Debug>(
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

pub fn dependencies_of(all: &[HostResource], name: &str) -> Vec<String> {
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

fn walk_folder(folder: &Path, path: &Path, into: &mut BTreeMap<String, String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let path = path.join(entry.file_name());
        let about = fs::symlink_metadata(entry.path()).unwrap();
        let name = path.display().to_string();
        // Keys and times differ between runs.
        let kind = path
            .extension()
            .and_then(|kind| kind.to_str())
            .unwrap_or_default();
        let random =
            matches!(kind, "crt" | "key" | "pem") || name.starts_with("/var/lib/kctl/downloads");
        let what = if about.is_symlink() {
            format!("-> {}", fs::read_link(entry.path()).unwrap().display())
        } else if about.is_dir() {
            walk_folder(&entry.path(), &path, into);
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
    fn host_path(&self, path: &str) -> PathBuf {
        self.root.join(path.trim_start_matches('/'))
    }

    fn run_systemctl(&self, memory: &mut SimulatedSystem, arguments: &[&str]) -> Output {
        let file = |name: &str| {
            fs::read_to_string(self.host_path(&format!("/etc/systemd/system/{name}")))
                .unwrap_or_default()
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
                return successful_output(&shown.join("\n"));
            }
            ["enable", name] => memory.units.entry((*name).to_owned()).or_default().enabled = true,
            ["restart", "--no-block", name] => {
                let text = file(name);
                let saw = fs::read_to_string(self.host_path("/var/lib/kubelet/kubelet.conf"))
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
        successful_output("")
    }
}

pub fn successful_output(out: &str) -> Output {
    Output {
        code: Some(0),
        stdout: out.to_owned(),
        stderr: String::new(),
    }
}

pub fn failed_output(code: i32, err: &str) -> Output {
    Output {
        code: Some(code),
        stdout: String::new(),
        stderr: err.to_owned(),
    }
}

/// `dnf install`, and `rpm --query` of a label or of what a package provides.
fn run_rpm_tool(packages: &mut BTreeSet<String>, program: &str, arguments: &[&str]) -> Output {
    if program == "dnf" {
        let names = arguments.iter().skip(1);
        let names = names.filter(|word| !word.starts_with('-'));
        packages.extend(names.map(|name| full_rpm_name(name)));
        return successful_output("");
    }
    let label = arguments.last().copied().unwrap_or_default();
    // A name is provided; a label with version or architecture is not.
    let known = if arguments.contains(&"--whatprovides") {
        1
    } else {
        4
    };
    let named = |full: &String| rpm_labels(full)[..known].iter().any(|one| one == label);
    if packages.iter().any(named) {
        successful_output("")
    } else {
        failed_output(1, "")
    }
}

/// What dnf installs for a word: `NAME-VERSION-RELEASE.ARCH`.
fn full_rpm_name(word: &str) -> String {
    let (name, arch) = match word.rsplit_once('.') {
        Some((name, arch)) if ["x86_64", "i686"].contains(&arch) => (name, arch),
        _ => (word, "x86_64"),
    };
    if name.matches('-').count() < 2 {
        format!("{name}-1-1.{arch}")
    } else {
        word.to_owned()
    }
}

/// The labels under which rpm finds a package.
fn rpm_labels(full: &str) -> [String; 4] {
    let (named, arch) = full.rsplit_once('.').unwrap();
    let name = named.rsplitn(3, '-').last().unwrap();
    [
        name.to_owned(),
        format!("{name}.{arch}"),
        named.to_owned(),
        full.to_owned(),
    ]
}

/// The images of containerd, which answers while its unit runs.
fn run_ctr(memory: &mut SimulatedSystem, arguments: &[&str]) -> Output {
    let unit = memory.units.get("containerd.service");
    if unit.is_none_or(|unit| unit.state != "active") {
        return failed_output(1, "ctr: failed to dial \"/run/containerd/containerd.sock\"");
    }
    if let ["--namespace", "k8s.io", "version"] = arguments {
        let version = &memory.containerd_version;
        return successful_output(&format!(
            "Client:\n  Version:  v2.3.4\n\nServer:\n  Version:  {version}\n  UUID: 1\n"
        ));
    }
    let ["--namespace", "k8s.io", "images", arguments @ ..] = arguments else {
        panic!("ctr {arguments:?}");
    };
    match arguments {
        ["list", filter] => {
            let name = filter.strip_prefix("name==").unwrap();
            let row = memory.images.get(name).map(|(digest, labels)| {
                format!("{name} application/vnd.oci.image.index.v1+json {digest} 12.3 MiB linux/amd64,linux/arm64 {labels} \n")
            });
            let head = "REF TYPE DIGEST SIZE PLATFORMS LABELS \n";
            successful_output(&format!("{head}{}", row.unwrap_or_default()))
        }
        ["import", "--platform", "linux/amd64", path] => {
            let text = fs::read_to_string(path).unwrap();
            let (name, digest) = text.split_once(' ').unwrap();
            let image = (digest.to_owned(), "-".to_owned());
            memory.images.insert(name.to_owned(), image);
            successful_output("")
        }
        ["label", name, label] => {
            memory.images.get_mut(*name).unwrap().1 =
                format!("io.cri-containerd.image=managed,{label}");
            successful_output("")
        }
        other => panic!("ctr {other:?}"),
    }
}

/// The device in the last argument of a program, with links resolved.
fn last_argument_device(arguments: &[&str]) -> String {
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
            Some(_) => format!("{program} {}", last_argument_device(arguments)),
            None => format!("{program} {}", arguments.first().unwrap_or(&"")),
        };
        if let Some(answer) = memory.answers.get_mut(&called).and_then(Vec::pop) {
            return Ok(answer);
        }
        let asks = arguments
            .first()
            .is_some_and(|verb| verb.starts_with("show"));
        let asks = asks || ["blkid", "dpkg", "dpkg-query"].contains(&program);
        if memory.does_nothing && !asks {
            return Ok(successful_output(""));
        }
        Ok(match program {
            "systemctl" => self.run_systemctl(&mut memory, arguments),
            "dpkg-query" => {
                let lines = memory
                    .packages
                    .iter()
                    .map(|name| format!("{name}|installed|other-{name} (= 1)\n"));
                successful_output(&lines.collect::<String>())
            }
            "dpkg" => successful_output(""),
            "apt-get" => {
                if arguments.first() == Some(&"install") {
                    let names = arguments
                        .iter()
                        .skip(1)
                        .filter(|word| !word.starts_with('-') && !word.contains("::"));
                    let bare = names.map(|name| name.split([':', '=', '/']).next().unwrap_or(name));
                    memory.packages.extend(bare.map(str::to_owned));
                }
                successful_output("")
            }
            "ctr" => run_ctr(&mut memory, arguments),
            "dnf" | "rpm" => run_rpm_tool(&mut memory.packages, program, arguments),
            "modprobe" => {
                let sign = self.host_path("/proc/sys/net/bridge/bridge-nf-call-iptables");
                fs::create_dir_all(sign.parent().unwrap())?;
                fs::write(sign, "0\n")?;
                successful_output("")
            }
            "blkid" => match memory.formatted.get(&last_argument_device(arguments)) {
                Some(kind) => successful_output(&format!("UUID=uuid-of-{kind}\nTYPE={kind}\n")),
                None => failed_output(2, ""),
            },
            other if other.starts_with("mkfs.") => {
                let kind = other.replace("mkfs.", "");
                memory
                    .formatted
                    .insert(last_argument_device(arguments), kind);
                successful_output("")
            }
            other => panic!("{other} {arguments:?}"),
        })
    }

    fn mounts(&self) -> io::Result<Vec<MountEntry>> {
        LocalSystem::with_root(&self.root).mounts()
    }

    fn mount(&self, device: &Path, folder: &Path, kind: &str, _: &str) -> io::Result<()> {
        if self.memory.lock().unwrap().does_nothing {
            return Ok(());
        }
        let root = self.root.to_str().unwrap().trim_end_matches('/');
        let inside = |path: &Path| path.to_str().unwrap().replace(root, "");
        let table = self.host_path("/proc/self/mountinfo");
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
        if self.memory.lock().unwrap().does_nothing {
            return Ok(());
        }
        let table = self.host_path("/proc/self/mountinfo");
        fs::write(
            &table,
            fs::read_to_string(&table)?.replace("relatime -", "relatime shared:1 -"),
        )
    }
}
