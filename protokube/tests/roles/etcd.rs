//! One member from a blank volume to serving, and whatever may go wrong on the way.

use crate::machine::{
    Cloud, Etcd, INSTANCE, Machine, ZONE, config, config_of_three, config_of_three_in_a_group,
    files_of_log, identity_of, write_log,
};
use aws_client::machine::Attachment;
use node::config::NodeConfig;
use node::etcd::{FormationRecord, FormationState, record_key};
use node::waits::Wait;
use protokube::etcd::{FormationStore, Member, MemberSettings, Outcome, RunningEtcd, Settled};
use protokube::log::RoleLog;
use protokube::pace::{Pace, sleep_for};
use protokube::standing::CurrentWaits;
use protokube::supervise::{Backoff, supervise_role};
use std::collections::BTreeMap;
use std::fs;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

const LINK: &str = "/etc/kubernetes/manifests/etcd-main.manifest";

/// No time between looks.
const AT_ONCE: Pace = Pace {
    quick: Duration::ZERO,
    waiting: Duration::ZERO,
    rest: Duration::ZERO,
    sleep: sleep_for,
};

/// A protokube that was just started on that machine.
fn member(machine: &Machine) -> Member<Cloud, Etcd> {
    member_of(machine, config(), AT_ONCE)
}

/// A protokube's member of an etcd cluster.
pub fn member_with(machine: &Machine, etcd: &str, pace: Pace) -> Member<Cloud, Etcd> {
    member_in(
        machine,
        config(),
        etcd,
        pace,
        watch::channel(BTreeMap::new()).0,
        RoleLog::for_role(format!("etcd-{etcd}")),
    )
}

fn member_of(machine: &Machine, config: NodeConfig, pace: Pace) -> Member<Cloud, Etcd> {
    member_in(
        machine,
        config,
        "main",
        pace,
        watch::channel(BTreeMap::new()).0,
        RoleLog::for_role("etcd-main"),
    )
}

/// The member and its protokube's watch over it, as roles are run; what it waits for or refuses stands there.
async fn supervised(machine: &Machine, config: &NodeConfig, standing: &Arc<CurrentWaits>) {
    let voice = || RoleLog::for_role("etcd-main").recording_waits(standing, "member a");
    let settled = watch::channel(BTreeMap::new()).0;
    let hour = Pace {
        rest: Duration::from_hours(1),
        ..AT_ONCE
    };
    let member = member_in(machine, config.clone(), "main", hour, settled, voice());
    let quick = Backoff {
        first: Duration::from_millis(1),
        longest: Duration::from_hours(1),
    };
    match supervise_role(voice(), quick, || member.run_member()).await {}
}

