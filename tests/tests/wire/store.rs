//! Laws of the state store, the same for a bucket and a directory.

use crate::simulator::Simulator;
use aws_client::store::{Encryption, Expect, Owner, Store, StoreError};
use aws_client::{AccessKey, AccessOptions, Clients};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

pub const REGION: &str = "eu-west-1";

pub fn new_runtime() -> tokio::runtime::Runtime {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_all().build().expect("a runtime")
}

async fn offline_clients() -> Clients {
    Clients::from_access(&AccessOptions {
        keys: Some(AccessKey {
            id: "none".to_owned(),
            secret: "none".to_owned(),
            session: None,
        }),
        ..AccessOptions::default()
    })
    .await
}

pub fn in_directory(dir: &std::path::Path) -> Store {
    let clients = new_runtime().block_on(offline_clients());
    Store::open(&format!("file://{}", dir.display()), &clients).expect("a store")
}

pub fn in_bucket(simulator: &Simulator) -> Store {
    simulator.run_python(REGION, "boto('s3').create_bucket(Bucket='state', CreateBucketConfiguration={'LocationConstraint': 'eu-west-1'})");
    let clients = new_runtime().block_on(simulator.new_clients(REGION));
    Store::open("s3://state/some/prefix", &clients).expect("a store")
}

/// What a caller may do, with keys and contents that meet again and again.
#[derive(Clone, Debug)]
enum Op {
    Get(u8),
    Put(u8, u8, Guess),
    Delete(u8, Guess),
    List(u8, Option<u8>),
}

/// What the caller believes is there.
#[derive(Clone, Copy, Debug)]
enum Guess {
    Anything,
    Nothing,
    /// What it last read there, however long ago.
    AsRead,
}

fn any_ops() -> impl Strategy<Value = Vec<Op>> {
    let guess = || {
        prop_oneof![
            Just(Guess::Anything),
            Just(Guess::Nothing),
            Just(Guess::AsRead)
        ]
    };
    let count = |of: usize| u8::try_from(of).expect("few");
    let key = move || 0..count(KEYS.len());
    let op = prop_oneof![
        key().prop_map(Op::Get),
        (key(), 0..4_u8, guess()).prop_map(|(key, content, guess)| Op::Put(key, content, guess)),
        (key(), guess()).prop_map(|(key, guess)| Op::Delete(key, guess)),
        (0..count(PREFIXES.len()), prop::option::of(key()))
            .prop_map(|(prefix, after)| Op::List(prefix, after)),
    ];
    prop::collection::vec(op, 1..40)
}

const KEYS: [&str; 5] = ["a/config", "a/group/nodes", "a/group/nodes2", "a~", "b"];
const PREFIXES: [&str; 5] = ["", "a/", "a/group/nodes", "a", "c"];

