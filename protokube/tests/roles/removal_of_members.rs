//! Tests of members that the spec has no longer: another one removes them from etcd, whenever protokube or the instance dies, and their
//! data is kept and never started again.

use crate::etcd::{
    AT_ONCE, LINK, let_settle, member_of, read_record, serving_member, settle_through_death,
    write_record,
};
use crate::test_host::{FakeEc2, FakeEtcd, FakeQuorum, TestHost};
use etcd_member::{EtcdMember, StepOutcome};
use etcd_rules::{FormationRecord, set_leaving};
use node::config::NodeConfig;
use std::collections::BTreeSet;

fn new_member(host: &TestHost, config: &NodeConfig) -> EtcdMember<FakeEc2, FakeEtcd, FakeQuorum> {
    member_of(host, config.clone(), AT_ONCE)
}

/// What an update does with the members of the spec.
async fn update(host: &TestHost, wanted: &[&str]) {
    let wanted: BTreeSet<String> = wanted.iter().map(ToString::to_string).collect();
    let record = read_record(host).await;
    if let Some(next) = set_leaving(&record, &wanted).unwrap() {
        write_record(host, &next);
    }
}

/// A host whose member a serves, and is to remain with b. The member c leads.
async fn remaining_member() -> (TestHost, NodeConfig) {
    let (host, config) = serving_member(true, true).await;
    host.kubelet.lock().unwrap().leader = Some("c".to_owned());
    update(&host, &["a", "b"]).await;
    (host, config)
}

fn members(record: &FormationRecord) -> Vec<&str> {
    record.members.keys().map(String::as_str).collect()
}

async fn assert_removed(host: &TestHost, what: &str) {
    let record = read_record(host).await;
    assert_eq!(members(&record), ["a", "b"], "{what}");
    let removed: Vec<&str> = record
        .retired_members("c")
        .map(|one| one.volume.as_str())
        .collect();
    assert_eq!(removed, ["vol-0c"], "{what}");
    assert!(record.has_left("c") && !record.leaving["c"].begun, "{what}");
    let kubelet = host.kubelet.lock().unwrap();
    assert_eq!(kubelet.listed_names(), ["etcd-a", "etcd-b"], "{what}");
    assert!(
        kubelet.leader.as_ref().is_some_and(|id| id != "c"),
        "{what}: c led"
    );
}

#[tokio::test]
async fn another_member_removes_the_one_that_leaves_and_the_leadership_moves_before() {
    let (host, config) = remaining_member().await;
    let starts = host.kubelet.lock().unwrap().starts;
    let_settle(&new_member(&host, &config)).await;
    assert_removed(&host, "at once").await;
    assert_eq!(
        host.kubelet.lock().unwrap().starts,
        starts,
        "etcd is not restarted"
    );
    // The names of those that remain are all that it asks from then on.
    host.reboot();
    let_settle(&new_member(&host, &config)).await;
    assert_removed(&host, "after a reboot").await;
}

/// protokube dies at each change, file or call, and the host may reboot each time.
#[tokio::test]
async fn a_protokube_that_dies_anywhere_goes_on_with_the_removal() {
    let (whole, config) = remaining_member().await;
    let first = whole.fuse.lock().unwrap().done;
    let_settle(&new_member(&whole, &config)).await;
    let calls = whole.fuse.lock().unwrap().done - first;
    assert!(calls > 8, "{calls}");
    for dies_at in 1..=calls {
        for reboots in [false, true] {
            let what = format!("dies at {dies_at}, reboots: {reboots}");
            let (host, config) = remaining_member().await;
            settle_through_death(&host, &config, (dies_at, reboots), &what).await;
            // A member that has just started is well before it looks after others.
            let member = new_member(&host, &config);
            let_settle(&member).await;
            let_settle(&member).await;
            assert_removed(&host, &what).await;
        }
    }
}

/// What is needed for the quorum has to answer; the one that leaves need not.
#[tokio::test]
async fn nothing_is_removed_while_another_member_does_not_answer() {
    let (host, config) = remaining_member().await;
    let silent = |id: &str| {
        let mut kubelet = host.kubelet.lock().unwrap();
        kubelet.silent = [id.to_owned()].into();
        kubelet.leader = None;
    };
    silent("b");
    let member = new_member(&host, &config);
    let before = read_record(&host).await;
    for _ in 0..5 {
        assert_eq!(member.take_step().await.unwrap(), StepOutcome::Settled);
    }
    assert_eq!(read_record(&host).await, before);
    assert_eq!(host.kubelet.lock().unwrap().listed_names().len(), 3);
    silent("c");
    let_settle(&member).await;
    let record = read_record(&host).await;
    assert_eq!(members(&record), ["a", "b"]);
}

/// Its data is not started, also after a reboot, and stays where it is until the spec has the member again.
#[tokio::test]
async fn a_removed_member_is_hidden_its_data_kept_and_it_comes_back_as_a_new_one() {
    let (host, config) = serving_member(true, true).await;
    update(&host, &["b", "c"]).await;
    let mut record = read_record(&host).await;
    let own = record.members.remove("a").unwrap();
    let old_id = own.member_id.clone().unwrap();
    record.retire_member("a", &own);
    write_record(&host, &record);
    host.kubelet.lock().unwrap().remove_member(&old_id);
    for _ in 0..3 {
        let member = new_member(&host, &config);
        assert_eq!(member.take_step().await.unwrap(), StepOutcome::Waits);
        assert_eq!(host.host.link_target(LINK).unwrap(), None);
        assert!(host.wal_path().exists());
        host.reboot();
    }
    assert_eq!(read_record(&host).await, record);
    update(&host, &["a", "b", "c"]).await;
    let_settle(&new_member(&host, &config)).await;
    let record = read_record(&host).await;
    let new_id = record.members["a"].member_id.clone().unwrap();
    assert!(new_id != old_id && host.path_on_disk("var/etcd/data.lost-1").exists());
    let kubelet = host.kubelet.lock().unwrap();
    assert_eq!(kubelet.listed(), [(new_id, true)]);
}
