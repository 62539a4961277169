//! Tests of one etcd member from a blank volume to serving, and of failures on the way.

use crate::test_host::{
    FakeEc2, FakeEtcd, FakeQuorum, INSTANCE, TestHost, ZONE, config_of_three,
    config_of_three_in_a_group, encode_log, founder_identity, log_files, node_config, write_log,
    write_log_to,
};
use aws_client::ec2_query::Attachment;
use etcd_member::{EtcdMember, MemberSettings, RunningEtcd, SettledClusters, StepOutcome};
use etcd_rules::{FormationRecord, Generation, LogPosition, record_key};
use etcd_store::FormationStore;
use node::config::NodeConfig;
use node::waits::Wait;
use protokube::supervise::{Backoff, supervise_role};
use protokube_role::current_waits::CurrentWaits;
use protokube_role::log::RoleLog;
use protokube_role::pace::{PollPace, sleep_for};
use std::collections::BTreeMap;
use std::fs;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

pub const LINK: &str = "/etc/kubernetes/manifests/etcd-main.manifest";

/// A pace without pauses.
pub const AT_ONCE: PollPace = PollPace {
    quick: Duration::ZERO,
    waiting: Duration::ZERO,
    rest: Duration::ZERO,
    sleep: sleep_for,
};

/// A member's role after a start of protokube.
fn new_member(host: &TestHost) -> EtcdMember<FakeEc2, FakeEtcd, FakeQuorum> {
    member_of(host, node_config(), AT_ONCE)
}

/// A member's role with this pace.
pub fn member_with(
    host: &TestHost,
    etcd: &str,
    pace: PollPace,
) -> EtcdMember<FakeEc2, FakeEtcd, FakeQuorum> {
    new_member_with(
        host,
        node_config(),
        etcd,
        pace,
        watch::channel(BTreeMap::new()).0,
        RoleLog::for_role(format!("etcd-{etcd}")),
    )
}

pub fn member_of(
    host: &TestHost,
    config: NodeConfig,
    pace: PollPace,
) -> EtcdMember<FakeEc2, FakeEtcd, FakeQuorum> {
    new_member_with(
        host,
        config,
        "main",
        pace,
        watch::channel(BTreeMap::new()).0,
        RoleLog::for_role("etcd-main"),
    )
}

/// Runs a member supervised, with its waits recorded.
async fn run_supervised(host: &TestHost, config: &NodeConfig, current_waits: &Arc<CurrentWaits>) {
    let role_log = || RoleLog::for_role("etcd-main").recording_waits(current_waits, "member a");
    let settled = watch::channel(BTreeMap::new()).0;
    let hour = PollPace {
        rest: Duration::from_hours(1),
        ..AT_ONCE
    };
    let member = new_member_with(host, config.clone(), "main", hour, settled, role_log());
    let quick = Backoff {
        first: Duration::from_millis(1),
        longest: Duration::from_hours(1),
    };
    match supervise_role(role_log(), quick, || member.run_member()).await {}
}