/// Plays the operations against the store and against a map, which must agree at every step.
async fn is_a_map(store: &Store, ops: &[Op]) {
    for key in KEYS {
        store.delete(key, Expect::Any).await.expect("a clean start");
    }
    let mut map: BTreeMap<&str, Vec<u8>> = BTreeMap::new();
    let mut read = BTreeMap::new();
    for op in ops {
        match op {
            Op::Get(key) => {
                let key = KEYS[*key as usize];
                let object = store.get(key).await.expect("a read");
                assert_eq!(object.as_ref().map(|one| &one.bytes), map.get(key));
                if let Some(object) = object {
                    read.insert(key, (object.version, object.bytes));
                }
            }
            Op::Put(key, content, guess) => {
                let (key, bytes) = (KEYS[*key as usize], vec![*content; 3]);
                let Some((expect, holds)) = expectation_for(*guess, key, &map, &read) else {
                    continue;
                };
                let done = store.put(key, bytes.clone(), expect).await;
                if holds {
                    read.insert(key, (done.expect("a write"), bytes.clone()));
                    map.insert(key, bytes);
                } else {
                    assert!(matches!(done, Err(StoreError::Conflict { .. })), "{done:?}");
                }
            }
            Op::Delete(key, guess) => {
                let key = KEYS[*key as usize];
                let Some((expect, holds)) = expectation_for(*guess, key, &map, &read) else {
                    continue;
                };
                let versioned = matches!(expect, Expect::Version(_));
                let done = store.delete(key, expect).await;
                if holds || !versioned {
                    done.expect("a deletion");
                    map.remove(key);
                } else {
                    assert!(matches!(done, Err(StoreError::Conflict { .. })), "{done:?}");
                }
            }
            Op::List(prefix, after) => {
                let prefix = PREFIXES[*prefix as usize];
                let after = after.map(|key| KEYS[key as usize]);
                let listed = store.list(prefix, after).await.expect("a list");
                let wanted = map.iter().filter(|(key, _)| {
                    key.starts_with(prefix) && after.is_none_or(|after| **key > after)
                });
                let wanted: Vec<_> = wanted.map(|(key, bytes)| (*key, bytes)).collect();
                let keys: Vec<&str> = listed.iter().map(|one| one.key.as_str()).collect();
                assert_eq!(keys, wanted.iter().map(|one| one.0).collect::<Vec<_>>());
                for (entry, (_, bytes)) in listed.iter().zip(wanted) {
                    assert!(store.surely_holds(entry, bytes));
                    assert!(!store.surely_holds(entry, b"xyz"));
                }
            }
        }
    }
}

type ReadVersions<'a> = BTreeMap<&'a str, (aws_client::store::Version, Vec<u8>)>;

/// The expectation, and whether it holds. A version stands for its content, so an old one holds again once the
/// content is the same again.
fn expectation_for<'a>(
    guess: Guess,
    key: &'a str,
    map: &BTreeMap<&'a str, Vec<u8>>,
    read: &ReadVersions<'a>,
) -> Option<(Expect, bool)> {
    Some(match guess {
        Guess::Anything => (Expect::Any, true),
        Guess::Nothing => (Expect::Absent, !map.contains_key(key)),
        Guess::AsRead => {
            let (version, bytes) = read.get(key)?;
            (
                Expect::Version(version.clone()),
                map.get(key) == Some(bytes),
            )
        }
    })
}

fn holds_for(store: &Store, cases: u32) {
    let config = Config {
        cases,
        failure_persistence: None,
        ..Config::default()
    };
    let runtime = new_runtime();
    let ran = TestRunner::new(config).run(&any_ops(), |ops| {
        runtime.block_on(is_a_map(store, &ops));
        Ok(())
    });
    ran.expect("the law");
}

/// Writers that each add their number to a list, all at once, each in a thread of its own: none is lost, and of
/// those that would be the first exactly one is.
fn loses_no_writer(store: &Store, writers: usize) {
    let firsts: usize = std::thread::scope(|scope| {
        let write = |number: usize| {
            let store = store.clone();
            scope.spawn(move || new_runtime().block_on(append_number(&store, number)))
        };
        let threads: Vec<_> = (0..writers).map(write).collect();
        threads
            .into_iter()
            .map(|thread| usize::from(thread.join().expect("a writer")))
            .sum()
    });
    assert_eq!(firsts, 1);
    let object = new_runtime().block_on(store.get("list")).expect("a read");
    let text = String::from_utf8(object.expect("the list").bytes).expect("text");
    let mut numbers: Vec<usize> = text
        .split_whitespace()
        .map(|number| number.parse().expect("a number"))
        .collect();
    numbers.sort_unstable();
    assert_eq!(numbers, (0..writers).collect::<Vec<_>>());
}

