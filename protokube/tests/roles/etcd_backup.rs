//! Tests of `protokube etcd-backup`: each verb does what it says or nothing, and control planes give snapshots to members only.

use crate::backups::{CONTENT, FakeMember, Instance, age_files};
use age::secrecy::ExposeSecret;
use aws_client::store::{Expect, Store};
use etcd_member::etcd_backup::{
    LocalSnapshots, PeerAccess, RegularSaves, ServeLimits, SnapshotOrigin, SnapshotSaver,
    delete_snapshot_named, download_snapshot, extract_cluster_state, serve_snapshot_on,
};
use etcd_rules::backup::{OWNER_KEY, StoreOwner};
use futures::FutureExt;
use host::FileLock;
use node::components::EtcdMemberNames;
use node::pki::{
    KeyAlgorithm, Keyset, Leaf, STATE_SIGNER, SystemKeys, Usage, issue_certificate, keyset_path,
    mint_keyset, trust_bundle,
};
use std::cell::{Cell, RefCell};
use std::fs;
use std::io::Read;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};
use time::OffsetDateTime;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

fn quiet(_: &str) {}

/// Whose snapshots they are.
/// The etcd cluster as whoever deletes its snapshots.
fn owner() -> StoreOwner {
    StoreOwner::new(
        "x.example.com",
        "main",
        "s3://state/x.example.com",
        Some("7"),
    )
}

/// A control plane with its folder of snapshots.
struct ControlPlane {
    here: Instance,
    local: LocalSnapshots,
    access: PeerAccess,
}

impl ControlPlane {
    /// That of a member, whose certificate an authority has signed for this name of a member.
    async fn new(authority: &Keyset, named: &str) -> Self {
        let here = Instance::new().await;
        let local = LocalSnapshots::open(&here.host.host, "/snapshots");
        let local = local.await.unwrap();
        let members = ["a", "b"].map(str::to_owned);
        let names = EtcdMemberNames::new("main", &members, "x.example.com");
        let leaf = Leaf {
            common_name: named.to_owned(),
            organization: None,
            usage: Usage::ClientServer,
            names: vec![named.to_owned()],
            validity: time::Duration::DAY,
        };
        let mut keys = SystemKeys::issuing_at(OffsetDateTime::now_utc());
        let issued = issue_certificate(authority, &leaf, &mut keys).unwrap();
        let folder = here.host.path("pki");
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("peer.crt"), issued.certificate).unwrap();
        fs::write(folder.join("peer.key"), issued.key.reveal()).unwrap();
        fs::write(folder.join("peers-ca.crt"), trust_bundle(authority)).unwrap();
        let access = PeerAccess {
            host: here.host.host.clone(),
            certificates: "/pki".to_owned(),
            names,
        };
        Self {
            here,
            local,
            access,
        }
    }

    async fn of_member(member: &str) -> Self {
        Self::new(
            &new_authority(),
            &format!("etcd-{member}.internal.x.example.com"),
        )
        .await
    }

    fn saver(&self, s3: Option<Store>) -> SnapshotSaver<FakeMember> {
        SnapshotSaver {
            taker: self.here.taker("i-1"),
            local: self.local.clone(),
            s3,
            retries: 1,
            sleep: |_| std::future::ready(()).boxed(),
            say: quiet,
        }
    }

    async fn save(&self, name: &str) -> String {
        self.saver(None).save_once(name).await.unwrap()
    }

    /// Names of the objects in the folder.
    async fn objects(&self) -> Vec<String> {
        let listed = self.local.store.list("", None).await.unwrap();
        listed.into_iter().map(|entry| entry.key).collect()
    }

    /// Serves a snapshot to one control plane.
    async fn serve(&self, name: &str) -> (SocketAddr, JoinHandle<anyhow::Result<String>>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (access, local, name) = (self.access.clone(), self.local.clone(), name.to_owned());
        let limits = ServeLimits {
            downloads: 1,
            timeout: Duration::from_secs(20),
        };
        let serving = async move {
            serve_snapshot_on(listener, &access, &local, (&name, &limits), quiet).await
        };
        (address, tokio::spawn(serving))
    }

    /// Downloads a snapshot from the control plane of member a at this address.
    async fn download(&self, name: &str, from: SocketAddr) -> anyhow::Result<String> {
        let peer = SnapshotOrigin::Peer(self.access.connect("a", Some(from))?);
        download_snapshot(&peer, name, &self.local, quiet).await
    }
}

