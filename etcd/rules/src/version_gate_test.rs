//! Laws of minor upgrades, by simulating an etcd cluster whose instances are replaced by those of another version, and die at any
//! time.

use super::laws_test::own_member;
use super::*;
use node::components::EtcdStart;
use node::formatted::{FORMAT, UnknownFields};
use std::collections::{BTreeMap, BTreeSet};

const CLUSTER: &str = "c1";

/// A member: what is on its volume, what its instance has, and what runs.
#[derive(Clone, Debug)]
struct Member {
    marker: Marker,
    /// Version in the manifest on the volume.
    manifest: Option<String>,
    /// Version of its instance's configuration.
    version: String,
    runs: Option<String>,
    /// A copy of the data of before was proven for this version.
    proven: BTreeSet<String>,
}

struct World {
    record: FormationRecord,
    members: BTreeMap<String, Member>,
    learner: bool,
}

impl World {
    fn new(versions: &[&str]) -> Self {
        let mut record = FormationRecord::new(Generation::formed(CLUSTER, "t1"), BTreeMap::new());
        let mut members = BTreeMap::new();
        for (name, version) in ["a", "b", "c", "d", "e"].into_iter().zip(versions) {
            let recorded = RecordedMember {
                member_id: Some(format!("id-{name}")),
                ..RecordedMember::on_volume(&format!("vol-{name}"), true)
            };
            record.members.insert(name.to_owned(), recorded);
            let marker = Marker {
                format: FORMAT,
                cluster: "x.example.com".into(),
                etcd: "main".into(),
                member: name.into(),
                volume: format!("vol-{name}"),
                token: "t1".into(),
                cluster_id: Some(CLUSTER.into()),
                member_id: Some(format!("id-{name}")),
                joins: None,
                stopped: None,
                etcd_version: Some((*version).into()),
                last_seen: None,
                unknown: UnknownFields::new(),
            };
            let member = Member {
                marker,
                manifest: Some((*version).into()),
                version: (*version).into(),
                runs: Some((*version).into()),
                proven: BTreeSet::new(),
            };
            members.insert(name.to_owned(), member);
        }
        Self {
            record,
            members,
            learner: false,
        }
    }

    fn replace_instance(&mut self, name: &str, version: &str) {
        let member = self.members.get_mut(name).unwrap();
        version.clone_into(&mut member.version);
        member.runs = None;
    }

    fn live(&self) -> Result<LiveCluster, String> {
        let running = self
            .members
            .values()
            .filter(|one| one.runs.is_some())
            .count();
        if running * 2 <= self.members.len() {
            return Err("no quorum".to_owned());
        }
        let member = |(name, _): (&String, &Member)| LiveMember {
            id: format!("id-{name}"),
            name: format!("etcd-{name}"),
            peer_urls: vec![format!("https://etcd-{name}.internal.x.example.com:2380")],
            learner: false,
        };
        let mut members: Vec<LiveMember> = self.members.iter().map(member).collect();
        if self.learner {
            members.push(LiveMember {
                id: "id-new".into(),
                name: "etcd-d".into(),
                peer_urls: vec!["https://d:2380".into()],
                learner: true,
            });
        }
        Ok(LiveCluster {
            cluster_id: CLUSTER.into(),
            members,
        })
    }

    fn peers(&self) -> BTreeMap<String, Result<RunningMember, String>> {
        let peer = |(name, member): (&String, &Member)| {
            let running = member.runs.as_ref().map(|version| RunningMember {
                id: format!("id-{name}"),
                leader: Some("id-a".into()),
                version: version.clone(),
                ..RunningMember::default()
            });
            (
                name.clone(),
                running.ok_or_else(|| "connection refused".to_owned()),
            )
        };
        self.members.iter().map(peer).collect()
    }

