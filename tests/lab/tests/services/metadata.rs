//! IMDS as EC2 documents it and cloud-init expects it. The instances are 127.0.0.2 and 127.0.0.3.

use crate::support::{Answer, curl, instance, log_at, stand_in, world};
use lab::services::access_log::AccessLog;
use lab::services::metadata::{Metadata, serve, token::Tokens};
use lab::services::simulator::Simulator;
use lab::world::World;
use proptest::prelude::*;
use serde_json::json;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::sync::watch;

struct Imds {
    url: String,
    folder: TempDir,
    /// Seconds that the service's clock is ahead.
    ahead: Arc<AtomicU64>,
    asked: Arc<Mutex<Vec<String>>>,
    world: watch::Sender<Arc<World>>,
}

async fn imds(change: impl Fn(&mut World)) -> Imds {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&asked);
    let simulator = stand_in(move |head, _| {
        let path = head.split(' ').nth(1).expect("path").to_owned();
        let id = path.rsplit('/').next().expect("id").to_owned();
        noted.lock().expect("lock").push(path);
        json!({
            "meta-data": {
                "ami-id": "ami-1",
                "instance-id": id,
                "iam": {"security-credentials": {"nodes": "{\"Code\" : \"Success\"}"}},
                "network": {"interfaces": {"macs": {"02:aa": {"device-number": "0"}}}},
                "public-keys": {"0": {"openssh-key": "ssh-ed25519 AAAA admin key\n"}},
                "security-groups": ["one", "two"],
                "spot": null,
            "tags": {"instance": {"a=b@c": "tagged"}},
            },
            "dynamic": {"instance-identity": {"document": "{}"}},
            "user-data": if id == "i-1" { json!("IyEvYmluL3NoCgD/") } else { json!(null) },
        })
        .to_string()
        .into_bytes()
    })
    .await;
    let mut world = world();
    world.instances = vec![
        instance("i-1", "vpc-1", Ipv4Addr::new(127, 0, 0, 2)),
        instance("i-2", "vpc-1", Ipv4Addr::new(127, 0, 0, 3)),
    ];
    change(&mut world);
    let folder = TempDir::new().expect("folder");
    let log = AccessLog::open(&folder.path().join("log")).expect("log");
    let (sender, receiver) = watch::channel(Arc::new(world));
    let ahead = Arc::new(AtomicU64::new(0));
    let (begin, shared) = (Instant::now(), Arc::clone(&ahead));
    let clock = Arc::new(move || begin + Duration::from_secs(shared.load(Ordering::SeqCst)));
    let simulator = Simulator { address: simulator };
    let metadata = Metadata::new(receiver, simulator, log, clock).expect("random");
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("bind");
    let address: SocketAddr = listener.local_addr().expect("address");
    tokio::spawn(serve(Arc::new(metadata), listener));
    Imds {
        url: format!("http://{address}"),
        folder,
        ahead,
        asked,
        world: sender,
    }
}

impl Imds {
    async fn from(&self, source: &str, path: &str, arguments: &[&str]) -> Answer {
        let url = format!("{}{path}", self.url);
        let mut all = vec!["--interface", source, "--path-as-is", &url];
        all.extend_from_slice(arguments);
        curl(&all).await.expect("an answer")
    }

    async fn put(&self, source: &str, header: &str) -> Answer {
        let put = ["-X", "PUT", "-H", header];
        self.from(source, "/latest/api/token", &put).await
    }

    async fn token(&self, source: &str) -> String {
        let header = "X-aws-ec2-metadata-token-ttl-seconds: 60";
        let answer = self.put(source, header).await;
        assert_eq!(answer.status, 200);
        answer.text().to_owned()
    }

    async fn read(&self, source: &str, token: &str, path: &str) -> Answer {
        let header = format!("X-aws-ec2-metadata-token: {token}");
        self.from(source, path, &["-H", &header]).await
    }
}

const ONE: &str = "127.0.0.2";
const TWO: &str = "127.0.0.3";

