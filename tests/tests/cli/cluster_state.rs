//! `kctl etcd snapshot import-state`: a state store that was lost comes back from what lies sealed beside a snapshot. protokube's side,
//! which seals it, is tested in `protokube/tests/roles`.

use crate::kctl::{Kctl, KctlOutput};
use age::secrecy::ExposeSecret;
use etcd_rules::backup::CLUSTER_STATE_KEYS;
use std::collections::BTreeMap;
use std::fs;
use std::io::{Cursor, Write};
use std::path::{Path, PathBuf};
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

const NAME: &str = "demo.example.com";

type Objects = BTreeMap<String, Vec<u8>>;

/// A store with a cluster, and the key pair for which its state is sealed.
struct Sealed {
    kctl: Kctl,
    key: age::x25519::Identity,
}

impl Sealed {
    fn new() -> Self {
        let kctl = Kctl::with_store();
        // From files, because without them kctl asks AWS.
        let words = [
            "create",
            "cluster",
            NAME,
            "--zones",
            "eu-west-1a",
            "--dry-run",
        ];
        let home = kctl.dir.path().display().to_string();
        let spec = kctl.run(&words).expect_success().replace("HOME", &home);
        let file = kctl.write_file("spec.yaml", &spec);
        kctl.run(&["create", "-f", &file]).expect_success();
        let here = Self {
            kctl,
            key: age::x25519::Identity::generate(),
        };
        // Keysets and completed spec are not made without AWS.
        for (key, text) in [
            ("pki/private/kubernetes-ca/keyset.yaml", "a private key"),
            ("secrets/dockerconfig", "a secret"),
            ("backups/etcd/main/owner.json", "not of the state"),
        ] {
            let path = here.folder().join(key);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        fs::copy(
            here.folder().join("config"),
            here.folder().join("cluster-completed.spec"),
        )
        .unwrap();
        let secret = here.key.to_string();
        let text = format!("# created: today\n{}\n", secret.expose_secret());
        here.kctl.write_file("key.txt", &text);
        here
    }

    fn folder(&self) -> PathBuf {
        self.kctl.home_path("store").join(NAME)
    }

    /// What protokube seals.
    fn state(&self) -> Objects {
        let mut all = Objects::new();
        collect(&self.folder(), &self.folder(), &mut all);
        let listed = |key: &str| {
            let mut prefixes = CLUSTER_STATE_KEYS.iter();
            prefixes.any(|of| key == *of || (of.ends_with('/') && key.starts_with(of)))
        };
        all.retain(|key, _| listed(key));
        all
    }

    /// Writes the objects as a sealed zip.
    fn seal(&self, name: &str, objects: &Objects) {
        let recipient = self.key.to_public();
        let mut sealed = Vec::new();
        let keys = std::iter::once(&recipient as &dyn age::Recipient);
        let encryptor = age::Encryptor::with_recipients(keys).unwrap();
        let mut writer = encryptor.wrap_output(&mut sealed).unwrap();
        writer.write_all(&pack(objects)).unwrap();
        writer.finish().unwrap();
        fs::write(self.kctl.home_path(name), sealed).unwrap();
    }

    fn import(&self, file: &str, more: &[&str]) -> KctlOutput {
        let words = [
            "etcd",
            "snapshot",
            "import-state",
            file,
            "--identity",
            "key.txt",
        ];
        self.kctl.run(&[&words, more].concat())
    }
}

fn pack(objects: &Objects) -> Vec<u8> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    for (key, content) in objects {
        zip.start_file(key, SimpleFileOptions::default()).unwrap();
        zip.write_all(content).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

fn collect(root: &Path, folder: &Path, into: &mut Objects) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(root, &path, into);
        } else {
            let key = path.strip_prefix(root).unwrap().display().to_string();
            into.insert(key, fs::read(&path).unwrap());
        }
    }
}

