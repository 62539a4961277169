//! How apply meets each kind of failure, and what it promises whatever happens.

use crate::strategies::{any_desired, calm_cloud, calm_with, run, sweep_cloud};
use cloud::Cloud;
use engine::{
    Action, Class, Clock, EngineContext, Event, Id, Options, Plan, Report, Resource, Step, apply,
    plan,
};
use proptest::prelude::*;
use simcloud::{
    ClusterShape, RunEnd, SimCloud, StateDifference, block_on, judge_state, run_update,
};
use std::cell::Cell;
use std::collections::BTreeSet;
use std::time::Duration;

/// One run, and everything it told.
fn run_and_record(
    cloud: &SimCloud,
    desired: &[Cloud],
    options: Options,
) -> (Plan<Cloud>, Report, Vec<Event>) {
    let mut events = Vec::new();
    let end = run_update(cloud, desired, options, &|| false, &mut |event| {
        events.push(event);
    });
    let RunEnd::Ran(plan, report) = end else {
        panic!("it should run to its end: {end:?}")
    };
    (plan, report, events)
}

fn large_cluster() -> Vec<Cloud> {
    let shape = ClusterShape {
        zones: 2,
        private: true,
        balancer: true,
        events: true,
        ..ClusterShape::default()
    };
    shape.all_objects()
}

fn cluster_id(kind: &str, name: &str) -> Id {
    Id::new(kind, format!("{name}.prod.example.com"))
}

fn vpc_id() -> Id {
    Id::new("vpc", "prod.example.com")
}

/// Everything that waits for `of`, at any distance.
fn waiting_for(plan: &Plan<Cloud>, of: &Id) -> BTreeSet<Id> {
    let mut waiting = BTreeSet::new();
    for id in plan.dependency_order().unwrap() {
        let needs = &plan.steps[&id].needs;
        if needs.contains(of) || !needs.is_disjoint(&waiting) {
            waiting.insert(id);
        }
    }
    waiting
}

#[test]
fn a_denied_step_takes_down_what_waits_for_it_and_nothing_else() {
    let cloud = calm_cloud();
    cloud.faults.borrow_mut().denied = Some("nat_gateway");
    let (plan, report, _) = run_and_record(&cloud, &large_cluster(), Options::default());
    let nat = [
        cluster_id("nat_gateway", "a"),
        cluster_id("nat_gateway", "b"),
    ];
    let failed: BTreeSet<&Id> = report.failed.iter().map(|(id, _)| id).collect();
    assert_eq!(failed, nat.iter().collect());
    assert!(
        report
            .failed
            .iter()
            .all(|(_, failure)| failure.class == Class::Denied)
    );
    let skipped: BTreeSet<Id> = report.skipped.iter().map(|(id, _)| id.clone()).collect();
    let waiting = nat.iter().flat_map(|nat| waiting_for(&plan, nat)).collect();
    assert_eq!(skipped, waiting);
    assert!(
        report
            .skipped
            .iter()
            .all(|(_, because)| because.as_ref().is_some_and(|id| nat.contains(id)))
    );
    assert_eq!(
        report.done.len(),
        plan.steps.len() - failed.len() - skipped.len()
    );
    // Once allowed, only the rest is left to do.
    cloud.faults.borrow_mut().denied = None;
    let (rest, report, _) = run_and_record(&cloud, &large_cluster(), Options::default());
    assert!(report.is_complete());
    assert_eq!(rest.steps.len(), failed.len() + skipped.len());
}

#[test]
fn what_is_final_is_not_tried_twice() {
    for (denied, quota) in [(Some("vpc"), None), (None, Some(("vpc", 0)))] {
        let cloud = calm_cloud();
        cloud.faults.borrow_mut().denied = denied;
        cloud.faults.borrow_mut().quota = quota;
        let (_, report, events) = run_and_record(&cloud, &large_cluster(), Options::default());
        assert_eq!(report.failed.len(), 1);
        assert!(
            !events
                .iter()
                .any(|event| matches!(event, Event::Retrying { .. }))
        );
    }
}

#[test]
fn throttling_is_waited_out_and_is_no_failed_attempt() {
    let cloud = calm_cloud();
    cloud.faults.borrow_mut().throttled = 70;
    let options = Options {
        attempts: 1,
        ..Options::default()
    };
    let (_, report, _) = run_and_record(&cloud, &large_cluster(), options);
    assert!(report.is_complete(), "{:?}", report.failed);
}

