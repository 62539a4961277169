//! Tests of a recovery: an etcd cluster that lost two of three members begins anew with the data of this one, whenever protokube or
//! the instance dies.

use crate::etcd::{
    AT_ONCE, LINK, let_settle, member_of, read_record, refusal_text, running_etcd, serving_member,
    settle_through_death, write_record,
};
use crate::replacement::{cut_off_log, grow_log};
use crate::test_host::{
    FakeEc2, FakeEtcd, FakeQuorum, TestHost, encode_records, encode_varint, founder_identity,
    log_files, pass_fuse, write_log,
};
use etcd_member::{EtcdMember, RunningEtcd, StepOutcome};
use etcd_rules::{
    Generation, LastEntry, MARKER, MemberSource, RecoveryTerms, Source, begin_recovery,
};
use node::config::NodeConfig;
use node::manifests::manifest_path;
use std::fs;
use std::sync::Arc;
use test_support::write_script;

const NEW_TOKEN: &str = "recovered";

/// Does what ctr does with etcd's programs: it copies a log that was prepared by the test.
const CTR: &str = r#"root=$(dirname "$0")/..
echo "$*" >> "$root/ctr-calls"
case "$*" in
  *etcdutl*) for word; do case $word in type=bind,src=*) from=${word#type=bind,src=}; from=${from%%,*} ;; esac; done
    [ -e "$root$from/data/member/wal" ] || exit 1
    mkdir -p "$root$from/restored/member" && cp -r "$root/programs/restored-wal" "$root$from/restored/member/wal" ;;
  *"images ls"*) echo "${*##*name==}" ;;
  *"containers list "*kube-apiserver*) [ -e "$root/etc/kubernetes/manifests/kube-apiserver.manifest" ] || echo api-1 ;;
  *"containers list "*etcd-main*) echo etcd-1 ;;
esac
"#;

fn new_member(host: &TestHost, config: &NodeConfig) -> EtcdMember<FakeEc2, FakeEtcd, FakeQuorum> {
    member_of(host, config.clone(), AT_ONCE)
}

/// The member a serves, the others are lost, and an operator has asked to recover from it.
async fn survivor() -> (TestHost, NodeConfig) {
    let (mut host, config) = serving_member(true, true).await;
    // protokube may die before each change of a file or folder.
    let fuse = host.fuse.clone();
    let dies = move || pass_fuse(&fuse).is_err();
    host.host = host.host.with_stop(Arc::new(dies));
    write_script(&host.path("programs/ctr"), CTR);
    let restored = founder_identity(NEW_TOKEN);
    write_log(&host.path("programs/restored-wal"), &restored);
    host.kubelet.lock().unwrap().peers = false;
    let record = begin_recovery(
        &read_record(&host).await,
        "a",
        NEW_TOKEN,
        RecoveryTerms {
            revision: Some(2700),
            force: true,
        },
    )
    .unwrap();
    write_record(&host, &record);
    (host, config)
}

fn lose_the_others(host: &TestHost) {
    let mut volumes = host.cloud.volumes.lock().unwrap();
    // One was deleted, the other is attached to nothing.
    volumes.retain(|volume| volume.id != "vol-0b");
    for volume in volumes.iter_mut().filter(|volume| volume.id == "vol-0c") {
        volume.attachment = None;
        volume.state = "available".into();
    }
}

async fn assert_recovered(host: &TestHost, before: &str, what: &str) {
    let record = read_record(host).await;
    let restored = founder_identity(NEW_TOKEN);
    assert_eq!(
        record.formed_id(),
        Some(restored.cluster_id.as_str()),
        "{what}"
    );
    let members: Vec<_> = record.members.iter().collect();
    assert_eq!(members.len(), 1, "{what}");
    assert_eq!(members[0].0, "a");
    assert_eq!(members[0].1.member_id, Some(restored.member_id), "{what}");
    assert!(record.has_given_up(before), "{what}");
    assert_eq!(record.retired[before].members.len(), 3, "{what}");
    let disk = |path: &str| host.path_on_disk(path);
    assert!(disk("var/etcd/data.lost-1/member/wal").exists(), "{what}");
    for left in ["data.lost-2", "data.scratch", "data.restored-recovered"] {
        assert!(
            !disk(&format!("var/etcd/{left}")).exists(),
            "{what}: {left}"
        );
    }
    let kubelet = host.kubelet.lock().unwrap();
    assert!(kubelet.running.is_some(), "{what}");
    assert_eq!(kubelet.founded, 1, "{what}");
}

