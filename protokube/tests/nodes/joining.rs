//! An instance that may join gets certificates for its own keys.

use crate::fakes::{FakeWorker, INSTANCE, TestCluster, running_instance};
use aws_client::store::Expect;
use node::bootstrap::{
    CertificateKind, JOIN_PATH, JoinReply, JoinRequest, KeyRecord, key_record_key,
};
use node::config::{NodeConfig, read_node_config, to_stored};
use node::pki::{KeysetItem, SystemKeys, keyset_path, mint_further, trust_bundle, write_keyset};
use node::secret::{DOCKER_CONFIG, Secret, stored_path, write_stored};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use time::{Duration, OffsetDateTime};
use x509_parser::pem::{Pem, parse_x509_pem};

fn parse_pem(pem: &str) -> Pem {
    parse_x509_pem(pem.as_bytes()).unwrap().1
}

/// The public key in a certificate.
fn public_key_of(pem: &str) -> Vec<u8> {
    let pem = parse_pem(pem);
    pem.parse_x509().unwrap().public_key().raw.to_vec()
}

async fn read_key_record(cluster: &TestCluster) -> KeyRecord {
    let object = cluster.store.get(&key_record_key(INSTANCE)).await;
    serde_json::from_slice(&object.unwrap().unwrap().bytes).unwrap()
}

#[tokio::test]
async fn a_worker_of_the_group_gets_its_configuration_and_its_certificates() {
    let cluster = TestCluster::start().await;
    let joined = cluster.new_worker().await.join().await.join_reply();
    assert_eq!(joined.node_config, cluster.node_config.text);
    let authority = parse_pem(&trust_bundle(&cluster.authority));
    let authority = authority.parse_x509().unwrap();
    for (certificate, subject, minutes) in [
        (
            CertificateKind::Kubelet,
            format!("CN=system:node:{INSTANCE}, O=system:nodes"),
            2 * 10,
        ),
        (
            CertificateKind::KubeProxy,
            "CN=system:kube-proxy".to_owned(),
            (60 + 2) * 24 * 60,
        ),
    ] {
        let pem = parse_pem(&joined.certificates[&certificate]);
        let leaf = pem.parse_x509().unwrap();
        assert_eq!(leaf.subject().to_string(), subject);
        leaf.verify_signature(Some(authority.public_key())).unwrap();
        let life = leaf.validity().not_after.timestamp() - leaf.validity().not_before.timestamp();
        assert_eq!(
            life,
            minutes * 60,
            "with its time for clocks that are behind: two days, or once more what it lives"
        );
    }
    let line = cluster.lines.json_lines().pop().unwrap();
    assert_eq!(line["instance"], INSTANCE);
    assert_eq!(line["status"], "finished");
    assert_eq!(read_key_record(&cluster).await.keys.len(), 2);
}

#[tokio::test]
async fn the_same_key_is_certified_again_at_any_time() {
    let cluster = TestCluster::start().await;
    let worker = cluster.new_worker().await;
    worker.join().await.join_reply();
    let before = read_key_record(&cluster).await;
    for exists in [Some(true), Some(false), None] {
        cluster.set_node_exists(exists);
        worker.join().await.join_reply();
    }
    assert_eq!(read_key_record(&cluster).await, before);
}

#[tokio::test]
async fn who_has_joined_gets_no_certificate_for_another_key() {
    let cluster = TestCluster::start().await;
    cluster.new_worker().await.join().await.join_reply();
    let before = read_key_record(&cluster).await;
    // Pods on the host's network have the role's credentials, and run on while somebody deletes the Node.
    let other = cluster.new_worker().await;
    for exists in [Some(true), Some(false), None] {
        cluster.set_node_exists(exists);
        let refused = other.join().await;
        assert_eq!(refused.status, 409, "{refused:?}");
        let way = format!("kctl delete instance {INSTANCE}");
        assert!(refused.refusal_reply().retry && refused.body.contains(&way));
        assert_eq!(read_key_record(&cluster).await, before);
    }
}

#[tokio::test]
async fn who_has_kubelets_key_gets_a_certificate_for_another_key_of_kube_proxy() {
    let cluster = TestCluster::start().await;
    let (worker, other) = (cluster.new_worker().await, cluster.new_worker().await);
    let first = worker.join().await.join_reply();
    cluster.set_node_exists(Some(true));
    let [mut join, another] = [&worker, &other]
        .map(|worker| -> JoinRequest { serde_json::from_slice(&worker.join_body()).unwrap() });
    join.requests.extend(
        another
            .requests
            .into_iter()
            .filter(|(kind, _)| *kind == CertificateKind::KubeProxy),
    );
    let body = serde_json::to_vec(&join).unwrap();
    let identity = worker.signed_identity(&body).await;
    let reply = worker.send_request(JOIN_PATH, Some(&identity), body).await;
    let second = reply.join_reply();
    let keys = |reply: &JoinReply, kind: CertificateKind| public_key_of(&reply.certificates[&kind]);
    let (kubelet, proxy) = (CertificateKind::Kubelet, CertificateKind::KubeProxy);
    assert_eq!(keys(&first, kubelet), keys(&second, kubelet));
    assert_ne!(keys(&first, proxy), keys(&second, proxy));
}