fn new_authority() -> Keyset {
    let mut keys = SystemKeys::issuing_at(OffsetDateTime::now_utc());
    mint_keyset("etcd-peers-ca-main", KeyAlgorithm::EcdsaP256, &mut keys).unwrap()
}

/// Two control planes of one cluster.
async fn two_control_planes() -> (ControlPlane, ControlPlane) {
    let authority = new_authority();
    let name = |member| format!("etcd-{member}.internal.x.example.com");
    let a = ControlPlane::new(&authority, &name("a")).await;
    let b = ControlPlane::new(&authority, &name("b")).await;
    (a, b)
}

#[tokio::test]
async fn a_snapshot_is_verified_and_copied_and_deleted_by_its_exact_name() {
    let a = ControlPlane::of_member("a").await;
    let s3 = a.here.backups();
    for name in ["snap1", "snap10"] {
        let says = a.saver(Some(s3.clone())).save_once(name).await.unwrap();
        assert!(
            says.contains("234 keys") && says.contains("copied to"),
            "{says}"
        );
    }
    let again = a.saver(None).save_once("snap1").await.unwrap_err();
    assert!(format!("{again:#}").contains("already"), "{again:#}");
    for store in [&a.local.store, &s3] {
        delete_snapshot_named(store, &owner(), "snap1")
            .await
            .unwrap();
        let other = StoreOwner::new("other.example.com", "main", "s3://state", Some("7"));
        let refused = delete_snapshot_named(&s3, &other, "snap10").await;
        assert!(format!("{:#}", refused.unwrap_err()).contains("etcd main of x.example.com"));
        let left = async || {
            let left = store.list("", None).await.unwrap().into_iter();
            let keys = left.map(|entry| entry.key);
            keys.filter(|key| key != OWNER_KEY).collect::<Vec<_>>()
        };
        let all = left().await;
        assert!(all.iter().all(|key| key.starts_with("snap10/")), "{all:?}");
        assert_eq!(all.len(), 3);
        let newest = delete_snapshot_named(store, &owner(), "snap10")
            .await
            .unwrap_err();
        assert!(
            format!("{newest:#}").contains("newest verified"),
            "{newest:#}"
        );
        assert_eq!(left().await, all);
    }
}

/// An import of last year's file is no present to fall back to.
#[tokio::test]
async fn an_imported_snapshot_is_not_the_newest_one() {
    let a = ControlPlane::of_member("a").await;
    for name in ["own", "brought"] {
        a.save(name).await;
    }
    let manifest = a.here.host.path("snapshots/brought/manifest.json");
    let text = fs::read_to_string(&manifest).unwrap();
    let mut changed: serde_json::Value = serde_json::from_str(&text).unwrap();
    changed["reason"] = "imported by me from old.db".into();
    fs::write(&manifest, changed.to_string()).unwrap();
    let delete = async |name: &str| delete_snapshot_named(&a.local.store, &owner(), name).await;
    let why = format!("{:#}", delete("own").await.unwrap_err());
    assert!(why.contains("newest verified"), "{why}");
    delete("brought").await.unwrap();
}

