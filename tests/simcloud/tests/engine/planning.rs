//! Laws of the planner.

use crate::strategies::{any_desired, any_shape, calm_with, run, sweep_cloud};
use cloud::{Cloud, Vpc};
use engine::{
    Action, Id, Observed, PlanDifference, PlanError, Reason, Resource, Snapshot, Why, plan,
    plan_differences,
};
use proptest::prelude::*;
use simcloud::{ClusterShape, RunEnd, StateDifference, judge_state};

fn reversed_list<T: Clone>(list: &[T]) -> Vec<T> {
    list.iter().rev().cloned().collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn what_is_as_wanted_needs_no_plan(desired in any_desired()) {
        let seen = sweep_cloud(&calm_with(&desired));
        prop_assert!(plan(&desired, &seen).unwrap().is_empty());
    }

    #[test]
    fn applying_a_plan_leads_to_what_is_wanted(before in any_desired(), after in any_desired()) {
        let cloud = calm_with(&before);
        let RunEnd::Ran(_, report) = run(&cloud, &after) else { panic!("it was not killed") };
        prop_assert!(report.is_complete(), "{:?}", report.failed);
        prop_assert_eq!(judge_state(&cloud.state.borrow(), &after), StateDifference::default());
        prop_assert!(plan(&after, &sweep_cloud(&cloud)).unwrap().is_empty());
    }

    #[test]
    fn a_plan_depends_on_what_is_there_and_not_on_its_order(before in any_desired(), after in any_desired()) {
        let seen = sweep_cloud(&calm_with(&before));
        let turned = Snapshot { items: reversed_list(&seen.items) };
        prop_assert_eq!(plan(&after, &seen), plan(&reversed_list(&after), &turned));
    }

    #[test]
    fn every_step_has_a_reason_and_an_order(before in any_desired(), after in any_desired()) {
        let seen = sweep_cloud(&calm_with(&before));
        let plan = plan(&after, &seen).unwrap();
        plan.check().unwrap();
        for step in plan.steps.values().filter(|step| step.action == Action::Update) {
            prop_assert!(step.changes.iter().all(|change| change.before != change.after));
        }
    }

    #[test]
    fn what_a_deleted_object_served_is_deleted_or_changed_before(
        before in any_desired(),
        after in any_desired(),
        by_name_alone in any::<bool>(),
    ) {
        let mut seen = sweep_cloud(&calm_with(&before));
        if by_name_alone {
            seen.items.iter_mut().for_each(|item| item.uses.clear());
        }
        let plan = plan(&after, &seen).unwrap();
        let deleted = |id: &Id| plan.steps.get(id).filter(|step| step.action == Action::Delete);
        for item in &seen.items {
            for step in item.resource.needs().iter().filter_map(deleted) {
                prop_assert!(step.needs.contains(&item.resource.id()));
            }
        }
    }

    #[test]
    fn objects_of_different_kinds_may_share_a_physical_id(before in any_desired(), after in any_desired()) {
        let seen = sweep_cloud(&calm_with(&before));
        let mut shared = seen.clone();
        for item in &mut shared.items {
            item.physical = item.resource.id().name().to_owned();
            item.uses = item.resource.needs().iter().map(|need| need.name().to_owned()).collect();
        }
        let edges = |seen| -> Vec<_> {
            let steps = plan(&after, seen).unwrap().steps.into_values();
            steps.map(|step| (step.id, step.needs)).collect()
        };
        prop_assert_eq!(edges(&seen), edges(&shared));
    }

    #[test]
    fn a_plan_survives_its_json_form(before in any_desired(), after in any_desired()) {
        let seen = sweep_cloud(&calm_with(&before));
        let plan = plan(&after, &seen).unwrap();
        let json = serde_json::to_string(&plan).unwrap();
        prop_assert_eq!(serde_json::from_str::<engine::Plan<Cloud>>(&json).unwrap(), plan);
    }

    #[test]
    fn of_two_plans_what_moved_is_nothing_exactly_if_they_do_the_same(
        before in any_desired(),
        after in any_desired(),
        other in any_desired(),
    ) {
        let seen = sweep_cloud(&calm_with(&before));
        let (first, second) = (plan(&after, &seen).unwrap(), plan(&other, &seen).unwrap());
        prop_assert_eq!(plan_differences(&first, &first), Vec::<PlanDifference>::new());
        prop_assert_eq!(plan_differences(&first, &second).is_empty(), first == second);
        let told: Vec<Id> = plan_differences(&first, &second).iter().map(|one| one.id().clone()).collect();
        let back: Vec<Id> = plan_differences(&second, &first).iter().map(|one| one.id().clone()).collect();
        prop_assert_eq!(told, back);
    }

    #[test]
    fn what_moved_names_the_field_of_the_object_that_somebody_changed(before in any_desired(), pick in any::<prop::sample::Index>()) {
        // Everything goes, so that every object has a step.
        let seen = sweep_cloud(&calm_with(&before));
        prop_assume!(!seen.items.is_empty());
        let mut touched = seen.clone();
        let item = pick.index(touched.items.len());
        touched.items[item].physical.push_str("-another");
        touched.items[item].in_use ^= true;
        let told = plan_differences(&plan(&[], &seen).unwrap(), &plan(&[], &touched).unwrap());
        let fields = |one: &PlanDifference| match one {
            PlanDifference::Differs { fields, .. } => fields.iter().map(|change| change.field.clone()).collect(),
            _ => Vec::new(),
        };
        let told: Vec<(Id, Vec<String>)> = told.iter().map(|one| (one.id().clone(), fields(one))).collect();
        prop_assert_eq!(told, [(seen.items[item].resource.id(), vec!["before.physical_id".to_owned()])]);
    }

    #[test]
    fn no_plan_but_that_for_nothing_deletes_what_holds_data_and_the_rest_says_what_it_keeps(
        before in any_shape(),
        after in any_shape(),
        copies in prop::collection::vec((any::<prop::sample::Index>(), any::<bool>(), prop::option::of(0..9)), 0..6),
    ) {
        let mut seen = sweep_cloud(&calm_with(&before.all_objects()));
        let data = |item: &Observed<Cloud>| item.resource.holds_data();
        for (number, (pick, in_use, created)) in copies.into_iter().enumerate() {
            let volumes: Vec<&Observed<Cloud>> = seen.items.iter().filter(|item| data(item)).collect();
            let copy = Observed {
                physical: format!("vol-{number}"),
                in_use,
                created: created.map(|day| format!("2026-01-0{day}T00:00:00Z")),
                ..volumes[pick.index(volumes.len())].clone()
            };
            seen.items.push(copy);
        }
        let volumes: Vec<&Observed<Cloud>> = seen.items.iter().filter(|item| data(item)).collect();
        let plan_for = |wanted: &[Cloud]| plan(wanted, &seen).unwrap();
        let deleted = |wanted: &[Cloud]| {
            let steps = plan_for(wanted).steps.into_values().filter(|step| step.action == Action::Delete);
            steps.filter_map(|step| step.before).filter(data).count()
        };
        let wanted = after.all_objects();
        prop_assert_eq!(deleted(&wanted), 0);
        prop_assert_eq!(deleted(&[]), volumes.len());
        prop_assert!(plan_for(&[]).kept.is_empty());
        let kept = plan_for(&wanted).kept;
        let is_kept = |item: &&&Observed<Cloud>| kept.iter().any(|kept| kept.physical == item.physical);
        let stays: Vec<Id> = volumes.iter().filter(|item| !is_kept(item)).map(|item| item.resource.id()).collect();
        // All but one of each that is wanted.
        let distinct: std::collections::BTreeSet<Id> = stays.iter().cloned().collect();
        prop_assert_eq!(distinct.len(), stays.len());
        prop_assert!(stays.iter().all(|id| wanted.iter().any(|want| want.id() == *id)));
        for twice in &kept {
            if let Why::HoldsDataTwice { other } = &twice.why {
                prop_assert!(volumes.iter().any(|item| item.physical == *other && item.resource.id() == twice.id));
            }
        }
    }

    #[test]
    fn a_changed_template_takes_its_group_along_and_nothing_else(shape in any_shape()) {
        let seen = sweep_cloud(&calm_with(&shape.all_objects()));
        let renewed = ClusterShape { boot: "third", ..shape };
        let plan = plan(&renewed.all_objects(), &seen).unwrap();
        for (id, step) in plan.steps.iter().filter(|(id, _)| id.kind() != "s3_object") {
            let template = Id::new("launch_template", id.name());
            let follows = Reason::Follows { of: vec![template.clone()] };
            match id.kind() {
                "launch_template" => prop_assert_eq!(&step.reason, &Reason::Differs),
                "autoscaling_group" => {
                    prop_assert_eq!(&step.reason, &follows);
                    prop_assert!(step.needs.contains(&template));
                }
                kind => prop_assert!(false, "{kind} should not change"),
            }
        }
        prop_assert_eq!(plan.count(Action::Update), plan.steps.len());
    }
}

