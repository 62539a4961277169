//! Runs etcd's own programs, from the image of its pod, on files in a scratch folder: in containers that kubelet does not know, and
//! without a network.

use super::unix_http::request;
use anyhow::{Context, anyhow, bail};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use host::{Host, Output};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How long the scratch etcd may take to replay the log.
pub(crate) const REPLAY_TIME: Duration = Duration::from_mins(5);

/// How long it may take to stop.
const STOP_TIME: Duration = Duration::from_mins(1);

const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// How often the scratch etcd is asked the same if etcdctl writes nothing.
const ASKED: u32 = 5;

/// Where kubelet's containerd has the mirrors of registries (nodeup writes it).
const REGISTRIES: &str = "/etc/containerd/certs.d";

/// Where the containers see the scratch folder.
pub(crate) const WORK: &str = "/work";

/// Keys whose values are read at once. All of them are in the memory of etcd and of etcdctl, several times, and one may have a megabyte.
pub(crate) const PAGE: usize = 25;

/// The only addresses of the scratch etcd, in a network of its own.
pub(crate) const CLIENTS: &str = "http://127.0.0.1:2379";
const PEERS: &str = "http://127.0.0.1:2380";

/// Name of the socket for clients in the scratch folder, if changes are made on the scratch etcd.
const SOCKET: &str = "localhost:2379";

