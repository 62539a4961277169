//! Makes the plan: compares what is wanted with what is there and orders the steps between.

use super::check::duplicate_id;
use super::plan::{Action, FORMAT, Kept, Plan, PlanError, Reason, Step, Why};
use super::resource::{Id, Resource};
use super::snapshot::{Observed, Snapshot};
use super::{diff, duplicates, order};
use std::collections::{BTreeMap, BTreeSet};

type Steps<R> = BTreeMap<Id, Step<R>>;
type There<'a, R> = BTreeMap<Id, &'a Observed<R>>;

/// The steps from `observed` to `desired`; empty if there is nothing to do. Pure: the same arguments, in
/// any order, give the same plan. The plan for nothing deletes everything; no other deletes what holds data.
pub fn plan<R: Resource>(desired: &[R], observed: &Snapshot<R>) -> Result<Plan<R>, PlanError> {
    let wanted = by_id(desired)?;
    check_references(&wanted)?;
    let needs = wanted
        .iter()
        .map(|(id, want)| (id.clone(), want.needs().into_iter().collect()))
        .collect();
    let wanted_order = order::topological_order(&needs).map_err(PlanError::Cycle)?;
    let sorted = duplicates::sort_duplicates(observed, |id| wanted.contains_key(id))?;

    let mut steps = plan_puts(&wanted, &wanted_order, &sorted.kept)?;
    let mut deletes = plan_deletes(&wanted, &sorted);
    let kept = if wanted.is_empty() {
        Vec::new()
    } else {
        keep_data(&mut deletes, &sorted.kept)
    };
    steps.extend(deletes);
    put_edges(&mut steps, &sorted);
    delete_edges(&mut steps, observed);

    let plan = Plan {
        format: FORMAT,
        steps,
        kept,
    };
    plan.check().map(|()| plan)
}

fn by_id<R: Resource>(desired: &[R]) -> Result<BTreeMap<Id, &R>, PlanError> {
    let mut wanted = BTreeMap::new();
    let mut twice = BTreeSet::new();
    for want in desired {
        if wanted.insert(want.id(), want).is_some() {
            twice.insert(want.id());
        }
    }
    if twice.is_empty() {
        Ok(wanted)
    } else {
        Err(PlanError::WantedTwice(twice.into_iter().collect()))
    }
}

fn check_references<R: Resource>(wanted: &BTreeMap<Id, &R>) -> Result<(), PlanError> {
    let mut unknown = Vec::new();
    for (id, want) in wanted {
        let missing = |need: &Id| !wanted.contains_key(need);
        unknown.extend(
            want.needs()
                .into_iter()
                .filter(missing)
                .map(|need| (id.clone(), need)),
        );
    }
    if unknown.is_empty() {
        Ok(())
    } else {
        Err(PlanError::UnknownReference(unknown))
    }
}

/// Creations and updates. Goes in dependency order, since whether a late value is known now depends on
/// whether the resource it comes from has a step.
fn plan_puts<R: Resource>(
    wanted: &BTreeMap<Id, &R>,
    order: &[Id],
    kept: &There<'_, R>,
) -> Result<Steps<R>, PlanError> {
    let mut steps = Steps::new();
    let mut refused = Vec::new();
    for id in order {
        let Some(want) = wanted.get(id) else { continue };
        let want = want.resolved(&|of, attribute| unchanged_attribute(&steps, kept, of, attribute));
        let Some(have) = kept.get(id) else {
            steps.insert(id.clone(), create_step(want));
            continue;
        };
        let want = want.accepting(&have.resource);
        if want == have.resource {
            continue;
        }
        if let Some(why) = want.refuses(&have.resource) {
            refused.push((id.clone(), why));
        }
        steps.insert(id.clone(), update_step(want, have));
    }
    if refused.is_empty() {
        Ok(steps)
    } else {
        Err(PlanError::Refused(refused))
    }
}

/// The attribute as observed, if no step can change it.
fn unchanged_attribute<R: Resource>(
    steps: &Steps<R>,
    kept: &There<'_, R>,
    of: &Id,
    attribute: &str,
) -> Option<String> {
    let have = kept.get(of)?;
    let step = steps.get(of).and_then(|step| step.after.as_ref());
    if step.is_some_and(|want| want.attr_changes(&have.resource, attribute)) {
        return None;
    }
    have.attrs.get(attribute).cloned()
}

fn create_step<R: Resource>(want: R) -> Step<R> {
    Step {
        id: want.id(),
        action: Action::Create,
        reason: Reason::Missing,
        before: None,
        after: Some(want),
        changes: Vec::new(),
        needs: BTreeSet::new(),
    }
}

fn update_step<R: Resource>(want: R, have: &Observed<R>) -> Step<R> {
    let changes = diff::changes(&have.resource, &want);
    let reason = if changes.iter().all(diff::only_late) {
        Reason::Follows {
            of: diff::late_sources(&want),
        }
    } else {
        Reason::Differs
    };
    Step {
        id: want.id(),
        action: Action::Update,
        reason,
        before: Some(have.clone()),
        after: Some(want),
        changes,
        needs: BTreeSet::new(),
    }
}