/// Two of them would work in one folder.
#[tokio::test]
async fn a_command_waits_until_another_one_has_taken_its_snapshot() {
    thread_local!(static OTHER: Cell<Option<FileLock>> = const { Cell::new(None) });
    let a = ControlPlane::of_member("a").await;
    let lock = || FileLock::take(&a.here.host.path("snapshots/.kctl-save")).unwrap();
    OTHER.set(lock());
    let saver = SnapshotSaver {
        // The other one ends while this one waits. A program that another test starts has the lock too, until it is executed.
        sleep: |_| {
            drop(OTHER.take());
            tokio::time::sleep(Duration::from_millis(10)).boxed()
        },
        ..a.saver(None)
    };
    let left = a.here.host.path("snapshots/m/.kctl-staged-1-2");
    fs::create_dir_all(left.parent().unwrap()).unwrap();
    fs::write(&left, "of a command that was killed").unwrap();
    saver.save_once("n").await.unwrap();
    assert!(!left.exists());
    assert!(OTHER.take().is_none());
    // A program that another test starts has the lock until it is executed.
    while lock().is_none() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn a_snapshot_that_fails_is_tried_again_and_leaves_nothing() {
    let a = ControlPlane::of_member("a").await;
    a.here.member.state.lock().unwrap().sends.truncate(4);
    let why = a.saver(None).save_once("n").await.unwrap_err();
    assert!(format!("{why:#}").contains("expected sha256"), "{why:#}");
    assert!(a.objects().await.is_empty());
    // What was wrong is mended while the command waits.
    let saver = SnapshotSaver {
        sleep: |_| std::future::ready(()).boxed(),
        retries: 1,
        ..a.saver(None)
    };
    a.here.member.state.lock().unwrap().sends = CONTENT.to_vec();
    saver.save_once("n").await.unwrap();
}

/// The first is taken at once unless there is a young one; old ones go, and the newest stays whatever its age.
#[tokio::test]
async fn regular_snapshots_begin_at_once_and_the_newest_always_stays() {
    let a = ControlPlane::of_member("a").await;
    thread_local!(static WAITS: Cell<bool> = const { Cell::new(false) });
    let saver = SnapshotSaver {
        sleep: |time| match time.is_zero() {
            true => std::future::ready(()).boxed(),
            false => {
                WAITS.set(true);
                std::future::pending().boxed()
            }
        },
        ..a.saver(None)
    };
    let regular = RegularSaves {
        creation: Duration::from_hours(12),
        retention: Duration::from_hours(24),
    };
    // Until it waits for the next interval.
    let run = async || {
        WAITS.set(false);
        let waits = async {
            while !WAITS.get() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::select! {
            ended = saver.save_regularly(&regular) => panic!("it runs until it is stopped: {ended:?}"),
            () = waits => {}
        }
    };
    let names = async || {
        let all = a.objects().await.into_iter();
        all.filter(|key| key.ends_with("manifest.json"))
            .collect::<Vec<_>>()
    };
    run().await;
    let first = names().await;
    assert_eq!(first.len(), 1);
    run().await;
    assert_eq!(names().await, first, "the last one is young");
    age_files(&a.here.host.path("snapshots"), Duration::from_hours(100));
    // One that fails deletes nothing.
    a.here.member.state.lock().unwrap().sends.clear();
    run().await;
    assert_eq!(names().await, first);
    a.here.member.state.lock().unwrap().sends = CONTENT.to_vec();
    // Names have seconds.
    tokio::time::sleep(Duration::from_millis(1100)).await;
    run().await;
    let second = names().await;
    assert!(second.len() == 1 && second != first, "{second:?}");
}

#[tokio::test]
async fn the_keys_of_the_cluster_are_sealed_or_not_stored_at_all() {
    let a = ControlPlane::of_member("a").await;
    const KEY: &str = "a private key of the cluster";
    let objects = [
        "config",
        "pki/private/ca/keyset.yaml",
        "secrets/encryptionconfig",
        "nodes/i-1.json",
    ];
    for key in objects {
        let put = a.here.host.store.put(key, KEY.into(), Expect::Any);
        put.await.unwrap();
    }
    a.save("open").await;
    let out = |name: &str| -> PathBuf { a.here.host.path(name) };
    let none = extract_cluster_state(&a.local, "open", "", &out("zip"))
        .await
        .unwrap_err();
    assert!(format!("{none:#}").contains("names nobody"), "{none:#}");
    let identity = age::x25519::Identity::generate();
    let other = age::x25519::Identity::generate().to_string();
    a.here
        .set_recipients(vec![identity.to_public().to_string()])
        .await;
    a.save("sealed").await;
    for key in a.objects().await {
        let bytes = a.local.store.get(&key).await.unwrap().unwrap().bytes;
        assert!(
            !bytes.windows(KEY.len()).any(|part| part == KEY.as_bytes()),
            "{key}"
        );
    }
    let text = format!(
        "# created by age-keygen\n{}\n",
        identity.to_string().expose_secret()
    );
    let wrong = extract_cluster_state(&a.local, "sealed", other.expose_secret(), &out("zip")).await;
    let wrong = format!("{:#}", wrong.unwrap_err());
    assert!(
        wrong.contains("cannot be decrypted") && wrong.contains("age1"),
        "{wrong}"
    );
    assert!(!out("zip").exists());
    assert_eq!(
        extract_cluster_state(&a.local, "sealed", &text, &out("zip"))
            .await
            .unwrap(),
        4
    );
    let mut zip = zip::ZipArchive::new(fs::File::open(out("zip")).unwrap()).unwrap();
    let mut names: Vec<_> = zip
        .file_names()
        .map(|name| name.unwrap().to_string())
        .collect();
    names.sort();
    // It signs the settings here.
    names.retain(|name| *name != keyset_path(STATE_SIGNER));
    assert_eq!(names, objects[..3]);
    let mut content = String::new();
    zip.by_name("pki/private/ca/keyset.yaml")
        .unwrap()
        .read_to_string(&mut content)
        .unwrap();
    assert_eq!(content, KEY);
}

#[tokio::test]
async fn keys_that_cannot_be_sealed_or_are_damaged_are_said() {
    let a = ControlPlane::of_member("a").await;
    let out = |name: &str| -> PathBuf { a.here.host.path(name) };
    let put = a
        .here
        .host
        .store
        .put("config", b"spec".to_vec(), Expect::Any);
    put.await.unwrap();
    let identity = age::x25519::Identity::generate();
    let recipients = vec![identity.to_public().to_string()];
    a.here.set_recipients(recipients).await;
    a.save("sealed").await;
    let text = identity.to_string();
    let text = text.expose_secret();
    // Nobody can read what a typo names: the snapshot counts, and says so.
    a.here.set_recipients(vec!["age1typo".to_owned()]).await;
    let says = a.save("typo").await;
    assert!(
        says.contains("without the keys") && says.contains("age1typo"),
        "{says}"
    );
    // A flipped bit is found before anything is decrypted.
    let path = out("snapshots/sealed/cluster-state.zip.age");
    let mut bytes = fs::read(&path).unwrap();
    bytes[300] ^= 1;
    fs::write(&path, bytes).unwrap();
    let damaged = extract_cluster_state(&a.local, "sealed", text, &out("zip2"))
        .await
        .unwrap_err();
    assert!(format!("{damaged:#}").contains("damaged"), "{damaged:#}");
}

#[tokio::test]
async fn a_control_plane_gives_a_snapshot_to_another_one_and_ends() {
    let (a, b) = two_control_planes().await;
    let identity = age::x25519::Identity::generate();
    a.here
        .set_recipients(vec![identity.to_public().to_string()])
        .await;
    a.here
        .host
        .store
        .put("config", b"spec".to_vec(), Expect::Any)
        .await
        .unwrap();
    a.save("n").await;
    let (address, serving) = a.serve("n").await;
    b.download("n", address).await.unwrap();
    let says = serving.await.unwrap().unwrap();
    assert!(says.contains("b have received n"), "{says}");
    assert_eq!(a.objects().await, b.objects().await);
    assert_eq!(b.objects().await.len(), 4);
    for key in a.objects().await {
        let read = async |store: &Store| store.get(&key).await.unwrap().unwrap().bytes;
        assert_eq!(
            read(&a.local.store).await,
            read(&b.local.store).await,
            "{key}"
        );
    }
}

/// Passes connections on; the first ends after so many bytes of the answer, and no other does.
async fn cut_first(to: SocketAddr, bytes: usize) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let mut left = Some(bytes);
        loop {
            let (mut near, _) = listener.accept().await.unwrap();
            let mut far = TcpStream::connect(to).await.unwrap();
            let limit = left.take();
            tokio::spawn(async move {
                let (mut near_read, mut near_write) = near.split();
                let (far_read, mut far_write) = far.split();
                let mut far_read = tokio::io::AsyncReadExt::take(
                    far_read,
                    limit.map_or(u64::MAX, |limit| limit as u64),
                );
                tokio::select! {
                    _ = tokio::io::copy(&mut near_read, &mut far_write) => {}
                    _ = tokio::io::copy(&mut far_read, &mut near_write) => {}
                }
                let _ = near.shutdown().await;
            });
        }
    });
    address
}

