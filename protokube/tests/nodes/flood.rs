//! Idle connections and floods of requests neither keep workers from joining nor fill the log.

use crate::fakes::{FakeWorker, TestCluster, running_instance};
use node::bootstrap::{CLUSTER_HEADER, JOIN_PATH, SignedIdentity};
use protokube::identity::system_clock;
use std::net::Ipv4Addr;
use std::time::Duration;
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;

/// More connections than the limit in total.
const IDLE: usize = 600;

#[tokio::test]
async fn idle_connections_of_one_pod_keep_no_worker_away() {
    let cluster = TestCluster::start().await;
    let mut idle = Vec::new();
    for _ in 0..IDLE {
        idle.push(TcpStream::connect(cluster.address).await.unwrap());
    }
    // From the same address as the idle connections.
    cluster.new_worker().await.join().await.join_reply();
    let mut first = [0];
    assert_eq!(
        idle[0].read(&mut first).await.unwrap_or(0),
        0,
        "it made room"
    );
}

#[tokio::test]
async fn at_most_eight_ask_sts_at_once() {
    let cluster = TestCluster::start().await;
    cluster.aws.lock_state().sts.0 = Duration::from_millis(50);
    let mut workers = Vec::new();
    for digit in 0..10 {
        let id = format!("i-0123456789abcde{digit}0");
        cluster
            .aws
            .lock_state()
            .instances
            .push(running_instance(&id));
        let mut worker = cluster.worker_of("nodes.a.example.com", &id).await;
        worker.node = id;
        workers.push(worker);
    }
    let joining = workers.iter().map(FakeWorker::join);
    for answer in futures::future::join_all(joining).await {
        answer.join_reply();
    }
    let most = cluster.aws.lock_state().sts.2;
    assert_eq!(most, 8);
}

#[tokio::test]
async fn an_instance_that_was_heard_has_to_pause() {
    let pause = Duration::from_hours(1);
    let cluster = TestCluster::start_with(system_clock(), Duration::ZERO, pause).await;
    let worker = cluster.new_worker().await;
    worker.join().await.join_reply();
    for answer in [
        worker.join().await,
        worker.send_report(b"{}".to_vec()).await,
    ] {
        assert_eq!(answer.status, 503, "{answer:?}");
        assert!(answer.refusal_reply().retry);
    }
    assert_eq!(cluster.aws.count_calls("DescribeInstances"), 1);
}

#[tokio::test]
async fn a_session_of_another_role_with_its_name_keeps_no_instance_busy() {
    // Also the time between two calls of EC2.
    let pause = Duration::from_secs(15);
    let cluster = TestCluster::start_with(system_clock(), Duration::ZERO, pause).await;
    let instance = cluster.new_worker().await;
    let id = instance.node.clone();
    let mut thief = cluster.worker_of("ci-job", &id).await;
    thief.node = id;
    assert_eq!(thief.join().await.status, 403);
    assert_eq!(thief.join().await.status, 503, "its own limit");
    instance.join().await.join_reply();
}

#[tokio::test]
async fn connections_from_pods_are_closed_at_once_and_take_no_place() {
    let cluster = TestCluster::start().await;
    let mut pods = Vec::new();
    for number in 0..IDLE {
        let [.., high, low] = u32::try_from(number).unwrap().to_be_bytes();
        let socket = tokio::net::TcpSocket::new_v4().unwrap();
        // The pods' range of the test cluster.
        let address = (Ipv4Addr::new(127, 96, high, low), 0);
        socket.bind(address.into()).unwrap();
        pods.push(socket.connect(cluster.address).await.unwrap());
    }
    let mut first = [0];
    for pod in &mut pods {
        assert_eq!(pod.read(&mut first).await.unwrap_or(0), 0);
    }
    cluster.new_worker().await.join().await.join_reply();
}

#[tokio::test]
async fn ec2_is_asked_once_in_a_pause_however_many_instances_ask() {
    let pause = Duration::from_millis(500);
    let cluster = TestCluster::start_with(system_clock(), Duration::ZERO, pause).await;
    let mut workers = Vec::new();
    for number in 10..40 {
        let id = format!("i-0123456789abcde{number}");
        cluster
            .aws
            .lock_state()
            .instances
            .push(running_instance(&id));
        let mut worker = cluster.worker_of("nodes.a.example.com", &id).await;
        worker.node = id;
        worker.connect_from(Ipv4Addr::new(127, 0, 1, number).into());
        workers.push(worker);
    }
    let begun = std::time::Instant::now();
    let joining = workers.iter().enumerate().map(async |(index, worker)| {
        let index = u32::try_from(index).unwrap();
        tokio::time::sleep(index * Duration::from_millis(60)).await;
        worker.join().await.join_reply();
    });
    futures::future::join_all(joining).await;
    let pauses = usize::try_from(begun.elapsed().as_millis() / pause.as_millis()).unwrap();
    let calls = cluster.aws.count_calls("DescribeInstances");
    assert!(calls <= pauses + 2, "{calls} calls in {pauses} pauses");
}

#[tokio::test]
async fn a_flood_of_refusals_is_one_line_and_no_line_is_longer_than_what_it_says() {
    let log_interval = Duration::from_hours(1);
    let cluster = TestCluster::start_with(system_clock(), log_interval, Duration::ZERO).await;
    let worker = cluster.new_worker().await;
    let identity = |name: String| {
        let list =
            format!("host;{CLUSTER_HEADER};x-amz-date;x-kctl-authority-sha256;x-kctl-body-sha256");
        let authorization = format!(
            "AWS4-HMAC-SHA256 Credential=A/20300101/eu-west-1/sts/aws4_request, SignedHeaders={list}, Signature=0"
        );
        let body = node::bootstrap::Binding::for_request(b"{}", &name, "");
        let mut headers: std::collections::BTreeMap<String, String> = body.headers().into();
        headers.insert("authorization".to_owned(), authorization);
        SignedIdentity { headers }
    };
    for number in 0..20 {
        let name = format!("{number}{}", "a".repeat(4000));
        let answer = worker
            .send_request(JOIN_PATH, Some(&identity(name)), b"{}".to_vec())
            .await;
        let error = answer.refusal_reply().error;
        assert!(
            error.contains("signed for the cluster") && error.len() < 300,
            "{error}"
        );
    }
    let lines = cluster.lines.json_lines();
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(cluster.lines.all_text().len() < 500, "{lines:?}");
}
