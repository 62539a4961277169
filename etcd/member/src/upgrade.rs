//! Proves that the next minor of etcd can run with the data of a stopped member, before it does, and keeps a copy of the data as it
//! was. `etcd_rules` decides when. A scratch etcd of the new version reads a copy of the data in a container without a network. It is
//! asked on a Unix socket of its peer port, because etcd 3.6 answers clients only once it knows a leader (etcd: `embed/serve.go`,
//! `ReadyNotify`), and the members alone have none.

use super::EtcdDisk;
use super::log_files::log_files;
use super::restored_log::LOG_FILE;
use super::scratch::{EtcdContainers, REPLAY_TIME};
use super::unix_http::request;
use anyhow::{Context, bail};
use etcd_rules::{LOG_FOLDER, MemberList, MembershipLog, describe_difference, parse_member_list};
use host::Host;
use std::fs;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Names of the sockets in the scratch folder.
const PEERS: &str = "localhost:2380";
const METRICS: &str = "localhost:2381";

const TIMEOUT: Duration = Duration::from_secs(5);

/// Index up to which a member has applied its log (etcd: `etcdserver/metrics.go`).
const APPLIED: &str = "etcd_server_proposals_applied_total ";

/// The new version for a member.
#[derive(Clone, Debug)]
pub(super) struct UpgradeRequest {
    /// Image of the member's pod.
    pub image: String,
    pub version: String,
    /// Name of the etcd cluster: `main`.
    pub etcd: String,
    /// True if the lists of members in the v2 and v3 store must be equal.
    pub compare_members: bool,
    /// How long to wait between two looks at the scratch etcd.
    pub interval: Duration,
}

/// Proves the data of the stopped member on this disk, and keeps a copy of it. Only the newest copy is kept. Returns what is missing
/// for that; `None` once it is done. What an interrupted run left is made anew, because the data may have changed since.
pub(super) fn prove_and_copy(
    host: &Host,
    disk: &EtcdDisk<'_>,
    request: &UpgradeRequest,
) -> anyhow::Result<Option<String>> {
    let scratch = disk.scratch_path();
    let names = (&*request.image, &*request.etcd);
    let containers = EtcdContainers::new(host, names, request.interval, &scratch);
    containers.remove_all();
    host.remove_folder(&scratch)?;
    // A copy, and etcd may make two new files of its log in it.
    let needed = host.folder_bytes(&disk.data_path())? + 2 * LOG_FILE;
    let what = "a copy of the data, with which another minor of etcd begins,";
    if let Some(lack) = disk.find_lack_of_room(host, needed, what)? {
        return Ok(Some(lack));
    }
    let log = read_log(host, disk)?;
    let expected = match request.compare_members {
        true => Some(read_v2_members(host, disk, &log)?),
        false => None,
    };
    containers.provide_image()?;
    host.make_folder(&scratch, 0o700)?;
    host.copy_folder(&disk.data_path(), &format!("{scratch}/data"))?;
    let found = ask_scratch_etcd(host, &containers, &scratch, log.commit());
    let found = found.inspect_err(|_| containers.remove_all())?;
    if let Some(expected) = expected {
        check_members(&expected, &found)?;
    }
    host.remove_folder(&scratch)?;
    keep_copy(host, disk, &request.version)?;
    Ok(None)
}

/// Reads the files of the member's log.
fn read_log(host: &Host, disk: &EtcdDisk<'_>) -> anyhow::Result<MembershipLog> {
    let folder = host.path_below_root(&format!("{}/{LOG_FOLDER}", disk.data_path()));
    let files = log_files(&folder);
    let mut files = files.with_context(|| format!("could not read {}", folder.display()))?;
    files.sort();
    let mut log = MembershipLog::default();
    for path in files {
        let mut read = || anyhow::Ok(log.read_file(&fs::read(&path)?)?);
        read().with_context(|| format!("could not read {}", path.display()))?;
    }
    Ok(log)
}

/// The members in the v2 store of the stopped member.
fn read_v2_members(
    host: &Host,
    disk: &EtcdDisk<'_>,
    log: &MembershipLog,
) -> anyhow::Result<Vec<MemberList>> {
    let Some(name) = log.newest_snapshot() else {
        return Ok(log.member_lists(None)?);
    };
    let path = format!("{}/member/snap/{name}", disk.data_path());
    let bytes = host.read_bytes(&path)?;
    let bytes = bytes.with_context(|| format!("{path}, which the log names, does not exist"))?;
    log.member_lists(Some(&bytes)).context(path)
}