#[tokio::test]
async fn a_download_goes_on_where_it_was_cut_off() {
    let (a, b) = two_control_planes().await;
    // Bytes that cannot be compressed, so that the cut is in the middle of them.
    let mut noise = vec![0; 3 << 20];
    getrandom::fill(&mut noise).unwrap();
    fs::write(a.here.host.path("content"), &noise).unwrap();
    a.here.member.state.lock().unwrap().sends = noise;
    a.save("n").await;
    let (address, serving) = a.serve("n").await;
    let cut = cut_first(address, 1 << 20).await;
    b.download("n", cut).await.unwrap();
    serving.await.unwrap().unwrap();
    assert_eq!(a.objects().await, b.objects().await);
    let partial = b.here.host.path("snapshots/.kctl-download-n");
    assert!(!partial.exists());
    // An earlier download that was killed goes on too, and one of other content is found.
    let data = fs::read(a.here.host.path("snapshots/n/etcd.backup.gz")).unwrap();
    for (left, is_found) in [(data[..1000].to_vec(), false), (vec![7; 1000], true)] {
        fs::remove_dir_all(b.here.host.path("snapshots/n")).unwrap();
        fs::write(&partial, left).unwrap();
        let (address, serving) = a.serve("n").await;
        let done = b.download("n", address).await;
        if is_found {
            assert!(format!("{:#}", done.unwrap_err()).contains("is damaged"));
            assert!(b.objects().await.is_empty() && !partial.exists());
            b.download("n", address).await.unwrap();
        }
        serving.await.unwrap().unwrap();
        assert_eq!(a.objects().await, b.objects().await);
    }
}