fn owned_vpc(owner: &str) -> Cloud {
    let shape = ClusterShape::default();
    let vpc = shape
        .all_objects()
        .into_iter()
        .find_map(|object| match object {
            Cloud::Vpc(vpc) => Some(vpc),
            _ => None,
        });
    let mut vpc: Vpc = vpc.unwrap();
    vpc.tags.insert("Owner".to_owned(), owner.to_owned());
    vpc.into()
}

fn observed_vpc(physical: &str, created: &str, in_use: bool) -> Observed<Cloud> {
    Observed {
        resource: owned_vpc("a-team"),
        physical: physical.to_owned(),
        attrs: engine::Attrs::new(),
        created: Some(created.to_owned()),
        uses: std::collections::BTreeSet::new(),
        in_use,
    }
}

/// The physical ids that a plan for one VPC removes.
fn removed_ids(items: Vec<Observed<Cloud>>) -> Result<Vec<String>, PlanError> {
    let plan = plan(&[owned_vpc("a-team")], &Snapshot { items })?;
    let steps = plan.steps.into_values();
    Ok(steps.map(|step| step.before.unwrap().physical).collect())
}

#[test]
fn of_two_the_used_one_stays_else_the_older_else_the_smaller() {
    let (young, old) = ("2026-01-02T00:00:00Z", "2026-01-01T00:00:00Z");
    let used = removed_ids(vec![
        observed_vpc("vpc-1", old, false),
        observed_vpc("vpc-2", young, true),
    ]);
    assert_eq!(used.unwrap(), ["vpc-1"]);
    let older = removed_ids(vec![
        observed_vpc("vpc-1", young, false),
        observed_vpc("vpc-2", old, false),
    ]);
    assert_eq!(older.unwrap(), ["vpc-1"]);
    let smaller = removed_ids(vec![
        observed_vpc("vpc-2", old, false),
        observed_vpc("vpc-1", old, false),
    ]);
    assert_eq!(smaller.unwrap(), ["vpc-2"]);
    let same = removed_ids(vec![
        observed_vpc("vpc-1", old, false),
        observed_vpc("vpc-1", old, false),
    ]);
    assert!(same.unwrap().is_empty());
}

