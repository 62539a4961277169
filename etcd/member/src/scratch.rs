//! Runs etcd's own programs, from the image of its pod, on files in a scratch folder: in containers that kubelet does not know, and
//! without a network.

mod gateway;

pub(crate) use gateway::{ALL_KEYS, ScratchGateway};

use anyhow::{Context, bail};
use host::Host;
use serde::Deserialize;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How long the scratch etcd may take to replay the log.
pub(crate) const REPLAY_TIME: Duration = Duration::from_mins(5);

/// How long it may take to stop.
const STOP_TIME: Duration = Duration::from_mins(1);

const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// How often etcdutl is asked the same if it writes nothing.
const ASKED: u32 = 5;

/// Where kubelet's containerd has the mirrors of registries (nodeup writes it).
const REGISTRIES: &str = "/etc/containerd/certs.d";

/// Where the containers see the scratch folder.
pub(crate) const WORK: &str = "/work";

/// The only addresses of the scratch etcd, in a network of its own.
const CLIENTS: &str = "http://127.0.0.1:2379";
const PEERS: &str = "http://127.0.0.1:2380";

/// Name of the socket for clients in the scratch folder.
const SOCKET: &str = "localhost:2379";

/// Flags of a scratch etcd of one member.
const ALONE: [&str; 4] = [
    // The member alone is a quorum, and asks no other.
    "--force-new-cluster",
    // What is in the log was within the member's quota (`storage.NewBackendQuota`: a negative one is none).
    "--quota-backend-bytes=-1",
    "--listen-peer-urls",
    PEERS,
];

/// Flags with which the scratch etcd takes any transaction that another etcd has taken: a lease that ends deletes all its keys at once.
const LARGE_CHANGES: [&str; 3] = [
    "--max-txn-ops=10000000",
    "--max-request-bytes=268435456",
    "--unsafe-no-fsync",
];

/// Containers of containerd that kubelet does not know, with the scratch folder and no network.
pub(crate) struct EtcdContainers<'a> {
    host: &'a Host,
    image: &'a str,
    /// `--mount` of ctr.
    mount: String,
    /// The data of the scratch etcd, as the host sees it.
    data: String,
    /// Its socket for clients, as the host sees it.
    socket: String,
    log: String,
    replay: String,
    restore: String,
    /// `--memory-limit` of ctr, bytes.
    memory: Option<String>,
    /// `--cgroup` of ctr. A share of processors counts among siblings only, so it is at the top, beside kubelet's pods.
    cgroup: String,
    /// `--pid-file` of ctr.
    pid_file: String,
    pub(crate) interval: Duration,
}