    fn decide(&self, name: &str) -> FormationStep {
        let member = &self.members[name];
        let names: Vec<String> = self.members.keys().cloned().collect();
        let volume = format!("vol-{name}");
        let content = VolumeContent::FileSystem(FileSystemContent::Marked {
            marker: member.marker.clone(),
            log: EtcdLog::Of(LogIdentity {
                cluster_id: CLUSTER.into(),
                member_id: format!("id-{name}"),
            }),
        });
        let (live, peers) = (self.live(), self.peers());
        let own = OwnMember {
            live: live.as_ref().map_err(String::as_str),
            peers: &peers,
            version: &member.version,
            member: name,
            volume: &volume,
            manifest_version: member.manifest.as_deref(),
            shown: member.runs.is_some(),
            ..own_member(&names, &[])
        };
        decide_step(&own, Some(&self.record), &content)
    }

    /// One look and one step. `half`: the instance dies before the step's last change.
    fn take_turn(&mut self, name: &str, half: bool) {
        let step = self.decide(name);
        let member = self.members.get_mut(name).unwrap();
        match step {
            FormationStep::Upgrade { marker, .. } => {
                member.runs = None;
                member.proven.insert(member.version.clone());
                if !half {
                    member.marker = marker;
                }
            }
            FormationStep::Start(EtcdStart::Existing) => {
                let version = member.version.clone();
                if member.runs.is_none() {
                    member.manifest = Some(version);
                }
                if half {
                    return;
                }
                member.runs = member.manifest.clone();
                let runs = member.runs.clone().unwrap();
                if let Some(marker) = mark_version(&member.marker, &runs) {
                    member.marker = marker;
                }
            }
            FormationStep::Wait(_) | FormationStep::Refuse(_) => member.runs = None,
            step => panic!("{step:?}"),
        }
    }

    fn is_all(&self, version: &str) -> bool {
        let is = |one: &Member| {
            one.runs.as_deref() == Some(version)
                && one.marker.etcd_version.as_deref() == Some(version)
        };
        self.members.values().all(is)
    }
}

fn minor_of(version: &str) -> &str {
    version.rsplit_once('.').unwrap().0
}

/// One member after the other, and each may die at each of its steps.
#[test]
fn members_go_up_one_minor_each_after_a_proof_however_often_they_die() {
    for (old, new) in [("3.5.31", "3.6.12"), ("3.6.12", "3.7.2")] {
        for dies in 0..64_u32 {
            for count in [1, 3] {
                replace_all(old, new, dies, count);
            }
        }
    }
}

/// Replaces the instances of a cluster, of which each dies at the steps that the bits of `dies` name.
fn replace_all(old: &str, new: &str, dies: u32, count: usize) {
    let mut world = World::new(&[old; 3][..count]);
    let mut turn = 0;
    for name in ["a", "b", "c"].into_iter().take(count) {
        world.replace_instance(name, new);
        for _ in 0..8 {
            world.take_turn(name, dies >> turn.min(31) & 1 == 1);
            turn += 1;
        }
        assert!(world.members[name].proven.contains(new), "{name} at {dies}");
    }
    for name in ["a", "b", "c"].into_iter().take(count) {
        world.take_turn(name, false);
        world.take_turn(name, false);
    }
    assert!(world.is_all(new), "{dies}: {:?}", world.members);
}

/// Of the others too, none may be of a patch that does not work together with the next minor.
#[test]
fn an_old_patch_of_another_member_holds_an_upgrade_up() {
    let mut world = World::new(&["3.6.12", "3.6.10", "3.6.12"]);
    world.replace_instance("a", "3.7.2");
    let FormationStep::Wait(message) = world.decide("a") else {
        panic!("{:?}", world.decide("a"));
    };
    assert!(message.contains("3.6.11 or newer of 3.6"), "{message}");
}