#[test]
fn of_two_used_ones_a_person_chooses_unless_both_go() {
    let items = vec![
        observed_vpc("vpc-1", "1", true),
        observed_vpc("vpc-2", "2", true),
    ];
    let error = removed_ids(items.clone()).unwrap_err();
    assert!(error.to_string().contains("(vpc-1, vpc-2)"), "{error}");
    let gone = plan(&[], &Snapshot { items }).unwrap();
    assert_eq!(gone.count(Action::Delete), 2);
}

/// An object of the default shape, as a sweep shows it on one of several VPCs.
fn observed_on_vpcs(kind: &str, physical: &str, uses: &[&str]) -> Observed<Cloud> {
    let shape = ClusterShape::default().all_objects();
    let mut of_kind = shape
        .into_iter()
        .filter(|object| object.id().kind() == kind);
    Observed {
        resource: of_kind.next().unwrap(),
        physical: physical.to_owned(),
        attrs: engine::Attrs::from([("latest_version".to_owned(), "1".to_owned())]),
        uses: uses.iter().map(|used| (*used).to_owned()).collect(),
        created: None,
        in_use: false,
    }
}

#[test]
fn the_twin_with_less_on_it_goes_with_all_that_is_on_it() {
    let desired: Vec<Cloud> = ["vpc", "subnet", "security_group"]
        .map(|kind| observed_on_vpcs(kind, "", &[]).resource)
        .to_vec();
    let items = vec![
        observed_on_vpcs("vpc", "vpc-1", &[]),
        observed_on_vpcs("vpc", "vpc-2", &[]),
        observed_on_vpcs("subnet", "subnet-1", &["vpc-1"]),
        observed_on_vpcs("subnet", "subnet-2", &["vpc-2"]),
        observed_on_vpcs("security_group", "sg-1", &["vpc-2"]),
    ];
    let plan = plan(&desired, &Snapshot { items }).unwrap();
    let step = |text: &str| &plan.steps[&Id::try_from(text.to_owned()).unwrap()];
    let ids: Vec<String> = plan.steps.keys().map(Id::to_string).collect();
    assert_eq!(
        ids,
        [
            "subnet/public-a.prod.example.com#subnet-1",
            "vpc/prod.example.com#vpc-1"
        ]
    );
    let removed = step("vpc/prod.example.com#vpc-1");
    assert!(
        removed
            .needs
            .contains(&step("subnet/public-a.prod.example.com#subnet-1").id)
    );
}

