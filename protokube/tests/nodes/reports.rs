//! Boot reports of workers are stored in the state store.

use crate::fakes::{GROUP, INSTANCE, NAME, TestCluster};
use node::bootstrap::REPORT_LIMIT;
use node::report::{BootReport, REPORT_FORMAT, report_key};

fn boot_report(instance: &str) -> BootReport {
    BootReport {
        format: REPORT_FORMAT,
        instance: instance.to_owned(),
        cluster: NAME.to_owned(),
        group: GROUP.to_owned(),
        release: "0.1.0".to_owned(),
        fips: false,
        node_config: "0".repeat(64),
        started: "2030-01-01T00:00:00Z".to_owned(),
        stages: Vec::new(),
        changes: 3,
        changed: vec!["unit/containerd.service".to_owned()],
        error: Some("containerd does not start".to_owned()),
    }
}

fn report_body(instance: &str) -> Vec<u8> {
    serde_json::to_vec(&boot_report(instance)).unwrap()
}

#[tokio::test]
async fn an_instances_last_report_is_kept() {
    let cluster = TestCluster::start().await;
    let worker = cluster.new_worker().await;
    for _ in 0..2 {
        let answer = worker.send_report(report_body(INSTANCE)).await;
        assert_eq!(answer.status, 204, "{answer:?}");
    }
    let object = cluster.store.get(&report_key(INSTANCE)).await.unwrap();
    let kept: BootReport = serde_json::from_slice(&object.unwrap().bytes).unwrap();
    assert_eq!(kept, boot_report(INSTANCE));
}

#[tokio::test]
async fn nobody_reports_for_another_instance() {
    let cluster = TestCluster::start().await;
    let worker = cluster.new_worker().await;
    let other = "i-0aaaaaaaaaaaaaaaa";
    let answer = worker.send_report(report_body(other)).await;
    assert_eq!(answer.status, 400, "{answer:?}");
    assert!(answer.refusal_reply().error.contains("another instance"));
    let large = worker.send_report(vec![b' '; REPORT_LIMIT + 1]).await;
    assert_eq!(large.status, 413, "{large:?}");
    for instance in [INSTANCE, other] {
        assert_eq!(
            cluster.store.get(&report_key(instance)).await.unwrap(),
            None
        );
    }
}