/// Of a hundred who all want to be the first exactly one is.
fn lets_one_be_the_first(store: &Store) {
    let firsts: usize = std::thread::scope(|scope| {
        let write = |number: u8| {
            let store = store.clone();
            let put = async move { store.put("first", vec![number], Expect::Absent).await };
            scope.spawn(move || usize::from(new_runtime().block_on(put).is_ok()))
        };
        let threads: Vec<_> = (0..100).map(write).collect();
        let ended = threads.into_iter().map(std::thread::ScopedJoinHandle::join);
        ended.map(|first| first.expect("a writer")).sum()
    });
    assert_eq!(firsts, 1);
}

/// True if this writer made the list.
async fn append_number(store: &Store, number: usize) -> bool {
    loop {
        let before = store.get("list").await.expect("a read");
        let first = before.is_none();
        let (mut text, expect) = match before {
            None => (String::new(), Expect::Absent),
            Some(object) => (
                String::from_utf8(object.bytes).expect("text"),
                Expect::Version(object.version),
            ),
        };
        text.push_str(&format!("{number} "));
        match store.put("list", text.into_bytes(), expect).await {
            Ok(_) => return first,
            Err(StoreError::Conflict { .. }) => {}
            Err(error) => panic!("{error:?}"),
        }
    }
}

#[test]
fn a_directory_is_a_map_that_loses_no_writer() {
    let dir = tempfile::tempdir().expect("a directory");
    let store = in_directory(&dir.path().join("made/by/the/first/write"));
    holds_for(&store, 100);
    loses_no_writer(&store, 100);
    lets_one_be_the_first(&store);
}

#[test]
fn a_bucket_is_a_map_that_loses_no_writer() {
    let simulator = Simulator::start_simulator();
    let store = in_bucket(&simulator);
    holds_for(&store, 6);
    loses_no_writer(&store, 16);
    lets_one_be_the_first(&store);
    answers_that_get_lost_change_nothing(&simulator, &store);
    a_bucket_that_is_not_there_says_how_to_make_it(&simulator);
}

/// A write whose answer is lost is neither reported as lost nor made twice.
fn answers_that_get_lost_change_nothing(simulator: &Simulator, store: &Store) {
    let runtime = new_runtime();
    for after in [true, false] {
        let fault = |operation: &str| {
            let code = "kill-connection";
            simulator.set_faults(&serde_json::json!([
                {"service": "s3", "operation": operation, "code": code, "after": after}
            ]));
        };
        fault("PutObject");
        let key = format!("lost-{after}");
        let first = runtime.block_on(store.put(&key, b"1".to_vec(), Expect::Absent));
        let first = first.expect("our own write");
        fault("PutObject");
        let next = runtime.block_on(store.put(&key, b"2".to_vec(), Expect::Version(first)));
        let next = next.expect("our own write");
        fault("DeleteObject");
        let gone = runtime.block_on(store.delete(&key, Expect::Version(next)));
        gone.expect("our own deletion");
        assert_eq!(runtime.block_on(store.get(&key)).expect("a read"), None);
    }
}

fn a_bucket_that_is_not_there_says_how_to_make_it(simulator: &Simulator) {
    let clients = new_runtime().block_on(simulator.new_clients(REGION));
    let store = Store::open("s3://nowhere", &clients).expect("a store");
    let error = new_runtime()
        .block_on(store.get("key"))
        .expect_err("no bucket");
    assert!(
        error.to_string().contains("create-bucket --bucket nowhere"),
        "{error}"
    );
}

