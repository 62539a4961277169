//! Volumes that a member must not use, on real block devices: whatever is on them, no byte changes, and the reason is reported.
//! Skipped without root or loop devices.

use crate::etcd::{AT_ONCE, LINK, member_of, wait_for_waits, write_record};
use crate::kernel::{PROGRAMS, run};
use crate::test_host::{
    INSTANCE, TestHost, config_of_three, encode_log, founder_identity, node_config,
};
use etcd_member::EtcdDisk;
use etcd_rules::{
    FileSystemContent, FormationRecord, Generation, LogIdentity, LogPosition, MARKER, Marker,
    RecordedMember, VolumeContent,
};
use host::{Host, LocalSystem};
use node::config::NodeConfig;
use node::formatted::{FORMAT, UnknownFields};
use protokube_role::current_waits::CurrentWaits;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

const DISK: EtcdDisk<'static> = EtcdDisk {
    volume: "vol-0a",
    requested_device: "/dev/xvdu",
    prefix: "etcd",
};

const MANIFEST: &str = "/mnt/master-vol-0a/k8s.io/manifests/etcd-main.manifest";

/// An instance that has the volume vol-0a as a loop device.
struct Instance {
    host: TestHost,
    device: PathBuf,
}

impl Instance {
    async fn with_disk(mib: u64) -> Option<Self> {
        let mut host = TestHost::new().await;
        let file = host.path("volume");
        fs::File::create(&file).unwrap().set_len(mib << 20).unwrap();
        let device = attach_loop(&file)?;
        let name = "nvme-Amazon_Elastic_Block_Store_vol0a";
        let link = host.path("dev/disk/by-id").join(name);
        std::os::unix::fs::symlink(&device, link).unwrap();
        let system = LocalSystem::with_programs(PROGRAMS);
        host.host = Host::new(host.folder.path(), Arc::new(system));
        Some(Self { host, device })
    }

    /// Digest of the whole device.
    fn digest(&self) -> String {
        let sum = run("sha256sum", &[self.device.to_str().unwrap()]);
        assert!(sum.status.success());
        String::from_utf8(sum.stdout).unwrap()
    }

    /// Makes an ext4 file system with these files.
    fn make_ext4(&self, files: &[(&str, &[u8])]) {
        let from = tempfile::TempDir::new().unwrap();
        for (path, bytes) in files {
            let path = from.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, bytes).unwrap();
        }
        let from = from.path().to_str().unwrap();
        self.run_on_device("mkfs.ext4", &["-q", "-F", "-d", from]);
    }

    fn run_on_device(&self, program: &str, arguments: &[&str]) {
        let all = [arguments, &[self.device.to_str().unwrap()]].concat();
        let ran = run(program, &all);
        assert!(ran.status.success(), "{program}: {ran:?}");
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) {
        use std::os::unix::fs::FileExt;
        let device = fs::File::options().write(true).open(&self.device).unwrap();
        device.write_all_at(bytes, offset).unwrap();
        device.sync_all().unwrap();
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        for folder in ["mnt/master-vol-0a", "mnt/look-vol-0a"] {
            run("umount", &["-q", self.host.path(folder).to_str().unwrap()]);
        }
        run("losetup", &["-d", self.device.to_str().unwrap()]);
    }
}

fn attach_loop(file: &Path) -> Option<PathBuf> {
    let made = run("losetup", &["-f", "--show", file.to_str().unwrap()]);
    if !made.status.success() {
        eprintln!("SKIPPED: {}", String::from_utf8_lossy(&made.stderr));
        return None;
    }
    Some(String::from_utf8(made.stdout).unwrap().trim().into())
}

fn marker() -> Marker {
    Marker {
        format: FORMAT,
        cluster: node_config().cluster,
        etcd: "main".into(),
        member: "a".into(),
        volume: "vol-0a".into(),
        token: "token".into(),
        cluster_id: Some("c1".into()),
        member_id: Some("a1".into()),
        joins: None,
        etcd_version: None,
        stopped: None,
        last_seen: None,
        unknown: UnknownFields::new(),
    }
}

/// A formed etcd cluster whose member a runs from vol-0a.
fn formed(count: usize) -> FormationRecord {
    record_of(Generation::formed("c1", "token"), count, true)
}

/// The cluster is being formed, and nobody has looked at the volume yet.
fn forming() -> FormationRecord {
    record_of(Generation::forming("token"), 1, false)
}

