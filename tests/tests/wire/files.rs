//! Files to and from a bucket: whole whatever breaks, or not there at all.

use crate::simulator::Simulator;
use crate::store::{REGION, in_bucket, in_directory, new_runtime};
use aws_client::store::{Encryption, Expect, Store, StoreError};
use aws_client::{AccessKey, AccessOptions, Clients};
use sha2::{Digest, Sha256};
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const KEY: &str = "snapshot/etcd.backup.gz";

/// A file with bytes that differ everywhere.
fn write_file(folder: &Path, bytes: u32) -> (PathBuf, Vec<u8>, Vec<u8>) {
    let content: Vec<u8> = (0..bytes / 4).flat_map(u32::to_le_bytes).collect();
    let file = folder.join("file");
    std::fs::write(&file, &content).expect("a file");
    let digest = Sha256::digest(&content).to_vec();
    (file, content, digest)
}

#[test]
fn a_file_beyond_one_request_is_sent_in_parts_and_only_whole() {
    let simulator = Simulator::start_simulator();
    let dir = tempfile::tempdir().expect("a folder");
    let (file, content, digest) = write_file(dir.path(), 20 << 20);
    let store = in_bucket(&simulator).splitting_above(6 << 20);
    let put = async |sha256: &[u8]| store.put_file(KEY, &file, sha256, Encryption::Bucket).await;
    new_runtime().block_on(async {
        // What changes while it is sent is not stored, and S3 keeps none of its parts.
        put(&Sha256::digest(b"other")).await.expect_err("a refusal");
        assert!(store.get(KEY).await.expect("an answer").is_none());
        put(&digest).await.expect("a write");
        let read = store.get(KEY).await.expect("an answer").expect("an object");
        assert!(read.bytes == content);
        let again = put(&digest).await;
        assert!(
            matches!(again, Err(StoreError::Conflict { .. })),
            "{again:?}"
        );
        let to = dir.path().join("received");
        let got = store.get_file(KEY, &to).await.expect("an answer");
        assert_eq!(got, Some(digest.clone()));
        assert!(std::fs::read(&to).expect("a file") == content);
    });
    let calls = simulator.calls_by_operation();
    assert_eq!(calls["calls"]["s3.PutObject"], serde_json::Value::Null);
    let left = simulator.run_python(
        REGION,
        "print(len(boto('s3').list_multipart_uploads(Bucket='state').get('Uploads', [])))",
    );
    assert_eq!(left.trim(), "0");
}

/// A write whose answer is lost may have happened: then it was this one, or somebody else's.
#[test]
fn a_file_whose_answer_was_lost_is_stored_once() {
    let simulator = Simulator::start_simulator();
    let dir = tempfile::tempdir().expect("a folder");
    let (file, content, digest) = write_file(dir.path(), 3 << 20);
    let lost = |operation: &str| {
        let code = "kill-connection";
        simulator.set_faults(&serde_json::json!([
            {"service": "s3", "operation": operation, "code": code, "after": true}
        ]));
    };
    let whole = in_bucket(&simulator);
    let parted = whole.clone().splitting_above(1 << 20);
    for (store, operation) in [
        (&whole, "PutObject"),
        (&parted, "s3.CompleteMultipartUpload"),
    ] {
        new_runtime().block_on(async {
            lost(operation);
            let put = store.put_file(KEY, &file, &digest, Encryption::Bucket);
            put.await.expect("a write");
            let read = store.get(KEY).await.expect("an answer").expect("an object");
            assert!(read.bytes == content);
            store.delete(KEY, Expect::Any).await.expect("a deletion");
            // Somebody else's is left alone.
            let theirs = store.put(KEY, b"theirs".to_vec(), Expect::Any).await;
            theirs.expect("a write");
            let put = store.put_file(KEY, &file, &digest, Encryption::Bucket);
            let put = put.await;
            assert!(matches!(put, Err(StoreError::Conflict { .. })), "{put:?}");
            store.delete(KEY, Expect::Any).await.expect("a deletion");
        });
    }
}

/// S3 as far as GET goes, whose bodies end early. Says which first bytes were asked for.
fn serve_short_bodies(
    content: Vec<u8>,
    most: usize,
    changes: bool,
) -> (String, Arc<Mutex<Vec<usize>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = format!("http://{}", listener.local_addr().expect("an address"));
    let asked = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&asked);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.expect("a connection");
            let (from, is_same) = read_request(&stream);
            log.lock().expect("a lock").push(from);
            if from > 0 && (changes || !is_same) {
                let answer = "HTTP/1.1 412 Precondition Failed\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
                let _ = stream.write_all(answer.as_bytes());
                continue;
            }
            let rest = &content[from..];
            let _ = stream.write_all(answer_head(from, rest.len()).as_bytes());
            let _ = stream.write_all(&rest[..rest.len().min(most)]);
        }
    });
    (address, asked)
}