#[test]
fn an_outcome_nobody_knows_is_looked_up_before_the_next_try() {
    let cloud = calm_cloud();
    cloud.faults.borrow_mut().unknown = 40;
    let options = Options {
        attempts: 40,
        ..Options::default()
    };
    let (_, report, _) = run_and_record(&cloud, &large_cluster(), options);
    assert!(report.is_complete(), "{:?}", report.failed);
    cloud.faults.borrow_mut().unknown = 0;
    run(&cloud, &large_cluster());
    assert_eq!(
        judge_state(&cloud.state.borrow(), &large_cluster()),
        StateDifference::default()
    );
    assert_eq!(cloud.state.borrow().made_twice, 0);
}

#[test]
fn attempts_end_and_the_journal_stays_open_while_a_creation_is_in_doubt() {
    let cloud = calm_cloud();
    let begin = |event: Event| {
        // Everything is lost from the first creation on; the journal before it is not.
        if matches!(event, Event::Started { .. }) {
            cloud.faults.borrow_mut().unknown = 100;
        }
    };
    let options = Options {
        attempts: 2,
        deadline: Duration::from_mins(1),
        ..Options::default()
    };
    let end = run_update(&cloud, &large_cluster(), options, &|| false, &mut |event| {
        begin(event);
    });
    let RunEnd::Ran(_, report) = end else {
        panic!("{end:?}")
    };
    assert!(report.done.is_empty());
    assert!(
        report
            .failed
            .iter()
            .all(|(_, failure)| failure.class == Class::Unknown)
    );
    assert!(cloud.state.borrow().journal.1.creating.contains(&vpc_id()));
    // The next run waits for reads to settle, and makes nothing twice.
    cloud.faults.borrow_mut().unknown = 0;
    let before = cloud.clock.now();
    let (_, report, events) = run_and_record(&cloud, &large_cluster(), Options::default());
    assert!(matches!(&events[0], Event::Settling { ids, .. } if ids.contains(&vpc_id())));
    assert!(cloud.clock.now() >= before + Options::default().settle);
    assert!(report.is_complete());
    assert_eq!(
        judge_state(&cloud.state.borrow(), &large_cluster()),
        StateDifference::default()
    );
    let journal = cloud.state.borrow().journal.1.clone();
    assert!(
        journal.creating.is_empty() && journal.made.contains(&vpc_id()),
        "{journal:?}"
    );
}

#[test]
fn without_a_journal_nothing_begins_that_could_be_made_twice() {
    let cloud = calm_cloud();
    cloud.faults.borrow_mut().denied = Some("journal");
    let (_, report, _) = run_and_record(&cloud, &large_cluster(), Options::default());
    let failed: BTreeSet<&str> = report.failed.iter().map(|(id, _)| id.kind()).collect();
    assert!(
        failed.contains("vpc") && failed.contains("eip"),
        "{failed:?}"
    );
    let journaled = |object: &simcloud::Body| object.resource.needs_journal();
    assert!(
        !cloud
            .state
            .borrow()
            .living_objects()
            .any(|object| journaled(object.current_body().unwrap()))
    );
    assert!(report.done.contains(&cluster_id("iam_role", "nodes")));
}

#[test]
fn a_taken_name_that_is_ours_is_adopted_and_one_that_is_not_is_refused() {
    // Reads hide a role that is there: the creation meets its name.
    let cloud = calm_with(&ClusterShape::default().all_objects());
    let wanted = ClusterShape {
        owner: "b-team",
        ..ClusterShape::default()
    }
    .all_objects();
    let nothing_seen = plan(&wanted, &engine::Snapshot::default()).unwrap();
    let mut only = nothing_seen.clone();
    only.steps.retain(|id, _| id.kind() == "iam_role");
    let report = apply_plan(&cloud, &only);
    assert!(report.is_complete(), "{:?}", report.failed);
    let state = cloud.state.borrow();
    let role = state
        .living_objects()
        .find(|object| object.physical.starts_with("iam_role-"))
        .unwrap();
    let Cloud::IamRole(role) = &role.current_body().unwrap().resource else {
        panic!()
    };
    assert_eq!(role.tags["Owner"], "b-team");
    drop(state);

    let other = calm_cloud();
    let role = wanted
        .iter()
        .find(|object| object.id().kind() == "iam_role")
        .unwrap();
    other
        .state
        .borrow_mut()
        .add_foreign_user(role.clone(), "nothing", Duration::ZERO);
    let report = apply_plan(&other, &only);
    let (failed, failure) = &report.failed[0];
    assert_eq!((failed, failure.class), (&role.id(), Class::Invalid));
    assert!(failure.message.contains("belongs to"), "{failure}");
}

