//! No running instance loses the addresses by which it knows the API, whatever the spec becomes.

use super::settle::{any_spec, snapshot_of};
use crate::objects::desired_objects;
use crate::objects::tests::spec;
use crate::{DnsKind, FullSpec};
use cloud::settle::settle;
use cloud::used_load_balancers::{
    ADDRESSES, UnwantedLoadBalancer, check_zones, keep_used_load_balancers, unwanted_load_balancers,
};
use cloud::{Cloud, Lb};
use engine::{Action, Id, Observed, PlanError, Ref, Resource, Snapshot, Text, Why, plan};
use node::names;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

/// The desired objects of a cluster. Without DNS, instances get the load balancer's addresses in user data.
fn desired_with_addresses(full: &FullSpec) -> Vec<Cloud> {
    let balancer = Id::new("lb", names::api_load_balancer(&full.name));
    let gets_addresses = full.dns.kind == DnsKind::None && full.api.load_balancer.is_some();
    let text = if gets_addresses {
        Text::late(&balancer, ADDRESSES)
    } else {
        Text::literal("")
    };
    let groups = full.groups.iter();
    desired_objects(
        full,
        &groups
            .map(|group| (group.name.clone(), text.clone()))
            .collect(),
        Vec::new(),
    )
}

/// The objects as observed after they were created; every load balancer has its own addresses.
fn observed_with_addresses(all: &[Cloud]) -> Snapshot<Cloud> {
    let mut seen = snapshot_of(all);
    let mut balancers = 0;
    for item in &mut seen.items {
        let (name, value) = match item.resource {
            Cloud::Lb(_) => {
                balancers += 1;
                (ADDRESSES, format!("10.0.{balancers}.1,10.0.{balancers}.2"))
            }
            Cloud::LaunchTemplate(_) => ("latest_version", "1".to_owned()),
            _ => continue,
        };
        item.attrs.insert(name.to_owned(), value);
    }
    let attr = |id: &Id, name: &str| seen.attr(id, name);
    let items = seen.items.iter().map(|item| Observed {
        resource: item.resource.resolved(&attr),
        ..item.clone()
    });
    Snapshot {
        items: items.collect(),
    }
}

/// The planned actions on existing objects.
fn planned_actions(want: &[Cloud], seen: &Snapshot<Cloud>) -> BTreeMap<Id, Action> {
    let steps = plan(want, seen).expect("a plan").steps.into_values();
    steps
        .filter(|step| step.before.is_some())
        .map(|step| (step.id, step.action))
        .collect()
}