/// The head of S3's answer with so many bytes from a byte on.
fn answer_head(from: usize, bytes: usize) -> String {
    let status = if from == 0 {
        "200 OK"
    } else {
        "206 Partial Content"
    };
    format!(
        "HTTP/1.1 {status}\r\nETag: \"v1\"\r\nConnection: close\r\nContent-Length: {bytes}\r\n\r\n"
    )
}

/// The first byte that a request asks for, and whether it asks for the version that is there.
fn read_request(stream: &TcpStream) -> (usize, bool) {
    let mut reader = BufReader::new(stream);
    let (mut from, mut is_same) = (0, false);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).expect("a request");
        let line = line.trim().to_lowercase();
        if line.is_empty() {
            return (from, is_same);
        }
        if let Some(range) = line.strip_prefix("range: bytes=") {
            from = range.trim_end_matches('-').parse().expect("a number");
        }
        is_same |= line == "if-match: \"v1\"";
    }
}

async fn open_store(endpoint: String) -> Store {
    open_store_with(endpoint, None).await
}

/// With so much time for an attempt of a call.
async fn open_store_with(endpoint: String, attempt_timeout: Option<Duration>) -> Store {
    let access = AccessOptions {
        region: Some(REGION.to_owned()),
        endpoint: Some(endpoint),
        keys: Some(AccessKey {
            id: "AKIAEXAMPLE".to_owned(),
            secret: "secret".to_owned(),
            session: None,
        }),
        attempt_timeout,
        ..AccessOptions::default()
    };
    Store::open("s3://short", &Clients::from_access(&access).await).expect("a store")
}

#[test]
fn a_body_that_ends_early_is_gone_on_with_where_it_ended() {
    let dir = tempfile::tempdir().expect("a folder");
    let (_, content, digest) = write_file(dir.path(), 1 << 20);
    let to = dir.path().join("received");
    let (endpoint, asked) = serve_short_bodies(content.clone(), 300_000, false);
    let runtime = new_runtime();
    let got = runtime.block_on(async { open_store(endpoint).await.get_file(KEY, &to).await });
    assert_eq!(got.expect("an answer"), Some(digest));
    assert!(std::fs::read(&to).expect("a file") == content);
    let asked = asked.lock().expect("a lock").clone();
    assert_eq!(asked, [0, 300_000, 600_000, 900_000]);
    // An object that another one has replaced meanwhile is not mixed with it.
    let (endpoint, _) = serve_short_bodies(content, 300_000, true);
    let got = runtime.block_on(async { open_store(endpoint).await.get_file(KEY, &to).await });
    got.expect_err("a refusal");
    assert!(!to.exists());
}

/// S3 that says nothing to the first request, and stands still in its answer to the second. It closes no connection.
fn serve_and_stand_still(content: Vec<u8>, after: usize) -> (String, Arc<Mutex<Vec<usize>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = format!("http://{}", listener.local_addr().expect("an address"));
    let asked = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&asked);
    std::thread::spawn(move || {
        let mut open = Vec::new();
        for (number, stream) in listener.incoming().enumerate() {
            let mut stream = stream.expect("a connection");
            let (from, _) = read_request(&stream);
            log.lock().expect("a lock").push(from);
            let rest = &content[from..];
            if number > 0 {
                let sent = if number == 1 { after } else { rest.len() };
                let _ = stream.write_all(answer_head(from, rest.len()).as_bytes());
                let _ = stream.write_all(&rest[..sent]);
            }
            open.push(stream);
        }
    });
    (address, asked)
}

/// Otherwise a restore would wait for ever. The SDK takes five seconds without a byte for the end of a body.
#[test]
fn a_server_that_stands_still_is_given_up_and_asked_for_the_rest() {
    let dir = tempfile::tempdir().expect("a folder");
    let (_, content, digest) = write_file(dir.path(), 1 << 16);
    let to = dir.path().join("received");
    let (endpoint, asked) = serve_and_stand_still(content.clone(), 20_000);
    let patience = Some(Duration::from_secs(2));
    let got = new_runtime().block_on(async {
        let store = open_store_with(endpoint, patience).await;
        store.get_file(KEY, &to).await
    });
    assert_eq!(got.expect("an answer"), Some(digest));
    assert!(std::fs::read(&to).expect("a file") == content);
    let asked = asked.lock().expect("a lock").clone();
    assert_eq!(asked, [0, 0, 20_000]);
}