/// Timeout of a request on the socket. A transaction may have 48 MiB.
const SOCKET_TIME: Duration = Duration::from_mins(2);

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

    /// What a scratch etcd finds in the data.
    pub(crate) fn read_content(&self) -> anyhow::Result<Content> {
        self.inspect(Ok)
    }

    /// Starts a scratch etcd on the data, and asks it with `ask` before it is stopped.
    pub(crate) fn inspect<T>(
        &self,
        ask: impl FnOnce(Content) -> anyhow::Result<T>,
    ) -> anyhow::Result<T> {
        self.start_on(CLIENTS, &ALONE)?;
        self.ask_running(ask)
    }

    /// The same, but that `change` makes changes first, as clients do. They are not flushed: what is left after a power failure is of no use.
    pub(crate) fn inspect_changed<T>(
        &self,
        change: impl FnOnce(&ScratchGateway<'_>) -> anyhow::Result<()>,
        ask: impl FnOnce(Content) -> anyhow::Result<T>,
    ) -> anyhow::Result<T> {
        let addresses = format!("{CLIENTS},unix://{SOCKET}");
        self.start_on(&addresses, &[&ALONE[..], &LARGE_CHANGES].concat())?;
        let gateway = ScratchGateway(self);
        change(&gateway)?;
        self.ask_running(ask)
    }

    fn ask_running<T>(&self, ask: impl FnOnce(Content) -> anyhow::Result<T>) -> anyhow::Result<T> {
        let content = self.wait_for_content();
        let content = content.with_context(|| self.describe_failure())?;
        let answer = ask(content)?;
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

    /// What the scratch etcd holds, once it answers. The alarms of the old cluster do not pass to the new one, which raises its own.
    fn wait_for_content(&self) -> anyhow::Result<Content> {
        let begun = Instant::now();
        let mut look = 0;
        let had_alarms = loop {
            look += 1;
            match self.etcdctl(&format!("alarms-{look}"), &["alarm", "list"]) {
                Ok(said) => break said.stdout.contains("alarm:"),
                Err(error) if begun.elapsed() > REPLAY_TIME => return Err(error),
                Err(_) => sleep(self.interval),
            }
        };
        // An alarm CORRUPT also refuses reads.
        self.etcdctl("disarm", &["alarm", "disarm"])?;
        let content = self.ask_content("count", &["--prefix", ""])?;
        Ok(Content {
            had_alarms,
            ..content
        })
    }

    /// What the scratch etcd says of the keys that these arguments of `etcdctl get` choose.
    fn ask_content(&self, id: &str, chosen: &[&str]) -> anyhow::Result<Content> {
        let count = ["--count-only", "--write-out=fields"];
        self.ask(id, &[&["get"], chosen, &count].concat(), Content::parse)
    }

    /// Asks the scratch etcd, and reads the answer with `parse`. On a busy machine ctr may end before it has passed on what etcdctl wrote:
    /// if there is nothing, it is asked again.
    fn ask<T>(
        &self,
        id: &str,
        arguments: &[&str],
        parse: impl Fn(&str) -> anyhow::Result<T>,
    ) -> anyhow::Result<T> {
        let mut look = 1;
        loop {
            let output = self.etcdctl(&format!("{id}-{look}"), arguments)?;
            let is_silent = output.stdout.trim().is_empty();
            match parse(&output.stdout) {
                Ok(answer) => return Ok(answer),
                Err(_) if is_silent && look < ASKED => sleep(self.interval),
                Err(error) => {
                    let wrote = if is_silent {
                        "nothing"
                    } else {
                        "something else"
                    };
                    return Err(error.context(format!(
                        "etcdctl {} ended with exit status 0, and wrote {wrote}; its errors: {}",
                        arguments.join(" "),
                        match output.stderr.trim() {
                            "" => "none",
                            errors => errors,
                        }
                    )));
                }
            }
            look += 1;
        }
    }

    fn etcdctl(&self, id: &str, arguments: &[&str]) -> anyhow::Result<Output> {
        let exec = ["task", "exec", "--exec-id", id, &self.replay];
        // Its default of five seconds is too short for a scan of all keys; looks whether etcd answers are short.
        let timeout = match arguments.first() {
            Some(&"alarm") => "--command-timeout=5s",
            _ => "--command-timeout=5m",
        };
        let etcdctl = ["/usr/local/bin/etcdctl", "--endpoints", CLIENTS, timeout];
        self.run_ctr(&[&exec[..], &etcdctl, arguments].concat())
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
                // As with etcdctl, see `ask`.
                Err(_) if said.trim().is_empty() && look < ASKED => sleep(self.interval),
                Err(_) => bail!("etcdutl says no revision: {said:?}"),
            }
            look += 1;
        }
    }

    /// etcd's hash of the scratch etcd's keys up to a revision.
    pub(crate) fn hash_data(&self, revision: u64) -> anyhow::Result<ScratchHash> {
        #[derive(Deserialize)]
        struct Endpoint {
            #[serde(rename = "HashKV")]
            hash: ScratchHash,
        }
        let id = format!("hash-{revision}");
        let revision = format!("--rev={revision}");
        let arguments = ["endpoint", "hashkv", &revision, "--write-out=json"];
        self.ask(&id, &arguments, |said| {
            let parsed = serde_json::from_str::<Vec<Endpoint>>(said);
            let first = parsed.ok().and_then(|all| all.into_iter().next());
            let first = first.with_context(|| format!("etcdctl says no hash: {said:?}"))?;
            Ok(first.hash)
        })
    }

    /// How many keys of the scratch etcd begin with this.
    pub(crate) fn count_keys(&self, prefix: &str) -> anyhow::Result<u64> {
        // containerd allows no slashes in ids, and letters or digits only at their ends.
        let id = format!("count{}", prefix.trim_end_matches('/').replace('/', "-"));
        Ok(self.ask_content(&id, &["--prefix", prefix])?.keys)
    }

    /// How many keys the scratch etcd had at a revision.
    pub(crate) fn count_keys_at(&self, revision: u64) -> anyhow::Result<u64> {
        let at = format!("--rev={revision}");
        Ok(self.ask_content("count-at", &["--prefix", "", &at])?.keys)
    }

    /// The keys of the scratch etcd from `from` on, that one too, and before `end`, with their values: [`PAGE`] of them at most.
    pub(crate) fn values_between(
        &self,
        id: &str,
        (from, end): (&str, &str),
    ) -> anyhow::Result<Vec<(String, Vec<u8>)>> {
        #[derive(Deserialize)]
        struct Reply {
            #[serde(default)]
            kvs: Vec<Pair>,
        }
        /// Both are base64.
        #[derive(Deserialize)]
        struct Pair {
            key: String,
            #[serde(default)]
            value: String,
        }
        let limit = format!("--limit={PAGE}");
        let get = ["get", from, end, &limit, "--write-out=json"];
        // The value may be a secret, and stands in no error.
        let reply: Reply = self.ask(id, &get, |said| {
            serde_json::from_str(said).map_err(|_| anyhow!("etcdctl says no keys"))
        })?;
        let decode = |Pair { key, value }| {
            let key = String::from_utf8(STANDARD.decode(key)?)?;
            Ok((key, STANDARD.decode(value)?))
        };
        reply.kvs.into_iter().map(decode).collect()
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

    /// Runs ctr with the images of kubelet, and returns its output.
    fn ctr(&self, arguments: &[&str]) -> anyhow::Result<String> {
        self.run_ctr(arguments).map(|output| output.stdout)
    }

    fn run_ctr(&self, arguments: &[&str]) -> anyhow::Result<Output> {
        let all = [&["--namespace", "k8s.io"], arguments].concat();
        let output = self.host.run_program("ctr", &all)?;
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
        Ok(output)
    }
}