#[tokio::test]
async fn a_replay_of_an_accepted_request_serves_the_same_key_and_no_other() {
    let cluster = TestCluster::start().await;
    let worker = cluster.new_worker().await;
    let body = worker.join_body();
    let identity = worker.signed_identity(&body).await;
    let first = worker
        .send_request(JOIN_PATH, Some(&identity), body.clone())
        .await;
    cluster.set_node_exists(Some(true));
    let replayed = worker.send_request(JOIN_PATH, Some(&identity), body).await;
    let (first, replayed) = (first.join_reply(), replayed.join_reply());
    for (certificate, pem) in &first.certificates {
        assert_eq!(
            public_key_of(pem),
            public_key_of(&replayed.certificates[certificate])
        );
    }
    let thief = cluster.new_worker().await;
    let answer = thief
        .send_request(JOIN_PATH, Some(&identity), thief.join_body())
        .await;
    assert_eq!(answer.status, 403, "{answer:?}");
}

#[tokio::test]
async fn two_at_once_with_different_keys_do_not_both_get_theirs_recorded() {
    let cluster = TestCluster::start().await;
    let (one, other) = (cluster.new_worker().await, cluster.new_worker().await);
    let (one, other) = tokio::join!(one.join(), other.join());
    let record = read_key_record(&cluster).await;
    for answer in [one, other] {
        // The second request was refused: as busy, or because the instance has joined.
        if [503, 409].contains(&answer.status) {
            assert!(answer.refusal_reply().retry);
        } else {
            answer.join_reply();
        }
    }
    let kubelet = &record.keys[&CertificateKind::Kubelet];
    assert_eq!(kubelet, &record.keys[&CertificateKind::KubeProxy]);
}

