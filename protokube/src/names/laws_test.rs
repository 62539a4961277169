//! Several protokubes and one hosted zone: whatever each has read before the others write, they come to rest, and the names are
//! right. A publisher's turn has steps (look, read the zone, write), and those of others happen in between.

use super::records::{
    AddressKind, FollowedName, PublishedRecords, needed_changes, needed_member_changes,
};
use aws_client::dns::{AddressFamily, AddressRecord, DnsRecord, RecordName};
use aws_client::ec2_query::Instance;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

const INSTANCES: u8 = 4;
const MEMBERS: u8 = 3;

fn private_address(number: u8) -> IpAddr {
    IpAddr::from([10, 0, 0, number])
}

fn record(name: &str) -> RecordName {
    RecordName::new(name, AddressFamily::V4)
}

/// What happens in a history: something changes, or an instance takes its next step.
#[derive(Clone, Debug)]
enum Event<C> {
    Change(C),
    Step(u8),
}

fn history<C: Clone + std::fmt::Debug + 'static>(
    change: impl Strategy<Value = C> + 'static,
    steps: u32,
) -> impl Strategy<Value = Vec<Event<C>>> {
    let step = (0..INSTANCES).prop_map(Event::Step);
    let event = prop_oneof![1 => change.prop_map(Event::Change), steps => step];
    proptest::collection::vec(event, 0..80)
}

/// A zone, and what was written to it.
#[derive(Default)]
struct Zone {
    records: PublishedRecords,
    writes: usize,
}

impl Zone {
    fn write(&mut self, changes: Vec<AddressRecord>) {
        for change in changes {
            assert!(!change.addresses.is_empty(), "{} is emptied", change.name);
            let name = change.name.clone();
            self.records.insert(name, DnsRecord::Addresses(change));
            self.writes += 1;
        }
    }

    fn addresses(&self, name: &str) -> BTreeSet<IpAddr> {
        match self.records.get(&record(name)) {
            Some(DnsRecord::Addresses(record)) => record.addresses.clone(),
            _ => BTreeSet::new(),
        }
    }
}

/// How far a publisher is in its turn, with what it saw at each step.
#[derive(Clone, Default)]
enum Turn<L> {
    #[default]
    Idle,
    Looked(L),
    Read(L, PublishedRecords),
}

/// Takes the next step of a turn. True once the turn has ended.
fn take_step<L: Clone>(
    turn: &mut Turn<L>,
    zone: &mut Zone,
    look: impl FnOnce() -> L,
    changes: impl FnOnce(&L, &PublishedRecords) -> Vec<AddressRecord>,
) -> bool {
    *turn = match turn {
        Turn::Idle => Turn::Looked(look()),
        Turn::Looked(seen) => Turn::Read(seen.clone(), zone.records.clone()),
        Turn::Read(seen, published) => {
            zone.write(changes(seen, published));
            Turn::Idle
        }
    };
    matches!(turn, Turn::Idle)
}

/// Which instance runs each member. A volume is attached to one instance at a time.
type Runners = BTreeMap<String, u8>;

#[derive(Default)]
struct MemberWorld {
    runners: Runners,
    ran: BTreeSet<(String, u8)>,
    turns: BTreeMap<u8, Turn<BTreeSet<String>>>,
    zone: Zone,
}

impl MemberWorld {
    fn move_member(&mut self, member: u8, to: Option<u8>) {
        let name = format!("etcd-{member}");
        self.runners.remove(&name);
        if let Some(to) = to {
            self.ran.insert((name.clone(), to));
            self.runners.insert(name, to);
        }
    }

    fn step(&mut self, instance: u8) -> bool {
        let runners = &self.runners;
        let own = || {
            let own = runners.iter().filter(|(_, runner)| **runner == instance);
            own.map(|(name, _)| name.clone()).collect()
        };
        let turn = self.turns.entry(instance).or_default();
        let address = private_address(instance);
        let ended = take_step(turn, &mut self.zone, own, |names, published| {
            needed_member_changes(names, address, published)
        });
        for (name, record) in &self.zone.records {
            let DnsRecord::Addresses(record) = record else {
                continue;
            };
            for address in &record.addresses {
                let IpAddr::V4(v4) = address else {
                    panic!("{record:?}")
                };
                let [.., number] = v4.octets();
                let ran = (name.name.clone(), number);
                assert!(self.ran.contains(&ran), "{record:?}");
            }
        }
        ended
    }

    fn end_turn(&mut self, instance: u8) {
        while !self.step(instance) {}
    }
}

/// Control planes with ready API servers, and what EC2 tells each instance about all of them.
#[derive(Clone, Debug)]
enum ApiChange {
    Ready(BTreeSet<u8>),
    /// What an instance sees of EC2.
    View(u8, BTreeSet<u8>),
}

