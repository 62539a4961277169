//! One member from a blank volume to serving, and whatever may go wrong on the way.

use crate::machine::{Cloud, Etcd, INSTANCE, Machine, ZONE, config};
use model::etcd::{Record, State, record_key};
use protokube::etcd::{Formation, Member, Outcome, Settings, Settled};
use protokube::pace::{Pace, sleep};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

const LINK: &str = "/etc/kubernetes/manifests/etcd-main.manifest";

/// A protokube that was just started on that machine.
fn member(machine: &Machine) -> Member<Cloud, Etcd> {
    const AT_ONCE: Pace = Pace {
        quick: Duration::ZERO,
        waiting: Duration::ZERO,
        rest: Duration::ZERO,
        sleep,
    };
    member_with(machine, "main", AT_ONCE)
}

/// A protokube's member of an etcd cluster.
pub fn member_with(machine: &Machine, etcd: &str, pace: Pace) -> Member<Cloud, Etcd> {
    let all = config().control_plane.unwrap().etcd;
    let settings = Settings {
        etcd: all.into_iter().find(|one| one.name == etcd).unwrap(),
        config: Arc::new(config()),
        first_device: 0,
        instance: INSTANCE.into(),
        zone: ZONE.into(),
        pace,
        token: || Ok("token".to_owned()),
    };
    let kubelet = match etcd {
        "main" => Arc::clone(&machine.kubelet),
        _ => machine.kubelet_of_events(),
    };
    let running = Etcd {
        kubelet,
        fuse: machine.fuse.clone(),
    };
    let settled: Arc<Settled> = Arc::new(watch::channel(BTreeMap::new()).0);
    Member::new(
        settings,
        Arc::clone(&machine.cloud),
        machine.host.clone(),
        Formation::of(&machine.store, etcd),
        running,
        settled,
    )
}

async fn settle(member: &Member<Cloud, Etcd>) {
    for _ in 0..50 {
        if member.look().await.unwrap() == Outcome::Settled {
            return;
        }
    }
    panic!("it does not settle");
}

/// What is there after another start of the machine: the manifest changes then, and not under a kubelet that runs it.
async fn restarted(machine: &Machine) {
    machine.reboot();
    settle(&member(machine)).await;
}

async fn record(machine: &Machine) -> Record {
    let store = &machine.store;
    let object = store.get(&record_key("main")).await.unwrap().unwrap();
    Record::read("main", &object.bytes).unwrap()
}

fn manifest(machine: &Machine) -> String {
    let to = machine.host.link(LINK).unwrap();
    machine.host.read(to.to_str().unwrap()).unwrap().unwrap()
}

#[tokio::test]
async fn a_blank_volume_becomes_a_member_without_a_restart_and_founds_nothing_at_the_next_start() {
    let machine = Machine::new().await;
    machine.cloud.add_volume("vol-0a", "main");
    settle(&member(&machine)).await;
    let State::Formed { cluster_id, .. } = record(&machine).await.state else {
        panic!("not formed");
    };
    assert_eq!(cluster_id, "cluster-of-token");
    let counts = || {
        let kubelet = machine.kubelet.lock().unwrap();
        (kubelet.founded, kubelet.starts)
    };
    assert_eq!(counts(), (1, 1));
    restarted(&machine).await;
    let text = manifest(&machine);
    assert!(text.contains("existing") && !text.contains("ETCD_INITIAL_CLUSTER_TOKEN"));
    assert_eq!(counts(), (1, 2));
    let to = machine.host.link(LINK).unwrap();
    assert!(
        to.starts_with("/mnt/master-vol-0a"),
        "on the volume: {to:?}"
    );
}

#[tokio::test]
async fn nothing_changes_once_it_is_settled() {
    let machine = Machine::new().await;
    machine.cloud.add_volume("vol-0a", "main");
    settle(&member(&machine)).await;
    let before = machine.tree();
    settle(&member(&machine)).await;
    assert_eq!(machine.tree(), before);
    assert_eq!(machine.kubelet.lock().unwrap().starts, 1);
}

/// Whatever dies, and wherever, also if the machine starts again each time: the same files, and one cluster.
#[tokio::test]
async fn a_protokube_that_dies_anywhere_goes_on_to_the_same_files() {
    let whole = Machine::new().await;
    whole.cloud.add_volume("vol-0a", "main");
    settle(&member(&whole)).await;
    let calls = whole.fuse.lock().unwrap().done;
    restarted(&whole).await;
    let wanted = whole.tree();
    assert!(calls > 10, "{calls}");
    for dies_at in 1..=calls {
        for reboots in [false, true] {
            let machine = Machine::new().await;
            machine.cloud.add_volume("vol-0a", "main");
            machine.fuse.lock().unwrap().dies_at = Some(dies_at);
            let mut looks = 0;
            // Each look is another protokube's.
            while !matches!(member(&machine).look().await, Ok(Outcome::Settled)) {
                looks += 1;
                assert!(looks < 50, "dies at {dies_at}: does not settle");
                if reboots {
                    machine.reboot();
                }
            }
            restarted(&machine).await;
            assert_eq!(machine.tree(), wanted, "dies at {dies_at}");
            assert_eq!(machine.kubelet.lock().unwrap().founded, 1);
        }
    }
}

