//! A refused worker gets the reason, one line is logged, and nothing else happens.

use crate::fakes::{EndpointReply, INSTANCE, TestCluster};
use node::bootstrap::{
    AUTHORITY_HEADER, BODY_HEADER, Binding, CLUSTER_HEADER, JOIN_LIMIT, JOIN_PATH, REPORT_PATH,
    key_record_key,
};
use node::digest::sha256_hex;
use std::time::Duration;

/// Asserts status, reason and retry flag of a refusal, one log line without secrets, and that no key was recorded.
async fn assert_refused(
    cluster: &TestCluster,
    answer: &EndpointReply,
    status: u16,
    why: &str,
    retry: bool,
) {
    let refused = answer.refusal_reply();
    assert_eq!(
        (answer.status, refused.retry),
        (status, retry),
        "{answer:?}"
    );
    assert!(refused.error.contains(why), "{answer:?}");
    let lines = cluster.lines.json_lines();
    let line = lines.last().unwrap();
    assert_eq!(line["status"], "failed");
    assert!(line["detail"].as_str().unwrap().contains(why), "{line}");
    let text = cluster.lines.all_text();
    for secret in ["token of", "secret of", "Signature=", "PRIVATE KEY"] {
        assert!(!text.contains(secret), "{text}");
    }
    let record = cluster.store.get(&key_record_key(INSTANCE)).await.unwrap();
    assert_eq!(record, None);
}

/// Asserts a refusal before any call of AWS.
async fn refused_at_once(
    cluster: &TestCluster,
    answer: &EndpointReply,
    status: u16,
    why: &str,
    retry: bool,
) {
    assert_refused(cluster, answer, status, why, retry).await;
    assert!(cluster.aws.lock_state().calls.is_empty());
}

/// Asserts a refusal after a call of EC2: the log line names the instance.
async fn refused_known(
    cluster: &TestCluster,
    answer: &EndpointReply,
    status: u16,
    why: &str,
    retry: bool,
) {
    assert_refused(cluster, answer, status, why, retry).await;
    assert_eq!(
        cluster.lines.json_lines().last().unwrap()["instance"],
        INSTANCE
    );
}

#[tokio::test]
async fn a_foreign_role() {
    for role in ["masters.a.example.com", "nodes.b.example.com", "admin"] {
        let cluster = TestCluster::start().await;
        let answer = cluster.worker_of(role, INSTANCE).await.join().await;
        refused_known(
            &cluster,
            &answer,
            403,
            "is not the role of this cluster's nodes",
            false,
        )
        .await;
    }
}

#[tokio::test]
async fn who_is_no_instance_or_of_another_account() {
    let cluster = TestCluster::start().await;
    let person = cluster.worker_of("nodes.a.example.com", "alice").await;
    let answer = person.join().await;
    assert_refused(
        &cluster,
        &answer,
        403,
        "is not the role of an instance",
        false,
    )
    .await;
    let worker = cluster.new_worker().await;
    for (_, arn) in cluster.aws.lock_state().keys.values_mut() {
        *arn = arn.replace("123456789012", "999999999999");
    }
    let answer = worker.join().await;
    assert_refused(
        &cluster,
        &answer,
        403,
        "the AWS account 999999999999",
        false,
    )
    .await;
    assert_eq!(cluster.aws.count_calls("DescribeInstances"), 0);
}

#[tokio::test]
async fn an_instance_of_another_cluster() {
    let cluster = TestCluster::start().await;
    cluster.change_instance(|instance| {
        let own = instance.tags.get_mut("KubernetesCluster").unwrap();
        "b.example.com".clone_into(own);
    });
    let answer = cluster.new_worker().await.join().await;
    refused_known(
        &cluster,
        &answer,
        403,
        "does not belong to a.example.com",
        false,
    )
    .await;
}

#[tokio::test]
async fn an_instance_that_does_not_run() {
    for (state, retry) in [("terminated", false), ("stopped", false), ("pending", true)] {
        let cluster = TestCluster::start().await;
        cluster.change_instance(|instance| state.clone_into(&mut instance.state));
        let answer = cluster.new_worker().await.join().await;
        let why = format!("{state}, not running");
        refused_known(&cluster, &answer, 403, &why, retry).await;
    }
    let cluster = TestCluster::start().await;
    cluster.aws.lock_state().instances.clear();
    let answer = cluster.new_worker().await.join().await;
    refused_known(
        &cluster,
        &answer,
        403,
        "EC2 does not know the instance",
        true,
    )
    .await;
}