fn plan_deletes<R: Resource>(
    wanted: &BTreeMap<Id, &R>,
    sorted: &duplicates::Sorted<'_, R>,
) -> Steps<R> {
    let unwanted = sorted
        .kept
        .iter()
        .filter(|(id, _)| !wanted.contains_key(*id))
        .map(|(id, have)| {
            let by = find_successor(&have.resource, wanted);
            let reason = by.map_or(Reason::Unwanted, |by| Reason::Replaced { by });
            delete_step(id.clone(), reason, have)
        });
    let extra = sorted
        .extra
        .iter()
        .map(|have| delete_step(duplicate_id(have), Reason::Duplicate, have));
    unwanted
        .chain(extra)
        .map(|step| (step.id.clone(), step))
        .collect()
}

/// Takes the deletions of what holds data out of the steps.
fn keep_data<R: Resource>(deletes: &mut Steps<R>, there: &There<'_, R>) -> Vec<Kept> {
    let mut kept = Vec::new();
    deletes.retain(|_, step| {
        let data = step
            .before
            .as_ref()
            .filter(|have| have.resource.holds_data());
        let Some(have) = data else { return true };
        let id = have.resource.id();
        let counts = there.get(&id).map(|other| other.physical.clone());
        let why = match counts.filter(|other| *other != have.physical) {
            Some(other) => Why::HoldsDataTwice { other },
            None => Why::HoldsData,
        };
        kept.push(Kept {
            id,
            physical: have.physical.clone(),
            why,
        });
        false
    });
    kept
}

fn delete_step<R: Resource>(id: Id, reason: Reason, have: &Observed<R>) -> Step<R> {
    Step {
        id,
        action: Action::Delete,
        reason,
        before: Some(have.clone()),
        after: None,
        changes: Vec::new(),
        needs: BTreeSet::new(),
    }
}

/// The wanted object of the same kind that is later in its series, if there is one.
fn find_successor<R: Resource>(have: &R, wanted: &BTreeMap<Id, &R>) -> Option<Id> {
    let (series, place) = have.series()?;
    let kind = have.id();
    let follows = |(id, want): &(&Id, &&R)| {
        let later = |(other, later): (String, u32)| other == series && later > place;
        id.kind() == kind.kind() && want.series().is_some_and(later)
    };
    wanted.iter().find(follows).map(|(id, _)| id.clone())
}

/// What is put waits for the puts of all it refers to, and for the removal of what has its name.
fn put_edges<R: Resource>(steps: &mut Steps<R>, sorted: &duplicates::Sorted<'_, R>) {
    let ids: BTreeSet<Id> = steps.keys().cloned().collect();
    for step in steps.values_mut() {
        let needs = step.after.as_ref().map(Resource::needs).unwrap_or_default();
        step.needs
            .extend(needs.into_iter().filter(|need| ids.contains(need)));
    }
    for have in &sorted.extra {
        let remade = steps.get_mut(&have.resource.id());
        let goes = ids.contains(&duplicate_id(have));
        if let Some(step) = remade.filter(|step| goes && step.action == Action::Create) {
            step.needs.insert(duplicate_id(have));
        }
    }
}

/// What is deleted waits for the steps of all that still refer to it (they are deleted too, or updated to
/// refer to something else), and for its successor. Duplicates know their users by physical ids alone.
fn delete_edges<R: Resource>(steps: &mut Steps<R>, observed: &Snapshot<R>) {
    let mut by_name: BTreeMap<Id, BTreeSet<Id>> = BTreeMap::new();
    let mut by_physical: BTreeMap<(Id, &str), BTreeSet<Id>> = BTreeMap::new();
    for item in &observed.items {
        let own = [duplicate_id(item), item.resource.id()];
        if let Some(step) = own.into_iter().find(|id| steps.contains_key(id)) {
            for need in item.resource.needs() {
                by_name.entry(need).or_default().insert(step.clone());
            }
            for used in item.physical_ids() {
                by_physical.entry(used).or_default().insert(step.clone());
            }
        }
    }
    let whole = |id: &Id, steps: &Steps<R>| {
        steps
            .get(id)
            .is_some_and(|step| step.action == Action::Delete)
    };
    let edges: Vec<(Id, BTreeSet<Id>)> = steps
        .values()
        .filter_map(|step| {
            let have = step
                .before
                .as_ref()
                .filter(|_| step.action == Action::Delete)?;
            let id = have.resource.id();
            let physical = by_physical.get(&(id.clone(), have.physical.as_str()));
            let named = by_name.get(&id).filter(|_| whole(&id, steps));
            let users = physical.into_iter().chain(named).flatten().cloned();
            let successor = replaced_by(step).filter(|by| steps.contains_key(by));
            Some((step.id.clone(), users.chain(successor).collect()))
        })
        .collect();
    for (id, needs) in edges {
        if let Some(step) = steps.get_mut(&id) {
            step.needs.extend(needs);
        }
    }
}

fn replaced_by<R>(step: &Step<R>) -> Option<Id> {
    match &step.reason {
        Reason::Replaced { by } => Some(by.clone()),
        _ => None,
    }
}
