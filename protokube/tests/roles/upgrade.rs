//! Tests of a member that goes to the next minor of etcd: a copy of its data is proven before kubelet sees the new version, whenever
//! protokube or the instance dies.

use crate::etcd::{AT_ONCE, LINK, let_settle, member_of, serving_member, settle_through_death};
use crate::test_host::{TestHost, pass_fuse};
use etcd_member::StepOutcome;
use etcd_rules::Marker;
use node::config::NodeConfig;
use std::collections::BTreeMap;
use std::fs;
use std::sync::Arc;
use test_support::write_script;

const OLD: &str = "3.5.31";
const NEW: &str = "3.6.12";

/// Notes what containers ran, and finds no image.
const CTR: &str = "echo \"$*\" >> \"$(dirname \"$0\")/ran\"\n";

fn with_version(mut config: NodeConfig, version: &str) -> NodeConfig {
    let etcd = &mut config.control_plane.as_mut().unwrap().etcd[0];
    version.clone_into(&mut etcd.version);
    etcd.image = format!("registry.k8s.io/etcd:v{version}");
    config
}

/// The instance is replaced by one with another version of etcd: nothing but the volume is left of it.
fn replace_instance(host: &TestHost) {
    host.reboot();
    fs::remove_file(host.path(LINK)).unwrap();
}

/// A member that served under an old version, and whose instance was replaced by one with a new one.
async fn upgraded_member(three: bool, old: &str, new: &str) -> (TestHost, NodeConfig) {
    let (mut host, config) = serving_member(three, false).await;
    set_version(&host, old);
    replace_instance(&host);
    let fuse = host.fuse.clone();
    let dies = move || pass_fuse(&fuse).is_err();
    host.host = host.host.with_stop(Arc::new(dies));
    write_script(&host.path("programs/ctr"), CTR);
    let mut kubelet = host.kubelet.lock().unwrap();
    kubelet.scratch_members = Some("[]".to_owned());
    kubelet.peer_version = old.to_owned();
    drop(kubelet);
    (host, with_version(config, new))
}

fn marker_path(host: &TestHost) -> std::path::PathBuf {
    host.path_on_disk("k8s.io/etcd-member.json")
}

fn read_marker(host: &TestHost) -> Marker {
    Marker::parse("marker", &fs::read(marker_path(host)).unwrap()).unwrap()
}

fn set_version(host: &TestHost, version: &str) {
    let marker = Marker {
        etcd_version: Some(version.to_owned()),
        ..read_marker(host)
    };
    fs::write(marker_path(host), marker.to_json()).unwrap();
}

fn assert_upgraded(host: &TestHost, what: &str) {
    assert_eq!(
        read_marker(host).etcd_version.as_deref(),
        Some(NEW),
        "{what}"
    );
    let disk = |path: &str| host.path_on_disk(&format!("var/etcd/{path}"));
    assert!(disk("data.before-3.6.12/member/wal").exists(), "{what}");
    assert!(disk("data/member/wal").exists(), "{what}");
    assert!(!disk("data.scratch").exists(), "{what}");
    assert!(!disk("data.before-3.5.31").exists(), "{what}");
    let kubelet = host.kubelet.lock().unwrap();
    let running = kubelet.running.as_deref().unwrap_or_default();
    assert!(running.contains("etcd:v3.6.12"), "{what}: {running}");
    assert_eq!((kubelet.founded, kubelet.lives), (1, 1), "{what}");
}

#[tokio::test]
async fn a_member_alone_or_of_three_is_proven_on_a_copy_first() {
    for three in [false, true] {
        let (host, config) = upgraded_member(three, OLD, NEW).await;
        // The copy of an upgrade before is not kept.
        fs::create_dir_all(host.path_on_disk("var/etcd/data.before-3.5.31")).unwrap();
        let_settle(&member_of(&host, config.clone(), AT_ONCE)).await;
        assert_upgraded(&host, &format!("three: {three}"));
        let ran = fs::read_to_string(host.path("programs/ran")).unwrap();
        let pulled = ran.find("images pull").unwrap();
        let asked = ran.find("listen-metrics-urls").unwrap();
        assert!(pulled < asked, "{ran}");
        // From then on it is a member like every other.
        fs::remove_file(host.path("programs/ran")).unwrap();
        host.reboot();
        let_settle(&member_of(&host, config, AT_ONCE)).await;
        assert!(!host.path("programs/ran").exists());
        assert_upgraded(&host, "after a reboot");
    }
}

/// protokube dies at each change, file or call, and the instance may reboot each time.
#[tokio::test]
async fn a_protokube_that_dies_anywhere_goes_on_with_the_upgrade() {
    let (whole, config) = upgraded_member(true, OLD, NEW).await;
    let first = whole.fuse.lock().unwrap().done;
    let_settle(&member_of(&whole, config, AT_ONCE)).await;
    let calls = whole.fuse.lock().unwrap().done - first;
    assert!(calls > 25, "{calls}");
    for dies_at in 1..=calls {
        for reboots in [false, true] {
            let what = format!("dies at {dies_at} of {calls}, reboots: {reboots}");
            let (host, config) = upgraded_member(true, OLD, NEW).await;
            settle_through_death(&host, &config, (dies_at, reboots), &what).await;
            assert_upgraded(&host, &what);
        }
    }
}