fn cluster_before(host: &TestHost) -> String {
    host.kubelet.lock().unwrap().cluster_id().unwrap()
}

#[tokio::test]
async fn nothing_begins_while_another_member_could_run() {
    let (host, config) = survivor().await;
    let before = cluster_before(&host);
    let member = new_member(&host, &config);
    // kubelet may need it: after its own start it ends no pod before it has reached one.
    let api_server = host.path(&manifest_path("kube-apiserver"));
    fs::write(&api_server, "").unwrap();
    assert_eq!(member.take_step().await.unwrap(), StepOutcome::Stepped);
    for _ in 0..5 {
        assert_eq!(member.take_step().await.unwrap(), StepOutcome::Waits);
    }
    assert!(host.kubelet.lock().unwrap().running.is_some());
    assert!(api_server.exists());
    lose_the_others(&host);
    let_settle(&member).await;
    assert!(!api_server.exists());
    let calls = fs::read_to_string(host.path("ctr-calls")).unwrap();
    assert!(
        calls.contains("tasks kill --signal SIGKILL api-1"),
        "{calls}"
    );
    assert_recovered(&host, &before, "later").await;
    // From then on it is a member like every other.
    host.reboot();
    let_settle(&new_member(&host, &config)).await;
    assert_recovered(&host, &before, "after a reboot").await;
}

/// kubelet was started anew and reaches no API server, because no etcd has a quorum.
#[tokio::test]
async fn a_member_that_kubelet_does_not_stop_is_stopped_without_it() {
    let (host, config) = survivor().await;
    let before = cluster_before(&host);
    lose_the_others(&host);
    let restart = r#"echo "$*" >> "$(dirname "$0")/../ctr-calls""#;
    write_script(&host.path("programs/systemctl"), restart);
    host.kubelet.lock().unwrap().ends_nothing = true;
    let member = new_member(&host, &config);
    let calls = || fs::read_to_string(host.path("ctr-calls")).unwrap_or_default();
    while !calls().contains("tasks kill") {
        assert_ne!(member.take_step().await.unwrap(), StepOutcome::Settled);
    }
    // Otherwise it would go on with a pod that it believes to run.
    let calls = calls();
    let after = calls.split_once("restart kubelet").unwrap().1;
    assert!(
        after.contains("tasks kill --signal SIGTERM etcd-1"),
        "{calls}"
    );
    assert!(host.kubelet.lock().unwrap().running.take().is_some());
    let_settle(&member).await;
    assert_recovered(&host, &before, "without kubelet").await;
}