fn record_of(generation: Generation, count: usize, blank: bool) -> FormationRecord {
    let is_formed = generation.cluster_id.is_some();
    let members = ["a", "b", "c"].iter().take(count).map(|name| {
        let member = RecordedMember {
            member_id: is_formed.then(|| format!("{name}1")),
            ..RecordedMember::on_volume(&format!("vol-0{name}"), blank)
        };
        ((*name).to_owned(), member)
    });
    FormationRecord::new(generation, members.collect())
}

/// A volume that is refused.
struct Refused {
    name: &'static str,
    record: Option<FormationRecord>,
    /// How many members the etcd cluster has.
    members: usize,
    fill: fn(&Instance),
    /// What the reason says.
    says: &'static [&'static str],
}

fn put_marker(instance: &Instance, change: impl FnOnce(&mut Marker)) {
    let mut marker = marker();
    change(&mut marker);
    let identity = LogIdentity {
        cluster_id: "c1".into(),
        member_id: "a1".into(),
    };
    let log = encode_log(&identity, LogPosition::default());
    instance.make_ext4(&[
        (MARKER, marker.to_json().as_bytes()),
        ("var/etcd/data/member/wal/0-0.wal", &log),
    ]);
}

/// An ext4 file system of somebody else that was not unmounted, with a file that was deleted while it was open.
fn put_unclean_ext4(instance: &Instance) {
    let folder = tempfile::TempDir::new().unwrap();
    let (file, at) = (folder.path().join("other"), folder.path().join("at"));
    fs::create_dir(&at).unwrap();
    fs::File::create(&file).unwrap().set_len(32 << 20).unwrap();
    let device = attach_loop(&file).unwrap();
    let paths = [device.to_str().unwrap(), at.to_str().unwrap()];
    assert!(run("mkfs.ext4", &["-q", "-F", paths[0]]).status.success());
    assert!(run("mount", &paths).status.success());
    let open = fs::File::create(at.join("deleted")).unwrap();
    fs::write(at.join("theirs"), "theirs").unwrap();
    open.set_len(4096).unwrap();
    open.sync_all().unwrap();
    fs::remove_file(at.join("deleted")).unwrap();
    // In place, and not only in the journal, which is in use again afterwards.
    assert!(run("fsfreeze", &["--freeze", paths[1]]).status.success());
    assert!(run("fsfreeze", &["--unfreeze", paths[1]]).status.success());
    copy_device(&file, &instance.device);
    drop(open);
    run("umount", &[paths[1]]);
    run("losetup", &["-d", paths[0]]);
}

/// Copies the file behind a device: reading the device itself would bring what the journal has into place.
fn copy_device(from: &Path, to: &Path) {
    let [from, to] =
        [("if", from), ("of", to)].map(|(name, path)| format!("{name}={}", path.display()));
    let copied = run("dd", &[&from, &to, "bs=1M", "conv=fsync"]);
    assert!(copied.status.success(), "{copied:?}");
}

/// Bytes that mean nothing.
fn noise(count: usize) -> Vec<u8> {
    let mut state = 1_u32;
    let next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state.to_be_bytes()[0]
    };
    std::iter::repeat_with(next).take(count).collect()
}