#[test]
fn what_is_received_is_a_new_file_or_none() {
    let dir = tempfile::tempdir().expect("a folder");
    let others = dir.path().join("theirs");
    std::fs::write(&others, "theirs").expect("a file");
    let simulator = Simulator::start_simulator();
    let to = dir.path().join("received");
    for store in [
        in_bucket(&simulator),
        in_directory(&dir.path().join("store")),
    ] {
        new_runtime().block_on(async {
            assert_eq!(store.get_file(KEY, &to).await.expect("an answer"), None);
            assert!(!to.exists());
            let put = store.put(KEY, vec![7; 100_000], Expect::Any).await;
            put.expect("a write");
            // No folder to write to.
            let nowhere = dir.path().join("absent/received");
            let error = store.get_file(KEY, &nowhere).await;
            let why = format!("{:?}", error.expect_err("no folder"));
            assert!(why.contains("No such file or directory"), "{why}");
            // What is there already may be somebody else's: it is replaced, not written to.
            std::os::unix::fs::symlink(&others, &to).expect("a link");
            let got = store.get_file(KEY, &to).await;
            assert!(got.expect("an answer").is_some());
            assert_eq!(std::fs::read(&others).expect("a file"), b"theirs");
            let written = to.symlink_metadata().expect("a file");
            assert!(written.is_file() && written.permissions().mode() & 0o777 == 0o600);
            std::fs::remove_file(&to).expect("a file");
        });
    }
}

/// Whoever may write an object cannot fill the disk of who reads it.
#[test]
fn no_more_is_received_than_the_object_may_have() {
    let dir = tempfile::tempdir().expect("a folder");
    let simulator = Simulator::start_simulator();
    let to = dir.path().join("received");
    for store in [
        in_bucket(&simulator),
        in_directory(&dir.path().join("store")),
    ] {
        new_runtime().block_on(async {
            let put = store.put(KEY, vec![7; 100_000], Expect::Any).await;
            put.expect("a write");
            for most in [0, 1, 99_999] {
                let got = store.get_file_within(KEY, &to, most).await;
                assert!(matches!(got, Err(StoreError::TooLarge { .. })), "{got:?}");
                assert!(!to.exists());
                let mut file = std::fs::File::create_new(dir.path().join("rest")).expect("a file");
                let got = store.get_rest(KEY, &mut file, most).await;
                assert!(matches!(got, Err(StoreError::TooLarge { .. })), "{got:?}");
                assert_eq!(file.metadata().expect("a file").len(), 0);
                std::fs::remove_file(dir.path().join("rest")).expect("a file");
            }
            let got = store.get_file_within(KEY, &to, 100_000).await;
            assert!(got.expect("an answer").is_some());
            std::fs::remove_file(&to).expect("a file");
        });
    }
    // A body without a length.
    let endpoint = serve_answers(vec![endless_answer()]);
    let runtime = new_runtime();
    let got = runtime.block_on(async {
        let store = open_store(endpoint).await;
        store.get_file_within(KEY, &to, 500_000).await
    });
    assert!(matches!(got, Err(StoreError::TooLarge { .. })), "{got:?}");
    assert!(!to.exists());
}

/// The answer of S3 for a range behind the last byte (S3 API reference, "List of error codes": `InvalidRange`, 416).
fn out_of_range_answer() -> Vec<u8> {
    let body = "<Error><Code>InvalidRange</Code><Message>The requested range is not satisfiable</Message></Error>";
    let head = "HTTP/1.1 416 Requested Range Not Satisfiable\r\nConnection: close\r\n";
    format!("{head}Content-Length: {}\r\n\r\n{body}", body.len()).into_bytes()
}

fn endless_answer() -> Vec<u8> {
    let mut answer = b"HTTP/1.1 200 OK\r\nETag: \"v1\"\r\nConnection: close\r\n\r\n".to_vec();
    answer.resize(2 << 20, 7);
    answer
}

/// Gives these answers, the last one for ever.
fn serve_answers(answers: Vec<Vec<u8>>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = format!("http://{}", listener.local_addr().expect("an address"));
    std::thread::spawn(move || {
        for (number, stream) in listener.incoming().enumerate() {
            let mut stream = stream.expect("a connection");
            read_request(&stream);
            let answer = answers.get(number).or(answers.last()).expect("an answer");
            let _ = stream.write_all(answer);
        }
    });
    address
}

/// A body that fails behind its last byte: that is why, and not that nothing is behind it.
#[test]
fn a_body_that_fails_at_its_end_is_the_reason() {
    let dir = tempfile::tempdir().expect("a folder");
    let to = dir.path().join("received");
    let head =
        "HTTP/1.1 200 OK\r\nETag: \"v1\"\r\nConnection: close\r\nContent-Length: 1001\r\n\r\n";
    let cut = [head.as_bytes(), &[7; 1000]].concat();
    let endpoint = serve_answers(vec![cut, out_of_range_answer()]);
    let got = new_runtime().block_on(async { open_store(endpoint).await.get_file(KEY, &to).await });
    let why = format!("{:?}", got.expect_err("a failure"));
    assert!(!why.contains("InvalidRange"), "{why}");
    assert!(!to.exists());
}