#[test]
fn a_lost_store_comes_back_and_nothing_that_is_there_is_replaced() {
    let here = Sealed::new();
    let before = here.state();
    assert!(before.len() >= 5, "{:?}", before.keys());
    here.seal("state.zip.age", &before);
    fs::write(here.kctl.home_path("state.zip"), pack(&before)).unwrap();

    let ran = here.import("state.zip.age", &[]);
    assert_eq!(ran.code, 4, "{}", ran.all_output());
    assert!(ran.err.contains("already"), "{}", ran.err);

    fs::remove_dir_all(here.folder()).unwrap();
    let other = here.import("state.zip.age", &["--name", "other.example.com"]);
    assert!(
        other.code != 0 && other.err.contains(NAME),
        "{}",
        other.all_output()
    );
    assert!(!here.folder().exists());
    let ran = here.import("state.zip.age", &[]);
    assert!(ran.err.contains("kctl update"), "{}", ran.all_output());
    ran.expect_success();
    assert_eq!(here.state(), before);
    assert!(
        here.kctl
            .run(&["get", "clusters"])
            .expect_success()
            .contains(NAME)
    );

    // An import that ended before the spec goes on; another content is not replaced.
    fs::remove_file(here.folder().join("config")).unwrap();
    here.import("state.zip.age", &[]).expect_success();
    assert_eq!(here.state(), before);
    fs::remove_file(here.folder().join("config")).unwrap();
    let keyset = here.folder().join("pki/private/kubernetes-ca/keyset.yaml");
    fs::write(&keyset, "another key").unwrap();
    let ran = here.import("state.zip.age", &[]);
    assert!(
        ran.code == 4 && ran.err.contains("keyset.yaml"),
        "{}",
        ran.all_output()
    );
    assert_eq!(fs::read_to_string(&keyset).unwrap(), "another key");
    assert!(!here.folder().join("config").exists());

    // The zip of `extractstatefile`.
    fs::remove_dir_all(here.folder()).unwrap();
    here.kctl
        .run(&["etcd", "snapshot", "import-state", "state.zip"])
        .expect_success();
    assert_eq!(here.state(), before);
}

#[test]
fn another_bucket_becomes_the_clusters_folder() {
    let here = Sealed::new();
    let mut lost = here.state();
    let old = "s3://lost-bucket/demo.example.com";
    let base = format!("file://{}", here.folder().display());
    for key in ["config", "cluster-completed.spec"] {
        let text = String::from_utf8(lost[key].clone()).unwrap();
        assert!(text.contains(&base), "{text}");
        lost.insert(key.to_owned(), text.replace(&base, old).into_bytes());
    }
    let expected = here.state();
    here.seal("state.zip.age", &lost);
    fs::remove_dir_all(here.folder()).unwrap();
    let ran = here.import("state.zip.age", &[]);
    assert!(ran.err.contains(old), "{}", ran.all_output());
    ran.expect_success();
    assert_eq!(here.state(), expected);
}

#[test]
fn what_is_no_state_or_sealed_for_others_is_refused_before_anything_is_written() {
    let here = Sealed::new();
    let good = here.state();
    let with = |key: &str| {
        let mut objects = good.clone();
        objects.insert(key.to_owned(), b"x".to_vec());
        objects
    };
    for (name, objects) in [
        ("outside", with("../evil")),
        ("absolute", with("/etc/evil")),
        ("hidden", with("pki/../../evil")),
        ("other", with("backups/etcd/main/owner.json")),
        ("lock", with("lock")),
        ("empty", Objects::new()),
        ("specless", [("pki/a".to_owned(), b"x".to_vec())].into()),
    ] {
        here.seal(name, &objects);
    }
    fs::remove_dir_all(here.folder()).unwrap();
    fs::write(here.kctl.home_path("garbage"), "no state").unwrap();
    fs::write(here.kctl.home_path("nothing"), "").unwrap();
    for file in [
        "outside", "absolute", "hidden", "other", "lock", "empty", "specless", "garbage",
        "nothing", "missing",
    ] {
        let ran = here.import(file, &[]);
        assert_eq!(ran.code, 1, "{file}: {}", ran.all_output());
        assert!(ran.err.contains("hint"), "{file}: {}", ran.err);
        assert!(!here.folder().exists(), "{file}");
    }
    here.seal("state.zip.age", &good);
    let without = here
        .kctl
        .run(&["etcd", "snapshot", "import-state", "state.zip.age"]);
    assert!(
        without.code == 1 && without.err.contains("--identity"),
        "{}",
        without.all_output()
    );
    let another = age::x25519::Identity::generate();
    let secret = another.to_string();
    for text in [secret.expose_secret(), "AGE-SECRET-KEY-1BROKEN", ""] {
        here.kctl.write_file("key.txt", text);
        let ran = here.import("state.zip.age", &[]);
        assert_eq!(ran.code, 1, "{}", ran.all_output());
        assert!(!ran.err.contains("SECRET-KEY"), "{}", ran.err);
    }
    assert!(!here.folder().exists());
}
