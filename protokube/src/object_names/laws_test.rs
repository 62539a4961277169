//! Laws of the names of objects: whatever objects, Nodes and records there are.

use super::changes::{NameChange, needed_changes};
use super::claims::{AddressKind, Claim, ObjectKind, ObjectRef, Target};
use super::publish::{MAX_CHARACTERS, MAX_RECORDS, content_of, split_batches};
use super::wanted::{HeldNames, NameRules, NodeAddresses, wanted_names};
use aws_client::record_sets::{ListedRecord, RecordChange, RecordContent, RecordKey};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr};

const ZONE: &str = "example.com";
const OWN: &str = "kctl/a.example.com";

fn rules() -> NameRules {
    NameRules {
        zone: ZONE.into(),
        reserved: ["api.a.example.com".to_owned()].into(),
        identifier: OWN.into(),
    }
}

fn any_name() -> impl Strategy<Value = String> {
    let names = [
        "web.example.com",
        "Shop.Example.com.",
        "*.apps.example.com",
        "api.a.example.com",
        "example.com",
        "elsewhere.org",
        "notexample.com",
        "no name.example.com",
        "a..example.com",
    ];
    prop::sample::select(names.to_vec()).prop_map(str::to_owned)
}

fn any_address() -> impl Strategy<Value = IpAddr> {
    let v4 = (1_u8..5).prop_map(|last| IpAddr::from(Ipv4Addr::new(10, 0, 0, last)));
    prop_oneof![3 => v4, 1 => Just("2001:db8::1".parse().unwrap())]
}

fn any_kind() -> impl Strategy<Value = AddressKind> {
    prop_oneof![Just(AddressKind::External), Just(AddressKind::Internal)]
}

fn any_target() -> impl Strategy<Value = Target> {
    prop_oneof![
        Just(Target::Waiting),
        Just(Target::Impossible("why".into())),
        Just(Target::Host("Lb-1.elb.amazonaws.com.".into())),
        prop::collection::btree_set(any_address(), 1..3).prop_map(Target::Addresses),
        any_kind().prop_map(Target::Workers),
        (0_u8..3, any_kind()).prop_map(|(node, kind)| Target::Node(format!("n{node}"), kind)),
    ]
}

fn any_claim() -> impl Strategy<Value = Claim> {
    let kind = prop::sample::select(vec![
        ObjectKind::Service,
        ObjectKind::Ingress,
        ObjectKind::Pod,
    ]);
    let names = prop::collection::vec(any_name(), 1..4);
    (kind, 0_u8..2, 0_u8..3, 0_u8..3, names, any_target()).prop_map(
        |(kind, namespace, name, created, names, target)| Claim {
            object: ObjectRef {
                kind,
                namespace: format!("ns{namespace}"),
                name: format!("o{name}"),
            },
            created: format!("2026-01-0{}T00:00:00Z", created + 1),
            names,
            target,
        },
    )
}

fn any_nodes() -> impl Strategy<Value = NodeAddresses> {
    let addresses = prop::collection::vec((any_kind(), any_address()), 0..3);
    prop::collection::btree_map(
        (0_u8..3).prop_map(|node| format!("n{node}")),
        (addresses, any::<bool>()),
        0..3,
    )
}

/// Records of the cluster, of another one, of somebody without identifiers, and an alias.
fn any_record() -> impl Strategy<Value = ListedRecord> {
    let names = [
        "web.example.com",
        "shop.example.com",
        "*.apps.example.com",
        "api.a.example.com",
        "old.example.com",
    ];
    let key = (
        prop::sample::select(names.to_vec()),
        prop::sample::select(vec!["A", "AAAA", "CNAME", "TXT"]),
        prop::sample::select(vec![Some(OWN), Some("kctl/b.example.com"), None]),
    );
    let content = prop::option::weighted(
        0.9,
        (1_u8..5, prop::sample::select(vec![60, 300])).prop_map(|(last, ttl)| RecordContent {
            values: [format!("10.0.0.{last}")].into(),
            ttl,
            weight: 1,
        }),
    );
    (key, content).prop_map(|((name, record_type, identifier), content)| ListedRecord {
        key: RecordKey {
            name: name.into(),
            record_type: record_type.into(),
            identifier: identifier.map(str::to_owned),
        },
        content,
    })
}

