//! Restores the data of a stopped member as the log of a new etcd cluster, and puts it in the place of the old data. `node::etcd`
//! decides when. etcd's own programs do it, from the image of its pod and
//! in containers without a network: a scratch etcd replays the member's log on a copy of its data, which also proves that the data is
//! usable, and `etcdutl snapshot restore` makes the new log from its database.

use super::EtcdDisk;
use super::log_files::read_log_in;
use anyhow::{Context, bail};
use host::Host;
use node::etcd::{EtcdLog, LogIdentity, Marker, REVISION_BUMP};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// etcd preallocates files of its log with this size (`wal.SegmentSizeBytes`), and may do so twice here.
pub(super) const LOG_FILE: u64 = 64 << 20;

/// How long the scratch etcd may take to replay the log.
pub(super) const REPLAY_TIME: Duration = Duration::from_mins(5);

/// How long it may take to stop.
const STOP_TIME: Duration = Duration::from_mins(1);

const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// Where the containers see the scratch folder.
const WORK: &str = "/work";

/// The only addresses of the scratch etcd, in a network of its own.
pub(super) const CLIENTS: &str = "http://127.0.0.1:2379";
const PEERS: &str = "http://127.0.0.1:2380";

/// The member that the restored data belongs to.
#[derive(Clone, Debug)]
pub(super) struct RestoreRequest {
    /// Image of the member's pod.
    pub image: String,
    /// Name of the etcd cluster: `main`.
    pub etcd: String,
    /// Name of the member in etcd: `etcd-a`.
    pub name: String,
    pub peer_url: String,
    /// `initial-cluster-token`, from which etcd computes the ids of cluster and member.
    pub token: String,
    /// How long to wait between two looks at the scratch etcd, at most [`LOOK_INTERVAL`].
    pub interval: Duration,
}

/// The restored data.
#[derive(Clone, Debug)]
pub(super) struct Restored {
    /// The ids in its log.
    pub log: LogIdentity,
    /// What the scratch etcd said of the data, for the log; `None` if it was restored before.
    pub content: Option<String>,
}

/// Restores the data of the member on this disk, which must not run, beside its data. What was restored before with this token is
/// used again.
pub(super) fn restore_data(
    host: &Host,
    disk: &EtcdDisk<'_>,
    request: &RestoreRequest,
) -> anyhow::Result<Restored> {
    let restored = disk.restored_path(&request.token);
    let scratch = disk.scratch_path();
    let names = (&*request.image, &*request.etcd);
    let containers = Containers::new(host, names, request.interval, &scratch);
    // What an interrupted restore left behind.
    containers.remove_all();
    host.remove_folder(&scratch)?;
    if let EtcdLog::Of(log) = read_log_in(host, &restored)? {
        return Ok(Restored { log, content: None });
    }
    check_room(host, disk)?;
    let content = copy_and_restore(host, disk, &containers, request)
        .inspect_err(|_| containers.remove_all())?;
    host.rename_folder(&format!("{scratch}/restored"), &restored)?;
    host.remove_folder(&scratch)?;
    match read_log_in(host, &restored)? {
        EtcdLog::Of(log) => Ok(Restored {
            log,
            content: Some(content),
        }),
        other => bail!("etcdutl made no log in {restored}: {other:?}"),
    }
}

/// Moves the old data of a stopped member aside and puts the restored data in its place. Returns where the old data is kept. What was
/// done before is not repeated.
pub(super) fn use_restored(
    host: &Host,
    disk: &EtcdDisk<'_>,
    marker: &Marker,
    restored: &LogIdentity,
) -> anyhow::Result<Option<String>> {
    let wanted = EtcdLog::Of(restored.clone());
    let mut aside = None;
    if disk.read_log(host)? != wanted {
        let folder = disk.restored_path(&marker.token);
        let found = read_log_in(host, &folder)?;
        if found != wanted {
            bail!(
                "the restored data of member {} of etcd cluster {} is not in {folder}: {found:?}",
                restored.member_id,
                restored.cluster_id
            );
        }
        aside = disk.set_data_aside(host)?;
        host.rename_folder(&folder, &disk.data_path())?;
    }
    disk.write_marker(host, marker)?;
    Ok(aside)
}

