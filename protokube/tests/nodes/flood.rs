//! Who says nothing, or says it without end, keeps no worker from joining and fills no log.

use crate::fakes::{Cluster, Worker, instance};
use node::bootstrap::{CLUSTER_HEADER, JOIN_PATH, SignedIdentity};
use protokube::identity::system_clock;
use std::time::Duration;
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;

/// More than may be connected at once in all.
const IDLE: usize = 600;

#[tokio::test]
async fn idle_connections_of_one_pod_keep_no_worker_away() {
    let cluster = Cluster::start().await;
    let mut idle = Vec::new();
    for _ in 0..IDLE {
        idle.push(TcpStream::connect(cluster.address).await.unwrap());
    }
    // From the same address as all of those.
    cluster.worker().await.join().await.joined();
    let mut first = [0];
    assert_eq!(
        idle[0].read(&mut first).await.unwrap_or(0),
        0,
        "it made room"
    );
}

#[tokio::test]
async fn at_most_eight_ask_sts_at_once() {
    let cluster = Cluster::start().await;
    cluster.aws.state().sts.0 = Duration::from_millis(50);
    let mut workers = Vec::new();
    for digit in 0..10 {
        let id = format!("i-0123456789abcde{digit}0");
        cluster.aws.state().instances.push(instance(&id));
        let mut worker = cluster.worker_of("nodes.a.example.com", &id).await;
        worker.node = id;
        workers.push(worker);
    }
    let joining = workers.iter().map(Worker::join);
    for answer in futures::future::join_all(joining).await {
        answer.joined();
    }
    let most = cluster.aws.state().sts.2;
    assert_eq!(most, 8);
}

#[tokio::test]
async fn an_instance_that_was_heard_has_to_pause() {
    let pause = Duration::from_hours(1);
    let cluster = Cluster::start_with(system_clock(), Duration::ZERO, pause).await;
    let worker = cluster.worker().await;
    worker.join().await.joined();
    for answer in [worker.join().await, worker.report(b"{}".to_vec()).await] {
        assert_eq!(answer.status, 503, "{answer:?}");
        assert!(answer.refused().retry);
    }
    assert_eq!(cluster.aws.calls("DescribeInstances"), 1);
}

#[tokio::test]
async fn ec2_is_asked_once_in_a_pause_however_many_instances_ask() {
    let pause = Duration::from_millis(500);
    let cluster = Cluster::start_with(system_clock(), Duration::ZERO, pause).await;
    let mut workers = Vec::new();
    for number in 10..40 {
        let id = format!("i-0123456789abcde{number}");
        cluster.aws.state().instances.push(instance(&id));
        let mut worker = cluster.worker_of("nodes.a.example.com", &id).await;
        worker.node = id;
        workers.push(worker);
    }
    let begun = std::time::Instant::now();
    let joining = workers.iter().enumerate().map(async |(index, worker)| {
        let index = u32::try_from(index).unwrap();
        tokio::time::sleep(index * Duration::from_millis(60)).await;
        worker.join().await.joined();
    });
    futures::future::join_all(joining).await;
    let pauses = usize::try_from(begun.elapsed().as_millis() / pause.as_millis()).unwrap();
    let calls = cluster.aws.calls("DescribeInstances");
    assert!(calls <= pauses + 2, "{calls} calls in {pauses} pauses");
}

#[tokio::test]
async fn a_flood_of_refusals_is_one_line_and_no_line_is_longer_than_what_it_says() {
    let told = Duration::from_hours(1);
    let cluster = Cluster::start_with(system_clock(), told, Duration::ZERO).await;
    let worker = cluster.worker().await;
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
            .send(JOIN_PATH, Some(&identity(name)), b"{}".to_vec())
            .await;
        let error = answer.refused().error;
        assert!(
            error.contains("signed for the cluster") && error.len() < 300,
            "{error}"
        );
    }
    let lines = cluster.lines.json();
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(cluster.lines.text().len() < 500, "{lines:?}");
}