impl<'a> EtcdContainers<'a> {
    /// Containers of an image with the programs of the etcd cluster of this name; they see the folder `scratch`.
    pub(crate) fn new(
        host: &'a Host,
        (image, etcd): (&'a str, &str),
        interval: Duration,
        scratch: &str,
    ) -> Self {
        Self {
            host,
            image,
            mount: format!("type=bind,src={scratch},dst={WORK},options=rbind:rw"),
            data: format!("{scratch}/data"),
            socket: format!("{scratch}/{SOCKET}"),
            log: format!("{scratch}/etcd.log"),
            replay: format!("kctl-etcd-{etcd}-replay"),
            restore: format!("kctl-etcd-{etcd}-restore"),
            memory: None,
            cgroup: format!("/kctl-etcd-{etcd}"),
            pid_file: format!("{scratch}/etcd.pid"),
            interval: interval.min(LOOK_INTERVAL),
        }
    }

    /// The same, with at most this memory in bytes and one processor, and after all else that wants one: 2 is the smallest share.
    pub(crate) fn limited_to(self, memory: u64) -> Self {
        Self {
            memory: Some(memory.to_string()),
            ..self
        }
    }

    fn limits(&self) -> Vec<&str> {
        let Some(memory) = &self.memory else {
            return Vec::new();
        };
        let processor = ["--cgroup", &self.cgroup, "--cpus", "1", "--cpu-shares", "2"];
        [&processor[..], &["--memory-limit", memory]].concat()
    }

    /// If the instance runs out of memory, the kernel ends the scratch etcd and not the cluster's: it has the score of containerd's shim
    /// else, -998 (containerd: `pkg/shim`, `AdjustOOMScore`).
    fn prefer_for_oom(&self) -> anyhow::Result<()> {
        if let Some(pid) = self.host.read_text(&self.pid_file)? {
            let score = format!("/proc/{}/oom_score_adj", pid.trim());
            // It fails only if the scratch etcd has ended already; whoever asks it next says why.
            let _ = self.host.write_kernel_file(&score, "1000");
        }
        Ok(())
    }

    /// Path of the data of the scratch etcd.
    pub(crate) fn data_folder(&self) -> &str {
        &self.data
    }

    /// Pulls the image unless it is there, with the mirrors of kubelet's containerd.
    pub(crate) fn provide_image(&self) -> anyhow::Result<()> {
        let filter = format!("name=={}", self.image);
        let listed = self.ctr(&["images", "ls", "--quiet", &filter])?;
        if listed.lines().any(|name| name.trim() == self.image) {
            return Ok(());
        }
        let pull = ["images", "pull", "--hosts-dir", REGISTRIES, self.image];
        let pulled = self.ctr(&pull).map(drop);
        pulled.with_context(|| {
            format!(
                "could not pull {}; if its registry needs a login, pull it once with `ctr --namespace k8s.io images pull`",
                self.image
            )
        })
    }

    /// Starts a scratch etcd on the data, and asks it with `ask` before it is stopped. `is_changed`: `ask` makes changes too, as clients do. They
    /// are not flushed: what is left after a power failure is of no use.
    pub(crate) fn inspect<T>(
        &self,
        is_changed: bool,
        ask: impl FnOnce(&ScratchGateway<'_>) -> anyhow::Result<T>,
    ) -> anyhow::Result<T> {
        let addresses = format!("{CLIENTS},unix://{SOCKET}");
        let changes: &[&str] = match is_changed {
            true => &LARGE_CHANGES,
            false => &[],
        };
        self.start_on(&addresses, &[&ALONE[..], changes].concat())?;
        let answer = ask(&ScratchGateway::open(self)?)?;
        self.stop_scratch_etcd()?;
        Ok(answer)
    }

    /// Why the scratch etcd does not run, as it said last.
    pub(crate) fn describe_failure(&self) -> String {
        let log = self.host.read_text(&self.log).ok().flatten();
        let last = log.unwrap_or_default();
        let last = last.lines().last().unwrap_or("nothing").to_owned();
        format!("a scratch etcd cannot read the data; its last words: {last}")
    }

    /// Starts a scratch etcd in the folder that it sees, on the data in `data`.
    pub(crate) fn start_scratch_etcd(&self, flags: &[&str]) -> anyhow::Result<()> {
        self.start_on(CLIENTS, flags)
    }

    fn start_on(&self, clients: &str, flags: &[&str]) -> anyhow::Result<()> {
        let (data, log) = (format!("{WORK}/data"), format!("file://{}", self.log));
        let etcd = [
            "/usr/local/bin/etcd",
            "--name=scratch",
            "--data-dir",
            &data,
            "--listen-client-urls",
            clients,
            "--advertise-client-urls",
            CLIENTS,
        ];
        let run = ["run", "--detach", "--log-uri", &log, "--mount", &self.mount];
        let pid_file = ["--pid-file", &self.pid_file];
        let container = ["--cwd", WORK, self.image, &self.replay];
        self.ctr(
            &[
                &run[..],
                &pid_file,
                &self.limits(),
                &container,
                &etcd,
                flags,
            ]
            .concat(),
        )?;
        match &self.memory {
            Some(_) => self.prefer_for_oom(),
            None => Ok(()),
        }
    }

    /// Ends the scratch etcd in order, so that all it has applied is in its database.
    pub(crate) fn stop_scratch_etcd(&self) -> anyhow::Result<()> {
        self.ctr(&["task", "kill", "--signal", "SIGTERM", &self.replay])?;
        let begun = Instant::now();
        // ctr deletes no task that runs.
        while let Err(error) = self.ctr(&["task", "delete", &self.replay]) {
            if begun.elapsed() > STOP_TIME {
                return Err(error.context("the scratch etcd does not end"));
            }
            sleep(self.interval);
        }
        self.ctr(&["container", "delete", &self.replay]).map(drop)
    }

    /// Makes data for a scratch etcd from a file that etcd's snapshot API wrote, and checks the hash at its end.
    pub(crate) fn unpack_snapshot(&self, file: &str) -> anyhow::Result<()> {
        self.run_restore(&[file, "--data-dir", &format!("{WORK}/data")])
    }

    /// Runs `etcdutl snapshot restore`.
    pub(crate) fn run_restore(&self, arguments: &[&str]) -> anyhow::Result<()> {
        let restore = ["snapshot", "restore"];
        self.etcdutl(&[&restore[..], arguments].concat()).map(drop)
    }

    /// The highest revision of a key in a file that etcd's snapshot API wrote. A scratch etcd may be at a higher one: in it leases end.
    pub(crate) fn read_revision(&self, file: &str) -> anyhow::Result<u64> {
        /// What etcdutl says of the file (etcd: `etcdutl/snapshot/v3_snapshot.go`, `Status`).
        #[derive(Deserialize)]
        struct Status {
            revision: u64,
        }
        let mut look = 1;
        loop {
            let said = self.etcdutl(&["snapshot", "status", file, "--write-out=json"])?;
            match serde_json::from_str::<Status>(&said) {
                Ok(status) => return Ok(status.revision),
                // On a busy machine ctr may end before it has passed on what etcdutl wrote.
                Err(_) if said.trim().is_empty() && look < ASKED => sleep(self.interval),
                Err(_) => bail!("etcdutl says no revision: {said:?}"),
            }
            look += 1;
        }
    }

    /// Runs etcdutl in a container that ends with it. Returns what it wrote.
    fn etcdutl(&self, arguments: &[&str]) -> anyhow::Result<String> {
        let run = ["run", "--rm", "--mount", &self.mount];
        let etcdutl = [self.image, &self.restore, "/usr/local/bin/etcdutl"];
        self.ctr(&[&run[..], &self.limits(), &etcdutl, arguments].concat())
    }

    /// Removes the containers, whatever state they are in. Usually there are none; if one stays, ctr does not run another of its
    /// name, and says so.
    pub(crate) fn remove_all(&self) {
        for container in [&self.replay, &self.restore] {
            let _ = self.ctr(&["task", "delete", "--force", container]);
            let _ = self.ctr(&["container", "delete", container]);
        }
    }

    /// True if the scratch etcd has ended by itself.
    pub(crate) fn has_scratch_etcd_ended(&self) -> anyhow::Result<bool> {
        let tasks = self.ctr(&["task", "list"])?;
        let mut tasks = tasks.lines().map(str::split_whitespace);
        Ok(tasks.any(|mut words| {
            words.next() == Some(self.replay.as_str()) && words.last() == Some("STOPPED")
        }))
    }

    fn ctr(&self, arguments: &[&str]) -> anyhow::Result<String> {
        run_ctr(self.host, arguments)
    }
}

/// Runs ctr with the images and containers of kubelet, and returns its output.
pub(crate) fn run_ctr(host: &Host, arguments: &[&str]) -> anyhow::Result<String> {
    let all = [&["--namespace", "k8s.io"], arguments].concat();
    let output = host.run_program("ctr", &all)?;
    if !output.is_success() {
        let ended = match output.code {
            Some(code) => format!("exit status {code}"),
            None => "a signal".to_owned(),
        };
        let said = match output.error_output() {
            "" => "it wrote nothing",
            said => said,
        };
        bail!("ctr {} ended with {ended}: {said}", arguments.join(" "));
    }
    Ok(output.stdout)
}