/// The JSON gateway of a scratch etcd, on a socket in the scratch folder.
pub(crate) struct ScratchGateway<'a>(&'a EtcdContainers<'a>);

impl ScratchGateway<'_> {
    /// Calls a method: `kv/txn`. `body`: JSON.
    pub(crate) fn ask<T: DeserializeOwned>(&self, method: &str, body: &str) -> anyhow::Result<T> {
        let bytes = self.post(method, body)?;
        serde_json::from_slice(&bytes).with_context(|| format!("etcd's answer to {method}"))
    }

    /// The same. Returns the answer as it is.
    pub(crate) fn post(&self, method: &str, body: &str) -> anyhow::Result<Vec<u8>> {
        let Self(containers) = self;
        let what = format!("POST /v3/{method}");
        let asked = (&*what, Some(body));
        request(containers.host, &containers.socket, asked, SOCKET_TIME)
    }

    /// Asks until the scratch etcd answers for the first time.
    pub(crate) fn wait_for<T: DeserializeOwned>(
        &self,
        method: &str,
        body: &str,
    ) -> anyhow::Result<T> {
        let Self(containers) = self;
        let begun = Instant::now();
        loop {
            match self.ask(method, body) {
                Ok(answer) => return Ok(answer),
                Err(error)
                    if begun.elapsed() > REPLAY_TIME || containers.has_scratch_etcd_ended()? =>
                {
                    return Err(error.context(containers.describe_failure()));
                }
                Err(_) => sleep(containers.interval),
            }
        }
    }
}

/// etcd's hash of all keys (etcdctl: `endpoint hashkv`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(crate) struct ScratchHash {
    pub hash: u64,
    /// Revision up to which the keys are compacted; -1: none is.
    pub compact_revision: i64,
}

/// What an etcd holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Content {
    pub keys: u64,
    pub revision: u64,
    /// True if it had alarms when it started. They are in its database no more.
    pub had_alarms: bool,
}

impl Content {
    /// `--write-out=fields` of etcdctl has lines `"Revision" : 2700`.
    fn parse(fields: &str) -> anyhow::Result<Self> {
        let field = |name: &str| {
            let mut lines = fields.lines().filter_map(|line| line.split_once(" : "));
            let found = lines.find(|(key, _)| key.trim_matches('"') == name);
            let value = found.and_then(|(_, value)| value.trim().parse().ok());
            value.with_context(|| format!("etcdctl says no {name}: {fields:?}"))
        };
        Ok(Self {
            keys: field("Count")?,
            revision: field("Revision")?,
            had_alarms: false,
        })
    }

    pub(crate) fn text(self) -> String {
        format!("{} keys at revision {}", self.keys, self.revision)
    }
}

#[cfg(test)]
mod tests {
    use super::Content;

    #[test]
    fn the_content_is_a_number_of_keys_and_a_revision() {
        let fields = "\"ClusterID\" : 14841639068965178418\n\"Revision\" : 2700\n\"More\" : false\n\"Count\" : 233\n";
        let content = Content::parse(fields).unwrap();
        assert_eq!(content.text(), "233 keys at revision 2700");
        assert!(Content::parse("Error: context deadline exceeded").is_err());
    }
}