/// A download from S3 goes on too, and begins only if there is room for it.
#[tokio::test]
async fn a_download_from_a_store_goes_on_and_fills_no_disk() {
    let (a, b) = two_control_planes().await;
    a.save("n").await;
    let data = fs::read(a.here.host.path("snapshots/n/etcd.backup.gz")).unwrap();
    let origin = SnapshotOrigin::Store(Box::new(a.local.store.clone()));
    let download = async || download_snapshot(&origin, "n", &b.local, quiet).await;
    b.here.host.set_free_bytes(data.len() as u64);
    let full = format!("{:#}", download().await.unwrap_err());
    assert!(full.contains("free space"), "{full}");
    assert!(b.objects().await.is_empty());
    b.here.host.set_free_bytes(50 << 30);
    for left in [&data[..9], &data[..]] {
        fs::write(b.here.host.path("snapshots/.kctl-download-n"), left).unwrap();
        download().await.unwrap();
        assert_eq!(a.objects().await, b.objects().await);
        fs::remove_dir_all(b.here.host.path("snapshots/n")).unwrap();
    }
}

#[tokio::test]
async fn only_members_of_the_same_etcd_cluster_give_and_get() {
    let authority = new_authority();
    let name = |member: &str| format!("etcd-{member}.internal.x.example.com");
    let a = ControlPlane::new(&authority, &name("a")).await;
    a.save("n").await;
    let (address, serving) = a.serve("n").await;
    // Signed by another authority; signed by this one for a name that is no member's.
    let foreign = ControlPlane::new(&new_authority(), &name("b")).await;
    let stranger = ControlPlane::new(&authority, &name("z")).await;
    for other in [&foreign, &stranger] {
        let refused = other.download("n", address).await;
        assert!(refused.is_err(), "{refused:?}");
        assert!(other.objects().await.is_empty());
    }
    // Who answers in the name of a must have its certificate.
    let b = ControlPlane::new(&authority, &name("b")).await;
    b.save("n").await;
    let (wrong, other) = b.serve("n").await;
    let c = ControlPlane::new(&authority, &name("b")).await;
    let refused = format!("{:#}", c.download("n", wrong).await.unwrap_err());
    assert!(refused.contains("certificate"), "{refused}");
    assert!(!refused.contains("etcd-backup serve"), "{refused}");
    other.abort();
    assert!(!serving.is_finished());
    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let nobody = closed.local_addr().unwrap();
    drop(closed);
    let refused = format!("{:#}", c.download("n", nobody).await.unwrap_err());
    assert!(refused.contains("etcd-backup serve"), "{refused}");
    let unknown = c.access.connect("q", None).unwrap_err();
    assert!(
        format!("{unknown:#}").contains("its members are a, b"),
        "{unknown:#}"
    );
    serving.abort();
}

