//! Restores the data of a stopped member as the log of a new etcd cluster, and puts it in the place of the old data. `node::etcd`
//! decides when. etcd's own programs do it, from the image of its pod and
//! in containers without a network: a scratch etcd replays the member's log on a copy of its data, which also proves that the data is
//! usable, and `etcdutl snapshot restore` makes the new log from its database.

use super::EtcdDisk;
use super::log_files::{commit_whole_log, read_log_in};
use anyhow::{Context, bail};
use host::Host;
use node::etcd::{EtcdLog, LogIdentity, Marker, REVISION_BUMP};
use std::fs;
use std::io::ErrorKind;
use std::thread::sleep;
use std::time::{Duration, Instant, UNIX_EPOCH};

/// etcd preallocates files of its log with this size (`wal.SegmentSizeBytes`), and may do so twice here.
pub(super) const LOG_FILE: u64 = 64 << 20;

/// How long the scratch etcd may take to replay the log.
pub(super) const REPLAY_TIME: Duration = Duration::from_mins(5);

/// How long it may take to stop.
const STOP_TIME: Duration = Duration::from_mins(1);

const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// Mode of the note of what the data was restored from.
const NOTE_MODE: u32 = 0o600;

/// Where kubelet's containerd has the mirrors of registries (nodeup writes it).
const REGISTRIES: &str = "/etc/containerd/certs.d";

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
    /// The data must not be older than this revision.
    pub revision: Option<u64>,
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

/// Makes sure that the member's data can be restored here: the volume has room for it, and the programs are there. kubelet may never
/// have pulled the image on this instance, and `ctr run` pulls none.
pub(super) fn prepare_restore(
    host: &Host,
    disk: &EtcdDisk<'_>,
    request: &RestoreRequest,
) -> anyhow::Result<()> {
    check_room(host, disk)?;
    let names = (&*request.image, &*request.etcd);
    let scratch = disk.scratch_path();
    Containers::new(host, names, request.interval, &scratch).provide_image()
}