#[expect(clippy::too_many_lines, reason = "one table")]
fn refused_volumes() -> Vec<Refused> {
    let of = |name, record, fill, says| Refused {
        name,
        record,
        members: 1,
        fill,
        says,
    };
    let of_three = |name, fill, says| Refused {
        members: 3,
        ..of(name, Some(formed(3)), fill, says)
    };
    vec![
        of(
            "another file system",
            None,
            |of| of.run_on_device("mkfs.ext3", &["-q", "-F"]),
            &["holds ext3", "no record"],
        ),
        of(
            "swap",
            Some(formed(1)),
            |of| of.run_on_device("mkswap", &[]),
            &["holds swap", "no second cluster"],
        ),
        of(
            "a partition table",
            Some(forming()),
            |of| {
                of.write_at(446, &[0, 0, 2, 0, 0x83, 1, 1, 0, 0, 8, 0, 0, 0, 16, 0, 0]);
                of.write_at(510, &[0x55, 0xaa]);
            },
            &["a dos partition table", "blank volumes only"],
        ),
        of(
            "noise",
            Some(forming()),
            |of| of.write_at(0, &noise(2 << 20)),
            &["unrecognized data", "wipefs"],
        ),
        of(
            "mkfs that nobody recorded",
            Some(forming()),
            |of| {
                of.make_ext4(&[]);
                of.write_at(1080, &[0, 0]);
            },
            &["unrecognized data", "blank volumes only"],
        ),
        of(
            "a damaged superblock",
            Some(forming()),
            |of| {
                of.make_ext4(&[]);
                of.write_at(1144, b"another");
            },
            &["has errors", "cannot be mounted without changing it"],
        ),
        of(
            "damaged descriptors",
            None,
            |of| {
                of.make_ext4(&[]);
                of.write_at(2048, &noise(8192));
            },
            &["has errors", "cannot be mounted without changing it"],
        ),
        of(
            "files of somebody else",
            None,
            |of| of.make_ext4(&[("home/me/letter", b"dear")]),
            &["holds other files, such as letter"],
        ),
        of(
            "files of somebody else, not unmounted",
            Some(forming()),
            put_unclean_ext4,
            &["holds other files, such as theirs"],
        ),
        of(
            "data of etcd-manager",
            Some(formed(1)),
            |of| of.make_ext4(&[("data/Xq/member/snap/db", b"db"), ("state", b"s")]),
            &["holds other files", "no second cluster"],
        ),
        of(
            "a marker of another cluster",
            None,
            |of| put_marker(of, |marker| marker.cluster = "other.example.com".into()),
            &["member a of etcd main of other.example.com"],
        ),
        of(
            "a marker of events",
            Some(formed(1)),
            |of| put_marker(of, |marker| marker.etcd = "events".into()),
            &["member a of etcd events of"],
        ),
        of(
            "a marker of another member",
            Some(formed(1)),
            |of| put_marker(of, |marker| marker.member = "b".into()),
            &["member b of etcd main of"],
        ),
        of(
            "an etcd cluster of an earlier life",
            Some(formed(1)),
            |of| put_marker(of, |marker| marker.cluster_id = Some("c9".into())),
            &["holds data of etcd cluster c9", "is c1"],
        ),
        of(
            "another formation",
            Some(forming()),
            |of| {
                put_marker(of, |marker| {
                    marker.token = "older".into();
                    marker.cluster_id = None;
                    marker.member_id = None;
                });
            },
            &["prepared by another formation"],
        ),
        of(
            "a marker of a newer release",
            Some(formed(1)),
            |of| put_marker(of, |marker| marker.format = FORMAT + 1),
            &[
                "k8s.io/etcd-member.json has format 2",
                "run the release that wrote it",
            ],
        ),
        of_three(
            "a copy",
            |of| put_marker(of, |marker| marker.volume = "vol-0z".into()),
            &["is a copy of member a's volume vol-0z"],
        ),
        of(
            "nothing, where a lone member was",
            Some(formed(1)),
            |_| {},
            &["is blank", "no second cluster is founded", "EBS snapshot"],
        ),
        of_three(
            "nothing, and no quorum",
            |_| {},
            &["needs a new member in its place", "nobody answers"],
        ),
        of(
            "an empty file system",
            None,
            |of| of.make_ext4(&[]),
            &["holds an empty file system", "no record"],
        ),
        of(
            "two volumes of one member",
            None,
            |of| of.host.cloud.add_volume("vol-0b", "main"),
            &["vol-0a and vol-0b all have the tag of member a"],
        ),
    ]
}

#[tokio::test]
async fn a_volume_that_is_refused_is_not_changed_and_the_reason_is_reported() {
    for refused in refused_volumes() {
        let Some(instance) = Instance::with_disk(32).await else {
            return;
        };
        let host = &instance.host;
        let (config, tag) = match refused.members {
            1 => (node_config(), "a/a"),
            _ => (config_of_three(), "a/a,b,c"),
        };
        host.cloud
            .add_volume_of("vol-0a", "main", tag, Some(INSTANCE));
        if refused.members == 3 {
            host.cloud
                .add_volume_of("vol-0b", "main", "b/a,b,c", Some("i-0b"));
            host.cloud
                .add_volume_of("vol-0c", "main", "c/a,b,c", Some("i-0c"));
        }
        (refused.fill)(&instance);
        if let Some(record) = &refused.record {
            fs::create_dir_all(host.path("store/etcd")).unwrap();
            write_record(host, record);
        }
        let before = instance.digest();
        // These an instance may open that ran from the volume before its boot: the marker names this volume and this cluster, or
        // cannot be read.
        let may_be_own = [
            "a damaged superblock",
            "damaged descriptors",
            "files of somebody else, not unmounted",
            "a marker of another member",
            "an etcd cluster of an earlier life",
            "another formation",
        ];
        let ran = !may_be_own.contains(&refused.name);
        for ran_from_it in [false, ran] {
            if ran_from_it {
                host.host.make_link(LINK, MANIFEST).unwrap();
            }
            expect_refusal(host, &config, &refused).await;
            assert_eq!(instance.digest(), before, "{}", refused.name);
            let mounted = host.host.mounts().unwrap().into_iter();
            let mut mounted = mounted.filter(|mount| mount.source == instance.device);
            assert_eq!(mounted.next(), None, "{}", refused.name);
        }
        assert!(host.kubelet.lock().unwrap().running.is_none());
        // It can be wiped, as the reason says.
        instance.write_at(0, &[0; 512]);
    }
}