/// Another member stops, and says so only when it has ended.
#[tokio::test]
async fn a_member_of_the_old_cluster_stops_and_does_not_come_back() {
    let (host, config) = serving_member(true, true).await;
    let mut known = read_record(&host).await;
    known.members.get_mut("b").unwrap().member_id = Some("b".into());
    let terms = RecoveryTerms::default();
    let mut begun = begin_recovery(&known, "b", NEW_TOKEN, terms).unwrap();
    write_record(&host, &begun);
    // It stops once the source can be restored, and serves until then.
    let outcome = new_member(&host, &config).take_step().await.unwrap();
    assert_eq!(outcome, StepOutcome::Settled);
    assert!(host.kubelet.lock().unwrap().running.is_some());
    if let Some(recovering) = &mut begun.next {
        recovering.ready = true;
    }
    write_record(&host, &begun);
    let member = new_member(&host, &config);
    for _ in 0..4 {
        member.take_step().await.unwrap();
    }
    let Some(recovering) = read_record(&host).await.next else {
        panic!("it recovers");
    };
    assert!(host.kubelet.lock().unwrap().running.is_none());
    assert_eq!(recovering.stopped["a"], Some(LastEntry::default()));
    // A power failure brings the link back that was removed last.
    for is_marked in [true, false] {
        host.reboot();
        let target = "/mnt/master-vol-0a/k8s.io/manifests/etcd-main.manifest";
        host.host.make_link(LINK, target).unwrap();
        if is_marked {
            // Without AWS, only the volume tells that the member was stopped.
            *host.cloud.down.lock().unwrap() = true;
            let why = new_member(&host, &config).run_member().await.unwrap_err();
            assert!(format!("{why:#}").contains("nobody answers"), "{why:#}");
            *host.cloud.down.lock().unwrap() = false;
        } else {
            // An older protokube has stopped it, and says so in the record only.
            let marker = host.path_on_disk("k8s.io/etcd-member.json");
            let text = fs::read_to_string(&marker).unwrap();
            let mut marked: serde_json::Value = serde_json::from_str(&text).unwrap();
            assert_eq!(
                marked.as_object_mut().unwrap().remove("stopped").unwrap(),
                NEW_TOKEN
            );
            fs::write(&marker, marked.to_string()).unwrap();
            let outcome = new_member(&host, &config).take_step().await.unwrap();
            assert_eq!(outcome, StepOutcome::Waits);
        }
        assert_eq!(host.host.link_target(LINK).unwrap(), None, "{is_marked}");
        let _ = running_etcd(&host).find_problem().await;
        assert!(
            host.kubelet.lock().unwrap().running.is_none(),
            "{is_marked}"
        );
    }
}

/// etcd began a new file just before it died, and wrote a snapshot of its own there, which is older than its entries.
#[tokio::test]
async fn the_end_of_a_log_is_that_of_the_newest_file_with_an_entry() {
    let (host, config) = serving_member(true, true).await;
    let mut known = read_record(&host).await;
    known.members.get_mut("b").unwrap().member_id = Some("b".into());
    let mut begun = begin_recovery(&known, "b", NEW_TOKEN, RecoveryTerms::default()).unwrap();
    if let Some(recovering) = &mut begun.next {
        recovering.ready = true;
    }
    write_record(&host, &begun);
    let file = log_files(&host.wal_path()).remove(0);
    let identity = etcd_rules::log_identity(&fs::read(&file).unwrap()).unwrap();
    // `raftpb.Entry` of term 2 with index 1000, and `walpb.Snapshot` of term 2 with index 900.
    let entry = (2, [&[0x10, 2, 0x18][..], &encode_varint(1000)].concat());
    let snapshot = (5, [&[0x08][..], &encode_varint(900), &[0x10, 2]].concat());
    fs::write(&file, encode_records(&identity, [entry])).unwrap();
    let next = file.with_file_name("0000000000000001-00000000000003e9.wal");
    fs::write(next, encode_records(&identity, [snapshot])).unwrap();
    let member = new_member(&host, &config);
    for _ in 0..4 {
        member.take_step().await.unwrap();
    }
    let Some(recovering) = read_record(&host).await.next else {
        panic!("it recovers");
    };
    let last = LastEntry {
        term: 2,
        index: 1000,
    };
    assert_eq!(recovering.stopped["a"], Some(last));
}

/// The state store shows that another cluster was formed in place of this one, whatever became of the record.
#[tokio::test]
async fn a_cluster_that_was_given_up_is_not_started_for_want_of_a_record() {
    for has_old_record in [true, false] {
        for is_replaced in [true, false] {
            let (host, config) = serving_member(true, true).await;
            let (own, other) = (cluster_before(&host), "c0ffee");
            let formed = host.path("store/etcd/formed/main");
            // Which of the two came later stands in its object.
            let (newer, older) = if is_replaced {
                (other, own.as_str())
            } else {
                (own.as_str(), other)
            };
            let mut record = read_record(&host).await;
            record.generation = Generation::formed(older, "t");
            record.give_up(Generation::formed(newer, "t"));
            fs::write(formed.join(newer), record.to_json()).unwrap();
            if !is_replaced {
                fs::write(formed.join(older), "").unwrap();
            }
            if !has_old_record {
                fs::remove_file(host.path("store/etcd/main.json")).unwrap();
            }
            host.reboot();
            let what = format!("old record: {has_old_record}, replaced: {is_replaced}");
            let mut why = String::new();
            for _ in 0..5 {
                let step = new_member(&host, &config).take_step().await;
                why = step.map_or_else(|error| format!("{error:#}"), |_| String::new());
            }
            let runs = running_etcd(&host).find_problem().await.is_none();
            assert_eq!(runs, !is_replaced, "{what}: {why}");
            assert_eq!(
                why.contains("etcd/formed/main/c0ffee"),
                is_replaced,
                "{what}: {why}"
            );
        }
    }
}