#[test]
fn nobody_else_reads_a_directory_and_no_key_leaves_it() {
    let dir = tempfile::tempdir().expect("a directory");
    let base = dir.path().join("store");
    let store = in_directory(&base);
    let runtime = new_runtime();
    let put = |key: &str| runtime.block_on(store.put(key, b"x".to_vec(), Expect::Any));
    put("folder/key").expect("a write");
    let mode = |path: &str| {
        let data = std::fs::metadata(base.join(path)).expect("a file");
        data.permissions().mode() & 0o777
    };
    assert_eq!(mode("folder/key"), 0o600);
    assert_eq!(mode("folder"), 0o700);
    assert_eq!(mode(""), 0o700);
    std::os::unix::fs::symlink(dir.path(), base.join("link")).expect("a link");
    for key in [
        "../outside",
        "/etc/passwd",
        "a/../../b",
        "",
        "a//b",
        "a/",
        "link/outside",
        ".kctl-lock",
    ] {
        assert!(matches!(put(key), Err(StoreError::Key(_))), "{key}");
    }
    // A writer that died left this; it is nobody's object.
    std::fs::write(base.join("folder/.kctl-1-1"), "half").expect("a file");
    let listed = runtime.block_on(store.list("", None)).expect("a list");
    assert_eq!(listed.len(), 1);
}

#[test]
fn addresses_of_stores_are_checked() {
    let clients = new_runtime().block_on(offline_clients());
    for url in [
        "s3://",
        "s3://b//x//y",
        "file://relative",
        "file:///",
        "gs://bucket",
        "bucket",
    ] {
        let opened = Store::open(url, &clients);
        assert!(matches!(opened, Err(StoreError::Address { .. })), "{url}");
    }
    for url in [
        "s3://bucket",
        "s3://bucket/",
        "s3://bucket/a/b/",
        "file:///tmp/x",
    ] {
        assert!(Store::open(url, &clients).is_ok(), "{url}");
    }
}

/// Keys that begin alike, and with characters that are escaped on their way, as S3 sorts them.
const STRANGE_KEYS: [&str; 6] = [
    "snap",
    "snap%3A1/a",
    "snap1/a",
    "snap10/a",
    "snap: 1+/a",
    "snap:1/a",
];

/// Whoever deletes by what a listing shows must see neither what was deleted before, nor the objects of the folder beside.
#[test]
fn a_bucket_with_versions_shows_what_is_there_now_and_takes_no_key_for_another() {
    let simulator = Simulator::start_simulator();
    let store = in_bucket(&simulator);
    simulator.run_python(
        REGION,
        "boto('s3').put_bucket_versioning(Bucket='state', VersioningConfiguration={'Status': 'Enabled'})",
    );
    let open = |url: &str| store.open_other(url).expect("a store");
    let (same, beside) = (
        open("s3://state/some/prefix/"),
        open("s3://state/some/prefix2"),
    );
    let keys = async |of: &Store, prefix: &str| {
        let listed = of.list(prefix, None).await.expect("a list").into_iter();
        listed.map(|entry| entry.key).collect::<Vec<_>>()
    };
    new_runtime().block_on(async {
        for key in STRANGE_KEYS {
            for store in [&same, &beside] {
                let put = store.put(key, key.into(), Expect::Absent).await;
                put.expect("a write");
            }
        }
        assert_eq!(keys(&store, "").await, STRANGE_KEYS);
        assert_eq!(keys(&store, "snap1").await, ["snap1/a", "snap10/a"]);
        for (index, key) in STRANGE_KEYS.iter().enumerate() {
            let object = store.get(key).await.expect("an answer");
            assert_eq!(object.expect("an object").bytes, key.as_bytes());
            store.delete(key, Expect::Any).await.expect("a deletion");
            assert_eq!(store.get(key).await.expect("an answer"), None);
            assert_eq!(keys(&store, "").await, STRANGE_KEYS[index + 1..]);
        }
        // What was deleted is no longer in the way.
        let put = store.put("snap", b"again".to_vec(), Expect::Absent);
        put.await.expect("a write");
        assert_eq!(keys(&beside, "").await, STRANGE_KEYS);
    });
}