async fn expect_refusal(host: &TestHost, config: &NodeConfig, refused: &Refused) {
    let current_waits = Arc::new(CurrentWaits::default());
    let says = |waits: &[node::waits::Wait]| {
        let message = |message: &str| refused.says.iter().all(|part| message.contains(part));
        waits.iter().any(|wait| message(&wait.message))
    };
    for _ in 0..3 {
        let found = wait_for_waits(host, config, &current_waits, says);
        let found = tokio::time::timeout(Duration::from_secs(30), found).await;
        assert!(
            found.is_ok(),
            "{}: {:?}",
            refused.name,
            current_waits.list_waits()
        );
    }
}

/// Power was cut after the marker was written, which is in the journal only: a look without the journal shows an empty file system.
#[tokio::test]
async fn what_only_the_journal_has_does_not_keep_a_member_from_its_volume() {
    let (Some(first), Some(second)) =
        (Instance::with_disk(32).await, Instance::with_disk(32).await)
    else {
        return;
    };
    let host = &first.host.host;
    DISK.make_file_system(host, &first.device, &VolumeContent::Blank)
        .unwrap();
    DISK.inspect(host, &first.device).unwrap();
    let identity = founder_identity("token");
    let log = encode_log(&identity, LogPosition::default());
    let marker = Marker {
        cluster_id: Some(identity.cluster_id),
        member_id: Some(identity.member_id),
        ..marker()
    };
    DISK.write_marker(host, &marker).unwrap();
    let path = "/mnt/master-vol-0a/var/etcd/data/member/wal/0000000000000000-0000000000000000.wal";
    host.write_file(path, &log, 0o600, None).unwrap();
    copy_device(&first.host.path("volume"), &second.device);
    let (host, device) = (&second.host.host, &second.device);
    let before = second.digest();
    let look = DISK.look_first(host, device).unwrap();
    assert_eq!(
        look.content,
        VolumeContent::FileSystem(FileSystemContent::Nothing)
    );
    assert!(!look.is_certain);
    assert_eq!(second.digest(), before);

    second
        .host
        .cloud
        .add_volume_of("vol-0a", "main", "a/a", Some(INSTANCE));
    let identity = founder_identity("token");
    let mut record = record_of(Generation::formed(&identity.cluster_id, "token"), 1, true);
    record.members.get_mut("a").unwrap().member_id = Some(identity.member_id);
    fs::create_dir_all(second.host.path("store/etcd")).unwrap();
    write_record(&second.host, &record);
    let _ = member_of(&second.host, node_config(), AT_ONCE)
        .take_step()
        .await;
    let link = host.link_target(LINK).unwrap();
    assert_eq!(
        link.as_deref(),
        Some(Path::new(MANIFEST)),
        "it is shown to kubelet"
    );
}

/// Control planes of another cluster may create volumes with all of this cluster's tags, but not without their own cluster's name.
#[tokio::test]
async fn a_volume_that_another_cluster_has_made_with_this_clusters_tags_is_not_seen() {
    let host = TestHost::new().await;
    let ec2 = &host.cloud;
    ec2.add_volume("vol-0a", "main");
    ec2.add_volume("vol-0b", "main");
    for (id, cluster) in [("vol-0a", "x.example.com"), ("vol-0b", "other.example.com")] {
        let mut volumes = ec2.volumes.lock().unwrap();
        let volume = volumes.iter_mut().find(|one| one.id == id).unwrap();
        let tags = [
            ("KubernetesCluster", cluster),
            ("kubernetes.io/cluster/x.example.com", "owned"),
        ];
        let tags = tags.map(|(key, value)| (key.to_owned(), value.to_owned()));
        volume.tags.extend(tags);
    }
    let seen = etcd_member::ec2::etcd_volumes(&**ec2, "x.example.com").await;
    let seen: Vec<String> = seen.unwrap().into_iter().map(|one| one.id).collect();
    assert_eq!(seen, ["vol-0a"]);
}