#[tokio::test]
async fn a_damaged_or_missing_snapshot_is_named_and_leaves_nothing() {
    let (a, b) = two_control_planes().await;
    a.save("n").await;
    let path = a.here.host.path("snapshots/n/etcd.backup.gz");
    let whole = fs::read(&path).unwrap();
    let mut flipped = whole.clone();
    flipped[12] ^= 1;
    for content in [flipped, [&whole[..], b"x"].concat()] {
        fs::write(&path, content).unwrap();
        let from_store = SnapshotOrigin::Store(Box::new(a.local.store.clone()));
        let why = download_snapshot(&from_store, "n", &b.local, quiet)
            .await
            .unwrap_err();
        assert!(format!("{why:#}").contains("is damaged"), "{why:#}");
        assert!(b.objects().await.is_empty());
        let (address, serving) = a.serve("n").await;
        let why = b.download("n", address).await.unwrap_err();
        assert!(format!("{why:#}").contains("is damaged"), "{why:#}");
        assert!(b.objects().await.is_empty());
        serving.abort();
    }
    let from_store = SnapshotOrigin::Store(Box::new(a.local.store.clone()));
    let why = download_snapshot(&from_store, "m", &b.local, quiet)
        .await
        .unwrap_err();
    assert!(format!("{why:#}").contains("has no snapshot m"), "{why:#}");
    let why = download_snapshot(&from_store, "../n", &b.local, quiet)
        .await
        .unwrap_err();
    assert!(
        format!("{why:#}").contains("no name of a snapshot"),
        "{why:#}"
    );
}

thread_local!(static SAID: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) });

fn remember(line: &str) {
    SAID.with_borrow_mut(|said| said.push(line.to_owned()));
}

fn said() -> String {
    SAID.with_borrow_mut(std::mem::take).join("\n")
}

/// A store that cannot be reached: a file is where its folder should be.
fn broken_store(a: &ControlPlane) -> (Store, PathBuf) {
    let path = a.here.host.path("elsewhere");
    fs::write(&path, "").unwrap();
    let store = a
        .here
        .host
        .store
        .open_other(&format!("file://{}", path.display()));
    (store.unwrap(), path)
}

/// The snapshot and its copy are two results: what failed is done by the same command.
#[tokio::test]
async fn a_snapshot_that_could_not_be_copied_is_copied_by_the_same_command() {
    let a = ControlPlane::of_member("a").await;
    let (s3, path) = broken_store(&a);
    for _ in 0..2 {
        let why = a.saver(Some(s3.clone())).save_once("n").await.unwrap_err();
        let why = format!("{why:#}");
        assert!(why.contains("taken") || why.contains("took"), "{why}");
        assert!(why.contains("the same command copies it"), "{why}");
        assert_eq!(a.objects().await.len(), 3, "it is here");
    }
    fs::remove_file(&path).unwrap();
    // Nor does a store hide it that cannot even be read.
    fs::create_dir_all(path.join("n/manifest.json")).unwrap();
    let why = a.saver(Some(s3.clone())).save_once("n").await.unwrap_err();
    let why = format!("{why:#}");
    assert!(why.contains("was taken already"), "{why}");
    assert!(why.contains("the same command copies it"), "{why}");
    fs::remove_dir_all(path).unwrap();
    let says = a.saver(Some(s3.clone())).save_once("n").await.unwrap();
    assert!(says.contains("copied to"), "{says}");
    assert!(s3.get("n/manifest.json").await.unwrap().is_some());
    // Now it is complete, and another one needs another name.
    let again = a.saver(Some(s3)).save_once("n").await.unwrap_err();
    assert!(format!("{again:#}").contains("already"), "{again:#}");
}