#[tokio::test]
async fn a_token_is_asked_for_with_the_seconds_it_holds() {
    let imds = imds(|_| {}).await;
    let ttl = |value: &str| format!("X-aws-ec2-metadata-token-ttl-seconds: {value}");
    for (value, status) in [
        ("1", 200),
        ("21600", 200),
        ("0", 400),
        ("21601", 400),
        ("-1", 400),
        ("soon", 400),
    ] {
        let answer = imds.put(ONE, &ttl(value)).await;
        assert_eq!(answer.status, status, "{value}");
        if status == 200 {
            assert_eq!(answer.text().len(), 56);
            let told = answer.header("x-aws-ec2-metadata-token-ttl-seconds");
            assert_eq!(told, Some(value));
        }
    }
    assert_eq!(imds.put(ONE, "Accept: */*").await.status, 400, "no TTL");
    let (ttl, proxied) = (ttl("60"), "X-Forwarded-For: 10.0.0.9");
    let arguments = ["-X", "PUT", "-H", &ttl, "-H", proxied];
    let answer = imds.from(ONE, "/latest/api/token", &arguments).await;
    assert_eq!(answer.status, 403, "through a proxy");
    let answer = imds.from(ONE, "/latest/meta-data/", &["-X", "PUT"]).await;
    assert_eq!(answer.status, 405);
}

#[tokio::test]
async fn without_a_token_of_ones_own_nothing_is_read_where_tokens_are_required() {
    let imds = imds(|_| {}).await;
    let path = "/latest/meta-data/instance-id";
    let answer = imds.from(ONE, path, &[]).await;
    assert_eq!(answer.status, 401);
    assert!(answer.text().contains("<h1>401 - Unauthorized</h1>"));
    assert_eq!(imds.from(ONE, "/", &[]).await.status, 401);

    let token = imds.token(ONE).await;
    let answer = imds.read(ONE, &token, path).await;
    assert_eq!((answer.status, answer.text()), (200, "i-1"));
    assert_eq!(answer.header("server"), Some("ec2ws"));
    let foreign = imds.read(TWO, &token, path).await;
    assert_eq!(foreign.status, 401, "another instance's token");
    assert_eq!(imds.read(ONE, "nonsense", path).await.status, 401);

    imds.ahead.store(59, Ordering::SeqCst);
    assert_eq!(imds.read(ONE, &token, path).await.status, 200);
    imds.ahead.store(60, Ordering::SeqCst);
    assert_eq!(imds.read(ONE, &token, path).await.status, 401, "too old");
}

#[tokio::test]
async fn where_tokens_are_optional_a_bad_one_is_still_refused() {
    let imds = imds(|world| world.instances[0].tokens_required = false).await;
    let path = "/latest/meta-data/instance-id";
    assert_eq!(imds.from(ONE, path, &[]).await.text(), "i-1");
    assert_eq!(imds.read(ONE, "nonsense", path).await.status, 401);
    assert_eq!(imds.from(TWO, path, &[]).await.status, 401);
}

#[tokio::test]
async fn paths_list_and_give_what_ec2_does() {
    let imds = imds(|_| {}).await;
    let token = imds.token(ONE).await;
    let root = "ami-id\niam/\ninstance-id\nnetwork/\npublic-keys/\nsecurity-groups\ntags/";
    for (path, expected) in [
        ("/latest", "dynamic\nmeta-data\nuser-data"),
        ("/latest/", "dynamic\nmeta-data\nuser-data"),
        ("/latest/meta-data", root),
        ("/latest/meta-data/", root),
        ("/2021-03-23/meta-data/", root),
        ("/2009-04-04/meta-data/instance-id", "i-1"),
        ("/latest/meta-data/instance-id/", "i-1"),
        ("/latest/meta-data/iam/security-credentials/", "nodes"),
        ("/latest/meta-data/iam/security-credentials", "nodes"),
        ("/latest/meta-data/network/interfaces/macs/", "02:aa/"),
        ("/latest/meta-data/public-keys/", "0=admin key"),
        ("/latest/meta-data/public-keys/0/", "openssh-key"),
        (
            "/latest/meta-data/public-keys/0/openssh-key",
            "ssh-ed25519 AAAA admin key\n",
        ),
        ("/latest/meta-data/security-groups", "one\ntwo"),
        ("/latest/meta-data/tags/instance/", "a=b@c"),
        ("/latest/meta-data/tags/instance/a=b%40c", "tagged"),
        ("/latest/dynamic/instance-identity/document", "{}"),
    ] {
        let answer = imds.read(ONE, &token, path).await;
        assert_eq!((answer.status, answer.text()), (200, expected), "{path}");
    }
    for path in [
        "/latest/meta-data/spot",
        "/latest/meta-data/instance-id/more",
        "/latest/nothing",
        "/1999-01-01/meta-data/",
        "/latest/meta-data/../user-data",
    ] {
        let answer = imds.read(ONE, &token, path).await;
        assert_eq!(answer.status, 404, "{path}");
        assert!(answer.text().contains("404 - Not Found"));
    }
    let versions = imds.read(ONE, &token, "/").await;
    assert!(versions.text().starts_with("1.0\n2007-01-19\n"));
    assert!(versions.text().ends_with("\nlatest"));
}