/// The members in the v3 store, once a scratch etcd has applied the log up to `commit`.
fn ask_scratch_etcd(
    host: &Host,
    containers: &EtcdContainers<'_>,
    scratch: &str,
    commit: u64,
) -> anyhow::Result<MemberList> {
    let (peers, metrics) = (format!("unix://{PEERS}"), format!("unix://{METRICS}"));
    containers.start_scratch_etcd(&[
        "--listen-peer-urls",
        &peers,
        "--listen-metrics-urls",
        &metrics,
    ])?;
    let begun = Instant::now();
    let answer = loop {
        match ask_members(host, scratch, commit) {
            Ok(answer) => break answer,
            Err(error) if containers.has_scratch_etcd_ended()? || begun.elapsed() > REPLAY_TIME => {
                return Err(error.context(containers.describe_failure()));
            }
            Err(_) => sleep(containers.interval),
        }
    };
    containers.stop_scratch_etcd()?;
    parse_member_list(&answer).with_context(|| format!("etcd listed no members: {answer}"))
}

fn ask_members(host: &Host, scratch: &str, commit: u64) -> anyhow::Result<String> {
    let metrics = get(host, &format!("{scratch}/{METRICS}"), "/metrics")?;
    let applied = metrics.lines().find_map(|line| line.strip_prefix(APPLIED));
    // Prometheus writes large numbers with an exponent.
    let applied: f64 = applied
        .context("etcd does not say how far it is")?
        .parse()?;
    #[expect(clippy::cast_precision_loss, reason = "exact up to 2^53 entries")]
    let is_behind = applied < commit as f64;
    if is_behind {
        bail!("it has applied {applied} of {commit} entries of its log");
    }
    get(host, &format!("{scratch}/{PEERS}"), "/members")
}

/// The answer to an HTTP request on a Unix socket.
fn get(host: &Host, socket: &str, path: &str) -> anyhow::Result<String> {
    let answer = request(host, socket, (&format!("GET {path}"), None), TIMEOUT)?;
    Ok(String::from_utf8(answer)?)
}

/// Checks that the list in the v3 store is that of the v2 store, or one with changes that the log does not show as committed yet.
fn check_members(expected: &[MemberList], found: &MemberList) -> anyhow::Result<()> {
    let differences = expected.iter().map(|list| describe_difference(list, found));
    let differences: Option<Vec<String>> = differences.collect();
    let Some(differences) = differences else {
        return Ok(());
    };
    bail!(
        "the lists of members in etcd's v2 and v3 store differ, and another one would be believed from now on (etcd issues 19557 and \
         20967): {}. Set spec.etcdClusters[].version back, run `kctl update cluster --yes`, replace this control plane, and replace the \
         member by wiping its volume, or upgrade to a newer patch of its minor, which repairs the list",
        differences.join("; or ")
    )
}

/// Copies the data to `data.before-VERSION`, and removes other copies.
fn keep_copy(host: &Host, disk: &EtcdDisk<'_>, version: &str) -> anyhow::Result<()> {
    let (scratch, kept) = (disk.scratch_path(), disk.before_path(version));
    host.make_folder(&scratch, 0o700)?;
    host.copy_folder(&disk.data_path(), &format!("{scratch}/data"))?;
    // Copies are not flushed, and the one from before goes: a power failure must leave one of them.
    host.sync_file_system(&disk.mount_point())?;
    host.remove_folder(&kept)?;
    host.rename_folder(&format!("{scratch}/data"), &kept)?;
    host.remove_folder(&scratch)?;
    let parent = kept.rsplit_once('/').map_or("", |(parent, _)| parent);
    let items = fs::read_dir(host.path_below_root(parent));
    for item in items.with_context(|| format!("could not read {parent}"))? {
        let path = format!("{parent}/{}", item?.file_name().to_string_lossy());
        if path.starts_with(&disk.before_path("")) && path != kept {
            host.remove_folder(&path)?;
        }
    }
    Ok(())
}