#[tokio::test]
async fn what_is_lost_besides_the_data_comes_back() {
    let machine = Machine::new().await;
    machine.cloud.add_volume("vol-0a", "main");
    settle(&member(&machine)).await;
    restarted(&machine).await;
    let wanted = machine.tree();
    let on_volume = machine.host.link(LINK).unwrap();
    for lost in [LINK, on_volume.to_str().unwrap(), "/store/etcd/main.json"] {
        std::fs::remove_file(machine.path(lost)).unwrap();
        settle(&member(&machine)).await;
        assert_eq!(machine.tree(), wanted, "without {lost}");
    }
    assert_eq!(machine.kubelet.lock().unwrap().founded, 1);
}

#[tokio::test]
async fn after_a_reboot_it_comes_back_without_aws() {
    let machine = Machine::new().await;
    machine.cloud.add_volume("vol-0a", "main");
    settle(&member(&machine)).await;
    machine.reboot();
    *machine.cloud.down.lock().unwrap() = true;
    let member = member(&machine);
    let error = member.run().await.unwrap_err().to_string();
    assert!(error.contains("nobody answers"), "{error}");
    let etcd = Etcd {
        kubelet: Arc::clone(&machine.kubelet),
        fuse: machine.fuse.clone(),
    };
    let unhealthy = protokube::etcd::Running::unhealthy(&etcd).await;
    assert_eq!(unhealthy, None, "kubelet runs it from the mounted volume");
}

/// The machine starts for the first time since its cluster was formed, and etcd's log is gone: with protokube that resumes, and with
/// one that sees the volume only later.
#[tokio::test]
async fn data_that_was_lost_is_not_founded_over() {
    let etcd_waits_for_peers = (true, "existing");
    let nothing_is_run = (false, "no manifest");
    for (resumes, why) in [etcd_waits_for_peers, nothing_is_run] {
        let machine = Machine::new().await;
        machine.cloud.add_volume("vol-0a", "main");
        settle(&member(&machine)).await;
        machine.reboot();
        std::fs::remove_dir_all(machine.path("disks/nvme1n1/var/etcd/data/member")).unwrap();
        let again = member(&machine);
        let error = if resumes {
            again.run().await.unwrap_err()
        } else {
            again.look().await.unwrap_err()
        };
        assert!(
            error.to_string().contains("founds no second cluster"),
            "{error}"
        );
        let etcd = Etcd {
            kubelet: Arc::clone(&machine.kubelet),
            fuse: machine.fuse.clone(),
        };
        let said = protokube::etcd::Running::unhealthy(&etcd).await;
        let said = said.unwrap();
        assert!(said.contains(why), "{said}");
        assert_eq!(machine.kubelet.lock().unwrap().founded, 1);
    }
}

#[tokio::test]
async fn a_blank_volume_founds_no_second_cluster() {
    let machine = Machine::new().await;
    machine.cloud.add_volume("vol-0a", "main");
    settle(&member(&machine)).await;
    machine.reboot();
    machine.cloud.volumes.lock().unwrap().clear();
    machine.cloud.add_volume("vol-0b", "main");
    let member = member(&machine);
    let mut said = String::new();
    for _ in 0..20 {
        if let Err(error) = member.look().await {
            said = format!("{error:#}");
        }
    }
    assert!(said.contains("founds no second cluster"), "{said}");
    assert_eq!(machine.kubelet.lock().unwrap().founded, 1);
    let tree = machine.tree();
    assert!(!tree.values().any(|text| text.contains("master-vol-0b")));
}

#[tokio::test]
async fn somebody_elses_data_is_never_started_or_written_to() {
    let machine = Machine::new().await;
    machine.cloud.add_volume("vol-0a", "main");
    let first = member(&machine);
    assert_eq!(first.look().await.unwrap(), Outcome::Waits, "attached");
    // An etcd volume of another tool.
    std::fs::write(machine.path("dev/nvme1n1"), "ext4").unwrap();
    let theirs = machine.path("disks/nvme1n1/data/member/snap/db");
    std::fs::create_dir_all(theirs.parent().unwrap()).unwrap();
    std::fs::write(&theirs, "theirs").unwrap();
    let before = machine.tree();
    for _ in 0..3 {
        let error = member(&machine).look().await.unwrap_err().to_string();
        assert!(error.contains("db") && error.contains("vol-0a"), "{error}");
    }
    let mut after = machine.tree();
    after.retain(|path, _| !path.contains("lost+found"));
    assert_eq!(after, before);
}

#[tokio::test]
async fn the_file_system_follows_the_volume_once_for_each_size() {
    let machine = Machine::new().await;
    machine.cloud.add_volume("vol-0a", "main");
    let member = member(&machine);
    let resized = || {
        let said = std::fs::read_to_string(machine.path("programs/resized"));
        said.unwrap_or_default().lines().count()
    };
    settle(&member).await;
    settle(&member).await;
    assert_eq!(resized(), 1);
    machine.cloud.volumes.lock().unwrap()[0].size = 40;
    settle(&member).await;
    settle(&member).await;
    assert_eq!(resized(), 2);
}