/// A power failure leaves the copy of an attempt before, or a whole new one.
#[tokio::test]
async fn a_copy_is_on_the_disk_before_the_one_it_replaces_goes() {
    let (host, config) = upgraded_member(false, OLD, NEW).await;
    let before = host.path_on_disk("var/etcd/data.before-3.6.12/before");
    fs::create_dir_all(&before).unwrap();
    let_settle(&member_of(&host, config, AT_ONCE)).await;
    assert_upgraded(&host, "with a copy of before");
    assert!(!before.exists());
    let flushed = host.flushed.lock().unwrap();
    let is_safe = |disk: &BTreeMap<String, String>| {
        let has = |path: &str| disk.keys().any(|name| name.contains(path));
        has("/data.scratch/data/member/wal/") && has("/data.before-3.6.12/before/")
    };
    assert!(flushed.iter().any(is_safe), "{flushed:?}");
}

/// Nothing of the data changes, nothing is shown to kubelet, and the reason names the next step.
#[tokio::test]
async fn what_may_not_run_on_the_data_is_never_shown() {
    for (old, new, why) in [
        ("3.5.20", NEW, "3.5.26 or newer"),
        (OLD, "3.7.2", "one minor at a time"),
        ("3.6.10", "3.7.2", "3.6.11 or newer"),
        (NEW, OLD, "kctl takes etcd to no older minor"),
    ] {
        let (host, config) = upgraded_member(false, old, new).await;
        let before = host.file_tree();
        let member = member_of(&host, config, AT_ONCE);
        for _ in 0..3 {
            // The first steps attach nothing: the instance has the volume.
            if let Err(error) = member.take_step().await {
                let error = format!("{error:#}");
                assert!(
                    error.contains(why) && error.contains("kctl update"),
                    "{error}"
                );
            }
            assert!(
                host.kubelet.lock().unwrap().running.is_none(),
                "{old} to {new}"
            );
        }
        assert!(member.take_step().await.is_err(), "{old} to {new}");
        assert_eq!(host.file_tree(), before, "{old} to {new}");
    }
}

#[tokio::test]
async fn a_silent_member_is_waited_for() {
    let (host, config) = upgraded_member(true, OLD, NEW).await;
    host.kubelet.lock().unwrap().silent = ["b".to_owned()].into();
    let member = member_of(&host, config, AT_ONCE);
    for _ in 0..4 {
        assert_eq!(member.take_step().await.unwrap(), StepOutcome::Waits);
        assert!(host.kubelet.lock().unwrap().running.is_none());
    }
    host.kubelet.lock().unwrap().silent.clear();
    let_settle(&member).await;
    assert_upgraded(&host, "later");
}

/// A removed member that the v3 store still has would vote from 3.6 on.
#[tokio::test]
async fn lists_of_members_that_differ_hold_it_up() {
    let (host, config) = upgraded_member(true, OLD, NEW).await;
    let zombie = r#"[{"id":1,"peerURLs":["https://zombie:2380"],"name":"etcd-z"}]"#;
    host.kubelet.lock().unwrap().scratch_members = Some(zombie.to_owned());
    let member = member_of(&host, config, AT_ONCE);
    for _ in 0..3 {
        let error = format!("{:#}", member.take_step().await.unwrap_err());
        let why = "1 is not a member in the v2 store and a voter at https://zombie:2380";
        assert!(error.contains(why), "{error}");
        assert!(host.kubelet.lock().unwrap().running.is_none());
    }
    assert_eq!(read_marker(&host).etcd_version.as_deref(), Some(OLD));
    host.kubelet.lock().unwrap().scratch_members = Some("[]".to_owned());
    let_settle(&member).await;
    assert_upgraded(&host, "once they are equal");
}

/// An etcd that cannot open a copy of the data gets nothing else.
#[tokio::test]
async fn data_that_the_new_version_cannot_read_stays_with_the_old_one() {
    let (host, config) = upgraded_member(false, OLD, NEW).await;
    let ended = format!(
        "{CTR}case \"$*\" in *'task list'*) echo 'kctl-etcd-main-replay 7 STOPPED' ;; esac\n"
    );
    write_script(&host.path("programs/ctr"), &ended);
    host.kubelet.lock().unwrap().scratch_members = None;
    let error = member_of(&host, config, AT_ONCE)
        .take_step()
        .await
        .unwrap_err();
    assert!(
        format!("{error:#}").contains("cannot read the data"),
        "{error:#}"
    );
    assert_eq!(read_marker(&host).etcd_version.as_deref(), Some(OLD));
    assert!(!host.path_on_disk("var/etcd/data.before-3.6.12").exists());
    // The version of before goes on.
    let before = with_version(crate::test_host::node_config(), OLD);
    let_settle(&member_of(&host, before, AT_ONCE)).await;
}