/// Whatever versions there were, no data goes to an older minor, over a minor, or from a release that forgets members.
#[test]
fn nothing_runs_on_data_that_it_may_not_have() {
    let versions = [
        "3.4.30", "3.5.20", "3.5.26", "3.5.31", "3.6.5", "3.6.12", "3.7.2",
    ];
    for from in versions {
        for to in versions {
            for count in [1, 3] {
                let mut world = World::new(&[from; 3][..count]);
                world.replace_instance("a", to);
                world.take_turn("a", false);
                world.take_turn("a", false);
                let goes = minor_of(from) == minor_of(to)
                    || keeps_membership(from) && find_refusal(from, to).is_none();
                let runs = world.members["a"].runs.is_some();
                assert_eq!(runs, goes, "{from} to {to} of {count}");
                if !runs {
                    let FormationStep::Refuse(why) = world.decide("a") else {
                        panic!("{from} to {to} waits");
                    };
                    assert!(why.contains(from) && why.contains(to), "{why}");
                    assert!(why.contains("kctl update cluster --yes"), "{why}");
                }
                // What never ran leaves no trace, and the version of before goes on.
                world.replace_instance("a", from);
                world.take_turn("a", false);
                let back = !runs || minor_of(from) == minor_of(to);
                assert_eq!(
                    world.members["a"].runs.is_some(),
                    back,
                    "{from} to {to} and back"
                );
            }
        }
    }
}

/// A member that is down, a learner, a replacement or an old release hold an upgrade up until they are over.
#[test]
fn an_upgrade_waits_for_every_other_member() {
    type Fault = (&'static str, fn(&mut World), fn(&mut World));
    let faults: [Fault; 5] = [
        (
            "member b does not answer",
            |world| world.members.get_mut("b").unwrap().runs = None,
            |world| world.members.get_mut("b").unwrap().runs = Some("3.5.31".into()),
        ),
        (
            "no quorum",
            |world| {
                for name in ["b", "c"] {
                    world.members.get_mut(name).unwrap().runs = None;
                }
            },
            |world| {
                for name in ["b", "c"] {
                    world.members.get_mut(name).unwrap().runs = Some("3.5.31".into());
                }
            },
        ),
        (
            "does not vote yet",
            |world| world.learner = true,
            |world| world.learner = false,
        ),
        (
            "member b is being replaced",
            |world| {
                world.record.replacing = Some(Replacing {
                    member: "b".into(),
                    added: true,
                    unknown: UnknownFields::new(),
                });
            },
            |world| world.record.replacing = None,
        ),
        (
            "runs etcd 3.5.20",
            |world| world.members.get_mut("c").unwrap().runs = Some("3.5.20".into()),
            |world| world.members.get_mut("c").unwrap().runs = Some("3.5.31".into()),
        ),
    ];
    for (why, begin, end) in faults {
        let mut world = World::new(&["3.5.31"; 5]);
        world.replace_instance("a", "3.6.12");
        begin(&mut world);
        let FormationStep::Wait(message) = world.decide("a") else {
            panic!("{why}: {:?}", world.decide("a"));
        };
        assert!(message.contains(why), "{message}");
        for _ in 0..3 {
            world.take_turn("a", false);
        }
        let member = &world.members["a"];
        assert!(member.runs.is_none() && member.proven.is_empty(), "{why}");
        assert_eq!(member.marker.etcd_version.as_deref(), Some("3.5.31"));
        end(&mut world);
        world.take_turn("a", false);
        world.take_turn("a", false);
        assert_eq!(world.members["a"].runs.as_deref(), Some("3.6.12"), "{why}");
    }
}

/// Data of a release of kctl that left no version in the marker: its manifest has it.
#[test]
fn a_marker_without_a_version_gets_it_from_what_ran() {
    let mut world = World::new(&["3.5.20"]);
    world.members.get_mut("a").unwrap().marker.etcd_version = None;
    world.take_turn("a", false);
    let marker = &world.members["a"].marker;
    assert_eq!(marker.etcd_version.as_deref(), Some("3.5.20"));
    world.members.get_mut("a").unwrap().marker.etcd_version = None;
    world.replace_instance("a", "3.6.12");
    assert!(matches!(world.decide("a"), FormationStep::Refuse(_)));
}