#[test]
fn the_twin_with_machines_stays_and_what_the_other_alone_had_is_made_again() {
    let kinds = [
        "vpc",
        "subnet",
        "security_group",
        "launch_template",
        "autoscaling_group",
    ];
    let mut group = observed_on_vpcs("autoscaling_group", "asg", &["subnet-1", "lt"]);
    let Cloud::AutoscalingGroup(of) = &mut group.resource else {
        panic!()
    };
    of.launch_template.version = engine::Text::literal("1");
    let desired: Vec<Cloud> = ClusterShape::default().all_objects();
    let items = vec![
        observed_on_vpcs("vpc", "vpc-1", &[]),
        observed_on_vpcs("vpc", "vpc-2", &[]),
        observed_on_vpcs("subnet", "subnet-1", &["vpc-1"]),
        observed_on_vpcs("security_group", "sg-1", &["vpc-2"]),
        observed_on_vpcs("route_table", "rtb-1", &["vpc-2"]),
        observed_on_vpcs("internet_gateway", "igw-1", &["vpc-2"]),
        group,
    ];
    let seen = Snapshot { items };
    let steps = plan(&desired, &seen).unwrap().steps;
    let deleted: Vec<&str> = steps
        .values()
        .filter(|step| step.action == Action::Delete)
        .map(|step| step.before.as_ref().unwrap().physical.as_str())
        .collect();
    assert_eq!(deleted, ["igw-1", "rtb-1", "sg-1", "vpc-2"]);
    let made: Vec<&Id> = steps
        .values()
        .filter(|step| step.action == Action::Create)
        .map(|step| &step.id)
        .collect();
    for step in steps
        .values()
        .filter(|step| step.reason == Reason::Duplicate)
    {
        let again = step.before.as_ref().unwrap().resource.id();
        if again.kind() != "vpc" {
            assert!(made.contains(&&again));
            assert!(steps[&again].needs.contains(&step.id));
        }
    }
    assert!(
        kinds
            .iter()
            .all(|kind| desired.iter().any(|object| object.id().kind() == *kind))
    );
    // Instances on both: nobody but a person can tell.
    let mut both = seen.clone();
    both.items.push(Observed {
        in_use: true,
        ..observed_on_vpcs("subnet", "subnet-2", &["vpc-2"])
    });
    assert!(matches!(plan(&desired, &both), Err(PlanError::BothUsed(_))));
}

