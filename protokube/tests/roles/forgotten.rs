//! Tests of what an operator has forgotten: a member that never comes while a cluster is founded, and a whole etcd cluster that is
//! founded anew, whenever protokube or the instance dies.

use crate::etcd::{
    AT_ONCE, let_settle, member_of, read_record, serving_member, settle_through_death, write_record,
};
use crate::test_host::{TestHost, config_of_three, founder_identity, pass_fuse};
use etcd_member::StepOutcome;
use etcd_rules::{forget_member, found_anew};
use std::fs;
use std::sync::Arc;

/// The machine of c never comes; that of b has seen its volume.
#[tokio::test]
async fn those_that_are_there_found_the_cluster_without_the_forgotten_member() {
    let host = TestHost::new().await;
    host.cloud.add_volumes_of_three();
    let config = config_of_three();
    let member = member_of(&host, config.clone(), AT_ONCE);
    for _ in 0..6 {
        let _ = member.take_step().await;
    }
    assert_eq!(member.take_step().await.unwrap(), StepOutcome::Waits);
    let mut record = read_record(&host).await;
    assert!(
        forget_member(&record, "a", None).is_err(),
        "its volume was seen"
    );
    record.members.get_mut("b").unwrap().blank = true;
    let record = forget_member(&record, "c", None).unwrap();
    assert!(host.kubelet.lock().unwrap().running.is_none());
    write_record(&host, &record);
    let_settle(&member).await;
    let record = read_record(&host).await;
    assert!(record.is_formed());
    assert!(record.members.keys().eq(["a", "b"]));
    let manifest = host.kubelet.lock().unwrap().running.clone().unwrap();
    assert!(
        manifest.contains("etcd-b=https://") && !manifest.contains("etcd-c="),
        "{manifest}"
    );
}

const NEW_TOKEN: &str = "anew";

/// The lone member of a cluster serves, and an operator has given the cluster up.
async fn given_up() -> (TestHost, node::config::NodeConfig, String) {
    let (mut host, config) = serving_member(false, true).await;
    let fuse = host.fuse.clone();
    let dies = move || pass_fuse(&fuse).is_err();
    host.host = host.host.with_stop(Arc::new(dies));
    let record = read_record(&host).await;
    let cluster_id = record.formed_id().unwrap().to_owned();
    write_record(&host, &found_anew(&record, NEW_TOKEN).unwrap());
    // The API serves without events, so kubelet ends pods.
    host.kubelet.lock().unwrap().peers = true;
    (host, config, cluster_id)
}

async fn assert_founded_anew(host: &TestHost, before: &str, what: &str) {
    let record = read_record(host).await;
    let founded = founder_identity(NEW_TOKEN);
    assert_eq!(
        record.formed_id(),
        Some(founded.cluster_id.as_str()),
        "{what}"
    );
    let old = &record.retired[before].members["a"];
    assert!(old[0].member_id.is_some(), "{what}");
    let old = host.path_on_disk("var/etcd/data.lost-1/member/wal");
    assert_eq!(fs::read_dir(old).unwrap().count(), 1, "{what}");
    assert!(
        !host.path_on_disk("var/etcd/data.lost-2").exists(),
        "{what}"
    );
    assert_eq!(host.kubelet.lock().unwrap().founded, 2, "{what}");
}

#[tokio::test]
async fn a_cluster_that_is_given_up_is_founded_anew_beside_its_old_data() {
    let (host, config, before) = given_up().await;
    let_settle(&member_of(&host, config.clone(), AT_ONCE)).await;
    assert_founded_anew(&host, &before, "at once").await;
    host.reboot();
    let_settle(&member_of(&host, config, AT_ONCE)).await;
    assert_founded_anew(&host, &before, "after a reboot").await;
}

/// protokube dies at each change, file or call, and the host may reboot each time.
#[tokio::test]
async fn a_protokube_that_dies_anywhere_goes_on_founding_anew() {
    let (whole, config, _) = given_up().await;
    let first = whole.fuse.lock().unwrap().done;
    let_settle(&member_of(&whole, config, AT_ONCE)).await;
    let calls = whole.fuse.lock().unwrap().done - first;
    assert!(calls > 15, "{calls}");
    for dies_at in 1..=calls {
        for reboots in [false, true] {
            let what = format!("dies at {dies_at} of {calls}, reboots: {reboots}");
            let (host, config, before) = given_up().await;
            settle_through_death(&host, &config, (dies_at, reboots), &what).await;
            assert_founded_anew(&host, &before, &what).await;
        }
    }
}

/// The others have not stopped yet, so their old cluster may still run.
#[tokio::test]
async fn nothing_is_founded_anew_before_every_member_has_set_its_data_aside() {
    let (host, config) = serving_member(true, true).await;
    let record = found_anew(&read_record(&host).await, NEW_TOKEN).unwrap();
    write_record(&host, &record);
    let member = member_of(&host, config, AT_ONCE);
    for _ in 0..8 {
        let _ = member.take_step().await;
    }
    let mut record = read_record(&host).await;
    assert!(record.members["a"].prepared && !record.members["b"].prepared);
    assert_eq!(host.kubelet.lock().unwrap().founded, 1);
    assert!(host.kubelet.lock().unwrap().running.is_none());
    record
        .members
        .values_mut()
        .for_each(|one| one.prepared = true);
    write_record(&host, &record);
    host.kubelet.lock().unwrap().peers = false;
    host.reboot();
    let_settle(&member).await;
    assert!(read_record(&host).await.is_formed());
}