/// Runs `save` without `--once` until it has waited so often for its interval.
async fn save_regularly(a: &ControlPlane, s3: Option<Store>, times: u32) -> String {
    thread_local!(static WAITS: Cell<u32> = const { Cell::new(0) });
    let saver = SnapshotSaver {
        sleep: |time| {
            if time.is_zero() {
                return std::future::ready(()).boxed();
            }
            let left = WAITS.get().saturating_sub(1);
            WAITS.set(left);
            match left {
                0 => std::future::pending().boxed(),
                // Names have seconds.
                _ => tokio::time::sleep(Duration::from_millis(1100)).boxed(),
            }
        },
        say: remember,
        retries: 0,
        ..a.saver(s3)
    };
    let regular = RegularSaves {
        creation: Duration::from_hours(12),
        retention: Duration::from_hours(24),
    };
    WAITS.set(times);
    let waits = async {
        while WAITS.get() > 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::select! {
        ended = saver.save_regularly(&regular) => panic!("it runs until it is stopped: {ended:?}"),
        () = waits => {}
    }
    said()
}

/// A command that is started anew counts from 1 again, so that only the second tells its first name from the one before.
async fn until_next_name() {
    tokio::time::sleep(Duration::from_millis(1100)).await;
}

/// S3 that fails neither hides that a snapshot was taken, nor keeps old ones on the disk.
#[tokio::test]
async fn regular_snapshots_are_deleted_and_copied_later_while_s3_fails() {
    let a = ControlPlane::of_member("a").await;
    let manifests = async |store: &Store| {
        let all = store.list("", None).await.unwrap().into_iter();
        let all = all.map(|entry| entry.key);
        all.filter(|key| key.ends_with("manifest.json"))
            .collect::<Vec<_>>()
    };
    save_regularly(&a, None, 1).await;
    let first = manifests(&a.local.store).await;
    age_files(&a.here.host.path("snapshots"), Duration::from_hours(100));
    until_next_name().await;
    let (s3, path) = broken_store(&a);
    let told = save_regularly(&a, Some(s3.clone()), 1).await;
    assert!(
        told.contains("took the snapshot") && told.contains("is copied after the next one"),
        "{told}"
    );
    assert!(!told.contains("no snapshot was taken"), "{told}");
    let second = manifests(&a.local.store).await;
    assert!(second.len() == 1 && second != first, "{second:?}");
    // A command that was started anew fails like the one before.
    age_files(&a.here.host.path("snapshots"), Duration::from_hours(13));
    until_next_name().await;
    let told = save_regularly(&a, Some(s3.clone()), 1).await;
    // The first that fails is all that is tried: the others would wait for the same.
    let tried = told.matches("is copied after the next one").count();
    assert!((1..=2).contains(&tried), "{told}");
    fs::remove_file(path).unwrap();
    age_files(&a.here.host.path("snapshots"), Duration::from_hours(13));
    until_next_name().await;
    let told = save_regularly(&a, Some(s3.clone()), 1).await;
    assert!(told.contains("is also in"), "{told}");
    // The first of them has gone from the folder since.
    let copied = manifests(&s3).await;
    assert!(
        copied.len() == 3 && copied.contains(&second[0]),
        "{copied:?}"
    );
}

/// A clock that was wrong once costs a snapshot too many, and never one too few; when the next one is due is said.
#[tokio::test]
async fn a_snapshot_of_the_future_delays_none() {
    let a = ControlPlane::of_member("a").await;
    save_regularly(&a, None, 1).await;
    let count = async || {
        let all = a.objects().await.into_iter();
        all.filter(|key| key.ends_with("manifest.json")).count()
    };
    let told = save_regularly(&a, None, 1).await;
    assert!(
        told.contains("the next one is taken in 11h") || told.contains("in 12h"),
        "{told}"
    );
    assert_eq!(count().await, 1);
    // It was taken, and named, by the wrong clock.
    let folder = a.here.host.path("snapshots");
    let mut items = fs::read_dir(&folder)
        .unwrap()
        .map(|one| one.unwrap().path());
    let taken = items.find(|one| one.is_dir()).unwrap();
    let future = folder.join("2099-01-01T00:00:00Z-000001");
    fs::rename(taken, &future).unwrap();
    for entry in ["manifest.json", "etcd.backup.gz", "_etcd_backup.meta"] {
        let file = fs::File::options().write(true).open(future.join(entry));
        let later = SystemTime::now() + Duration::from_hours(1000);
        file.unwrap().set_modified(later).unwrap();
    }
    until_next_name().await;
    let told = save_regularly(&a, None, 1).await;
    assert!(told.contains("one is taken now"), "{told}");
    assert_eq!(count().await, 2);
}

/// Without room nothing is taken, and the old ones are all there is.
#[tokio::test]
async fn a_full_disk_takes_no_snapshot_and_deletes_none() {
    let a = ControlPlane::of_member("a").await;
    save_regularly(&a, None, 1).await;
    let before = a.objects().await;
    assert_eq!(before.len(), 3);
    age_files(&a.here.host.path("snapshots"), Duration::from_hours(100));
    a.here.host.set_free_bytes(1000);
    let why = a.saver(None).save_once("n").await.unwrap_err();
    assert!(format!("{why:#}").contains("free space"), "{why:#}");
    until_next_name().await;
    let told = save_regularly(&a, None, 1).await;
    assert!(
        told.contains("no snapshot was taken") && told.contains("free space"),
        "{told}"
    );
    assert_eq!(a.objects().await, before);
    a.here.host.set_free_bytes(50 << 30);
    until_next_name().await;
    let told = save_regularly(&a, None, 1).await;
    assert!(told.contains("took the snapshot"), "{told}");
    let after = a.objects().await;
    assert!(after.len() == 3 && after != before, "{after:?}");
}

/// One bad object neither hides nor blocks the others.
#[tokio::test]
async fn a_bad_manifest_blocks_no_command() {
    for content in [
        "",
        "[]",
        "null",
        "{\"format\": 99}",
        "{\"schemaVersion\": 2}",
    ] {
        let a = ControlPlane::of_member("a").await;
        for name in ["good", "newest", "bad"] {
            a.save(name).await;
        }
        let manifest = a.here.host.path("snapshots/bad/manifest.json");
        fs::write(&manifest, content).unwrap();
        let delete = async |name: &str| delete_snapshot_named(&a.local.store, &owner(), name).await;
        let why = format!("{:#}", delete("newest").await.unwrap_err());
        assert!(why.contains("newest verified"), "{why}");
        delete("good").await.unwrap();
        a.save("another").await;
        let from = SnapshotOrigin::Store(Box::new(a.local.store.clone()));
        let b = ControlPlane::of_member("b").await;
        download_snapshot(&from, "newest", &b.local, quiet)
            .await
            .unwrap();
        let bad = download_snapshot(&from, "bad", &b.local, quiet).await;
        let why = format!("{:#}", bad.unwrap_err());
        assert!(why.contains("is no manifest of a snapshot"), "{why}");
        delete("bad").await.unwrap();
    }
}

/// What a store sends beyond what the manifest says does not fill the disk.
#[tokio::test]
async fn a_download_receives_no_more_than_the_manifest_says() {
    let (a, b) = two_control_planes().await;
    a.save("n").await;
    let data = a.here.host.path("snapshots/n/etcd.backup.gz");
    let file = fs::File::options().append(true).open(data).unwrap();
    file.set_len(1 << 30).unwrap();
    let origin = SnapshotOrigin::Store(Box::new(a.local.store.clone()));
    let why = download_snapshot(&origin, "n", &b.local, quiet).await;
    let why = format!("{:#}", why.unwrap_err());
    assert!(
        why.contains("is damaged") && why.contains("has more than"),
        "{why}"
    );
    assert!(!b.here.host.path("snapshots/.kctl-download-n").exists());
}
