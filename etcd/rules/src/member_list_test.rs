//! Tests of the list of members in a log and snapshot that etcd 3.5.31 wrote: a, b and c founded the cluster, d was added and
//! promoted, b removed. Then the snapshot was taken; afterwards e was added as a learner with two URLs, and d got another URL.

use super::*;
use std::collections::BTreeMap;

const LOG: &[u8] = include_bytes!("member_list_test/log.wal");
const SNAPSHOT: &[u8] = include_bytes!("member_list_test/snapshot.snap");

/// What `etcdctl member list` showed at the end.
fn listed() -> MemberList {
    let peer = |id: &str, urls: &[&str], learner| {
        let peer_urls = urls.iter().map(ToString::to_string).collect();
        (id.to_owned(), ListedPeer { peer_urls, learner })
    };
    BTreeMap::from([
        peer("34c096ba31d5fa77", &["http://127.0.0.1:21381"], false),
        peer(
            "935612a6fd25b072",
            &["http://127.0.0.1:21385", "http://127.0.0.1:21386"],
            true,
        ),
        peer("989408143fe9ea3d", &["http://localhost:21384"], false),
        peer("e939cfa398e15f2d", &["http://127.0.0.1:21383"], false),
    ])
}

fn read_log(bytes: &[u8]) -> MembershipLog {
    let mut log = MembershipLog::default();
    log.read_file(bytes).unwrap();
    log
}

#[test]
fn the_list_is_that_of_the_snapshot_and_of_the_changes_after_it() {
    let log = read_log(LOG);
    let name = log.newest_snapshot().unwrap();
    assert_eq!(name, "0000000000000003-0000000000000016.snap");
    let lists = log.member_lists(Some(SNAPSHOT)).unwrap();
    assert_eq!(lists, [listed()]);
    assert!(log.member_lists(Some(&SNAPSHOT[..200])).is_err());
}

/// Without the snapshot, the changes from the beginning of the log result in the same: one law for both sources.
#[test]
fn a_snapshot_is_what_the_log_says_up_to_it() {
    let mut log = read_log(LOG);
    log.forget_snapshots();
    assert_eq!(log.newest_snapshot(), None);
    assert_eq!(log.member_lists(None).unwrap(), [listed()]);
}

/// A log that is cut off anywhere has lists, and each list that etcd may have applied is among those of the shorter logs.
#[test]
fn a_log_may_end_anywhere() {
    for end in 0..LOG.len() {
        let mut log = MembershipLog::default();
        if log.read_file(&LOG[..end]).is_ok() {
            log.forget_snapshots();
            let lists = log.member_lists(None).unwrap();
            assert!(!lists.is_empty() && lists.len() < 8, "{end}: {lists:?}");
        }
    }
}

#[test]
fn what_is_not_committed_may_be_applied_or_not() {
    let mut log = read_log(LOG);
    log.forget_snapshots();
    log.set_commit(3);
    let lists = log.member_lists(None).unwrap();
    assert_eq!(lists.first().unwrap().len(), 3, "its founders");
    assert_eq!(lists.last(), Some(&listed()));
    // d as a learner, d promoted, b gone, e, and d's URL.
    assert_eq!(lists.len(), 6);
}

#[test]
fn a_difference_names_the_member_and_both_stores() {
    // Answer of etcd 3.6.12 at /members.
    let text = r#"[{"id":3801203811944888951,"peerURLs":["http://127.0.0.1:21381"],"name":"etcd-a","clientURLs":["http://127.0.0.1:21481"]},
        {"id":10994543019478475378,"peerURLs":["http://127.0.0.1:21386","http://127.0.0.1:21385"],"name":"","isLearner":true},
        {"id":10616590889834609234,"peerURLs":["http://localhost:21384"],"name":"etcd-d"}]"#;
    let mut list = parse_member_list(text).unwrap();
    assert_eq!(describe_difference(&list, &list), None);
    let zombie = listed().remove("e939cfa398e15f2d").unwrap();
    let before = list.clone();
    list.insert("e939cfa398e15f2d".to_owned(), zombie);
    assert_eq!(
        describe_difference(&before, &list).unwrap(),
        "e939cfa398e15f2d is not a member in the v2 store and a voter at http://127.0.0.1:21383 in the v3 store"
    );
}