/// A bucket of another region answers from there once S3 has said where it lies; later calls go there at once.
#[test]
fn a_bucket_of_another_region_is_found() {
    let (endpoint, asked) = elsewhere::serve_regions("eu-north-1");
    new_runtime().block_on(async {
        let clients = Clients::from_access(&AccessOptions {
            region: Some(REGION.to_owned()),
            endpoint: Some(endpoint),
            keys: Some(AccessKey {
                id: "AKIAEXAMPLE".to_owned(),
                secret: "secret".to_owned(),
                session: None,
            }),
            ..AccessOptions::default()
        })
        .await;
        let store = Store::open("s3://far-away", &clients).expect("a store");
        for _ in 0..2 {
            let object = store.get("key").await.expect("an answer");
            assert_eq!(object.expect("an object").bytes, b"here");
        }
    });
    let asked = asked.lock().expect("a lock").clone();
    assert_eq!(asked, [REGION, "eu-north-1", "eu-north-1"]);
}

/// S3 as far as a bucket that lies elsewhere goes.
mod elsewhere {
    use std::io::{BufRead, BufReader, Write};
    use std::net::TcpListener;
    use std::sync::{Arc, Mutex};

    /// The address, and the regions that requests were signed for.
    pub fn serve_regions(home: &'static str) -> (String, Arc<Mutex<Vec<String>>>) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = format!("http://{}", listener.local_addr().expect("an address"));
        let asked = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&asked);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.expect("a connection");
                let mut region = String::new();
                for line in BufReader::new(&stream).lines() {
                    let line = line.expect("a line");
                    if line.is_empty() {
                        break;
                    }
                    if line.to_lowercase().starts_with("authorization:") {
                        line.split('/')
                            .nth(2)
                            .unwrap_or_default()
                            .clone_into(&mut region);
                    }
                }
                let (status, body) = if region == home {
                    ("200 OK", "here")
                } else {
                    (
                        "301 Moved Permanently",
                        "<Error><Code>PermanentRedirect</Code><Message>elsewhere</Message></Error>",
                    )
                };
                log.lock().expect("a lock").push(region);
                let length = body.len();
                let answer = format!(
                    "HTTP/1.1 {status}\r\nETag: \"1\"\r\nx-amz-bucket-region: {home}\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}"
                );
                stream.write_all(answer.as_bytes()).expect("an answer");
            }
        });
        (address, asked)
    }
}

/// A line so thin that a file takes longer than any other call may: it is sent whole, once, and alone.
#[test]
fn a_file_gets_through_a_thin_line() {
    let (endpoint, puts) = thin::serve_puts();
    let dir = tempfile::tempdir().expect("a folder");
    let content = vec![7_u8; 400_000];
    let digest = Sha256::digest(&content).to_vec();
    let file = dir.path().join("nodeup");
    std::fs::write(&file, &content).expect("a file");
    new_runtime().block_on(async {
        let clients = Clients::from_access(&AccessOptions {
            region: Some(REGION.to_owned()),
            endpoint: Some(endpoint),
            keys: Some(AccessKey {
                id: "AKIAEXAMPLE".to_owned(),
                secret: "secret".to_owned(),
                session: None,
            }),
            attempt_timeout: Some(Duration::from_millis(500)),
            ..AccessOptions::default()
        })
        .await;
        let store = Store::open("s3://thin", &clients).expect("a store");
        let (one, other) = tokio::join!(
            store.put_file("assets/nodeup", &file, &digest, Encryption::S3Keys),
            store.put_file("assets/protokube", &file, &digest, Encryption::S3Keys)
        );
        one.expect("a write");
        other.expect("a write");
        let small = store.put("config", b"spec".to_vec(), Expect::Any).await;
        small.expect("a write");
    });
    let puts = puts.lock().expect("a lock");
    let sent: Vec<(usize, usize)> = puts.iter().map(|put| (put.bytes, put.beside)).collect();
    assert_eq!(sent, [(400_000, 0), (400_000, 0), (4, 0)]);
    // What the bucket encrypts with is the bucket's matter, but for what instances without a right to its key read.
    let encrypted: Vec<Option<&str>> = puts.iter().map(|put| put.encryption.as_deref()).collect();
    assert_eq!(encrypted, [Some("AES256"), Some("AES256"), None]);
}

