//! Properties of settling, for random pairs of specs and partly created clouds.

use crate::objects::desired_objects;
use crate::objects::tests::spec;
use crate::{DnsKind, FullSpec};
use cloud::settle::settle;
use cloud::{Cloud, Route53Record, SubnetIpv6Range};
use engine::{Action, Observed, PlanError, Reason, Resource, Snapshot, Step, plan};
use node::names;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

pub(crate) fn desired_of(full: &FullSpec) -> Vec<Cloud> {
    desired_objects(full, &BTreeMap::new(), Vec::new())
}

pub(crate) fn snapshot_of(all: &[Cloud]) -> Snapshot<Cloud> {
    let item = |(number, resource): (usize, &Cloud)| Observed {
        resource: resource.clone(),
        physical: format!("id-{number}"),
        attrs: BTreeMap::new(),
        created: None,
        uses: BTreeSet::new(),
        in_use: false,
    };
    Snapshot {
        items: all.iter().enumerate().map(item).collect(),
    }
}

fn snapshot_resources(snapshot: &Snapshot<Cloud>) -> Vec<Cloud> {
    snapshot
        .items
        .iter()
        .map(|item| item.resource.clone())
        .collect()
}

/// Why the object cannot be changed as desired, if so.
fn refusal_reason(want: &Cloud, seen: &Snapshot<Cloud>) -> Option<String> {
    want.refuses(&seen.find(&want.id())?.resource)
}

/// A cluster with a load balancer, and what a user may change about it.
pub(crate) fn any_spec() -> impl Strategy<Value = FullSpec> {
    let switches = (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>());
    (switches, 0..3_usize, 0..3_usize).prop_map(|(switches, addresses, region)| {
        let (internal, certificate, dns, bastions) = switches;
        let mut full = if bastions {
            spec::private_spec()
        } else {
            spec::ha_spec()
        };
        full.placement.region = ["us-test-1", "us-test-2", "us-east-1"][region].into();
        if dns {
            full.dns = spec::minimal_spec().dns;
        }
        let balancer = full.api.load_balancer.as_mut().expect("a balancer");
        balancer.internal = internal;
        balancer.ssl_certificate = certificate.then(|| "arn:of:a:certificate".into());
        if addresses > 0 {
            balancer.subnets[0].allocation_id = Some(format!("eipalloc-{addresses}"));
        }
        full
    })
}

/// The cloud after some earlier specs, each settled on the one before, with parts missing.
fn any_history() -> impl Strategy<Value = Snapshot<Cloud>> {
    let gaps = prop::collection::vec(0..8_u8, 1..20);
    let earlier = prop::collection::vec((any_spec(), gaps, any::<bool>()), 0..4);
    earlier.prop_map(|specs| {
        let mut there: Vec<Cloud> = Vec::new();
        for (full, gaps, cleaned) in specs {
            let (want, seen) = settle(desired_of(&full), snapshot_of(&there));
            if want.iter().any(|one| refusal_reason(one, &seen).is_some()) {
                continue;
            }
            let made = want.into_iter().zip(gaps.iter().cycle());
            let made: Vec<Cloud> = made
                .filter(|(_, gap)| **gap > 0)
                .map(|(one, _)| one)
                .collect();
            let ids: BTreeSet<_> = made.iter().map(Resource::id).collect();
            there.retain(|one| !cleaned && !ids.contains(&one.id()));
            there.extend(made);
            without_dangling(&mut there);
        }
        snapshot_of(&there)
    })
}

