//! A test instance in a folder: root, programs, state store, and small downloads.

use super::files::FileServer;
use super::imds::metadata_service;
use super::programs;
use flate2::Compression;
use flate2::write::GzEncoder;
use full::nodes::node_config;
use node::config::{BootConfig, NodeConfig, Role, StoredNodeConfig, agent_key, to_stored};
use node::pki::{
    KeyAlgorithm, Keyset, SystemKeys, keyset_names, keyset_path, mint_keyset, trust_bundle,
    write_keyset,
};
use node::report::{Stage, StageLine, Status};
use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use tempfile::TempDir;
use test_support::{expanded_spec, made_up_agents};
use time::OffsetDateTime;

pub struct TestInstance {
    pub folder: TempDir,
    pub boot: BootConfig,
    pub config: NodeConfig,
    pub stored: StoredNodeConfig,
    pub downloads: Vec<FileServer>,
    pub environment: Vec<(&'static str, String)>,
}

impl TestInstance {
    /// A worker of a cluster with this authority.
    pub fn new_worker(authority: &Keyset, servers: &[String]) -> Self {
        Self::worker_with(authority, servers, 0)
    }

    /// A worker whose programs have this size in bytes.
    pub fn worker_with(authority: &Keyset, servers: &[String], size: usize) -> Self {
        Self::new("nodes-eu-west-1a", Role::Node, authority, size, |boot| {
            boot.bootstrap_servers = servers.to_vec();
            boot.ca_certificates = Some(trust_bundle(authority));
        })
    }

    /// A control plane whose state store is in the instance's folder.
    pub fn control_plane() -> Self {
        let mut keys = SystemKeys::issuing_at(OffsetDateTime::now_utc());
        let mut keysets: Vec<Keyset> = keyset_names(["main", "events"])
            .iter()
            .map(|name| mint_keyset(name, KeyAlgorithm::EcdsaP256, &mut keys).unwrap())
            .collect();
        let authority = keysets
            .iter()
            .position(|keyset| keyset.name == "kubernetes-ca")
            .unwrap();
        let authority = keysets.remove(authority);
        let instance = Self::new(
            "control-plane-eu-west-1a",
            Role::ControlPlane,
            &authority,
            0,
            |_| (),
        );
        instance.put_object(&instance.stored.keys[0], instance.stored.text.as_bytes());
        let protokube = &instance.config.agents.protokube[0];
        instance.put_object(&agent_key("protokube", protokube), b"protokube");
        keysets.push(authority);
        for keyset in keysets {
            let text = write_keyset(&keyset).unwrap();
            instance.put_object(&keyset_path(&keyset.name), text.reveal().as_bytes());
        }
        instance
    }

    fn new(
        group: &str,
        role: Role,
        authority: &Keyset,
        size: usize,
        change: impl FnOnce(&mut BootConfig),
    ) -> Self {
        let folder = TempDir::new().unwrap();
        let config = node_config(
            &expanded_spec().full,
            group,
            &trust_bundle(authority),
            &made_up_agents(),
        );
        let mut config = config.unwrap().unwrap();
        let mut downloads = Vec::new();
        for asset in &mut config.assets {
            let content = file_content(&asset.name, size);
            let server = FileServer::start(&content, Vec::new());
            asset.urls = vec![server.url(&asset.name)];
            asset.sha256 = Some(sha256(&content));
            downloads.push(server);
        }
        for agent in &mut config.agents.protokube {
            agent.sha256 = sha256(b"protokube");
        }
        let stored = to_stored(&config).unwrap();
        let mut boot = BootConfig {
            format: 1,
            cluster: "a.example.com".into(),
            group: group.into(),
            role,
            node_config: stored.sha256.clone(),
            config_base: (role == Role::ControlPlane)
                .then(|| format!("file://{}", folder.path().join("store").display())),
            state_owner: None,
            bootstrap_servers: Vec::new(),
            control_plane_addresses: None,
            ca_certificates: None,
        };
        change(&mut boot);
        let instance = Self {
            folder,
            boot,
            config,
            stored,
            downloads,
            environment: vec![("AWS_EC2_METADATA_SERVICE_ENDPOINT", metadata_service())],
        };
        programs::install_programs(&instance.folder.path().join("programs"));
        instance.write_file("etc/passwd", "root:x:0:0::/root:/bin/sh\n");
        instance.write_file("etc/group", "root:x:0:\n");
        instance.write_file("etc/hosts", "127.0.0.1 localhost\n");
        instance.write_file("proc/sys/kernel/random/boot_id", "first\n");
        instance.write_file(
            "proc/self/mountinfo",
            "1 0 8:1 / / rw shared:1 - ext4 /dev/root rw\n",
        );
        instance.write_boot();
        instance
    }