/// S3 as far as PUT goes, behind a line of about 2.5 Mbit/s.
mod thin {
    use std::io::{BufRead, BufReader, Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::{Arc, Mutex};
    use std::time::Duration;

    /// One that was sent to its end.
    pub struct PutRequest {
        pub bytes: usize,
        /// How many others were under way when it began.
        pub beside: usize,
        /// What it asked the object to be encrypted with.
        pub encryption: Option<String>,
    }

    pub fn serve_puts() -> (String, Arc<Mutex<Vec<PutRequest>>>) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = format!("http://{}", listener.local_addr().expect("an address"));
        let puts = Arc::new(Mutex::new(Vec::new()));
        let (log, under_way) = (Arc::clone(&puts), Arc::new(AtomicUsize::new(0)));
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (log, under_way) = (Arc::clone(&log), Arc::clone(&under_way));
                let stream = stream.expect("a connection");
                std::thread::spawn(move || {
                    let beside = under_way.fetch_add(1, Ordering::SeqCst);
                    let put = receive_put(&stream, beside);
                    under_way.fetch_sub(1, Ordering::SeqCst);
                    if let Some(put) = put {
                        log.lock().expect("a lock").push(put);
                        let answer = "HTTP/1.1 200 OK\r\nETag: \"1\"\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
                        let _ = (&stream).write_all(answer.as_bytes());
                    }
                });
            }
        });
        (address, puts)
    }

    /// Reads a request slowly; `None`: whoever sent it gave up.
    fn receive_put(stream: &TcpStream, beside: usize) -> Option<PutRequest> {
        let mut reader = BufReader::new(stream);
        let (mut length, mut encryption) = (0, None);
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line).ok()? == 0 {
                return None;
            }
            let Some((name, value)) = line.trim().split_once(':') else {
                if line.trim().is_empty() {
                    break;
                }
                continue;
            };
            match name.to_lowercase().as_str() {
                "content-length" => length = value.trim().parse().ok()?,
                "x-amz-server-side-encryption" => encryption = Some(value.trim().to_owned()),
                _ => {}
            }
        }
        let mut bytes = 0;
        let mut piece = vec![0; 16 * 1024];
        while bytes < length {
            std::thread::sleep(Duration::from_millis(50));
            let most = piece.len().min(length - bytes);
            match reader.read(&mut piece[..most]) {
                Ok(0) | Err(_) => return None,
                Ok(read) => bytes += read,
            }
        }
        Some(PutRequest {
            bytes,
            beside,
            encryption,
        })
    }
}

/// Many objects go in few calls.
#[test]
fn a_thousand_objects_are_deleted_in_one_call() {
    let simulator = Simulator::start_simulator();
    let store = in_bucket(&simulator);
    simulator.run_python(
        REGION,
        "for n in range(1001): boto('s3').put_object(Bucket='state', Key=f'some/prefix/a/{n}', Body=b'x')",
    );
    new_runtime().block_on(async {
        let all = store.list("a/", None).await.expect("a list");
        let keys: Vec<String> = all.into_iter().map(|entry| entry.key).collect();
        assert_eq!(keys.len(), 1001);
        store.delete_all(&keys).await.expect("a deletion");
        assert!(store.list("", None).await.expect("a list").is_empty());
    });
    assert_eq!(
        simulator.calls_by_operation()["calls"]["s3.DeleteObjects"],
        2
    );
}