/// The target groups of each Auto Scaling group.
fn target_groups_by_group(all: &[Cloud]) -> BTreeMap<Id, BTreeSet<Ref>> {
    let groups = all.iter().filter_map(|one| match one {
        Cloud::AutoscalingGroup(group) => {
            Some((one.id(), group.target_group_arns.iter().cloned().collect()))
        }
        _ => None,
    });
    groups.collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_named_balancer_keeps_what_it_works_with_and_goes_with_it_once_nobody_names_it(
        before in any_spec(),
        after in any_spec(),
        gives_up in prop::bool::weighted(0.1),
    ) {
        let mut after = after;
        if gives_up {
            after.api.load_balancer = None;
        }
        let before = desired_with_addresses(&before);
        let (want, seen) = settle(desired_with_addresses(&after), observed_with_addresses(&before));
        prop_assume!(plan(&want, &seen).is_ok());
        let named: BTreeMap<Id, Vec<String>> =
            unwanted_load_balancers(&want, &seen).into_iter().map(|one| (one.id, vec!["i-1".to_owned()])).collect();
        let (held, kept) = keep_used_load_balancers(want.clone(), &seen, &named);
        let does = planned_actions(&held, &seen);
        for id in named.keys() {
            prop_assert_eq!(does.get(id), None);
            let why = kept.iter().find(|one| one.id == *id).map(|one| &one.why);
            prop_assert_eq!(why, Some(&Why::Named { by: vec!["i-1".to_owned()] }));
            // Whatever leads through it is as it was.
            let mut through: BTreeSet<Id> = BTreeSet::new();
            for item in &seen.items {
                let Cloud::LbListener(listener) = &item.resource else { continue };
                if listener.load_balancer_arn.id().as_ref() == Some(id) {
                    through.insert(item.resource.id());
                    through.extend(listener.target_group_arn.id());
                }
            }
            prop_assert!(!through.is_empty());
            prop_assert!(through.iter().all(|one| !does.contains_key(one)), "{does:?}");
            let now = target_groups_by_group(&held);
            for (group, served) in target_groups_by_group(&before) {
                let served: BTreeSet<Ref> = served.into_iter().filter(|of| of.id().is_some_and(|of| through.contains(&of))).collect();
                prop_assert!(now.get(&group).is_none_or(|now| served.is_subset(now)), "{group} leaves {served:?}");
            }
            // And so is the way from instances to it, and from it to instances.
            let Some(Cloud::Lb(Lb { security_groups, .. })) = seen.find(id).map(|item| &item.resource) else { continue };
            let groups: BTreeSet<Id> = security_groups.iter().filter_map(Ref::id).collect();
            for item in &seen.items {
                let needs = item.resource.needs();
                let between = needs.len() == 2 && needs.iter().any(|need| groups.contains(need));
                let rule = matches!(item.resource, Cloud::SecurityGroupRule(_));
                prop_assert!(!(rule && between && does.contains_key(&item.resource.id())));
            }
        }
        let ids: BTreeSet<Id> = held.iter().map(Resource::id).collect();
        prop_assert_eq!(ids.len(), held.len());
        prop_assert!(kept.iter().all(|one| ids.contains(&one.id)));
        // Nobody names it.
        let (free, none) = keep_used_load_balancers(want.clone(), &seen, &BTreeMap::new());
        prop_assert_eq!(&free, &want);
        prop_assert!(none.is_empty());
        let does = planned_actions(&free, &seen);
        prop_assert!(named.keys().all(|id| does.get(id) == Some(&Action::Delete)));
    }

    #[test]
    fn no_balancer_that_machines_are_told_loses_a_zone(zones in 1..=3_usize, fixed in any::<bool>()) {
        let mut before = spec::ha_spec();
        let balancer = before.api.load_balancer.as_mut().expect("a balancer");
        if fixed {
            balancer.subnets[0].allocation_id = Some("eipalloc-1".into());
        }
        let mut after = before.clone();
        after.api.load_balancer.as_mut().expect("a balancer").subnets.truncate(zones);
        let (want, seen) = settle(desired_with_addresses(&after), observed_with_addresses(&desired_with_addresses(&before)));
        let checked = check_zones(&want, &seen);
        if zones == 3 {
            prop_assert!(checked.is_ok() && planned_actions(&want, &seen).is_empty());
        } else if fixed {
            let Err(PlanError::Refused(refused)) = checked else { panic!("it should be refused") };
            prop_assert!(refused[0].1.contains("keep the zone"));
        } else {
            prop_assert!(checked.is_ok());
            prop_assert_eq!(unwanted_load_balancers(&want, &seen).len(), 1, "it gets a successor");
        }
    }
}

#[test]
fn where_names_are_published_a_balancer_loses_a_zone_in_place() {
    let mut before = spec::ha_spec();
    before.dns = spec::minimal_spec().dns;
    let mut after = before.clone();
    let balancer = after.api.load_balancer.as_mut().expect("a balancer");
    balancer.subnets.truncate(2);
    let (want, seen) = settle(
        desired_with_addresses(&after),
        observed_with_addresses(&desired_with_addresses(&before)),
    );
    check_zones(&want, &seen).expect("nothing to refuse");
    assert_eq!(unwanted_load_balancers(&want, &seen), []);
}

#[test]
fn a_machine_names_a_balancer_whose_whole_address_it_was_told() {
    let balancer = UnwantedLoadBalancer {
        id: Id::new("lb", "api"),
        addresses: vec!["10.0.0.1".into(), "10.0.1.1".into()],
    };
    for told in [
        "10.0.0.1",
        "controlPlaneAddresses: 10.0.9.1,10.0.1.1\n",
        "https://10.0.0.1:3988/",
    ] {
        assert!(balancer.is_named_in(told), "{told}");
    }
    for told in [
        "",
        "110.0.0.1",
        "10.0.0.11",
        "10.0.0.1.5",
        "10.0.0",
        "1.10.0.0.1",
    ] {
        assert!(!balancer.is_named_in(told), "{told}");
    }
}