    /// The instance with a changed NodeConfig.
    pub fn with_config(mut self, change: impl FnOnce(&mut NodeConfig)) -> Self {
        change(&mut self.config);
        self.stored = to_stored(&self.config).unwrap();
        self.boot.node_config = self.stored.sha256.clone();
        self.put_object(&self.stored.keys[0], self.stored.text.as_bytes());
        self.write_boot();
        self
    }

    pub fn write_boot(&self) {
        let text = node::yaml::to_yaml(&self.boot).unwrap();
        fs::write(self.folder.path().join("boot.yaml"), text).unwrap();
    }

    /// Path of a file on the instance.
    pub fn host_path(&self, path: &str) -> PathBuf {
        self.folder.path().join("root").join(path)
    }

    pub fn write_file(&self, path: &str, text: &str) {
        let path = self.host_path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Path of an object in the state store.
    pub fn store_path(&self, key: &str) -> PathBuf {
        self.folder.path().join("store").join(key)
    }

    pub fn put_object(&self, key: &str, content: &[u8]) {
        let path = self.store_path(key);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    /// Path of a file in which the fake programs keep their state.
    pub fn program_file(&self, name: &str) -> PathBuf {
        self.folder.path().join("programs").join(name)
    }

    /// Simulates a reboot: no unit runs.
    pub fn reboot(&self, boot_id: &str) {
        self.write_file("proc/sys/kernel/random/boot_id", boot_id);
    }

    /// Starts nodeup on the instance.
    pub fn start_nodeup(&self, arguments: &[&str]) -> Child {
        let programs = self.folder.path().join("programs");
        let path = std::env::var("PATH").unwrap();
        let nodeup = std::env::var("KCTL_NODEUP");
        Command::new(nodeup.unwrap_or(env!("CARGO_BIN_EXE_nodeup").to_owned()))
            .arg("--boot-config")
            .arg(self.folder.path().join("boot.yaml"))
            .arg("--root")
            .arg(self.folder.path().join("root"))
            .args(arguments)
            .env_clear()
            .env("PATH", format!("{}:{path}", programs.display()))
            .env("FAKES", &programs)
            .env("ROOT", self.folder.path().join("root"))
            .envs(self.environment.clone())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    }

    /// Runs nodeup and waits for its end.
    pub fn run(&self, arguments: &[&str]) -> RunResult {
        RunResult::from_output(self.start_nodeup(arguments).wait_with_output().unwrap())
    }

    /// Runs nodeup, and ends it at the first line for which `goes_on` is false.
    pub fn run_while(&self, mut goes_on: impl FnMut(&StageLine) -> bool) -> RunResult {
        let mut child = self.start_nodeup(&[]);
        let mut lines = Vec::new();
        for text in BufReader::new(child.stderr.take().unwrap()).lines() {
            let text = text.unwrap();
            lines.push(serde_json::from_str(&text).unwrap_or_else(|_| panic!("{text}")));
            if !goes_on(&lines[lines.len() - 1]) {
                child.kill().unwrap();
            }
        }
        RunResult {
            exit_code: child.wait().unwrap().code(),
            stdout: String::new(),
            lines,
        }
    }

    /// Content of every file below the root; for links their targets.
    pub fn file_tree(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut found = BTreeMap::new();
        walk_folder(&self.folder.path().join("root"), &mut found);
        found
    }
}

fn walk_folder(folder: &Path, found: &mut BTreeMap<PathBuf, Vec<u8>>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let kind = fs::symlink_metadata(&path).unwrap().file_type();
        if kind.is_symlink() {
            let target = fs::read_link(&path).unwrap();
            found.insert(path, target.into_os_string().into_encoded_bytes());
        } else if kind.is_dir() {
            walk_folder(&path, found);
        } else {
            let content = fs::read(&path).unwrap();
            found.insert(path, content);
        }
    }
}

/// Result of a nodeup run.
#[derive(Debug)]
pub struct RunResult {
    pub exit_code: Option<i32>,
    pub stdout: String,
    pub lines: Vec<StageLine>,
}

impl RunResult {
    fn from_output(output: Output) -> Self {
        let text = String::from_utf8(output.stderr).unwrap();
        let line = |line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{text}"));
        Self {
            exit_code: output.status.code(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            lines: text.lines().map(line).collect(),
        }
    }

    /// Stage and status of every line without detail, for example `fetch failed`. Lines of attempts and notes have a detail.
    pub fn outline(&self) -> Vec<String> {
        let plain = self.lines.iter().filter(|line| line.detail.is_empty());
        plain.map(stage_words).collect()
    }

    /// Stage with status, and detail, of the last line.
    pub fn last_line(&self) -> (String, String) {
        let last = self.lines.last().unwrap();
        (stage_words(last), last.detail.clone())
    }

    /// Details of the failed lines of a stage.
    pub fn failure_causes(&self, stage: &str) -> Vec<&str> {
        let lines = self.lines.iter();
        let failed = lines.filter(|line| line.stage == stage && line.status == Status::Failed);
        failed.map(|line| line.detail.as_str()).collect()
    }
}

fn stage_words(line: &StageLine) -> String {
    let status = serde_json::to_value(line.status).unwrap();
    format!("{} {}", line.stage, status.as_str().unwrap())
}

/// Names of the stages that finished.
pub fn finished_stages(stages: &[Stage]) -> Vec<&str> {
    let finished = stages
        .iter()
        .filter(|stage| stage.status == Status::Finished);
    finished.map(|stage| stage.name.as_str()).collect()
}

/// Content of a download in the format of the real one. A program consists of its name and pseudo-random bytes up to the
/// given size, so it compresses about as well as a real program.
pub fn file_content(name: &str, size: usize) -> Vec<u8> {
    let members: &[&str] = match name {
        "containerd" => &["bin/containerd", "bin/containerd-shim-runc-v2", "bin/ctr"],
        "cni-plugins" => &["bridge", "host-local", "loopback"],
        "crictl" => &["crictl"],
        _ => return write_program(name, size),
    };
    let mut archive = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    for member in members {
        let program = write_program(member, size / members.len());
        let mut header = tar::Header::new_gnu();
        header.set_size(program.len() as u64);
        header.set_mode(0o755);
        archive
            .append_data(&mut header, member, program.as_slice())
            .unwrap();
    }
    archive.into_inner().unwrap().finish().unwrap()
}

fn write_program(name: &str, size: usize) -> Vec<u8> {
    let mut program = name.as_bytes().to_vec();
    let mut noise = 1_u32;
    while program.len() < size {
        noise = noise.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        program.extend_from_slice(&noise.to_be_bytes()[..2]);
        program.extend_from_slice(b"\0\0\x48\x8b");
    }
    program
}

pub fn sha256(content: &[u8]) -> String {
    let mut sum = nodeup::digest::Sha256::default();
    sum.update(content);
    sum.hex()
}