/// Applies that plan to what a sweep shows now.
fn apply_plan(cloud: &SimCloud, plan: &Plan<Cloud>) -> Report {
    cloud.restart();
    let outside = EngineContext {
        world: cloud,
        journal: cloud,
        clock: &cloud.clock,
        options: Options::default(),
        stop: &|| false,
    };
    let seen = sweep_cloud(cloud);
    let mut ignore = |_| {};
    let apply = apply(plan, &seen, &outside, &mut ignore);
    block_on(&cloud.clock, || false, apply).unwrap().unwrap()
}

#[test]
fn what_somebody_else_uses_blocks_its_removal_until_the_deadline_and_is_named() {
    let cloud = calm_with(&ClusterShape::default().all_objects());
    let subnet = sweep_cloud(&cloud)
        .find(&cluster_id("subnet", "public-a"))
        .unwrap()
        .physical
        .clone();
    let theirs = Cloud::from(match &ClusterShape::default().all_objects()[0] {
        Cloud::Vpc(vpc) => vpc.clone(),
        _ => panic!("the VPC comes first"),
    });
    cloud
        .state
        .borrow_mut()
        .add_foreign_user(theirs, &subnet, cloud.clock.now());
    let blocker = cloud
        .state
        .borrow()
        .objects
        .last()
        .unwrap()
        .physical
        .clone();
    let before = cloud.clock.now();
    let (_, report, _) = run_and_record(&cloud, &[], Options::default());
    let (failed, failure) = &report.failed[0];
    assert_eq!(
        (failed, failure.class),
        (&cluster_id("subnet", "public-a"), Class::Blocked)
    );
    assert!(failure.message.contains(&blocker), "{failure}");
    assert_eq!(failure.hint.as_deref(), Some("still so after 600 s"));
    assert!(cloud.clock.now() >= before + Options::default().deadline);
    let left: BTreeSet<&str> = report.skipped.iter().map(|(id, _)| id.kind()).collect();
    assert_eq!(left, BTreeSet::from(["vpc"]));
}

#[test]
fn a_change_of_what_is_gone_says_to_plan_again_and_its_removal_is_done() {
    let cloud = calm_with(&ClusterShape::default().all_objects());
    let changed = ClusterShape {
        owner: "b-team",
        ..ClusterShape::default()
    }
    .all_objects();
    let (update, removal) = (
        plan(&changed, &sweep_cloud(&cloud)).unwrap(),
        plan(&[], &sweep_cloud(&cloud)).unwrap(),
    );
    let gone = cluster_id("iam_role_policy", "nodes");
    let only = |mut plan: Plan<Cloud>| {
        plan.steps.retain(|id, _| *id == gone);
        plan.steps
            .values_mut()
            .for_each(|step: &mut Step<Cloud>| step.needs.clear());
        plan
    };
    let physical = sweep_cloud(&cloud).find(&gone).unwrap().physical.clone();
    let now = cloud.clock.now();
    cloud
        .state
        .borrow_mut()
        .object_mut(&physical)
        .unwrap()
        .remove_body(now);
    let report = apply_plan(&cloud, &only(update));
    assert_eq!(report.failed[0].1.class, Class::Gone);
    assert!(
        report.failed[0]
            .1
            .hint
            .as_ref()
            .unwrap()
            .contains("run the update again")
    );
    assert!(apply_plan(&cloud, &only(removal)).is_complete());
}

#[test]
fn an_update_whose_late_value_stays_makes_no_call() {
    let shape = ClusterShape::default();
    let cloud = calm_with(&shape.all_objects());
    let renewed = ClusterShape {
        boot: "second",
        ..shape
    };
    let mut only = plan(&renewed.all_objects(), &sweep_cloud(&cloud)).unwrap();
    only.steps.retain(|id, _| id.kind() == "autoscaling_group");
    only.steps.values_mut().for_each(|step| step.needs.clear());
    let groups = only.steps.len();
    assert_eq!(apply_plan(&cloud, &only).done.len(), groups);
    assert_eq!(
        cloud.calls.get(),
        1,
        "the journal is cleared, and that is all"
    );
}