/// Checks that the volume has room for a copy of the data and for the restored data.
fn check_room(host: &Host, disk: &EtcdDisk<'_>) -> anyhow::Result<()> {
    let needed = 2 * host.folder_bytes(&disk.data_path())? + 2 * LOG_FILE;
    let free = host.free_bytes(&disk.mount_point())?;
    if free < needed {
        bail!(
            "{} has {} MiB of free space, and a recovery needs {} MiB for copies of its data: set a larger \
             spec.etcdClusters[].etcdMembers[].volumeSize and run `kctl update cluster --yes`",
            disk.volume,
            free >> 20,
            (needed >> 20) + 1
        );
    }
    Ok(())
}

fn copy_and_restore(
    host: &Host,
    disk: &EtcdDisk<'_>,
    containers: &Containers<'_>,
    request: &RestoreRequest,
) -> anyhow::Result<String> {
    let scratch = disk.scratch_path();
    host.make_folder(&scratch, 0o700)?;
    host.copy_folder(&disk.data_path(), &format!("{scratch}/data"))?;
    let content = containers.replay_log()?;
    let RestoreRequest {
        name,
        peer_url,
        token,
        ..
    } = request;
    let bump = REVISION_BUMP.to_string();
    let (data, database) = (
        format!("{WORK}/restored"),
        format!("{WORK}/data/member/snap/db"),
    );
    let initial_cluster = format!("{name}={peer_url}");
    containers.run_restore(&[
        "snapshot",
        "restore",
        &database,
        // The file was not written by `snapshot save`, which adds a hash; the scratch etcd has just read it.
        "--skip-hash-check",
        "--bump-revision",
        &bump,
        "--mark-compacted",
        "--data-dir",
        &data,
        "--name",
        name,
        "--initial-cluster",
        &initial_cluster,
        "--initial-advertise-peer-urls",
        peer_url,
        "--initial-cluster-token",
        token,
    ])?;
    Ok(content)
}

/// Containers of containerd that kubelet does not know, with the scratch folder and no network.
pub(super) struct Containers<'a> {
    host: &'a Host,
    image: &'a str,
    /// `--mount` of ctr.
    mount: String,
    log: String,
    replay: String,
    restore: String,
    pub(super) interval: Duration,
}