fn any_zone() -> impl Strategy<Value = BTreeMap<RecordKey, ListedRecord>> {
    prop::collection::vec(any_record(), 0..8).prop_map(|records| {
        records
            .into_iter()
            .map(|record| (record.key.clone(), record))
            .collect()
    })
}

fn listed(zone: &BTreeMap<RecordKey, ListedRecord>) -> Vec<ListedRecord> {
    zone.values().cloned().collect()
}

fn apply(zone: &mut BTreeMap<RecordKey, ListedRecord>, change: RecordChange) {
    match change {
        RecordChange::Delete(key, content) => {
            let gone = zone.remove(&key).expect("what is deleted is there");
            assert_eq!(gone.content, Some(content), "and as it is");
        }
        RecordChange::Upsert(key, content) => {
            let record = ListedRecord {
                key: key.clone(),
                content: Some(content),
            };
            zone.insert(key, record);
        }
    }
}

proptest! {
    /// Only records with the cluster's identifier change, none of a reserved name, and after the changes there are no more.
    #[test]
    fn records_of_others_stay_and_the_zone_comes_to_rest(
        claims in prop::collection::vec(any_claim(), 0..6),
        nodes in any_nodes(),
        before in any_zone(),
    ) {
        let rules = rules();
        let wanted = wanted_names(&claims, &nodes, &rules, &HeldNames::new());
        let mut zone = before.clone();
        let (changes, conflicts) = needed_changes(&wanted, &listed(&zone), &rules);
        for change in changes.into_iter().flat_map(|name| name.changes) {
            let (RecordChange::Upsert(key, _) | RecordChange::Delete(key, _)) = &change;
            prop_assert_eq!(key.identifier.as_deref(), Some(OWN));
            prop_assert!(!rules.reserved.contains(&key.name));
            apply(&mut zone, change);
        }
        let (again, _) = needed_changes(&wanted, &listed(&zone), &rules);
        prop_assert_eq!(again, vec![]);
        let is_own = |key: &RecordKey| key.identifier.as_deref() == Some(OWN);
        for (key, record) in before.iter().filter(|(key, _)| !is_own(key)) {
            prop_assert_eq!(zone.get(key), Some(record));
        }
        // What is wanted is there, unless somebody else has the name or it has nothing to lead to yet.
        for (name, sets) in &wanted.names {
            let taken = conflicts.iter().any(|conflict| conflict.name == *name);
            for (key, content) in sets {
                let found = zone.get(key).and_then(|record| record.content.as_ref());
                prop_assert!(taken || found == Some(content), "{key:?}");
            }
            if sets.is_empty() {
                let of_name = |zone: &BTreeMap<RecordKey, ListedRecord>| -> Vec<ListedRecord> {
                    listed(zone).into_iter().filter(|record| record.key.name == *name).collect()
                };
                prop_assert_eq!(of_name(&zone), of_name(&before), "a name that waits keeps what it has");
            }
        }
        // Nothing of the cluster is left that nobody wants, but what somebody made an alias of.
        for (key, record) in zone.iter().filter(|(key, _)| is_own(key)) {
            let wanted = wanted.names.contains_key(&key.name) || rules.reserved.contains(&key.name);
            prop_assert!(wanted || record.content.is_none(), "{key:?}");
        }
    }

    /// The order in which the API lists objects does not matter, and one name has one owner: records of one name lead where the oldest
    /// object says, whatever else there is.
    #[test]
    fn a_name_has_one_owner_whatever_the_order_of_objects(
        claims in prop::collection::vec(any_claim(), 0..6),
        nodes in any_nodes(),
    ) {
        let rules = rules();
        let wanted = wanted_names(&claims, &nodes, &rules, &HeldNames::new());
        let mut reversed = claims.clone();
        reversed.reverse();
        prop_assert_eq!(&wanted_names(&reversed, &nodes, &rules, &HeldNames::new()), &wanted);
        for (name, sets) in &wanted.names {
            let types: BTreeSet<&str> = sets.keys().map(|key| key.record_type.as_str()).collect();
            let cname = types.contains("CNAME");
            prop_assert!(name == ZONE || name.ends_with(".example.com"), "{name}");
            prop_assert!(!rules.reserved.contains(name));
            prop_assert!(!(cname && name == ZONE), "the zone's own name is no CNAME");
            for (key, content) in sets {
                prop_assert!(!content.values.is_empty(), "{key:?}");
                prop_assert!(key.record_type != "CNAME" || content.values.len() == 1);
            }
        }
    }

    /// Whoever writes an annotation gets no name that another object has, however old theirs is.
    #[test]
    fn a_name_that_an_object_has_stays_its_own(
        claims in prop::collection::vec(any_claim(), 1..5),
        nodes in any_nodes(),
        mut newcomer in any_claim(),
    ) {
        let rules = rules();
        let before = wanted_names(&claims, &nodes, &rules, &HeldNames::new());
        let held = before.held_after(&HeldNames::new());
        // Of nobody else.
        newcomer.created = "2020-01-01T00:00:00Z".into();
        newcomer.object.namespace = "another".into();
        newcomer.target = Target::Host("another.elb.amazonaws.com".into());
        let mut all = claims;
        all.push(newcomer);
        let after = wanted_names(&all, &nodes, &rules, &held);
        for (name, sets) in before.names.iter().filter(|(_, sets)| !sets.is_empty()) {
            prop_assert_eq!(after.names.get(name), Some(sets), "{}", name);
        }
    }

    /// A name that is wrong keeps no other from its record.
    #[test]
    fn a_bad_name_takes_nothing_from_the_others(
        claims in prop::collection::vec(any_claim(), 0..5),
        nodes in any_nodes(),
        bad in "[ -~]{0,80}",
    ) {
        let rules = rules();
        let alone = wanted_names(&claims, &nodes, &rules, &HeldNames::new());
        let broken = Claim {
            object: ObjectRef { kind: ObjectKind::Service, namespace: "a".into(), name: "bad".into() },
            created: "2020-01-01T00:00:00Z".into(),
            names: vec![format!("{bad}.elsewhere.org")],
            target: Target::Host("lb".into()),
        };
        let mut all = claims;
        all.push(broken);
        prop_assert_eq!(&wanted_names(&all, &nodes, &rules, &HeldNames::new()).names, &alone.names);
    }

    /// Route 53 takes each batch, as few of them as that allows, and every name is in one.
    #[test]
    fn batches_are_within_the_quotas_of_route_53(
        sizes in prop::collection::vec((1_usize..401, 1_usize..60), 0..30),
    ) {
        let change = |(number, &(values, length)): (usize, &(usize, usize))| {
            let key = RecordKey { name: format!("n{number}"), record_type: "A".into(), identifier: Some(OWN.into()) };
            let values = (0..values).map(|value| format!("{value:0length$}")).collect();
            let content = RecordContent { values, ttl: 60, weight: 1 };
            NameChange { name: format!("n{number}"), changes: vec![RecordChange::Upsert(key, content)] }
        };
        let all: Vec<NameChange> = sizes.iter().enumerate().map(change).collect();
        let size = |batch: &[NameChange]| {
            let values = batch.iter().flat_map(|one| &one.changes).flat_map(|one| &content_of(one).values);
            values.fold((0, 0), |(count, length), value| (count + 1, length + value.len()))
        };
        let mut batches = split_batches(all.clone());
        batches.reverse();
        prop_assert_eq!(batches.concat(), all);
        let fits = |batch: &[NameChange]| {
            let (count, length) = size(batch);
            count <= MAX_RECORDS && length <= MAX_CHARACTERS
        };
        for (batch, next) in batches.iter().zip(batches.iter().skip(1)) {
            prop_assert!(fits(batch) || batch.len() == 1);
            let more: Vec<NameChange> = batch.iter().chain(next.first()).cloned().collect();
            prop_assert!(!fits(&more));
        }
    }
}