/// The instance is new and has not run etcd yet: the image is pulled before any member stops.
#[tokio::test]
async fn an_image_that_is_missing_is_pulled_before_anything_stops() {
    let (host, config) = survivor().await;
    let before = cluster_before(&host);
    lose_the_others(&host);
    let no_image = "case \"$*\" in *\"images pull\"*) echo 'not found' >&2; exit 1 ;; esac";
    write_script(&host.path("programs/ctr"), no_image);
    let raised = r#"{"alarms":[{"memberID":"7","alarm":"NOSPACE"}]}"#;
    fs::write(host.path("alarms"), raised).unwrap();
    let member = new_member(&host, &config);
    for _ in 0..3 {
        let error = member.take_step().await.unwrap_err();
        assert!(format!("{error:#}").contains("could not pull"), "{error:#}");
    }
    assert!(host.kubelet.lock().unwrap().running.is_some());
    let Some(recovering) = read_record(&host).await.next else {
        panic!("it recovers");
    };
    assert!(!recovering.ready);
    write_script(&host.path("programs/ctr"), CTR);
    let_settle(&member).await;
    assert_recovered(&host, &before, "later").await;
    for (file, part) in [
        ("ctr-calls", "--quota-backend-bytes=-1"),
        ("gateway-calls", r#""action":"DEACTIVATE""#),
    ] {
        let calls = fs::read_to_string(host.path(file)).unwrap();
        assert!(calls.contains(part), "{part}: {calls}");
    }
}

/// What another member has acknowledged is given up by force only, also if nobody knew of it when the operator asked.
#[tokio::test]
async fn newer_data_of_a_stopped_member_keeps_the_source_from_being_restored() {
    let newer = LastEntry { term: 2, index: 9 };
    for (logs, revision, why) in [
        (Some(newer), None, "ends with entry 9 of term 2"),
        (None, None, "is not known"),
        (Some(LastEntry::default()), Some(2701), "revision 2700"),
    ] {
        let (host, config) = survivor().await;
        let before = cluster_before(&host);
        host.cloud
            .volumes
            .lock()
            .unwrap()
            .retain(|one| one.id != "vol-0c");
        let mut record = read_record(&host).await;
        let Some(recovering) = &mut record.next else {
            panic!("it recovers");
        };
        let source = |force, revision| {
            Source::Member(MemberSource {
                force,
                revision,
                ..MemberSource::default()
            })
        };
        recovering.source = source(false, revision);
        recovering.stopped.insert("b".to_owned(), logs);
        let mut forced = record.clone();
        write_record(&host, &record);
        let member = new_member(&host, &config);
        let mut error = String::new();
        for _ in 0..4 {
            if let Err(refused) = member.take_step().await {
                error = format!("{refused:#}");
            }
        }
        assert!(error.contains(why), "{why}: {error}");
        assert!(host.wal_path().exists());
        assert!(!host.path_on_disk("var/etcd/data.lost-1").exists(), "{why}");
        if let Some(recovering) = &mut forced.next {
            recovering.source = source(true, None);
        }
        write_record(&host, &forced);
        let_settle(&member).await;
        assert_recovered(&host, &before, why).await;
    }
}

/// Restored data that is lost before it is used, or that is of an older state of the source, is restored again.
#[tokio::test]
async fn restored_data_that_is_lost_or_stale_is_restored_again() {
    for is_stale in [true, false] {
        let (host, config) = survivor().await;
        let before = cluster_before(&host);
        lose_the_others(&host);
        let restored = host.path_on_disk("var/etcd/data.restored-recovered");
        if is_stale {
            write_log(&restored.join("member/wal"), &founder_identity("stale"));
        }
        let member = new_member(&host, &config);
        while !read_record(&host).await.is_formed() {
            member.take_step().await.unwrap();
        }
        fs::remove_dir_all(&restored).unwrap();
        let_settle(&member).await;
        assert_recovered(&host, &before, "later").await;
        let source = host.path_on_disk("var/etcd/data.restored-recovered.source");
        assert!(!source.exists());
    }
}

/// protokube dies at each change, file or call, and the instance may reboot each time.
#[tokio::test]
async fn a_protokube_that_dies_anywhere_goes_on_with_the_recovery() {
    let (whole, config) = survivor().await;
    lose_the_others(&whole);
    let first = whole.fuse.lock().unwrap().done;
    let_settle(&new_member(&whole, &config)).await;
    let calls = whole.fuse.lock().unwrap().done - first;
    assert!(calls > 25, "{calls}");
    for dies_at in 1..=calls {
        for reboots in [false, true] {
            let what = format!("dies at {dies_at} of {calls}, reboots: {reboots}");
            let (host, config) = survivor().await;
            let before = cluster_before(&host);
            lose_the_others(&host);
            settle_through_death(&host, &config, (dies_at, reboots), &what).await;
            assert_recovered(&host, &before, &what).await;
        }
    }
}

/// Without its end the log of a lone member is not started. Moved back, it runs; or an operator gives up what is missing.
#[tokio::test]
async fn a_lone_member_whose_log_lost_its_end_waits_for_it_or_for_a_recovery() {
    for recovers in [false, true] {
        let (host, config) = serving_member(false, true).await;
        write_script(&host.path("programs/ctr"), CTR);
        write_log(
            &host.path("programs/restored-wal"),
            &founder_identity(NEW_TOKEN),
        );
        grow_log(&host);
        let_settle(&new_member(&host, &config)).await;
        let starts = host.kubelet.lock().unwrap().starts;
        cut_off_log(&host);
        for _ in 0..3 {
            let why = refusal_text(&host, &config).await;
            for part in [
                "member a",
                "lost its end",
                "index 50 in term 2",
                "index 40",
                "EBS snapshot",
                "kctl etcd recover",
            ] {
                assert!(why.contains(part), "{part}: {why}");
            }
            assert_eq!(host.host.link_target(LINK).unwrap(), None);
            host.reboot();
        }
        if recovers {
            let terms = RecoveryTerms::default();
            let record = begin_recovery(&read_record(&host).await, "a", NEW_TOKEN, terms).unwrap();
            write_record(&host, &record);
        } else {
            grow_log(&host);
        }
        let_settle(&new_member(&host, &config)).await;
        assert_eq!(host.kubelet.lock().unwrap().starts, starts + 1);
        let aside = host.path_on_disk("var/etcd/data.lost-1/member/wal");
        assert_eq!(aside.exists(), recovers);
        let marker = fs::read_to_string(host.path_on_disk(MARKER)).unwrap();
        assert_eq!(marker.contains("lastSeen"), !recovers, "{marker}");
        // The restored log is shorter, and another one.
        host.reboot();
        let_settle(&new_member(&host, &config)).await;
    }
}

/// etcd's programs fail: the old data stays where it is, and the next look tries again.
#[tokio::test]
async fn data_that_a_scratch_etcd_cannot_read_stays_where_it_is() {
    let (host, config) = survivor().await;
    let before = cluster_before(&host);
    lose_the_others(&host);
    write_script(
        &host.path("programs/ctr"),
        "case \"$*\" in *etcdutl*) echo 'panic: invalid page' >&2; exit 2 ;; esac",
    );
    let member = new_member(&host, &config);
    let mut error = String::new();
    for _ in 0..4 {
        if let Err(why) = member.take_step().await {
            error = format!("{why:#}");
        }
    }
    assert!(error.contains("invalid page"), "{error}");
    assert!(host.wal_path().exists());
    assert!(!host.path_on_disk("var/etcd/data.lost-1").exists());
    write_script(&host.path("programs/ctr"), CTR);
    let_settle(&member).await;
    assert_recovered(&host, &before, "later").await;
    fs::remove_dir_all(host.path_on_disk("var/etcd/data.lost-1")).unwrap();
}