impl<'a> Containers<'a> {
    /// Containers of an image with the programs of the etcd cluster of this name; they see the folder `scratch`.
    pub(super) fn new(
        host: &'a Host,
        (image, etcd): (&'a str, &str),
        interval: Duration,
        scratch: &str,
    ) -> Self {
        Self {
            host,
            image,
            mount: format!("type=bind,src={scratch},dst={WORK},options=rbind:rw"),
            log: format!("{scratch}/etcd.log"),
            replay: format!("kctl-etcd-{etcd}-replay"),
            restore: format!("kctl-etcd-{etcd}-restore"),
            interval: interval.min(LOOK_INTERVAL),
        }
    }

    /// Lets a scratch etcd apply the log to the database. Returns what it holds then.
    fn replay_log(&self) -> anyhow::Result<String> {
        // The member alone is a quorum, and asks no other.
        self.start_scratch_etcd(&["--force-new-cluster", "--listen-peer-urls", PEERS])?;
        let content = self.wait_for_content();
        let content = content.with_context(|| self.describe_failure())?;
        self.stop_scratch_etcd()?;
        Ok(content)
    }

    /// Why the scratch etcd does not run, as it said last.
    pub(super) fn describe_failure(&self) -> String {
        let log = self.host.read_text(&self.log).ok().flatten();
        let last = log.unwrap_or_default();
        let last = last.lines().last().unwrap_or("nothing").to_owned();
        format!("a scratch etcd cannot read the data; its last words: {last}")
    }

    /// Starts a scratch etcd in the folder that it sees, on the data in `data`.
    pub(super) fn start_scratch_etcd(&self, flags: &[&str]) -> anyhow::Result<()> {
        let (data, log) = (format!("{WORK}/data"), format!("file://{}", self.log));
        let etcd = [
            "/usr/local/bin/etcd",
            "--name=scratch",
            "--data-dir",
            &data,
            "--listen-client-urls",
            CLIENTS,
            "--advertise-client-urls",
            CLIENTS,
        ];
        let run = ["run", "--detach", "--log-uri", &log, "--mount", &self.mount];
        let container = ["--cwd", WORK, self.image, &self.replay];
        self.ctr(&[&run[..], &container, &etcd, flags].concat())
            .map(drop)
    }

    /// Number of keys and revision, once the scratch etcd answers.
    fn wait_for_content(&self) -> anyhow::Result<String> {
        let begun = Instant::now();
        let mut look = 0;
        loop {
            look += 1;
            let id = format!("look-{look}");
            let exec = ["task", "exec", "--exec-id", &id, &self.replay];
            let count = ["get", "--prefix", "", "--count-only", "--write-out=fields"];
            let etcdctl = ["/usr/local/bin/etcdctl", "--endpoints", CLIENTS];
            match self.ctr(&[&exec[..], &etcdctl, &count].concat()) {
                Ok(fields) => return describe_content(&fields),
                Err(error) if begun.elapsed() > REPLAY_TIME => return Err(error),
                Err(_) => sleep(self.interval),
            }
        }
    }

    /// Ends the scratch etcd in order, so that all it has applied is in its database.
    pub(super) fn stop_scratch_etcd(&self) -> anyhow::Result<()> {
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

    fn run_restore(&self, arguments: &[&str]) -> anyhow::Result<()> {
        let run = ["run", "--rm", "--mount", &self.mount, self.image];
        let etcdutl = [&self.restore, "/usr/local/bin/etcdutl"];
        let words = [&run[..], &etcdutl, arguments].concat();
        self.ctr(&words).map(drop)
    }

    /// Removes the containers, whatever state they are in. Usually there are none; if one stays, ctr does not run another of its
    /// name, and says so.
    pub(super) fn remove_all(&self) {
        for container in [&self.replay, &self.restore] {
            let _ = self.ctr(&["task", "delete", "--force", container]);
            let _ = self.ctr(&["container", "delete", container]);
        }
    }

    /// True if the scratch etcd has ended by itself.
    pub(super) fn has_scratch_etcd_ended(&self) -> anyhow::Result<bool> {
        let tasks = self.ctr(&["task", "list"])?;
        let mut tasks = tasks.lines().map(str::split_whitespace);
        Ok(tasks.any(|mut words| {
            words.next() == Some(self.replay.as_str()) && words.last() == Some("STOPPED")
        }))
    }

    /// Pulls the image if kubelet has not yet: on a new instance it has not seen the pod.
    pub(super) fn pull_image(&self) -> anyhow::Result<()> {
        let filter = format!("name=={}", self.image);
        if self.ctr(&["images", "list", "--quiet", &filter])?.trim() == self.image {
            return Ok(());
        }
        let hosts = "/etc/containerd/certs.d";
        let pulled = self.ctr(&["images", "pull", "--hosts-dir", hosts, self.image]);
        pulled.map(drop).with_context(|| {
            format!(
                "could not pull {}, with which a copy of the data is proven first; if its registry needs a login, pull it once with \
                 `ctr --namespace k8s.io images pull`",
                self.image
            )
        })
    }

    /// Runs ctr with the images of kubelet, and returns its output.
    fn ctr(&self, arguments: &[&str]) -> anyhow::Result<String> {
        let all = [&["--namespace", "k8s.io"], arguments].concat();
        let output = self.host.run_program("ctr", &all)?;
        if !output.is_success() {
            bail!("ctr {}: {}", arguments.join(" "), output.error_output());
        }
        Ok(output.stdout)
    }
}

/// `--write-out=fields` of etcdctl has lines `"Revision" : 2700`.
fn describe_content(fields: &str) -> anyhow::Result<String> {
    let field = |name: &str| {
        let mut lines = fields.lines().filter_map(|line| line.split_once(" : "));
        let found = lines.find(|(key, _)| key.trim_matches('"') == name);
        let (_, value) = found.with_context(|| format!("etcdctl says no {name}: {fields}"))?;
        anyhow::Ok(value.trim().to_owned())
    };
    Ok(format!(
        "{} keys at revision {}",
        field("Count")?,
        field("Revision")?
    ))
}

#[cfg(test)]
mod tests {
    use super::describe_content;

    #[test]
    fn the_content_is_a_number_of_keys_and_a_revision() {
        let fields = "\"ClusterID\" : 14841639068965178418\n\"Revision\" : 2700\n\"More\" : false\n\"Count\" : 233\n";
        assert_eq!(
            describe_content(fields).unwrap(),
            "233 keys at revision 2700"
        );
        assert!(describe_content("Error: context deadline exceeded").is_err());
    }
}
