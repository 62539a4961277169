//! Tests of a member of three that lost its data: a new member takes its place, whenever protokube or the instance dies.

use crate::etcd::{
    AT_ONCE, LINK, let_settle, member_of, read_record, serving_member, settle_through_death,
};
use crate::test_host::{
    FakeEc2, FakeEtcd, FakeQuorum, TestHost, log_files, write_log, write_log_to,
};
use etcd_member::{EtcdMember, StepOutcome};
use etcd_rules::{LogIdentity, LogPosition, record_key};
use node::config::NodeConfig;
use std::fs;

type Member = EtcdMember<FakeEc2, FakeEtcd, FakeQuorum>;

/// How a member loses its data. The host is off.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Loss {
    LogRemoved,
    LogZeroed,
    LogCutOff,
    VolumeDeleted,
}

const LOSSES: [Loss; 4] = [
    Loss::LogRemoved,
    Loss::LogZeroed,
    Loss::LogCutOff,
    Loss::VolumeDeleted,
];

fn lose_data(host: &TestHost, loss: Loss) {
    match loss {
        Loss::LogRemoved => fs::remove_dir_all(host.wal_path().parent().unwrap()).unwrap(),
        Loss::LogZeroed => fs::write(log_files(&host.wal_path()).remove(0), [0; 64]).unwrap(),
        Loss::LogCutOff => cut_off_log(host),
        Loss::VolumeDeleted => {
            let mut volumes = host.cloud.volumes.lock().unwrap();
            volumes.retain(|volume| volume.id != "vol-0a");
            drop(volumes);
            host.cloud.add_volume_of("vol-0n", "main", "a/a,b,c", None);
        }
    }
}

/// A host whose member of three has lost its data while it was off.
async fn unlucky_member(loss: Loss) -> (TestHost, NodeConfig) {
    let (host, config) = serving_member(true, true).await;
    if loss == Loss::LogCutOff {
        grow_log(&host);
        let_settle(&new_member(&host, &config)).await;
    }
    host.reboot();
    lose_data(&host, loss);
    (host, config)
}

/// The member writes to its log.
pub fn grow_log(host: &TestHost) {
    let position = LogPosition { term: 2, index: 50 };
    write_log_to(&host.wal_path(), &read_identity(host), position);
}

/// The newest records of the log are lost.
pub fn cut_off_log(host: &TestHost) {
    let position = LogPosition { term: 2, index: 40 };
    write_log_to(&host.wal_path(), &read_identity(host), position);
}

fn read_identity(host: &TestHost) -> LogIdentity {
    let file = log_files(&host.wal_path()).remove(0);
    etcd_rules::log_identity(&fs::read(file).unwrap()).unwrap()
}

fn new_member(host: &TestHost, config: &NodeConfig) -> Member {
    member_of(host, config.clone(), AT_ONCE)
}

/// The member votes under a new id. If kubelet restarts its container and the log is gone, etcd does not begin another.
async fn assert_replaced(host: &TestHost, what: &str) {
    let record = read_record(host).await;
    assert_eq!(record.replacing, None, "{what}");
    let id = record.members["a"].member_id.clone().unwrap();
    let kubelet = host.kubelet.lock().unwrap();
    assert_eq!(kubelet.listed(), [(id.clone(), true)], "{what}");
    assert!(id.starts_with("ad"), "{what}: {id}");
    assert_eq!(kubelet.founded, 1, "{what}");
    drop(kubelet);
    let volume = record.members["a"].volume.clone();
    let data = host.path(&format!("mnt/master-{volume}/var/etcd/data"));
    fs::rename(data.join("member"), host.path("kept")).unwrap();
    let mut kubelet = host.kubelet.lock().unwrap();
    let running = kubelet.running.clone();
    let error = kubelet.restart_container().unwrap_err().to_string();
    // After a reboot its manifest names no peers.
    let refused = ["unmatched member", "cannot fetch cluster info"];
    let refused = refused.iter().any(|why| error.contains(why));
    assert!(refused, "{what}: {error}");
    kubelet.running = running;
    fs::rename(host.path("kept"), data.join("member")).unwrap();
}

#[tokio::test]
async fn a_member_that_lost_its_data_is_replaced_and_the_old_data_kept() {
    for loss in LOSSES {
        let (host, config) = unlucky_member(loss).await;
        let before = read_record(&host).await;
        let_settle(&new_member(&host, &config)).await;
        assert_replaced(&host, &format!("{loss:?}")).await;
        let after = read_record(&host).await;
        assert_eq!(after.generation, before.generation, "the same cluster");
        assert_ne!(after.members["a"].member_id, before.members["a"].member_id);
        let aside = host.path_on_disk("var/etcd/data.lost-1");
        let kept = matches!(loss, Loss::LogZeroed | Loss::LogCutOff);
        assert_eq!(aside.exists(), kept, "{loss:?}");
        // From then on it is a member like every other.
        host.reboot();
        let_settle(&new_member(&host, &config)).await;
        assert_eq!(host.kubelet.lock().unwrap().lives, 2);
    }
}

/// protokube dies at each change, file or call, and the host may reboot each time.
#[tokio::test]
async fn a_protokube_that_dies_anywhere_goes_on_with_the_replacement() {
    for loss in LOSSES {
        let (whole, config) = unlucky_member(loss).await;
        let first = whole.fuse.lock().unwrap().done;
        let_settle(&new_member(&whole, &config)).await;
        let calls = whole.fuse.lock().unwrap().done - first;
        assert!(calls > 8, "{calls}");
        for dies_at in 1..=calls {
            for reboots in [false, true] {
                let what = format!("{loss:?}, dies at {dies_at}, reboots: {reboots}");
                let (host, config) = unlucky_member(loss).await;
                settle_through_death(&host, &config, (dies_at, reboots), &what).await;
                assert_replaced(&host, &what).await;
            }
        }
    }
}

#[tokio::test]
async fn without_a_quorum_nothing_is_replaced() {
    for loss in LOSSES {
        let (host, config) = unlucky_member(loss).await;
        host.kubelet.lock().unwrap().peers = false;
        let before = host.store.get(&record_key("main")).await.unwrap().unwrap();
        let member = new_member(&host, &config);
        for _ in 0..20 {
            assert_eq!(member.take_step().await.unwrap(), StepOutcome::Waits);
        }
        let after = host.store.get(&record_key("main")).await.unwrap().unwrap();
        assert_eq!(after.bytes, before.bytes, "{loss:?}");
        assert!(host.kubelet.lock().unwrap().running.is_none(), "{loss:?}");
        host.kubelet.lock().unwrap().peers = true;
        let_settle(&member).await;
    }
}

/// A volume is attached again whose member was removed from the cluster.
#[tokio::test]
async fn a_removed_member_never_runs_again() {
    let (host, config) = unlucky_member(Loss::LogZeroed).await;
    let_settle(&new_member(&host, &config)).await;
    host.reboot();
    let old = LogIdentity {
        cluster_id: read_identity(&host).cluster_id,
        member_id: "b0b".to_owned(),
    };
    fs::remove_dir_all(host.wal_path()).unwrap();
    write_log(&host.wal_path(), &old);
    let error = new_member(&host, &config).take_step().await.unwrap_err();
    assert!(format!("{error:#}").contains("b0b"), "{error:#}");
    assert_eq!(host.host.link_target(LINK).unwrap(), None);
}