#[tokio::test]
async fn instances_that_come_together_are_looked_up_together() {
    let cluster = TestCluster::start().await;
    let mut workers = Vec::new();
    for digit in 0..9 {
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
    assert!(cluster.aws.count_calls("DescribeInstances") < workers.len());
}

#[tokio::test]
async fn a_group_with_a_profile_of_its_own_joins_with_the_role_in_it() {
    let cluster = TestCluster::start().await;
    let worker = cluster.worker_of("mine", INSTANCE).await;
    assert_eq!(worker.join().await.status, 403);
    // The instance profile may have another name than its role; the role that the last update found counts.
    let config = format!("{}iamRole: mine\n", cluster.node_config.text);
    let key = &cluster.node_config.keys[1];
    let put = cluster
        .store
        .put(key, config.into(), aws_client::store::Expect::Any);
    put.await.unwrap();
    worker.join().await.join_reply();
}

#[tokio::test]
async fn passwords_of_registries_come_with_the_certificates_to_groups_that_have_them_and_to_nobody_else()
 {
    const PASSWORDS: &str = r#"{"auths": {"registry.example.com": {"auth": "c3dvcmRmaXNo"}}}"#;
    let cluster = TestCluster::start().await;
    let plain = &cluster.node_config;
    let config = read_node_config(&plain.text, &plain.sha256).unwrap();
    let with_passwords = to_stored(&NodeConfig {
        docker_config: true,
        ..config
    });
    let with_passwords = with_passwords.unwrap();
    let put = async |key: &str, text: &str| {
        let bytes = text.as_bytes().to_vec();
        cluster.store.put(key, bytes, Expect::Any).await.unwrap();
    };
    put(&with_passwords.keys[0], &with_passwords.text).await;
    let mut worker = cluster.new_worker().await;
    worker.node_config.clone_from(&with_passwords.sha256);

    // The passwords are missing: the worker retries, and the log says what is missing.
    assert!(worker.join().await.refusal_reply().retry);
    let line = cluster.lines.json_lines().pop().unwrap();
    assert!(
        line["detail"]
            .as_str()
            .unwrap()
            .contains("kctl create secret dockerconfig"),
        "{line}"
    );

    let object = write_stored(&Secret::new(PASSWORDS));
    put(&stored_path(DOCKER_CONFIG), object.reveal()).await;
    let joined = worker.join().await.join_reply();
    assert_eq!(joined.docker_config.unwrap().reveal(), PASSWORDS);
    // A pod on the Node, which has the role but not the key: first with its own key, then without any.
    cluster.set_node_exists(Some(true));
    let mut pod = cluster.new_worker().await;
    pod.node_config.clone_from(&with_passwords.sha256);
    let (kubelet, proxy) = (CertificateKind::Kubelet, CertificateKind::KubeProxy);
    for (requests, status) in [(&[kubelet, proxy][..], 409), (&[proxy], 400), (&[], 400)] {
        let answer = pod.join_for(requests).await;
        assert_eq!(answer.status, status, "{answer:?}");
        assert!(!answer.body.contains("c3dvcmRmaXNo") && !answer.body.contains("nodeConfig"));
    }
    // Of a group without passwords.
    cluster.set_node_exists(Some(false));
    let record = key_record_key(INSTANCE);
    cluster.store.delete(&record, Expect::Any).await.unwrap();
    let other = cluster.new_worker().await.join().await;
    assert!(!other.body.contains("c3dvcmRmaXNo") && other.join_reply().docker_config.is_none());
    let log_lines = cluster.lines.json_lines();
    assert!(
        log_lines
            .iter()
            .all(|line| !line.to_string().contains("c3dvcmRmaXNo"))
    );
}

/// While keys are rotated: the control plane was started before there was a second key.
#[tokio::test]
async fn a_worker_of_the_next_stage_of_a_rotation_gets_certificates_of_the_key_that_its_configuration_names()
 {
    let later = Arc::new(AtomicI64::new(0));
    let seconds = Arc::clone(&later);
    let clock =
        move || OffsetDateTime::now_utc() + Duration::seconds(seconds.load(Ordering::Relaxed));
    let cluster = TestCluster::start_at(Arc::new(clock)).await;
    let mut keyset = cluster.authority.clone();
    let now = OffsetDateTime::now_utc();
    let item = mint_further(&keyset, None, &mut SystemKeys::issuing_at(now)).unwrap();
    let new = keyset.add(item, now).unwrap();
    let put = async |key: &str, text: &str| {
        let bytes = text.as_bytes().to_vec();
        cluster.store.put(key, bytes, Expect::Any).await.unwrap();
    };
    put(
        &keyset_path("kubernetes-ca"),
        write_keyset(&keyset).unwrap().reveal(),
    )
    .await;
    let plain = &cluster.node_config;
    let config = read_node_config(&plain.text, &plain.sha256).unwrap();
    let mut promoted = keyset.clone();
    promoted.promote(&new).unwrap();
    let of_stage = |keyset: &node::pki::Keyset| {
        let mut config = NodeConfig {
            ca_certificates: trust_bundle(keyset),
            ..config.clone()
        };
        config.keysets = config.rotated_keysets(std::slice::from_ref(keyset));
        to_stored(&config).unwrap()
    };
    let mut worker = cluster.new_worker().await;
    worker.trusted = trust_bundle(&keyset);
    // The endpoint has not read the second key yet.
    assert_eq!(worker.join().await.status, 403);
    later.store(61, Ordering::Relaxed);
    for (stage, signs) in [(&keyset, &keyset.items[0]), (&promoted, &keyset.items[1])] {
        let stored = of_stage(stage);
        put(&stored.keys[0], &stored.text).await;
        worker.node_config.clone_from(&stored.sha256);
        expect_signed_by(&worker.join().await.join_reply(), signs);
    }
    // A configuration from before there was a second key.
    let path = keyset_path("kubernetes-ca");
    put(&path, write_keyset(&promoted).unwrap().reveal()).await;
    later.store(122, Ordering::Relaxed);
    let second = std::mem::replace(&mut worker.node_config, plain.sha256.clone());
    expect_signed_by(&worker.join().await.join_reply(), &keyset.items[0]);
    // The next stage has begun: a worker of this one still trusts both keys.
    let old = keyset.primary.clone();
    promoted.distrust(&old, "2030-01-01T00:00:00Z").unwrap();
    put(&path, write_keyset(&promoted).unwrap().reveal()).await;
    later.store(183, Ordering::Relaxed);
    worker.node_config = second;
    expect_signed_by(&worker.join().await.join_reply(), &keyset.items[1]);
}

fn expect_signed_by(joined: &JoinReply, signer: &KeysetItem) {
    let authority = parse_pem(&signer.certificate);
    for certificate in joined.certificates.values() {
        let leaf = parse_pem(certificate);
        let leaf = leaf.parse_x509().unwrap();
        let key = authority.parse_x509().unwrap();
        leaf.verify_signature(Some(key.public_key())).unwrap();
    }
}