/// Runs it until what stands is like that; what it is then.
async fn stands(
    machine: &Machine,
    config: &NodeConfig,
    standing: &Arc<CurrentWaits>,
    like: impl Fn(&[Wait]) -> bool,
) -> Vec<Wait> {
    let until = async {
        while !like(&standing.list_waits()) {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        standing.list_waits()
    };
    tokio::select! {
        () = supervised(machine, config, standing) => unreachable!(),
        waits = until => waits,
    }
}

fn member_in(
    machine: &Machine,
    config: NodeConfig,
    etcd: &str,
    pace: Pace,
    settled: Settled,
    voice: RoleLog,
) -> Member<Cloud, Etcd> {
    let all = config.control_plane.clone().unwrap().etcd;
    let settings = MemberSettings {
        etcd: all.into_iter().find(|one| one.name == etcd).unwrap(),
        config: Arc::new(config),
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
    Member::new(
        settings,
        Arc::clone(&machine.cloud),
        machine.host.clone(),
        FormationStore::new(&machine.store, etcd),
        running,
        Arc::new(settled),
        voice,
    )
}

fn etcd(machine: &Machine) -> Etcd {
    Etcd {
        kubelet: Arc::clone(&machine.kubelet),
        fuse: machine.fuse.clone(),
    }
}

/// A machine whose member serves: alone, or the first of three whose peers know it. It has been started again since, or not.
async fn serving(three: bool, restarted: bool) -> (Machine, NodeConfig) {
    let machine = Machine::new().await;
    let config = if three { config_of_three() } else { config() };
    if three {
        machine.cloud.add_volumes_of_three();
    } else {
        machine.cloud.add_volume("vol-0a", "main");
    }
    let member = || member_of(&machine, config.clone(), AT_ONCE);
    for _ in 0..5 {
        let _ = member().take_step().await;
    }
    if three {
        // The other machines look too.
        let mut record = record(&machine).await;
        record.members.values_mut().for_each(|one| one.blank = true);
        write_record(&machine, &record);
    }
    settle(&member()).await;
    machine.kubelet.lock().unwrap().peers = three;
    if restarted {
        machine.reboot();
        settle(&member()).await;
    }
    (machine, config)
}

fn write_record(machine: &Machine, record: &FormationRecord) {
    fs::write(machine.path("store/etcd/main.json"), record.to_json()).unwrap();
}

/// What a protokube that starts now says when it can do no more.
async fn refusal(machine: &Machine, config: &NodeConfig) -> String {
    let member = member_of(machine, config.clone(), AT_ONCE);
    format!("{:#}", member.run_member().await.unwrap_err())
}

async fn settle(member: &Member<Cloud, Etcd>) {
    for _ in 0..50 {
        if member.take_step().await.unwrap() == Outcome::Settled {
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

async fn record(machine: &Machine) -> FormationRecord {
    let store = &machine.store;
    let object = store.get(&record_key("main")).await.unwrap().unwrap();
    FormationRecord::parse("main", &object.bytes).unwrap()
}

fn manifest(machine: &Machine) -> String {
    let to = machine.host.link_target(LINK).unwrap().unwrap();
    machine
        .host
        .read_text(to.to_str().unwrap())
        .unwrap()
        .unwrap()
}

#[tokio::test]
async fn a_blank_volume_becomes_a_member_without_a_restart_and_founds_nothing_at_the_next_start() {
    let machine = Machine::new().await;
    machine.cloud.add_volume("vol-0a", "main");
    settle(&member(&machine)).await;
    let FormationState::Formed { cluster_id, .. } = record(&machine).await.state else {
        panic!("not formed");
    };
    assert_eq!(cluster_id, identity_of("token").cluster_id);
    let id = &record(&machine).await.members["a"].member_id;
    assert_eq!(*id, Some(identity_of("token").member_id));
    let counts = || {
        let kubelet = machine.kubelet.lock().unwrap();
        (kubelet.founded, kubelet.starts)
    };
    assert_eq!(counts(), (1, 1));
    restarted(&machine).await;
    let text = manifest(&machine);
    assert!(text.contains("existing") && !text.contains("ETCD_INITIAL_CLUSTER_TOKEN"));
    assert_eq!(counts(), (1, 2));
    let to = machine.host.link_target(LINK).unwrap().unwrap();
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
            while !matches!(member(&machine).take_step().await, Ok(Outcome::Settled)) {
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
    let on_volume = machine.host.link_target(LINK).unwrap().unwrap();
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
    let error = member.run_member().await.unwrap_err().to_string();
    assert!(error.contains("nobody answers"), "{error}");
    let unhealthy = etcd(&machine).find_problem().await;
    assert_eq!(unhealthy, None, "kubelet runs it from the mounted volume");
}

/// However the log went, whoever looks first, alone or among three whose peers would tell it who it was: it takes part no more, and the
/// refusal lasts. With its log it comes back by itself.
#[tokio::test]
async fn a_member_whose_log_is_gone_is_not_started_again() {
    let removed = |machine: &Machine| fs::rename(machine.log(), machine.path("saved"));
    let zeros = |machine: &Machine| {
        fs::create_dir(machine.path("saved"))?;
        let file = files_of_log(&machine.log()).remove(0);
        fs::copy(&file, machine.path("saved").join(file.file_name().unwrap()))?;
        fs::write(file, [0; 64])
    };
    type Lose<'a> = &'a dyn Fn(&Machine) -> std::io::Result<()>;
    let ways: [(&str, Lose<'_>); 2] = [("is missing", &removed), ("cannot be read", &zeros)];
    for (three, restarted) in [(false, false), (false, true), (true, false), (true, true)] {
        for (said, lose) in ways {
            for resumes in [true, false] {
                let (machine, config) = serving(three, restarted).await;
                let starts = machine.kubelet.lock().unwrap().starts;
                machine.reboot();
                lose(&machine).unwrap();
                if !resumes {
                    let member = member_of(&machine, config.clone(), AT_ONCE);
                    member.take_step().await.unwrap_err();
                }
                for _ in 0..3 {
                    let why = refusal(&machine, &config).await;
                    assert!(why.contains(said) && why.contains("member a"), "{why}");
                    assert_eq!(why.contains("no other way"), three, "{why}");
                    let seen = etcd(&machine).find_problem().await.unwrap();
                    assert!(seen.contains("no manifest"), "{seen}");
                    machine.reboot();
                }
                let counts = |kubelet: &crate::machine::Kubelet| (kubelet.lives, kubelet.starts);
                assert_eq!(counts(&machine.kubelet.lock().unwrap()), (1, starts));
                let _ = fs::remove_dir_all(machine.log());
                fs::rename(machine.path("saved"), machine.log()).unwrap();
                settle(&member_of(&machine, config, AT_ONCE)).await;
                assert_eq!(counts(&machine.kubelet.lock().unwrap()), (1, starts + 1));
            }
        }
    }
}

/// Nobody looks between the end of the process and the next. A member that has been started since its cluster was formed is told of no
/// peers, and one that founded it has peers that know it; a lone founder has nobody, and is stopped by the watch below.
#[tokio::test]
async fn a_container_that_kubelet_starts_again_without_its_log_does_not_take_part() {
    for (three, restarted, why) in [
        (false, true, "cannot fetch cluster info"),
        (true, true, "cannot fetch cluster info"),
        (true, false, "already been bootstrapped"),
    ] {
        let (machine, _) = serving(three, restarted).await;
        fs::remove_dir_all(machine.on_disk("var/etcd/data/member")).unwrap();
        let mut kubelet = machine.kubelet.lock().unwrap();
        let error = kubelet.restart_container().unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
        assert_eq!(kubelet.lives, 1);
    }
}

/// The next look is an hour away.
#[tokio::test]
async fn a_log_that_goes_from_under_a_running_member_is_noticed_between_two_looks() {
    let (machine, config) = serving(false, false).await;
    let (settled, mut is_settled) = watch::channel(BTreeMap::new());
    let an_hour = Pace {
        rest: Duration::from_hours(1),
        ..AT_ONCE
    };
    let voice = RoleLog::for_role("etcd-main");
    let member = member_in(&machine, config, "main", an_hour, settled, voice);
    let running = async {
        let main = |all: &BTreeMap<String, bool>| all.get("main") == Some(&true);
        is_settled.wait_for(main).await.unwrap();
        fs::remove_dir_all(machine.on_disk("var/etcd/data/member")).unwrap();
        std::future::pending::<()>().await;
    };
    let why = tokio::select! {
        ended = member.run_member() => ended.unwrap_err().to_string(),
        () = running => unreachable!(),
    };
    assert!(why.contains("is missing"), "{why}");
    assert_eq!(machine.host.link_target(LINK).unwrap(), None);
}

/// The log is another cluster's: kubelet does not see it once, at a look or after a reboot.
#[tokio::test]
async fn another_clusters_log_is_recognised_before_it_runs_and_stays_refused() {
    for three in [false, true] {
        let (machine, config) = serving(three, true).await;
        let starts = machine.kubelet.lock().unwrap().starts;
        machine.reboot();
        let other = identity_of("restored by hand");
        write_log(&machine.log(), &other);
        for _ in 0..4 {
            let why = refusal(&machine, &config).await;
            assert!(why.contains(&other.cluster_id), "{why}");
            let seen = etcd(&machine).find_problem().await;
            assert!(seen.unwrap().contains("no manifest"));
            machine.reboot();
        }
        assert_eq!(machine.kubelet.lock().unwrap().starts, starts);
    }
}

/// Marker and log fit each other and not the record. A machine that asks nobody cannot know; once it has asked, it knows for good.
#[tokio::test]
async fn data_of_another_cluster_than_the_recorded_is_stopped_once_and_not_started_again() {
    let (machine, config) = serving(false, true).await;
    let mut other = record(&machine).await;
    other.state = FormationState::formed("c0ffee", "token");
    write_record(&machine, &other);
    let why = refusal(&machine, &config).await;
    assert!(why.contains("c0ffee"), "{why}");
    assert_eq!(machine.host.link_target(LINK).unwrap(), None);
    let starts = machine.kubelet.lock().unwrap().starts;
    for _ in 0..3 {
        machine.reboot();
        refusal(&machine, &config).await;
        etcd(&machine).find_problem().await.unwrap();
    }
    assert_eq!(machine.kubelet.lock().unwrap().starts, starts);
}

/// A record that does not fit what runs stops nothing: what is missing is the record.
#[tokio::test]
async fn a_member_that_serves_goes_on_while_its_record_does_not_name_it() {
    let (machine, config) = serving(false, true).await;
    let mut without = record(&machine).await;
    without.members.clear();
    write_record(&machine, &without);
    let why = refusal(&machine, &config).await;
    assert!(why.contains("without member a"), "{why}");
    assert_eq!(etcd(&machine).find_problem().await, None);
}

/// The volume and the record of a lone member are lost, and the store still says that it was there.
#[tokio::test]
async fn no_empty_cluster_is_founded_where_one_was() {
    let formed = format!("etcd/formed/main/{}", identity_of("token").cluster_id);
    let backup = "backups/etcd/main/2026-11-22T00:00:00Z-000001/etcd.backup.gz".to_owned();
    for trace in [formed.clone(), backup] {
        let (machine, config) = serving(false, true).await;
        machine.reboot();
        machine.cloud.volumes.lock().unwrap().clear();
        machine.cloud.add_volume("vol-0b", "main");
        let store = machine.path("store");
        fs::remove_file(store.join("etcd/main.json")).unwrap();
        fs::remove_file(store.join(&formed)).unwrap();
        let there = store.join(&trace);
        fs::create_dir_all(there.parent().unwrap()).unwrap();
        fs::write(&there, "").unwrap();
        let look = || member_of(&machine, config.clone(), AT_ONCE);
        let mut said = String::new();
        for _ in 0..5 {
            if let Err(error) = look().take_step().await {
                said = format!("{error:#}");
            }
        }
        assert!(said.contains(&trace), "{said}");
        assert!(!store.join("etcd/main.json").exists());
        let disk = fs::read(machine.path("dev/nvme1n1")).unwrap();
        assert!(
            disk.iter().all(|byte| *byte == 0),
            "nothing is written to it"
        );
        // The step that the refusal names.
        fs::remove_file(there).unwrap();
        settle(&look()).await;
        assert_eq!(machine.kubelet.lock().unwrap().founded, 2);
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
        if let Err(error) = member.take_step().await {
            said = format!("{error:#}");
        }
    }
    assert!(said.contains("no second cluster is founded"), "{said}");
    assert_eq!(machine.kubelet.lock().unwrap().founded, 1);
    let tree = machine.tree();
    assert!(!tree.values().any(|text| text.contains("master-vol-0b")));
}

#[tokio::test]
async fn somebody_elses_data_is_never_started_or_written_to() {
    let machine = Machine::new().await;
    machine.cloud.add_volume("vol-0a", "main");
    let first = member(&machine);
    assert_eq!(first.take_step().await.unwrap(), Outcome::Waits, "attached");
    // An etcd volume of another tool.
    std::fs::write(machine.path("dev/nvme1n1"), "ext4").unwrap();
    let theirs = machine.path("disks/nvme1n1/data/member/snap/db");
    std::fs::create_dir_all(theirs.parent().unwrap()).unwrap();
    std::fs::write(&theirs, "theirs").unwrap();
    let before = machine.tree();
    for _ in 0..3 {
        let error = member(&machine).take_step().await.unwrap_err().to_string();
        assert!(error.contains("db") && error.contains("vol-0a"), "{error}");
    }
    let mut after = machine.tree();
    after.retain(|path, _| !path.contains("lost+found"));
    assert_eq!(after, before);
}

/// EC2 answers as before it attached anything, when member a's volume still was another machine's. With NVMe the kernel knows better, also
/// after protokube has started again; without, protokube remembers what it asked for.
#[tokio::test]
async fn of_several_members_in_its_group_a_machine_takes_one_whatever_ec2_shows() {
    for xen in [false, true] {
        let machine = Machine::new().await;
        *machine.cloud.xen.lock().unwrap() = xen;
        for (id, tag) in [
            ("vol-0a", "a/a,b,c"),
            ("vol-0b", "b/a,b,c"),
            ("vol-0c", "c/a,b,c"),
        ] {
            machine.cloud.add_volume_of(id, "main", tag, None);
        }
        let mut before = machine.cloud.volumes.lock().unwrap().clone();
        before[0].state = "in-use".into();
        before[0].attachment = Some(Attachment {
            instance: "i-09".into(),
            device: "/dev/xvdu".into(),
            state: "detaching".into(),
        });
        let started = || member_of(&machine, config_of_three_in_a_group(), AT_ONCE);
        let mut member = started();
        assert_eq!(member.take_step().await.unwrap(), Outcome::Waits);
        *machine.cloud.answer.lock().unwrap() = Some(before);
        for _ in 0..3 {
            assert_eq!(member.take_step().await.unwrap(), Outcome::Waits);
            assert_eq!(machine.cloud.volumes_of(INSTANCE), ["vol-0a"]);
            if !xen {
                member = started();
            }
        }
        *machine.cloud.answer.lock().unwrap() = None;
        assert_eq!(member.take_step().await.unwrap(), Outcome::Stepped);
        assert_eq!(machine.cloud.volumes_of(INSTANCE), ["vol-0a"]);
    }
}

/// A lone member runs from vol-0a; a copy of it with the same tags is free. What EC2 shows lacks vol-0a: the answer is old, or somebody took a
/// tag away. Nothing moves, whether protokube has just started or not, and also where EC2 says of its id that there is none: the kernel
/// has it.
#[tokio::test]
async fn a_member_that_runs_is_left_for_no_copy_whatever_ec2_shows() {
    for lost in [false, true] {
        let (machine, config) = serving(false, true).await;
        machine.cloud.add_volume("vol-0b", "main");
        let (link, before) = (
            machine.host.link_target(LINK).unwrap(),
            record(&machine).await,
        );
        let all = machine.cloud.volumes.lock().unwrap().clone();
        let (own, copy): (Vec<_>, Vec<_>) = all.into_iter().partition(|one| one.id == "vol-0a");
        *machine.cloud.answer.lock().unwrap() = Some(copy);
        if lost {
            machine
                .cloud
                .volumes
                .lock()
                .unwrap()
                .retain(|one| one.id != "vol-0a");
        }
        let same = member_of(&machine, config.clone(), AT_ONCE);
        for _ in 0..3 {
            let another = member_of(&machine, config.clone(), AT_ONCE);
            for member in [&same, &another] {
                match member.take_step().await {
                    Ok(outcome) => assert!(!lost && outcome == Outcome::Settled, "{outcome:?}"),
                    Err(why) => assert!(
                        lost && format!("{why:#}").contains("running from vol-0a"),
                        "{why:#}"
                    ),
                }
            }
        }
        assert!(
            !machine
                .cloud
                .volumes_of(INSTANCE)
                .contains(&"vol-0b".to_owned())
        );
        assert_eq!(
            (
                machine.host.link_target(LINK).unwrap(),
                record(&machine).await
            ),
            (link, before)
        );
        assert_eq!(machine.kubelet.lock().unwrap().starts, 2);
        // Once its disk is gone from the machine too, the copy is taken.
        if lost {
            machine.reboot();
            fs::remove_file(machine.path("dev/nvme1n1")).unwrap();
            *machine.cloud.answer.lock().unwrap() = None;
            let _ = member_of(&machine, config, AT_ONCE).take_step().await;
            assert_eq!(machine.cloud.volumes_of(INSTANCE), ["vol-0b"]);
        } else {
            assert_eq!(own.len(), 1);
        }
    }
}

/// A machine that takes its place holds to the recorded volume too.
#[tokio::test]
async fn a_machine_without_a_member_waits_for_the_recorded_volume_and_takes_no_copy() {
    let (machine, config) = serving(false, true).await;
    machine.reboot();
    fs::remove_file(machine.path(LINK)).unwrap();
    machine.cloud.give("vol-0a", "i-0old");
    machine.cloud.add_volume("vol-0b", "main");
    let copy = machine.cloud.volumes.lock().unwrap()[1].clone();
    *machine.cloud.answer.lock().unwrap() = Some(vec![copy]);
    for _ in 0..3 {
        let outcome = member_of(&machine, config.clone(), AT_ONCE)
            .take_step()
            .await;
        assert_eq!(outcome.unwrap(), Outcome::Waits);
    }
    assert!(machine.cloud.volumes_of(INSTANCE).is_empty());
}

/// The refused volume is not the one from which a member runs: that member's manifest stays.
#[tokio::test]
async fn a_refusal_takes_away_no_other_volumes_manifest() {
    let (machine, config) = serving(false, true).await;
    machine.reboot();
    machine.cloud.volumes.lock().unwrap().clear();
    machine.cloud.add_volume("vol-0b", "main");
    for _ in 0..3 {
        let _ = member_of(&machine, config.clone(), AT_ONCE)
            .take_step()
            .await;
    }
    let to = machine.host.link_target(LINK).unwrap().unwrap();
    assert!(to.starts_with("/mnt/master-vol-0a"), "{to:?}");
}

fn resized(machine: &Machine) -> usize {
    let said = fs::read_to_string(machine.path("programs/resized"));
    said.unwrap_or_default().lines().count()
}

fn enlarge(machine: &Machine) {
    let device = fs::File::options()
        .write(true)
        .open(machine.path("dev/nvme1n1"));
    device.unwrap().set_len(4 << 20).unwrap();
}

#[tokio::test]
async fn the_file_system_follows_the_volume_whatever_etcd_does() {
    let (machine, config) = serving(false, false).await;
    let member = || member_of(&machine, config.clone(), AT_ONCE);
    assert_eq!(resized(&machine), 0, "it fills its volume");
    {
        let mut kubelet = machine.kubelet.lock().unwrap();
        (kubelet.running, kubelet.full) = (None, true);
    }
    enlarge(&machine);
    assert_eq!(member().take_step().await.unwrap(), Outcome::Waits);
    assert_eq!(resized(&machine), 1, "while etcd cannot start");
    machine.kubelet.lock().unwrap().full = false;
    settle(&member()).await;
    settle(&member()).await;
    assert_eq!(resized(&machine), 1);
}

/// What operators of a machine that joined long ago learn: as long as it is so, and no longer.
#[tokio::test]
async fn what_a_member_refuses_or_waits_for_stands_until_it_is_over() {
    let (machine, config) = serving(true, true).await;
    let standing = Arc::new(CurrentWaits::default());
    let said = |words: &'static [&str]| {
        move |waits: &[Wait]| {
            let [wait] = waits else { return false };
            (wait.role.as_str(), wait.about.as_str()) == ("etcd-main", "member a")
                && words.iter().all(|word| wait.message.contains(word))
        }
    };
    fs::rename(machine.log(), machine.path("saved")).unwrap();
    machine.reboot();
    let gone = said(&["vol-0a", "is missing", "member a"]);
    let waits = stands(&machine, &config, &standing, gone).await;
    assert!(waits[0].failed);
    fs::rename(machine.path("saved"), machine.log()).unwrap();
    stands(&machine, &config, &standing, <[_]>::is_empty).await;

    machine.cloud.give("vol-0a", "i-0other");
    let elsewhere = said(&["attached to i-0other"]);
    let waits = stands(&machine, &config, &standing, elsewhere).await;
    assert!(!waits[0].failed);
    machine.cloud.give("vol-0a", INSTANCE);
    stands(&machine, &config, &standing, <[_]>::is_empty).await;
}

/// The member serves from a volume whose file system cannot follow it: both are true at once.
#[tokio::test]
async fn a_volume_that_cannot_grow_stands_beside_a_member_that_serves() {
    let (machine, config) = serving(false, true).await;
    let standing = Arc::new(CurrentWaits::default());
    let program = machine.path("programs/resize2fs");
    let good = fs::read(&program).unwrap();
    fs::write(&program, "#!/bin/sh\necho no room for it >&2\nexit 1\n").unwrap();
    enlarge(&machine);
    let volume = |waits: &[Wait]| waits.iter().any(|wait| wait.about == "volume");
    let waits = stands(&machine, &config, &standing, volume).await;
    assert!(waits[0].message.contains("no room for it"), "{waits:?}");
    assert_eq!(etcd(&machine).find_problem().await, None);
    fs::write(&program, good).unwrap();
    stands(&machine, &config, &standing, <[_]>::is_empty).await;
}

/// A machine that has never seen the volume has to write a manifest that says something else, and there is no room for it.
#[tokio::test]
async fn a_full_volume_that_was_enlarged_comes_back_on_another_machine_too() {
    let (machine, config) = serving(false, false).await;
    machine.reboot();
    fs::remove_file(machine.path(LINK)).unwrap();
    // What cannot be written is a manifest, until the file system has grown.
    let manifests = machine.on_disk("k8s.io/manifests");
    fs::rename(&manifests, machine.path("full")).unwrap();
    std::os::unix::fs::symlink("/nowhere/at/all", manifests).unwrap();
    let member = || member_of(&machine, config.clone(), AT_ONCE);
    let error = format!("{:#}", member().take_step().await.unwrap_err());
    assert!(error.contains("could not write"), "{error}");
    enlarge(&machine);
    settle(&member()).await;
    assert_eq!(resized(&machine), 1);
    assert_eq!(machine.kubelet.lock().unwrap().founded, 1);
}

/// EC2 and the record are asked all the same, and what is wrong is said.
#[tokio::test]
async fn a_file_system_with_errors_is_told_of_and_is_not_the_end_of_all_looks() {
    let (machine, config) = serving(false, true).await;
    machine.reboot();
    fs::write(machine.path("programs/broken"), "").unwrap();
    *machine.cloud.down.lock().unwrap() = true;
    let why = refusal(&machine, &config).await;
    assert!(why.contains("nobody answers"), "EC2 is asked: {why}");
    *machine.cloud.down.lock().unwrap() = false;
    let why = refusal(&machine, &config).await;
    for part in [
        "vol-0a",
        "member a",
        "has errors",
        "run `fsck.ext4",
        "inodes",
    ] {
        assert!(why.contains(part), "{part}: {why}");
    }
    fs::remove_file(machine.path("programs/broken")).unwrap();
    settle(&member(&machine)).await;
}

#[tokio::test]
async fn what_the_kernel_stopped_writing_to_is_not_run_from_until_it_was_checked() {
    let (machine, config) = serving(false, true).await;
    let read_only = machine.on_disk("lost+found/read-only");
    fs::write(&read_only, "").unwrap();
    let why = refusal(&machine, &config).await;
    assert!(
        why.contains("has errors") && why.contains("Restart"),
        "{why}"
    );
    machine.reboot();
    fs::remove_file(read_only).unwrap();
    settle(&member(&machine)).await;
}

#[tokio::test]
async fn a_volume_that_comes_back_as_another_device_is_mounted_again() {
    let (machine, config) = serving(false, true).await;
    machine.cloud.reattach("vol-0a");
    machine.kubelet.lock().unwrap().running = None;
    settle(&member_of(&machine, config, AT_ONCE)).await;
    let at = fs::read_link(machine.path("mnt/master-vol-0a")).unwrap();
    assert!(at.ends_with("disks/nvme7n1"), "{at:?}");
    assert_eq!(machine.kubelet.lock().unwrap().lives, 1);
}

/// Where disks have no serial numbers, they are found by the name as which they were asked for. A machine that asks nobody remembers it,
/// and looks whether it is the same volume.
#[tokio::test]
async fn a_machine_without_nvme_comes_back_without_aws_too() {
    for swapped in [false, true] {
        let machine = Machine::new().await;
        *machine.cloud.xen.lock().unwrap() = true;
        machine.cloud.add_volume("vol-0a", "main");
        settle(&member(&machine)).await;
        machine.reboot();
        *machine.cloud.down.lock().unwrap() = true;
        if swapped {
            let marker = machine.path("disks/xvdu/k8s.io/etcd-member.json");
            let text = fs::read_to_string(&marker).unwrap();
            fs::write(marker, text.replace("vol-0a", "vol-0b")).unwrap();
        }
        refusal(&machine, &config()).await;
        let unhealthy = etcd(&machine).find_problem().await;
        assert_eq!(unhealthy.is_some(), swapped, "{unhealthy:?}");
        let mounted = machine.path("mnt/master-vol-0a").is_symlink();
        assert_eq!(mounted, !swapped, "another volume is not left in its place");
    }
}