#[tokio::test]
async fn user_data_is_bytes_or_absent() {
    let imds = imds(|_| {}).await;
    let token = imds.token(ONE).await;
    let answer = imds.read(ONE, &token, "/latest/user-data").await;
    assert_eq!(answer.body, b"#!/bin/sh\n\0\xff");
    assert_eq!(
        answer.header("content-type"),
        Some("application/octet-stream")
    );
    let token = imds.token(TWO).await;
    let answer = imds.read(TWO, &token, "/latest/user-data").await;
    assert_eq!(answer.status, 404);
    let answer = imds.read(TWO, &token, "/latest/").await;
    assert_eq!(answer.text(), "dynamic\nmeta-data");
}

#[tokio::test]
async fn who_is_no_instance_gets_no_answer_and_a_terminated_one_is_none() {
    let imds = imds(|world| {
        world.instances[1].state = lab::world::InstanceState::Terminated;
    })
    .await;
    for source in ["127.0.0.9", TWO] {
        let url = format!("{}/latest/meta-data/", imds.url);
        let answer = curl(&["--interface", source, &url]).await;
        assert!(answer.is_none(), "{source}: {answer:?}");
    }
    let log = log_at(&imds.folder.path().join("log"));
    assert_eq!(log[0]["status"], 0);
    assert_eq!(log[0]["source"], "127.0.0.9");
}

#[tokio::test]
async fn a_burst_of_reads_asks_the_simulator_once_and_a_change_of_the_world_asks_again() {
    let imds = imds(|_| {}).await;
    let token = imds.token(ONE).await;
    for _ in 0..5 {
        imds.read(ONE, &token, "/latest/meta-data/ami-id").await;
    }
    assert_eq!(
        *imds.asked.lock().expect("lock"),
        ["/_simulator/metadata/i-1"]
    );
    imds.world
        .send_modify(|world| Arc::make_mut(world).serial += 1);
    imds.read(ONE, &token, "/latest/meta-data/ami-id").await;
    assert_eq!(imds.asked.lock().expect("lock").len(), 2);

    let log = log_at(&imds.folder.path().join("log"));
    assert_eq!(log.len(), 7, "each request is logged");
    assert_eq!(log[0]["method"], "PUT");
    let read = &log[1];
    assert_eq!(read["instance"], "i-1");
    assert_eq!(read["path"], "/latest/meta-data/ami-id");
    assert_eq!((&read["status"], &read["bytes"]), (&json!(200), &json!(5)));
}

proptest! {
    #[test]
    fn a_token_holds_for_its_instance_until_its_end_and_for_nobody_else(
        seconds in 1_u64..=21_600, later in 0_u64..30_000, at in 0_usize..56, other in "[A-Za-z0-9]"
    ) {
        let begin = Instant::now();
        let tokens = Tokens::new(begin).expect("random");
        let token = tokens.issue("i-1", seconds, begin);
        let then = begin + Duration::from_secs(later);
        prop_assert_eq!(tokens.left("i-1", &token, then).is_some(), later < seconds);
        prop_assert_eq!(tokens.left("i-2", &token, begin), None);
        let mut forged = token.clone();
        forged.replace_range(at..=at, &other);
        prop_assert_eq!(tokens.left("i-1", &forged, begin).is_some(), forged == token);
        let elsewhere = Tokens::new(begin).expect("random");
        prop_assert_eq!(elsewhere.left("i-1", &token, begin), None);
    }
}