#[test]
fn nothing_slow_holds_up_what_does_not_wait_for_it() {
    let (plan, report, events) =
        run_and_record(&calm_cloud(), &large_cluster(), Options::default());
    assert!(report.is_complete());
    let slow = |id: &&Id| ["nat_gateway", "lb"].contains(&id.kind());
    let mut behind: BTreeSet<Id> = plan.steps.keys().filter(slow).cloned().collect();
    for id in behind.clone() {
        behind.extend(waiting_for(&plan, &id));
    }
    let done: Vec<&Id> = events
        .iter()
        .filter_map(|event| match event {
            Event::Done { step, .. } => Some(step),
            _ => None,
        })
        .collect();
    let first = done.iter().position(|id| behind.contains(*id)).unwrap();
    assert_eq!(
        done.len() - first,
        behind.len(),
        "all else is done before the first slow one"
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn no_more_calls_are_under_way_than_allowed(desired in any_desired(), parallelism in 1..8_usize) {
        let cloud = calm_cloud();
        let options = Options { parallelism, ..Options::default() };
        let (_, report, _) = run_and_record(&cloud, &desired, options);
        prop_assert!(report.is_complete());
        prop_assert!(cloud.peak.get() <= u64::try_from(parallelism).unwrap(), "{}", cloud.peak.get());
    }

    #[test]
    fn done_is_told_when_it_is_usable_or_gone_and_not_before(before in any_desired(), after in any_desired()) {
        let cloud = calm_with(&before);
        let mut early = Vec::new();
        let mut listen = |event: Event| {
            let Event::Done { step, action, physical, .. } = event else { return };
            let (state, now) = (cloud.state.borrow(), cloud.clock.now());
            let object = state.find_object(&physical).unwrap();
            let is_over = if action == Action::Delete {
                object.lingering_body(now).is_none()
            } else {
                object.usable <= now
            };
            if !is_over {
                early.push(step);
            }
        };
        run_update(&cloud, &after, Options::default(), &|| false, &mut listen);
        prop_assert!(early.is_empty(), "{early:?}");
    }

    #[test]
    fn events_tell_each_step_once_and_in_order(before in any_desired(), after in any_desired(), denied in prop::option::of(Just("subnet"))) {
        let cloud = calm_with(&before);
        cloud.faults.borrow_mut().denied = denied;
        let (plan, report, events) = run_and_record(&cloud, &after, Options::default());
        let mut started = BTreeSet::new();
        let mut ended = BTreeSet::new();
        for event in events {
            match event {
                Event::Started { step, .. } => {
                    prop_assert!(plan.steps[&step].needs.is_subset(&ended), "{step} began too early");
                    prop_assert!(started.insert(step));
                }
                Event::Done { step, .. } | Event::Failed { step, .. } => {
                    prop_assert!(started.contains(&step));
                    prop_assert!(ended.insert(step));
                }
                Event::Skipped { step, .. } => prop_assert!(ended.insert(step)),
                _ => {}
            }
        }
        prop_assert_eq!(&ended, &plan.steps.keys().cloned().collect::<BTreeSet<Id>>());
        let reported = report.done.len() + report.failed.len() + report.skipped.len();
        prop_assert_eq!(reported, ended.len());
    }

    #[test]
    fn any_beginning_of_a_plan_and_a_new_plan_lead_to_the_same_end(before in any_desired(), after in any_desired(), starts in 0..40_usize) {
        let cloud = calm_with(&before);
        let begun = Cell::new(0);
        let mut count = |event: Event| begun.set(begun.get() + usize::from(matches!(event, Event::Started { .. })));
        let end = run_update(&cloud, &after, Options { parallelism: 3, ..Options::default() }, &|| begun.get() >= starts, &mut count);
        let RunEnd::Ran(plan, report) = end else { panic!("it was not killed") };
        prop_assert!(begun.get() <= starts, "{} began", begun.get());
        prop_assert!(report.failed.is_empty());
        prop_assert_eq!(report.interrupted, report.done.len() < plan.steps.len());
        prop_assert!(report.skipped.iter().all(|(_, because)| because.is_none()));
        let (rest, report, _) = run_and_record(&cloud, &after, Options::default());
        prop_assert!(report.is_complete(), "{:?}", report.failed);
        prop_assert!(rest.count(Action::Create) <= plan.count(Action::Create));
        prop_assert_eq!(judge_state(&cloud.state.borrow(), &after), StateDifference::default());
    }
}