#[test]
fn what_cannot_change_in_place_is_refused_all_at_once() {
    let wanted = ClusterShape::default().all_objects();
    let seen = sweep_cloud(&calm_with(&wanted));
    let differences: Vec<Cloud> = wanted
        .into_iter()
        .map(|object| match object {
            Cloud::Vpc(vpc) => Vpc {
                cidr_block: "10.0.0.0/8".to_owned(),
                ..vpc
            }
            .into(),
            Cloud::EbsVolume(mut volume) => {
                volume.size -= 1;
                volume.into()
            }
            other => other,
        })
        .collect();
    let Err(PlanError::Refused(refused)) = plan(&differences, &seen) else {
        panic!("it should be refused");
    };
    let kinds: Vec<&str> = refused.iter().map(|(id, _)| id.kind()).collect();
    assert_eq!(kinds, ["ebs_volume", "ebs_volume", "vpc"]);
}

#[test]
fn mistakes_in_the_desired_state_are_named() {
    let nothing = Snapshot::default();
    let twice = plan(&[owned_vpc("a"), owned_vpc("b")], &nothing).unwrap_err();
    assert_eq!(twice.to_string(), "wanted twice: vpc/prod.example.com");
    let all = ClusterShape::default().all_objects();
    let alone: Vec<Cloud> = all
        .into_iter()
        .filter(|object| object.id().kind() == "subnet")
        .collect();
    let dangling = plan(&alone, &nothing).unwrap_err();
    let text =
        "refers to what is not there: subnet/public-a.prod.example.com needs vpc/prod.example.com";
    assert_eq!(dangling.to_string(), text);
}

#[test]
fn the_next_of_a_series_replaces_the_one_before() {
    let first = ClusterShape::default();
    let seen = sweep_cloud(&calm_with(&first.all_objects()));
    let plan = plan(&ClusterShape { dhcp: 2, ..first }.all_objects(), &seen).unwrap();
    let id = |kind: &str, name: &str| Id::new(kind, name);
    let new = id("vpc_dhcp_options", "prod.example.com-2");
    let old = &plan.steps[&id("vpc_dhcp_options", "prod.example.com")];
    assert_eq!(old.reason, Reason::Replaced { by: new.clone() });
    assert!(old.needs.contains(&new));
    assert!(
        old.needs
            .contains(&id("vpc_dhcp_options_association", "prod.example.com"))
    );
}

#[test]
fn changes_are_named_by_path() {
    let before = ClusterShape::default();
    let seen = sweep_cloud(&calm_with(&before.all_objects()));
    let after = ClusterShape {
        owner: "b-team",
        groups: vec![("nodes", 5)],
        ..before
    };
    let plan = plan(&after.all_objects(), &seen).unwrap();
    let fields = |kind: &str, name: &str| -> Vec<String> {
        let changes = plan.steps[&Id::new(kind, name)].changes.iter();
        changes
            .map(|change| format!("{}: {} -> {}", change.field, change.before, change.after))
            .collect()
    };
    assert_eq!(
        fields("vpc", "prod.example.com"),
        [r#"tags.Owner: "a-team" -> "b-team""#]
    );
    assert_eq!(
        fields("iam_role_policy", "nodes.prod.example.com"),
        [r#"policy_document.Statement[owner].Resource: "a-team" -> "b-team""#]
    );
    let group = fields("autoscaling_group", "nodes.prod.example.com");
    assert_eq!(
        group[1..],
        [
            "max_size: 2 -> 5",
            "min_size: 2 -> 5",
            r#"tags[Owner].value: "a-team" -> "b-team""#
        ]
    );
    assert!(
        group[0].starts_with(r#"launch_template.version: "1" -> [{"#),
        "{}",
        group[0]
    );
}