#[tokio::test]
async fn a_stale_date_and_a_future_date() {
    let cluster = TestCluster::start().await;
    let mut worker = cluster.new_worker().await;
    let (now, minutes) = (worker.now, Duration::from_mins(6));
    for signed in [now - minutes, now + minutes] {
        worker.now = signed;
        let answer = worker.join().await;
        refused_at_once(&cluster, &answer, 403, "more than five minutes", true).await;
    }
}

#[tokio::test]
async fn our_clock_counts_not_the_callers() {
    let ahead = || time::OffsetDateTime::now_utc() + time::Duration::minutes(10);
    let cluster = TestCluster::start_at(std::sync::Arc::new(ahead)).await;
    let answer = cluster.new_worker().await.join().await;
    refused_at_once(&cluster, &answer, 403, "more than five minutes", true).await;
}

#[tokio::test]
async fn binding_headers_that_are_not_signed() {
    let cluster = TestCluster::start().await;
    let worker = cluster.new_worker().await;
    let body = worker.join_body();
    let good = worker.signed_identity(&body).await;
    for name in [
        BODY_HEADER,
        CLUSTER_HEADER,
        AUTHORITY_HEADER,
        "host",
        "x-amz-date",
    ] {
        let mut identity = good.clone();
        let authorization = identity.headers.get_mut("authorization").unwrap();
        *authorization = authorization.replace(name, "content-type");
        let answer = worker
            .send_request(JOIN_PATH, Some(&identity), body.clone())
            .await;
        let why = format!("does not cover {name}");
        refused_at_once(&cluster, &answer, 403, &why, false).await;
    }
}

#[tokio::test]
async fn binding_headers_put_in_after_signing() {
    let cluster = TestCluster::start().await;
    let worker = cluster.new_worker().await;
    let body = worker.join_body();
    let mut identity = worker.signed_identity(b"what it signed").await;
    let own = Binding::for_request(&body, &worker.cluster, &worker.trusted).headers();
    identity.headers.extend(own);
    let answer = worker.send_request(JOIN_PATH, Some(&identity), body).await;
    assert_refused(&cluster, &answer, 403, "SignatureDoesNotMatch", true).await;
}

#[tokio::test]
async fn another_body_under_the_same_signature() {
    let cluster = TestCluster::start().await;
    let worker = cluster.new_worker().await;
    let identity = worker.signed_identity(&worker.join_body()).await;
    let other = cluster.new_worker().await.join_body();
    let answer = worker.send_request(JOIN_PATH, Some(&identity), other).await;
    refused_at_once(
        &cluster,
        &answer,
        403,
        "signed for a different request",
        false,
    )
    .await;
    // A signature for joining is not valid for a report.
    let answer = worker
        .send_request(REPORT_PATH, Some(&identity), b"{}".to_vec())
        .await;
    refused_at_once(
        &cluster,
        &answer,
        403,
        "signed for a different request",
        false,
    )
    .await;
}

#[tokio::test]
async fn another_cluster_or_another_authority() {
    let cluster = TestCluster::start().await;
    let mut worker = cluster.new_worker().await;
    "b.example.com".clone_into(&mut worker.cluster);
    let answer = worker.join().await;
    refused_at_once(&cluster, &answer, 403, "the cluster b.example.com", false).await;
    let mut worker = cluster.new_worker().await;
    worker.trusted.push_str("of somebody else");
    let answer = worker.join().await;
    refused_at_once(&cluster, &answer, 403, "does not trust", true).await;
}

#[tokio::test]
async fn a_signature_for_another_sts() {
    let cluster = TestCluster::start().await;
    let elsewhere = aws_client::Clients::from_access(&aws_client::AccessOptions {
        region: Some("us-east-1".to_owned()),
        keys: Some(aws_client::AccessKey {
            id: "AKIAWORKER".to_owned(),
            secret: "secret of AKIAWORKER".to_owned(),
            session: None,
        }),
        ..aws_client::AccessOptions::default()
    })
    .await;
    let instance = aws_client::ec2_query::Ec2QueryClient::at_endpoint(
        &elsewhere,
        "http://sts.us-east-1.amazonaws.com",
    );
    let worker = crate::fakes::FakeWorker::new(&cluster, instance.unwrap());
    let answer = worker.join().await;
    refused_at_once(&cluster, &answer, 403, "sts.us-east-1.amazonaws.com", false).await;
}