/// A file goes into both stores as it is, once, and only if it is what it is said to be.
#[test]
fn a_file_is_stored_once_and_only_with_the_content_it_is_said_to_have() {
    let simulator = Simulator::start_simulator();
    let dir = tempfile::tempdir().expect("a folder");
    let file = dir.path().join("binary");
    // More than a piece.
    let content: Vec<u8> = (0..3_000_000_u32).flat_map(u32::to_le_bytes).collect();
    std::fs::write(&file, &content).expect("a file");
    let digest = Sha256::digest(&content).to_vec();
    let other = Sha256::digest(b"something else").to_vec();
    for store in [
        in_bucket(&simulator),
        in_directory(&dir.path().join("store")),
    ] {
        new_runtime().block_on(async {
            let key = "assets/nodeup";
            assert_eq!(store.sha256(key).await.expect("an answer"), None);
            store
                .put_file(key, &file, &other, Encryption::S3Keys)
                .await
                .expect_err("a refusal");
            assert!(store.get(key).await.expect("an answer").is_none());
            store
                .put_file(key, &file, &digest, Encryption::S3Keys)
                .await
                .expect("a write");
            assert_eq!(
                store.sha256(key).await.expect("an answer"),
                Some(digest.clone())
            );
            let found = store.get(key).await.expect("an answer").expect("an object");
            assert!(found.bytes == content);
            let again = store
                .put_file(key, &file, &digest, Encryption::S3Keys)
                .await;
            assert!(
                matches!(again, Err(StoreError::Conflict { .. })),
                "{again:?}"
            );
        });
    }
}

/// The name of a bucket that was deleted can be registered by anybody. A store whose owner is known uses nobody else's bucket, whatever the
/// call, and neither does one that is opened from it.
#[test]
fn no_call_uses_a_bucket_of_another_account() {
    let simulator = Simulator::start_simulator();
    let own = in_bucket(&simulator);
    new_runtime().block_on(async {
        own.put("there", b"x".to_vec(), Expect::Any)
            .await
            .expect("a put");
        let owner = Owner::Account("210987654321".to_owned());
        let foreign = own.clone().owned_by(owner);
        let other = foreign
            .open_other("s3://state/some/prefix")
            .expect("a store");
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("file");
        std::fs::write(&file, b"y").expect("a file");
        let sha256 = Sha256::digest(b"y");
        for store in [&foreign, &other, &foreign.without_fence()] {
            let rest = folder.path().join("rest");
            let mut rest = std::fs::File::create(rest).expect("a file");
            let to = folder.path().join("to");
            let keys = ["there".to_owned()];
            let put_file = store.put_file("new", &file, &sha256, Encryption::Bucket);
            let in_parts = store.clone().splitting_above(0);
            let put_parts = in_parts.put_file("new", &file, &sha256, Encryption::Bucket);
            for (call, answer) in [
                ("get", store.get("there").await.map(drop)),
                (
                    "get of what is not there",
                    store.get("absent").await.map(drop),
                ),
                ("get_first", store.get_first("there", 1).await.map(drop)),
                ("get_file", store.get_file("there", &to).await.map(drop)),
                (
                    "get_rest",
                    store.get_rest("there", &mut rest, u64::MAX).await.map(drop),
                ),
                ("sha256", store.sha256("there").await.map(drop)),
                ("list", store.list("", None).await.map(drop)),
                ("keeps_versions", store.keeps_versions().await.map(drop)),
                (
                    "put",
                    store.put("there", Vec::new(), Expect::Any).await.map(drop),
                ),
                ("put_file", put_file.await),
                ("put_file in parts", put_parts.await),
                ("delete", store.delete("there", Expect::Any).await),
                ("delete_all", store.delete_all(&keys).await),
            ] {
                let denied = matches!(answer, Err(StoreError::Denied { .. }));
                assert!(denied, "{call}: {answer:?}");
            }
        }
        let owner = Owner::Account("123456789012".to_owned());
        let mine = own.owned_by(owner);
        assert!(mine.get("there").await.expect("an answer").is_some());
        assert!(mine.get("absent").await.expect("an answer").is_none());
        assert_eq!(mine.list("", None).await.expect("a list").len(), 1);
    });
}