/// Runs a member until the condition holds for the waits, and returns them.
pub async fn wait_for_waits(
    host: &TestHost,
    config: &NodeConfig,
    current_waits: &Arc<CurrentWaits>,
    like: impl Fn(&[Wait]) -> bool,
) -> Vec<Wait> {
    let until = async {
        while !like(&current_waits.list_waits()) {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        current_waits.list_waits()
    };
    tokio::select! {
        () = run_supervised(host, config, current_waits) => unreachable!(),
        waits = until => waits,
    }
}

fn new_member_with(
    host: &TestHost,
    config: NodeConfig,
    etcd: &str,
    pace: PollPace,
    settled: SettledClusters,
    role_log: RoleLog,
) -> EtcdMember<FakeEc2, FakeEtcd, FakeQuorum> {
    let settings = member_settings(config, etcd, pace);
    let kubelet = match etcd {
        "main" => Arc::clone(&host.kubelet),
        _ => host.new_events_kubelet(),
    };
    let quorum = FakeQuorum {
        kubelet: Arc::clone(&kubelet),
        fuse: host.fuse.clone(),
    };
    let running = FakeEtcd {
        kubelet,
        fuse: host.fuse.clone(),
    };
    EtcdMember::new(
        settings,
        Arc::clone(&host.cloud),
        host.host.clone(),
        FormationStore::new(&host.store, etcd),
        (running, quorum),
        Arc::new(settled),
        role_log,
    )
}

pub fn member_settings(config: NodeConfig, etcd: &str, pace: PollPace) -> MemberSettings {
    let all = config.control_plane.clone().unwrap().etcd;
    MemberSettings {
        etcd: all.into_iter().find(|one| one.name == etcd).unwrap(),
        config: Arc::new(config),
        first_device: 0,
        instance: INSTANCE.into(),
        zone: ZONE.into(),
        pace,
        confirm_after: Duration::ZERO,
        token: || Ok("token".to_owned()),
    }
}

pub fn running_etcd(host: &TestHost) -> FakeEtcd {
    FakeEtcd {
        kubelet: Arc::clone(&host.kubelet),
        fuse: host.fuse.clone(),
    }
}

/// A host whose member serves: alone, or as the first of three whose peers know it. `restarted`: it has rebooted since.
pub async fn serving_member(three: bool, restarted: bool) -> (TestHost, NodeConfig) {
    let host = TestHost::new().await;
    let config = if three {
        config_of_three()
    } else {
        node_config()
    };
    if three {
        host.cloud.add_volumes_of_three();
    } else {
        host.cloud.add_volume("vol-0a", "main");
    }
    let member = || member_of(&host, config.clone(), AT_ONCE);
    for _ in 0..5 {
        let _ = member().take_step().await;
    }
    if three {
        // The other control planes take their steps too.
        let mut record = read_record(&host).await;
        record.members.values_mut().for_each(|one| one.blank = true);
        write_record(&host, &record);
    }
    let_settle(&member()).await;
    host.kubelet.lock().unwrap().peers = three;
    if restarted {
        host.reboot();
        let_settle(&member()).await;
    }
    (host, config)
}

pub fn write_record(host: &TestHost, record: &FormationRecord) {
    fs::write(host.path("store/etcd/main.json"), record.to_json()).unwrap();
}

/// The error of a member's role that starts now and cannot continue.
pub async fn refusal_text(host: &TestHost, config: &NodeConfig) -> String {
    let member = member_of(host, config.clone(), AT_ONCE);
    format!("{:#}", member.run_member().await.unwrap_err())
}

pub async fn let_settle(member: &EtcdMember<FakeEc2, FakeEtcd, FakeQuorum>) {
    for _ in 0..50 {
        if member.take_step().await.unwrap() == StepOutcome::Settled {
            return;
        }
    }
    panic!("it does not settle");
}

/// Lets the member settle, each step by another start of protokube. One of them dies at the change with this number from now, and the
/// instance may reboot then.
pub async fn settle_through_death(
    host: &TestHost,
    config: &NodeConfig,
    (dies_at, reboots): (usize, bool),
    what: &str,
) {
    {
        let mut fuse = host.fuse.lock().unwrap();
        fuse.dies_at = Some(fuse.done + dies_at);
    }
    let mut looks = 0;
    while !matches!(
        member_of(host, config.clone(), AT_ONCE).take_step().await,
        Ok(StepOutcome::Settled)
    ) {
        looks += 1;
        assert!(looks < 80, "{what}: does not settle");
        if reboots && host.fuse.lock().unwrap().has_died() {
            host.reboot();
            host.fuse.lock().unwrap().dies_at = None;
        }
    }
}

/// Asserts the state after a reboot: the manifest changes before a kubelet runs it, and not afterwards.
async fn assert_restarted(host: &TestHost) {
    host.reboot();
    let_settle(&new_member(host)).await;
}

pub async fn read_record(host: &TestHost) -> FormationRecord {
    let store = &host.store;
    let object = store.get(&record_key("main")).await.unwrap().unwrap();
    FormationRecord::parse("main", &object.bytes).unwrap()
}

fn read_manifest(host: &TestHost) -> String {
    let to = host.host.link_target(LINK).unwrap().unwrap();
    host.host.read_text(to.to_str().unwrap()).unwrap().unwrap()
}

#[tokio::test]
async fn a_blank_volume_becomes_a_member_without_a_restart_and_founds_nothing_at_the_next_start() {
    let host = TestHost::new().await;
    host.cloud.add_volume("vol-0a", "main");
    let_settle(&new_member(&host)).await;
    let formed = founder_identity("token").cluster_id;
    assert_eq!(read_record(&host).await.formed_id(), Some(formed.as_str()));
    let id = &read_record(&host).await.members["a"].member_id;
    assert_eq!(*id, Some(founder_identity("token").member_id));
    let counts = || {
        let kubelet = host.kubelet.lock().unwrap();
        (kubelet.founded, kubelet.starts)
    };
    assert_eq!(counts(), (1, 1));
    assert_restarted(&host).await;
    let text = read_manifest(&host);
    assert!(text.contains("existing") && !text.contains("ETCD_INITIAL_CLUSTER_TOKEN"));
    assert_eq!(counts(), (1, 2));
    let to = host.host.link_target(LINK).unwrap().unwrap();
    assert!(
        to.starts_with("/mnt/master-vol-0a"),
        "on the volume: {to:?}"
    );
}

#[tokio::test]
async fn nothing_changes_once_it_is_settled() {
    let host = TestHost::new().await;
    host.cloud.add_volume("vol-0a", "main");
    let_settle(&new_member(&host)).await;
    let before = host.file_tree();
    let_settle(&new_member(&host)).await;
    assert_eq!(host.file_tree(), before);
    assert_eq!(host.kubelet.lock().unwrap().starts, 1);
}

/// Whatever dies at any point, also if the host reboots each time: the files are the same, and there is one etcd cluster.
#[tokio::test]
async fn a_protokube_that_dies_anywhere_goes_on_to_the_same_files() {
    let whole = TestHost::new().await;
    whole.cloud.add_volume("vol-0a", "main");
    let_settle(&new_member(&whole)).await;
    let calls = whole.fuse.lock().unwrap().done;
    assert_restarted(&whole).await;
    let wanted = whole.file_tree();
    assert!(calls > 10, "{calls}");
    for dies_at in 1..=calls {
        for reboots in [false, true] {
            let host = TestHost::new().await;
            host.cloud.add_volume("vol-0a", "main");
            host.fuse.lock().unwrap().dies_at = Some(dies_at);
            let mut looks = 0;
            // Each step is taken by another start of protokube.
            while !matches!(
                new_member(&host).take_step().await,
                Ok(StepOutcome::Settled)
            ) {
                looks += 1;
                assert!(looks < 50, "dies at {dies_at}: does not settle");
                if reboots {
                    host.reboot();
                }
            }
            assert_restarted(&host).await;
            assert_eq!(host.file_tree(), wanted, "dies at {dies_at}");
            assert_eq!(host.kubelet.lock().unwrap().founded, 1);
        }
    }
}

#[tokio::test]
async fn what_is_lost_besides_the_data_comes_back() {
    let host = TestHost::new().await;
    host.cloud.add_volume("vol-0a", "main");
    let_settle(&new_member(&host)).await;
    assert_restarted(&host).await;
    let wanted = host.file_tree();
    let on_volume = host.host.link_target(LINK).unwrap().unwrap();
    for lost in [LINK, on_volume.to_str().unwrap(), "/store/etcd/main.json"] {
        std::fs::remove_file(host.path(lost)).unwrap();
        let_settle(&new_member(&host)).await;
        assert_eq!(host.file_tree(), wanted, "without {lost}");
    }
    assert_eq!(host.kubelet.lock().unwrap().founded, 1);
}

#[tokio::test]
async fn after_a_reboot_it_comes_back_without_aws() {
    let host = TestHost::new().await;
    host.cloud.add_volume("vol-0a", "main");
    let_settle(&new_member(&host)).await;
    host.reboot();
    *host.cloud.down.lock().unwrap() = true;
    let member = new_member(&host);
    let error = member.run_member().await.unwrap_err().to_string();
    assert!(error.contains("nobody answers"), "{error}");
    let unhealthy = running_etcd(&host).find_problem().await;
    assert_eq!(unhealthy, None, "kubelet runs it from the mounted volume");
}

/// However the log was lost: a lone member does not run any more, and the refusal lasts. With its log it runs again.
#[tokio::test]
async fn a_member_whose_log_is_gone_is_not_started_again() {
    let removed = |host: &TestHost| fs::rename(host.wal_path(), host.path("saved"));
    let zeros = |host: &TestHost| {
        fs::create_dir(host.path("saved"))?;
        let file = log_files(&host.wal_path()).remove(0);
        fs::copy(&file, host.path("saved").join(file.file_name().unwrap()))?;
        fs::write(file, [0; 64])
    };
    type Lose<'a> = &'a dyn Fn(&TestHost) -> std::io::Result<()>;
    let ways: [(&str, Lose<'_>); 2] = [("is missing", &removed), ("cannot be read", &zeros)];
    for restarted in [false, true] {
        for (expected_error, lose) in ways {
            for resumes in [true, false] {
                let (host, config) = serving_member(false, restarted).await;
                let starts = host.kubelet.lock().unwrap().starts;
                host.reboot();
                lose(&host).unwrap();
                if !resumes {
                    let member = member_of(&host, config.clone(), AT_ONCE);
                    member.take_step().await.unwrap_err();
                }
                for _ in 0..3 {
                    let why = refusal_text(&host, &config).await;
                    assert!(
                        why.contains(expected_error) && why.contains("member a"),
                        "{why}"
                    );
                    assert!(why.contains("EBS snapshot"), "{why}");
                    let seen = running_etcd(&host).find_problem().await.unwrap();
                    assert!(seen.contains("no manifest"), "{seen}");
                    host.reboot();
                }
                let counts =
                    |kubelet: &crate::test_host::FakeKubelet| (kubelet.lives, kubelet.starts);
                assert_eq!(counts(&host.kubelet.lock().unwrap()), (1, starts));
                let _ = fs::remove_dir_all(host.wal_path());
                fs::rename(host.path("saved"), host.wal_path()).unwrap();
                let_settle(&member_of(&host, config, AT_ONCE)).await;
                assert_eq!(counts(&host.kubelet.lock().unwrap()), (1, starts + 1));
            }
        }
    }
}

/// kubelet restarts the process without a check in between. A member that was started after its cluster was formed has no list of
/// initial peers, and peers know one that founded it; only a lone founder is stopped by the check of the log below.
#[tokio::test]
async fn a_container_that_kubelet_starts_again_without_its_log_does_not_take_part() {
    for (three, restarted, why) in [
        (false, true, "cannot fetch cluster info"),
        (true, true, "cannot fetch cluster info"),
        (true, false, "already been bootstrapped"),
    ] {
        let (host, _) = serving_member(three, restarted).await;
        fs::remove_dir_all(host.path_on_disk("var/etcd/data/member")).unwrap();
        let mut kubelet = host.kubelet.lock().unwrap();
        let error = kubelet.restart_container().unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
        assert_eq!(kubelet.lives, 1);
    }
}

/// With what a member ends that runs, is settled, and then loses from its log. The next round is an hour away.
async fn error_after_losing_log(
    host: &TestHost,
    config: NodeConfig,
    lose: impl Future<Output = ()>,
) -> String {
    let (settled, mut is_settled) = watch::channel(BTreeMap::new());
    let an_hour = PollPace {
        rest: Duration::from_hours(1),
        ..AT_ONCE
    };
    let role_log = RoleLog::for_role("etcd-main");
    let member = new_member_with(host, config, "main", an_hour, settled, role_log);
    let running = async {
        let main = |all: &BTreeMap<String, bool>| all.get("main") == Some(&true);
        is_settled.wait_for(main).await.unwrap();
        lose.await;
        std::future::pending::<()>().await;
    };
    tokio::select! {
        ended = member.run_member() => ended.unwrap_err().to_string(),
        () = running => unreachable!(),
    }
}

#[tokio::test]
async fn a_log_that_goes_from_under_a_running_member_is_noticed_between_two_looks() {
    let (host, config) = serving_member(false, false).await;
    let why = error_after_losing_log(&host, config, async {
        fs::remove_dir_all(host.path_on_disk("var/etcd/data/member")).unwrap();
    })
    .await;
    assert!(why.contains("is missing"), "{why}");
    assert_eq!(host.host.link_target(LINK).unwrap(), None);
}

/// etcd keeps the removed file open, and would lose what is in it when it restarts.
#[tokio::test]
async fn a_log_that_loses_its_newest_file_is_noticed_between_two_looks() {
    let (host, config) = serving_member(false, false).await;
    let identity = founder_identity("token");
    let newest = host
        .wal_path()
        .join("0000000000000001-0000000000000029.wal");
    write_log_to(
        &host.wal_path(),
        &identity,
        LogPosition { term: 2, index: 40 },
    );
    let log = encode_log(&identity, LogPosition { term: 2, index: 50 });
    fs::write(&newest, log).unwrap();
    let why = error_after_losing_log(&host, config, async {
        // Once it has been seen.
        tokio::time::sleep(Duration::from_millis(2500)).await;
        fs::remove_file(&newest).unwrap();
    })
    .await;
    assert!(why.contains("lost its end"), "{why}");
    assert_eq!(host.host.link_target(LINK).unwrap(), None);
}

/// The log belongs to another cluster: kubelet does not see the manifest, at a round or after a reboot.
#[tokio::test]
async fn another_clusters_log_is_recognised_before_it_runs_and_stays_refused() {
    for three in [false, true] {
        let (host, config) = serving_member(three, true).await;
        let starts = host.kubelet.lock().unwrap().starts;
        host.reboot();
        let other = founder_identity("restored by hand");
        write_log(&host.wal_path(), &other);
        for _ in 0..4 {
            let why = refusal_text(&host, &config).await;
            assert!(why.contains(&other.cluster_id), "{why}");
            let seen = running_etcd(&host).find_problem().await;
            assert!(seen.unwrap().contains("no manifest"));
            host.reboot();
        }
        assert_eq!(host.kubelet.lock().unwrap().starts, starts);
    }
}

/// An older version of the record was restored: the state store shows that there was the cluster which the record does not know.
#[tokio::test]
async fn data_that_is_newer_than_the_record_is_left_running() {
    let (host, config) = serving_member(false, true).await;
    let mut other = read_record(&host).await;
    other.generation = Generation::formed("c0ffee", "token");
    write_record(&host, &other);
    let starts = host.kubelet.lock().unwrap().starts;
    for _ in 0..3 {
        let why = refusal_text(&host, &config).await;
        assert!(
            why.contains("c0ffee") && why.contains("older version"),
            "{why}"
        );
        assert_eq!(running_etcd(&host).find_problem().await, None);
    }
    assert_eq!(host.kubelet.lock().unwrap().starts, starts);
}

/// Marker and log match each other but neither the record nor what was formed. Without AWS this cannot be known; once read, it is known
/// permanently.
#[tokio::test]
async fn data_of_another_cluster_than_the_recorded_is_stopped_once_and_not_started_again() {
    let (host, config) = serving_member(false, true).await;
    fs::remove_dir_all(host.path("store/etcd/formed")).unwrap();
    let mut other = read_record(&host).await;
    other.generation = Generation::formed("c0ffee", "token");
    write_record(&host, &other);
    let why = refusal_text(&host, &config).await;
    assert!(why.contains("c0ffee"), "{why}");
    assert_eq!(host.host.link_target(LINK).unwrap(), None);
    let starts = host.kubelet.lock().unwrap().starts;
    for _ in 0..3 {
        host.reboot();
        refusal_text(&host, &config).await;
        running_etcd(&host).find_problem().await.unwrap();
    }
    assert_eq!(host.kubelet.lock().unwrap().starts, starts);
}

/// A record that does not match the running member stops nothing: the record may be what is wrong.
#[tokio::test]
async fn a_member_that_serves_goes_on_while_its_record_does_not_name_it() {
    let (host, config) = serving_member(false, true).await;
    let mut without = read_record(&host).await;
    without.members.clear();
    write_record(&host, &without);
    let why = refusal_text(&host, &config).await;
    assert!(why.contains("without member a"), "{why}");
    assert_eq!(running_etcd(&host).find_problem().await, None);
}

/// Volume and record of a lone member are lost, and the store still shows that the cluster existed.
#[tokio::test]
async fn no_empty_cluster_is_founded_where_one_was() {
    let formed = format!("etcd/formed/main/{}", founder_identity("token").cluster_id);
    let backup = "backups/etcd/main/2026-11-22T00:00:00Z-000001/etcd.backup.gz".to_owned();
    for trace in [formed.clone(), backup] {
        let (host, config) = serving_member(false, true).await;
        host.reboot();
        host.cloud.volumes.lock().unwrap().clear();
        host.cloud.add_volume("vol-0b", "main");
        let store = host.path("store");
        fs::remove_file(store.join("etcd/main.json")).unwrap();
        fs::remove_file(store.join(&formed)).unwrap();
        let there = store.join(&trace);
        fs::create_dir_all(there.parent().unwrap()).unwrap();
        fs::write(&there, "").unwrap();
        let look = || member_of(&host, config.clone(), AT_ONCE);
        let mut last_error = String::new();
        for _ in 0..5 {
            if let Err(error) = look().take_step().await {
                last_error = format!("{error:#}");
            }
        }
        assert!(last_error.contains(&trace), "{last_error}");
        assert!(!store.join("etcd/main.json").exists());
        let disk = fs::read(host.path("dev/nvme1n1")).unwrap();
        assert!(
            disk.iter().all(|byte| *byte == 0),
            "nothing is written to it"
        );
        // The step that the error recommends.
        fs::remove_file(there).unwrap();
        let_settle(&look()).await;
        assert_eq!(host.kubelet.lock().unwrap().founded, 2);
    }
}

/// Backups of a deleted cluster are no trace of the new one of its name; once that is formed, its own are.
#[tokio::test]
async fn backups_that_were_kept_count_once_the_new_cluster_is_formed() {
    let host = TestHost::new().await;
    let store = host.path("store");
    let backups = store.join("backups/etcd/main");
    fs::create_dir_all(backups.join("2026-11-22T00:00:00Z-000001")).unwrap();
    fs::write(
        backups.join("2026-11-22T00:00:00Z-000001/etcd.backup.gz"),
        "",
    )
    .unwrap();
    fs::write(backups.join("kept-after-delete"), "").unwrap();
    host.cloud.add_volume("vol-0a", "main");
    let_settle(&new_member(&host)).await;
    assert_eq!(host.kubelet.lock().unwrap().founded, 1);
    assert!(!backups.join("kept-after-delete").exists());
    // All that says so is lost but the backups.
    host.reboot();
    host.cloud.volumes.lock().unwrap().clear();
    host.cloud.add_volume("vol-0b", "main");
    fs::remove_dir_all(store.join("etcd")).unwrap();
    for _ in 0..5 {
        let _ = new_member(&host).take_step().await;
    }
    assert_eq!(host.kubelet.lock().unwrap().founded, 1);
}

#[tokio::test]
async fn a_blank_volume_founds_no_second_cluster() {
    let host = TestHost::new().await;
    host.cloud.add_volume("vol-0a", "main");
    let_settle(&new_member(&host)).await;
    host.reboot();
    host.cloud.volumes.lock().unwrap().clear();
    host.cloud.add_volume("vol-0b", "main");
    let member = new_member(&host);
    let mut last_error = String::new();
    for _ in 0..20 {
        if let Err(error) = member.take_step().await {
            last_error = format!("{error:#}");
        }
    }
    assert!(
        last_error.contains("no second cluster is founded"),
        "{last_error}"
    );
    assert_eq!(host.kubelet.lock().unwrap().founded, 1);
    let tree = host.file_tree();
    assert!(!tree.values().any(|text| text.contains("master-vol-0b")));
}

#[tokio::test]
async fn somebody_elses_data_is_never_started_or_written_to() {
    let host = TestHost::new().await;
    host.cloud.add_volume("vol-0a", "main");
    let first = new_member(&host);
    assert_eq!(
        first.take_step().await.unwrap(),
        StepOutcome::Waits,
        "attached"
    );
    // An etcd volume of another tool.
    std::fs::write(host.path("dev/nvme1n1"), "ext4").unwrap();
    let theirs = host.path("disks/nvme1n1/data/member/snap/db");
    std::fs::create_dir_all(theirs.parent().unwrap()).unwrap();
    std::fs::write(&theirs, "theirs").unwrap();
    let before = host.file_tree();
    for _ in 0..3 {
        let error = new_member(&host).take_step().await.unwrap_err().to_string();
        assert!(error.contains("db") && error.contains("vol-0a"), "{error}");
    }
    let mut after = host.file_tree();
    after.retain(|path, _| !path.contains("lost+found"));
    assert_eq!(after, before);
}

/// EC2's answer is from before it attached anything, when member a's volume was still attached elsewhere. With NVMe the kernel shows the
/// volume also after a restart of protokube; without NVMe protokube remembers its request.
#[tokio::test]
async fn of_several_members_in_its_group_an_instance_takes_one_whatever_ec2_shows() {
    for xen in [false, true] {
        let host = TestHost::new().await;
        *host.cloud.xen.lock().unwrap() = xen;
        for (id, tag) in [
            ("vol-0a", "a/a,b,c"),
            ("vol-0b", "b/a,b,c"),
            ("vol-0c", "c/a,b,c"),
        ] {
            host.cloud.add_volume_of(id, "main", tag, None);
        }
        let mut before = host.cloud.volumes.lock().unwrap().clone();
        before[0].state = "in-use".into();
        before[0].attachment = Some(Attachment {
            instance: "i-09".into(),
            device: "/dev/xvdu".into(),
            state: "detaching".into(),
        });
        let started = || member_of(&host, config_of_three_in_a_group(), AT_ONCE);
        let mut member = started();
        assert_eq!(member.take_step().await.unwrap(), StepOutcome::Waits);
        *host.cloud.answer.lock().unwrap() = Some(before);
        for _ in 0..3 {
            assert_eq!(member.take_step().await.unwrap(), StepOutcome::Waits);
            assert_eq!(host.cloud.attached_volumes(INSTANCE), ["vol-0a"]);
            if !xen {
                member = started();
            }
        }
        *host.cloud.answer.lock().unwrap() = None;
        assert_eq!(member.take_step().await.unwrap(), StepOutcome::Stepped);
        assert_eq!(host.cloud.attached_volumes(INSTANCE), ["vol-0a"]);
    }
}

/// A lone member runs from vol-0a; a copy with the same tags is free. EC2's list lacks vol-0a because it is old, or because a tag was
/// removed. No volume is changed, whether protokube has just started or not, even if EC2 says that the id does not exist: the kernel
/// shows it.
#[tokio::test]
async fn a_member_that_runs_is_left_for_no_copy_whatever_ec2_shows() {
    for lost in [false, true] {
        let (host, config) = serving_member(false, true).await;
        host.cloud.add_volume("vol-0b", "main");
        let (link, before) = (
            host.host.link_target(LINK).unwrap(),
            read_record(&host).await,
        );
        let all = host.cloud.volumes.lock().unwrap().clone();
        let (own, copy): (Vec<_>, Vec<_>) = all.into_iter().partition(|one| one.id == "vol-0a");
        *host.cloud.answer.lock().unwrap() = Some(copy);
        if lost {
            host.cloud
                .volumes
                .lock()
                .unwrap()
                .retain(|one| one.id != "vol-0a");
        }
        let same = member_of(&host, config.clone(), AT_ONCE);
        for _ in 0..3 {
            let another = member_of(&host, config.clone(), AT_ONCE);
            for member in [&same, &another] {
                match member.take_step().await {
                    Ok(outcome) => assert!(!lost && outcome == StepOutcome::Settled, "{outcome:?}"),
                    Err(why) => assert!(
                        lost && format!("{why:#}").contains("running from vol-0a"),
                        "{why:#}"
                    ),
                }
            }
        }
        assert!(
            !host
                .cloud
                .attached_volumes(INSTANCE)
                .contains(&"vol-0b".to_owned())
        );
        assert_eq!(
            (
                host.host.link_target(LINK).unwrap(),
                read_record(&host).await
            ),
            (link, before)
        );
        assert_eq!(host.kubelet.lock().unwrap().starts, 2);
        // Once the disk is gone from the host too, the copy is used.
        if lost {
            host.reboot();
            fs::remove_file(host.path("dev/nvme1n1")).unwrap();
            *host.cloud.answer.lock().unwrap() = None;
            let _ = member_of(&host, config, AT_ONCE).take_step().await;
            assert_eq!(host.cloud.attached_volumes(INSTANCE), ["vol-0b"]);
        } else {
            assert_eq!(own.len(), 1);
        }
    }
}

/// A replacement of the instance also uses the recorded volume.
#[tokio::test]
async fn an_instance_without_a_member_waits_for_the_recorded_volume_and_takes_no_copy() {
    let (host, config) = serving_member(false, true).await;
    host.reboot();
    fs::remove_file(host.path(LINK)).unwrap();
    host.cloud.give_volume("vol-0a", "i-0old");
    host.cloud.add_volume("vol-0b", "main");
    let copy = host.cloud.volumes.lock().unwrap()[1].clone();
    *host.cloud.answer.lock().unwrap() = Some(vec![copy]);
    for _ in 0..3 {
        let outcome = member_of(&host, config.clone(), AT_ONCE).take_step().await;
        assert_eq!(outcome.unwrap(), StepOutcome::Waits);
    }
    assert!(host.cloud.attached_volumes(INSTANCE).is_empty());
}

/// If the refused volume is not the one from which a member runs, that member's manifest stays.
#[tokio::test]
async fn a_refusal_takes_away_no_other_volumes_manifest() {
    let (host, config) = serving_member(false, true).await;
    host.reboot();
    host.cloud.volumes.lock().unwrap().clear();
    host.cloud.add_volume("vol-0b", "main");
    for _ in 0..3 {
        let _ = member_of(&host, config.clone(), AT_ONCE).take_step().await;
    }
    let to = host.host.link_target(LINK).unwrap().unwrap();
    assert!(to.starts_with("/mnt/master-vol-0a"), "{to:?}");
}

fn count_resizes(host: &TestHost) -> usize {
    let resize_log = fs::read_to_string(host.path("programs/resized"));
    resize_log.unwrap_or_default().lines().count()
}

fn enlarge_disk(host: &TestHost) {
    let device = fs::File::options()
        .write(true)
        .open(host.path("dev/nvme1n1"));
    device.unwrap().set_len(4 << 20).unwrap();
}

#[tokio::test]
async fn the_file_system_follows_the_volume_whatever_etcd_does() {
    let (host, config) = serving_member(false, false).await;
    let member = || member_of(&host, config.clone(), AT_ONCE);
    assert_eq!(count_resizes(&host), 0, "it fills its volume");
    {
        let mut kubelet = host.kubelet.lock().unwrap();
        (kubelet.running, kubelet.full) = (None, true);
    }
    enlarge_disk(&host);
    assert_eq!(member().take_step().await.unwrap(), StepOutcome::Waits);
    assert_eq!(count_resizes(&host), 1, "while etcd cannot start");
    host.kubelet.lock().unwrap().full = false;
    let_settle(&member()).await;
    let_settle(&member()).await;
    assert_eq!(count_resizes(&host), 1);
}

/// The waits that operators of a running control plane see, as long as the cause lasts.
#[tokio::test]
async fn what_a_member_refuses_or_waits_for_stands_until_it_is_over() {
    let (host, config) = serving_member(true, true).await;
    let current_waits = Arc::new(CurrentWaits::default());
    let has_words = |words: &'static [&str]| {
        move |waits: &[Wait]| {
            let [wait] = waits else { return false };
            (wait.role.as_str(), wait.about.as_str()) == ("etcd-main", "member a")
                && words.iter().all(|word| wait.message.contains(word))
        }
    };
    fs::rename(host.wal_path(), host.path("saved")).unwrap();
    host.reboot();
    let missing_volume = has_words(&["vol-0a", "is missing", "member a"]);
    let waits = wait_for_waits(&host, &config, &current_waits, missing_volume).await;
    assert!(waits[0].failed);
    fs::rename(host.path("saved"), host.wal_path()).unwrap();
    wait_for_waits(&host, &config, &current_waits, <[_]>::is_empty).await;

    host.cloud.give_volume("vol-0a", "i-0other");
    let elsewhere = has_words(&["attached to i-0other"]);
    let waits = wait_for_waits(&host, &config, &current_waits, elsewhere).await;
    assert!(!waits[0].failed);
    host.cloud.give_volume("vol-0a", INSTANCE);
    wait_for_waits(&host, &config, &current_waits, <[_]>::is_empty).await;
}

/// The member serves from a volume whose file system cannot be grown: both are reported.
#[tokio::test]
async fn a_volume_that_cannot_grow_stands_beside_a_member_that_serves() {
    let (host, config) = serving_member(false, true).await;
    let current_waits = Arc::new(CurrentWaits::default());
    let program = host.path("programs/resize2fs");
    let good = fs::read(&program).unwrap();
    fs::write(&program, "#!/bin/sh\necho no room for it >&2\nexit 1\n").unwrap();
    enlarge_disk(&host);
    let volume = |waits: &[Wait]| waits.iter().any(|wait| wait.about == "volume");
    let waits = wait_for_waits(&host, &config, &current_waits, volume).await;
    assert!(waits[0].message.contains("no room for it"), "{waits:?}");
    assert_eq!(running_etcd(&host).find_problem().await, None);
    fs::write(&program, good).unwrap();
    wait_for_waits(&host, &config, &current_waits, <[_]>::is_empty).await;
}

/// A new host must write a different manifest, for which there is no space.
#[tokio::test]
async fn a_full_volume_that_was_enlarged_comes_back_on_another_instance_too() {
    let (host, config) = serving_member(false, false).await;
    host.reboot();
    fs::remove_file(host.path(LINK)).unwrap();
    // The manifest cannot be written until the file system has grown.
    let manifests = host.path_on_disk("k8s.io/manifests");
    fs::rename(&manifests, host.path("full")).unwrap();
    std::os::unix::fs::symlink("/nowhere/at/all", manifests).unwrap();
    let member = || member_of(&host, config.clone(), AT_ONCE);
    let error = format!("{:#}", member().take_step().await.unwrap_err());
    assert!(error.contains("could not write"), "{error}");
    enlarge_disk(&host);
    let_settle(&member()).await;
    assert_eq!(count_resizes(&host), 1);
    assert_eq!(host.kubelet.lock().unwrap().founded, 1);
}

/// EC2 and the record are read nevertheless, and the problem is reported.
#[tokio::test]
async fn a_file_system_with_errors_is_told_of_and_is_not_the_end_of_all_looks() {
    let (host, config) = serving_member(false, true).await;
    host.reboot();
    fs::write(host.path("programs/broken"), "").unwrap();
    *host.cloud.down.lock().unwrap() = true;
    let why = refusal_text(&host, &config).await;
    assert!(why.contains("nobody answers"), "EC2 is asked: {why}");
    *host.cloud.down.lock().unwrap() = false;
    let why = refusal_text(&host, &config).await;
    for part in [
        "vol-0a",
        "member a",
        "has errors",
        "run `fsck.ext4",
        "inodes",
    ] {
        assert!(why.contains(part), "{part}: {why}");
    }
    fs::remove_file(host.path("programs/broken")).unwrap();
    let_settle(&new_member(&host)).await;
}

#[tokio::test]
async fn what_the_kernel_stopped_writing_to_is_not_run_from_until_it_was_checked() {
    let (host, config) = serving_member(false, true).await;
    let read_only = host.path_on_disk("lost+found/read-only");
    fs::write(&read_only, "").unwrap();
    let why = refusal_text(&host, &config).await;
    assert!(
        why.contains("has errors") && why.contains("Restart"),
        "{why}"
    );
    host.reboot();
    fs::remove_file(read_only).unwrap();
    let_settle(&new_member(&host)).await;
}

#[tokio::test]
async fn a_volume_that_comes_back_as_another_device_is_mounted_again() {
    let (host, config) = serving_member(false, true).await;
    host.cloud.reattach_volume("vol-0a");
    host.kubelet.lock().unwrap().running = None;
    let_settle(&member_of(&host, config, AT_ONCE)).await;
    let target = fs::read_link(host.path("mnt/master-vol-0a")).unwrap();
    assert!(target.ends_with("disks/nvme7n1"), "{target:?}");
    assert_eq!(host.kubelet.lock().unwrap().lives, 1);
}

/// Disks without serial numbers are found by the device name in the attach request. Without AWS it is remembered,
/// and the volume is checked.
#[tokio::test]
async fn an_instance_without_nvme_comes_back_without_aws_too() {
    for swapped in [false, true] {
        let host = TestHost::new().await;
        *host.cloud.xen.lock().unwrap() = true;
        host.cloud.add_volume("vol-0a", "main");
        let_settle(&new_member(&host)).await;
        host.reboot();
        *host.cloud.down.lock().unwrap() = true;
        if swapped {
            let marker = host.path("disks/xvdu/k8s.io/etcd-member.json");
            let text = fs::read_to_string(&marker).unwrap();
            fs::write(marker, text.replace("vol-0a", "vol-0b")).unwrap();
        }
        refusal_text(&host, &node_config()).await;
        let unhealthy = running_etcd(&host).find_problem().await;
        assert_eq!(unhealthy.is_some(), swapped, "{unhealthy:?}");
        let mounted = host.path("mnt/master-vol-0a").is_symlink();
        assert_eq!(mounted, !swapped, "another volume is not left in its place");
    }
}