/// Restores the data of the member on this disk, which must not run, beside its data. What was restored before with this token is
/// used again if the member's data has not changed since.
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
    let source = describe_files(host, &disk.data_path())?;
    let note = format!("{restored}.source");
    if let EtcdLog::Of(log) = read_log_in(host, &restored)? {
        if host.read_text(&note)?.as_deref() == Some(source.as_str()) {
            // protokube may have died between the rename and the flush of the folder.
            host.sync_file_system(&disk.mount_point())?;
            return Ok(Restored { log, content: None });
        }
        host.remove_folder(&restored)?;
    }
    check_room(host, disk)?;
    containers.provide_image()?;
    let content = copy_and_restore(host, disk, &containers, request)
        .inspect_err(|_| containers.remove_all())?;
    host.write_changed(&note, &source, NOTE_MODE)?;
    // Whoever reads the record relies on the restored files.
    host.sync_file_system(&disk.mount_point())?;
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
/// done before is not repeated. Restored data that is gone is restored again, with the same ids, while the old data is in its place.
pub(super) fn use_restored(
    host: &Host,
    disk: &EtcdDisk<'_>,
    request: &RestoreRequest,
    marker: &Marker,
    restored: &LogIdentity,
) -> anyhow::Result<Option<String>> {
    let wanted = EtcdLog::Of(restored.clone());
    let folder = disk.restored_path(&marker.token);
    let mut aside = None;
    let in_place = disk.read_log(host)?;
    if in_place != wanted {
        let mut found = read_log_in(host, &folder)?;
        if found == EtcdLog::Missing && matches!(in_place, EtcdLog::Of(_)) {
            found = EtcdLog::Of(restore_data(host, disk, request)?.log);
        }
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
    // protokube may have died between the rename and the flush of the folder.
    host.sync_file_system(&disk.mount_point())?;
    disk.write_marker(host, marker)?;
    host.remove_file(&format!("{folder}.source"))?;
    Ok(aside)
}

/// Names, sizes and times of change of the files from which a member's data is restored. They change whenever etcd writes.
fn describe_files(host: &Host, data: &str) -> anyhow::Result<String> {
    let mut lines = Vec::new();
    for below in ["member/wal", "member/snap"] {
        let folder = host.path_below_root(&format!("{data}/{below}"));
        let items = match fs::read_dir(&folder) {
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            items => items.with_context(|| format!("could not read {}", folder.display()))?,
        };
        for item in items {
            let item = item?;
            let metadata = item.metadata()?;
            let changed = metadata.modified()?.duration_since(UNIX_EPOCH);
            let changed = changed.unwrap_or_default().as_nanos();
            let name = item.file_name();
            let name = name.to_string_lossy();
            lines.push(format!("{below}/{name} {} {changed}\n", metadata.len()));
        }
    }
    lines.sort();
    Ok(lines.concat())
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
    commit_whole_log(host, &format!("{scratch}/data"))?;
    let content = containers.replay_log(request.revision)?;
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

    /// Pulls the image unless it is there, with the mirrors of kubelet's containerd.
    pub(super) fn provide_image(&self) -> anyhow::Result<()> {
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

    /// Lets a scratch etcd apply the log to the database. Returns what it holds then.
    fn replay_log(&self, revision: Option<u64>) -> anyhow::Result<String> {
        self.start_scratch_etcd(&[
            // The member alone is a quorum, and asks no other.
            "--force-new-cluster",
            // What is in the log was within the member's quota (`storage.NewBackendQuota`: a negative one is none).
            "--quota-backend-bytes=-1",
            "--listen-peer-urls",
            PEERS,
        ])?;
        let content = self.wait_for_content();
        let content = content.with_context(|| self.describe_failure())?;
        if let Some(known) = revision.filter(|known| content.revision < *known) {
            bail!(
                "the data is at revision {}, but the member has reported revision {known}: data is missing. Nothing was changed; choose \
                 another member with `kctl etcd recover`",
                content.revision
            );
        }
        self.stop_scratch_etcd()?;
        Ok(content.text())
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

    /// What the scratch etcd holds, once it answers. The alarms of the old cluster do not pass to the new one, which raises its own.
    fn wait_for_content(&self) -> anyhow::Result<Content> {
        let begun = Instant::now();
        let mut look = 0;
        loop {
            look += 1;
            // An alarm CORRUPT also refuses reads.
            let disarmed = self.etcdctl(&format!("disarm-{look}"), &["alarm", "disarm"]);
            match disarmed {
                Ok(_) => break,
                Err(error) if begun.elapsed() > REPLAY_TIME => return Err(error),
                Err(_) => sleep(self.interval),
            }
        }
        let count = ["get", "--prefix", "", "--count-only", "--write-out=fields"];
        Content::parse(&self.etcdctl("count", &count)?)
    }

    fn etcdctl(&self, id: &str, arguments: &[&str]) -> anyhow::Result<String> {
        let exec = ["task", "exec", "--exec-id", id, &self.replay];
        let etcdctl = ["/usr/local/bin/etcdctl", "--endpoints", CLIENTS];
        self.ctr(&[&exec[..], &etcdctl, arguments].concat())
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

/// What an etcd holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Content {
    keys: u64,
    revision: u64,
}

impl Content {
    /// `--write-out=fields` of etcdctl has lines `"Revision" : 2700`.
    fn parse(fields: &str) -> anyhow::Result<Self> {
        let field = |name: &str| {
            let mut lines = fields.lines().filter_map(|line| line.split_once(" : "));
            let found = lines.find(|(key, _)| key.trim_matches('"') == name);
            let value = found.and_then(|(_, value)| value.trim().parse().ok());
            value.with_context(|| format!("etcdctl says no {name}: {fields}"))
        };
        Ok(Self {
            keys: field("Count")?,
            revision: field("Revision")?,
        })
    }

    fn text(self) -> String {
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