/// Removes objects with references to missing objects, which AWS does not allow.
fn without_dangling(there: &mut Vec<Cloud>) {
    loop {
        let ids: BTreeSet<_> = there.iter().map(Resource::id).collect();
        let before = there.len();
        there.retain(|one| one.needs().iter().all(|needed| ids.contains(needed)));
        if there.len() == before {
            return;
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn settling_twice_is_settling_once(full in any_spec(), history in any_history()) {
        let once = settle(desired_of(&full), history);
        let twice = settle(once.0.clone(), once.1.clone());
        prop_assert_eq!(once, twice);
    }

    #[test]
    fn what_is_there_as_wanted_stays(full in any_spec(), history in any_history()) {
        let (want, _) = settle(desired_of(&full), history);
        let (again, seen) = settle(desired_of(&full), snapshot_of(&want));
        prop_assert_eq!(&again, &want);
        prop_assert_eq!(snapshot_resources(&seen), want);
    }

    #[test]
    fn desired_ids_stay_distinct_and_references_lead_somewhere(full in any_spec(), history in any_history()) {
        let (want, _) = settle(desired_of(&full), history);
        let ids: BTreeSet<_> = want.iter().map(Resource::id).collect();
        prop_assert_eq!(ids.len(), want.len());
        for needed in want.iter().flat_map(Resource::needs) {
            prop_assert!(ids.contains(&needed), "{needed} is missing");
        }
    }

    #[test]
    fn no_change_is_asked_for_that_aws_refuses(full in any_spec(), history in any_history()) {
        let (want, seen) = settle(desired_of(&full), history);
        for one in &want {
            let Some(have) = seen.find(&one.id()) else { continue };
            if refusal_reason(one, &seen).is_some() {
                continue;
            }
            match (one, &have.resource) {
                (Cloud::Lb(want), Cloud::Lb(have)) => {
                    prop_assert_eq!(&want.scheme, &have.scheme);
                    prop_assert_eq!(&want.name, &have.name);
                }
                (Cloud::LbTargetGroup(want), Cloud::LbTargetGroup(have)) => {
                    prop_assert_eq!((&want.protocol, want.port), (&have.protocol, have.port));
                }
                (Cloud::VpcDhcpOptions(want), Cloud::VpcDhcpOptions(have)) => {
                    prop_assert_eq!(&want.domain_name, &have.domain_name);
                }
                _ => {}
            }
        }
    }

    #[test]
    fn no_target_group_serves_two_balancers(full in any_spec(), history in any_history()) {
        let (want, seen) = settle(desired_of(&full), history);
        let kept: Vec<Cloud> = snapshot_resources(&seen);
        let mut balancers: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
        for one in want.iter().chain(&kept) {
            if let Cloud::LbListener(listener) = one {
                let of = balancers.entry(listener.target_group_arn.clone()).or_default();
                of.insert(listener.load_balancer_arn.clone());
            }
        }
        let wanted: BTreeSet<_> = want.iter().map(Resource::id).collect();
        for (group, of) in balancers {
            let is_wanted = group.id().is_some_and(|id| wanted.contains(&id));
            prop_assert!(!is_wanted || of.len() == 1, "{group:?} serves {of:?}");
        }
    }

    #[test]
    fn renaming_reaches_every_reference(full in any_spec()) {
        use engine::{Id, Ref};
        let moved = |id: &Id| Id::new(id.kind(), format!("{}-moved", id.name()));
        let rename = |reference: &Ref| match reference.id() {
            Some(id) => Ref::own(&moved(&id)),
            None => reference.clone(),
        };
        for one in desired_of(&full) {
            let after = one.with_refs(&rename).needs();
            let expected: BTreeSet<Id> = one.needs().iter().map(moved).collect();
            prop_assert_eq!(after.into_iter().collect::<BTreeSet<Id>>(), expected, "{}", one.id());
        }
    }
}

#[test]
fn an_observed_rule_takes_the_name_of_the_wanted_rule_like_it() {
    let want = desired_of(&spec::minimal_spec());
    let mut seen = snapshot_of(&want);
    for item in &mut seen.items {
        if let Cloud::SecurityGroupRule(rule) = &mut item.resource {
            rule.name = item.physical.clone();
        }
    }
    let (want, seen) = settle(want, seen);
    assert_eq!(snapshot_resources(&seen), want);
}

#[test]
fn a_rule_nobody_wants_never_passes_for_a_wanted_one() {
    let want = desired_of(&spec::minimal_spec());
    let mut seen = snapshot_of(&want);
    for item in &mut seen.items {
        if let Cloud::SecurityGroupRule(rule) = &mut item.resource {
            rule.to_port = 1;
        }
    }
    let (want, seen) = settle(want, seen);
    let wanted: BTreeSet<_> = want.iter().map(Resource::id).collect();
    for item in &seen.items {
        if let Cloud::SecurityGroupRule(rule) = &item.resource {
            assert!(!wanted.contains(&item.resource.id()), "{}", rule.name);
        }
    }
}

#[test]
fn a_record_that_protokube_filled_is_as_wanted() {
    let want = desired_of(&spec::minimal_spec());
    let mut seen = snapshot_of(&want);
    for item in &mut seen.items {
        if let Cloud::Route53Record(record) = &mut item.resource {
            *record = Route53Record {
                resource_records: Some(vec!["172.20.32.7".into()]),
                initial: Vec::new(),
                ttl: Some(60),
                ..record.clone()
            };
        }
    }
    let (want, seen) = settle(want, seen);
    assert_eq!(snapshot_resources(&seen), want);
}

#[test]
fn a_balancer_whose_scheme_changes_gets_a_successor_with_all_that_hangs_on_it() {
    let before = spec::ha_spec();
    let mut after = before.clone();
    let balancer = after.api.load_balancer.as_mut().expect("a balancer");
    balancer.internal = true;
    assert_eq!(after.dns.kind, DnsKind::None);
    let (want, _) = settle(desired_of(&after), snapshot_of(&desired_of(&before)));
    let named = |kind: &str| -> Vec<String> {
        let of = want.iter().filter(|one| one.id().kind() == kind);
        of.map(|one| one.id().name().to_owned()).collect()
    };
    assert_eq!(named("lb"), ["api.minimal.example.com-2"]);
    assert_eq!(
        named("lb_listener"),
        [
            "api.minimal.example.com-2-3988",
            "api.minimal.example.com-2-443"
        ]
    );
    let first =
        ["kops-controller", "tcp"].map(|one| names::target_group("minimal.example.com", one));
    let second = first.map(|name| names::load_balancer_series_name(&name, 2));
    assert_eq!(named("lb_target_group"), second);
}

#[test]
fn what_gets_a_successor_is_said_to_be_replaced_by_it_and_goes_after_it() {
    let before = spec::ha_spec();
    let mut after = before.clone();
    after.placement.region = "us-test-2".into();
    after
        .api
        .load_balancer
        .as_mut()
        .expect("a balancer")
        .internal = true;
    let (want, seen) = settle(desired_of(&after), snapshot_of(&desired_of(&before)));
    let plan = plan(&want, &seen).expect("a plan");
    for kind in ["lb", "lb_target_group", "vpc_dhcp_options"] {
        let of_kind = plan.steps.values().filter(|step| step.id.kind() == kind);
        let (gone, made): (Vec<_>, Vec<_>) =
            of_kind.partition(|step| step.action == Action::Delete);
        assert!(!gone.is_empty() && gone.len() == made.len(), "{kind}");
        for old in gone {
            let Reason::Replaced { by } = &old.reason else {
                panic!("{} is {:?}", old.id, old.reason);
            };
            assert!(old.needs.contains(by) && plan.steps.contains_key(by));
            let series = |step: &Step<Cloud>| {
                let one = step
                    .after
                    .as_ref()
                    .or(step.before.as_ref().map(|have| &have.resource));
                one.and_then(Resource::series).map(|(series, _)| series)
            };
            assert_eq!(series(old), series(&plan.steps[by]));
        }
    }
}

#[test]
fn a_balancer_that_is_given_up_is_replaced_by_nothing() {
    let before = spec::ha_spec();
    let mut after = before.clone();
    after.api.load_balancer = None;
    let (want, seen) = settle(desired_of(&after), snapshot_of(&desired_of(&before)));
    let plan = plan(&want, &seen).expect("a plan");
    let gone = plan.steps.values().filter(|step| step.id.kind() == "lb");
    assert!(gone.clone().count() == 1 && gone.clone().all(|step| step.reason == Reason::Unwanted));
}

fn with_addresses(addresses: [Option<&str>; 3]) -> FullSpec {
    let mut full = spec::ha_spec();
    let balancer = full.api.load_balancer.as_mut().expect("a balancer");
    for (place, address) in balancer.subnets.iter_mut().zip(addresses) {
        place.allocation_id = address.map(Into::into);
    }
    full
}

#[test]
fn a_balancer_that_keeps_some_of_its_addresses_is_refused_with_the_way_by_hand() {
    let before = with_addresses([Some("eipalloc-a"), Some("eipalloc-b"), None]);
    let after = with_addresses([Some("eipalloc-a"), Some("eipalloc-c"), None]);
    let (want, seen) = settle(desired_of(&after), snapshot_of(&desired_of(&before)));
    let Err(PlanError::Refused(refused)) = plan(&want, &seen) else {
        panic!("it should be refused");
    };
    assert_eq!(refused.len(), 1);
    let (id, why) = &refused[0];
    assert_eq!(id.to_string(), "lb/api.minimal.example.com");
    assert!(why.contains("cannot have eipalloc-a as long"), "{why}");
    // The way it names: without addresses, then with them.
    let between = with_addresses([None, None, None]);
    let (bare, seen) = settle(desired_of(&between), snapshot_of(&desired_of(&before)));
    plan(&bare, &seen).expect("the first step can be made");
    let (want, seen) = settle(desired_of(&after), snapshot_of(&bare));
    plan(&want, &seen).expect("and the second");
    assert!(
        want.iter()
            .any(|one| one.id().to_string() == "lb/api.minimal.example.com-3")
    );
}

#[test]
fn a_balancer_all_of_whose_addresses_change_gets_a_successor() {
    let before = with_addresses([Some("eipalloc-a"), Some("eipalloc-b"), None]);
    let after = with_addresses([Some("eipalloc-c"), Some("eipalloc-d"), None]);
    let (want, seen) = settle(desired_of(&after), snapshot_of(&desired_of(&before)));
    plan(&want, &seen).expect("nothing is refused");
    assert!(
        want.iter()
            .any(|one| one.id().to_string() == "lb/api.minimal.example.com-2")
    );
}

#[test]
fn a_balancer_without_security_groups_gets_a_successor_with_them() {
    let full = spec::ha_spec();
    let mut bare = desired_of(&full);
    for one in &mut bare {
        if let Cloud::Lb(balancer) = one {
            balancer.security_groups.clear();
        }
    }
    let (want, _) = settle(desired_of(&full), snapshot_of(&bare));
    let names: Vec<_> = want.iter().map(|one| one.id().to_string()).collect();
    assert!(
        names.contains(&"lb/api.minimal.example.com-2".to_owned()),
        "{names:?}"
    );
    let (same, _) = settle(bare.clone(), snapshot_of(&bare));
    assert_eq!(same, bare);
}

/// AWS says which range a part of the VPC's is. A range that cannot be that part stays a difference that is told.
#[test]
fn a_subnets_part_of_the_vpcs_range_is_the_range_that_it_has() {
    let desired = desired_of(&spec::ipv6_spec());
    let with_range = |text: &str| {
        let range: SubnetIpv6Range = text.parse().unwrap();
        let mut seen = desired.clone();
        for one in &mut seen {
            if let Cloud::Subnet(subnet) = one
                && subnet.cidr_block.is_none()
            {
                subnet.ipv6_cidr_block = Some(range);
            }
        }
        let (want, seen) = settle(desired.clone(), snapshot_of(&seen));
        assert_eq!(want, desired);
        snapshot_resources(&seen) == desired
    };
    // The subnet wants /64#0.
    assert!(with_range("2001:db8:0:100::/64"));
    assert!(!with_range("2001:db8:0:101::/64"));
    assert!(!with_range("2001:db8:0:100::/60"));
}