#[tokio::test]
async fn a_certificate_of_another_node() {
    let cluster = TestCluster::start().await;
    let mut worker = cluster.new_worker().await;
    "i-0aaaaaaaaaaaaaaaa".clone_into(&mut worker.node);
    let answer = worker.join().await;
    let own = format!("system:node:{INSTANCE}");
    refused_known(&cluster, &answer, 403, &own, false).await;
}

#[tokio::test]
async fn a_node_of_whose_key_nothing_is_known() {
    let cluster = TestCluster::start().await;
    cluster.set_node_exists(Some(true));
    let answer = cluster.new_worker().await.join().await;
    refused_known(&cluster, &answer, 409, "joined with another key", true).await;
}

#[tokio::test]
async fn a_new_key_while_the_api_server_does_not_answer() {
    let cluster = TestCluster::start().await;
    cluster.set_node_exists(None);
    let answer = cluster.new_worker().await.join().await;
    refused_known(
        &cluster,
        &answer,
        503,
        "the API server is not available",
        true,
    )
    .await;
}

#[tokio::test]
async fn sts_or_ec2_that_do_not_answer() {
    let cluster = TestCluster::start().await;
    cluster.aws.lock_state().failing = Some((503, "ServiceUnavailable"));
    let answer = cluster.new_worker().await.join().await;
    assert_refused(&cluster, &answer, 503, "STS is not available", true).await;
    cluster.aws.lock_state().failing = Some((403, "ExpiredToken"));
    let answer = cluster.new_worker().await.join().await;
    assert_refused(&cluster, &answer, 403, "ExpiredToken", true).await;
}

#[tokio::test]
async fn another_group_and_an_unknown_configuration() {
    let cluster = TestCluster::start().await;
    let mut worker = cluster.new_worker().await;
    "control-plane-eu-west-1a".clone_into(&mut worker.group);
    let answer = worker.join().await;
    refused_known(
        &cluster,
        &answer,
        403,
        "belongs to the instance group",
        false,
    )
    .await;
    let mut worker = cluster.new_worker().await;
    worker.node_config = sha256_hex("another");
    let answer = worker.join().await;
    refused_known(&cluster, &answer, 403, "run `kctl update --yes`", true).await;
    for no_hash in ["", "../../pki/private/kubernetes-ca/keyset"] {
        no_hash.clone_into(&mut worker.node_config);
        let answer = worker.join().await;
        refused_known(&cluster, &answer, 400, "invalid sha256", false).await;
    }
    // The instance's tag names a group that has no worker role.
    cluster.change_instance(|instance| {
        let group = instance.tags.get_mut("kops.k8s.io/instancegroup").unwrap();
        "control-plane-eu-west-1a".clone_into(group);
    });
    let mut worker = cluster.new_worker().await;
    "control-plane-eu-west-1a".clone_into(&mut worker.group);
    let answer = worker.join().await;
    refused_known(&cluster, &answer, 403, "has no NodeConfig", true).await;
}

#[tokio::test]
async fn what_is_too_large_or_makes_no_sense() {
    let cluster = TestCluster::start().await;
    let worker = cluster.new_worker().await;
    let large = vec![b' '; JOIN_LIMIT + 1];
    let identity = worker.signed_identity(&large).await;
    let answer = worker.send_request(JOIN_PATH, Some(&identity), large).await;
    refused_at_once(&cluster, &answer, 413, "more than", false).await;
    let answer = worker
        .send_request(JOIN_PATH, None, worker.join_body())
        .await;
    refused_at_once(&cluster, &answer, 400, "is missing", false).await;
    let identity = worker.signed_identity(b"{}").await;
    let answer = worker
        .send_request(JOIN_PATH, Some(&identity), b"{}".to_vec())
        .await;
    refused_known(&cluster, &answer, 400, "is not a join request", false).await;
    assert_eq!(worker.send_request("/", None, Vec::new()).await.status, 404);
}