#[derive(Default)]
struct ApiWorld {
    ready: BTreeSet<u8>,
    views: BTreeMap<u8, BTreeSet<u8>>,
    turns: BTreeMap<u8, Turn<BTreeSet<IpAddr>>>,
    zone: Zone,
}

fn instance_number(number: u8) -> Instance {
    Instance {
        id: format!("i-{number}"),
        state: "running".into(),
        private_ip: Some(private_address(number).to_string()),
        public_ip: Some(format!("198.51.100.{number}")),
        zone: "z".into(),
        ..Instance::default()
    }
}

fn names_of_clients() -> [FollowedName; 2] {
    let kinds = [
        ("api", AddressKind::Public),
        ("api.internal", AddressKind::Private),
    ];
    kinds.map(|(name, kind)| FollowedName {
        record: record(name),
        kind,
    })
}

impl ApiWorld {
    fn change(&mut self, change: ApiChange) {
        match change {
            ApiChange::Ready(ready) => self.ready = ready,
            ApiChange::View(instance, seen) => {
                self.views.insert(instance, seen);
            }
        }
    }

    fn step(&mut self, instance: u8) -> bool {
        let ready = &self.ready;
        let look = || ready.iter().copied().map(private_address).collect();
        let seen = self.views.get(&instance).into_iter().flatten();
        let seen: Vec<Instance> = seen.copied().map(instance_number).collect();
        let turn = self.turns.entry(instance).or_default();
        take_step(turn, &mut self.zone, look, |ready, published| {
            needed_changes(&names_of_clients(), ready, &seen, published)
        })
    }

    fn end_turn(&mut self, instance: u8) {
        while !self.step(instance) {}
    }

    /// Everybody ends what was begun. After `rounds` more turns of each, nobody writes any more.
    fn expect_rest(&mut self, rounds: u8) {
        for _ in 0..=rounds {
            (0..INSTANCES).for_each(|instance| self.end_turn(instance));
        }
        let before = self.zone.writes;
        (0..INSTANCES).for_each(|instance| self.end_turn(instance));
        assert_eq!(self.zone.writes, before, "somebody writes at rest");
    }
}

fn any_instances() -> impl Strategy<Value = BTreeSet<u8>> {
    proptest::collection::btree_set(0..INSTANCES, 0..=usize::from(INSTANCES))
}

proptest! {
    #[test]
    fn a_members_name_follows_it_and_its_publishers_come_to_rest(
        before in history((0..MEMBERS, proptest::option::of(0..INSTANCES)), 3),
        after in proptest::collection::vec(0..INSTANCES, 0..80),
    ) {
        let mut world = MemberWorld::default();
        for event in before {
            match event {
                Event::Change((member, to)) => world.move_member(member, to),
                Event::Step(instance) => {
                    world.step(instance);
                }
            }
        }
        // Nothing moves any more. Each other instance may end a turn that it began, and the member's own repairs that.
        world.zone.writes = 0;
        for instance in after {
            world.step(instance);
        }
        prop_assert!(world.zone.writes <= 2 * usize::from(MEMBERS * INSTANCES));
        (0..INSTANCES).for_each(|instance| world.end_turn(instance));
        (0..INSTANCES).for_each(|instance| world.end_turn(instance));
        let writes = world.zone.writes;
        (0..INSTANCES).for_each(|instance| world.end_turn(instance));
        prop_assert_eq!(world.zone.writes, writes, "somebody writes at rest");
        for (name, runner) in &world.runners {
            prop_assert_eq!(world.zone.addresses(name), BTreeSet::from([private_address(*runner)]));
        }
    }

    #[test]
    fn publishers_of_clients_names_come_to_rest_whatever_each_sees_of_ec2(
        events in history(
            prop_oneof![
                any_instances().prop_map(ApiChange::Ready),
                (0..INSTANCES, any_instances()).prop_map(|(instance, seen)| ApiChange::View(instance, seen)),
            ],
            3,
        ),
        ready in any_instances(),
    ) {
        let mut world = ApiWorld::default();
        for event in events {
            match event {
                Event::Change(change) => world.change(change),
                Event::Step(instance) => {
                    world.step(instance);
                }
            }
        }
        // The list does not change any more; what each sees of EC2 stays different.
        world.ready = ready.clone();
        world.expect_rest(2);
        // All see the same.
        (0..INSTANCES).for_each(|instance| drop(world.views.insert(instance, (0..INSTANCES).collect())));
        world.expect_rest(1);
        let private: BTreeSet<IpAddr> = ready.iter().copied().map(private_address).collect();
        if !ready.is_empty() {
            prop_assert_eq!(world.zone.addresses("api.internal"), private);
            prop_assert_eq!(world.zone.addresses("api").len(), ready.len());
        }
    }
}
