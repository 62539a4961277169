//! The judge: compares what is wanted with what is truly there, not with what reads show.

use super::state::{Body, State};
use cloud::Cloud;
use engine::{Id, Resource};
use std::collections::BTreeMap;
use std::rc::Rc;

/// How the truth differs from what is wanted; all empty if it does not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StateDifference {
    /// Wanted, and not there.
    pub missing: Vec<Id>,
    /// Objects that exist with other attributes than desired.
    pub different: Vec<Id>,
    /// There more than once.
    pub duplicated: Vec<Id>,
    /// There, and not wanted.
    pub leaked: Vec<Id>,
    /// Refers to something that is not what stands under that name.
    pub astray: Vec<Id>,
    /// Physical ids of what is not this cluster's and is not as it was.
    pub touched: Vec<String>,
    /// Physical ids of what holds data and was to be removed though the cluster was not to go.
    pub endangered: Vec<String>,
}

/// Compares. Late values are filled in with the true attributes. What holds data may be there though nobody wants it, and more
/// than once, of which one is as wanted.
pub fn judge_state(state: &State, desired: &[Cloud]) -> StateDifference {
    let mut truth = StateDifference {
        endangered: state.endangered.clone(),
        ..StateDifference::default()
    };
    let may_stay = |resource: &Cloud| resource.holds_data() && !desired.is_empty();
    let mut there: BTreeMap<Id, (&Rc<Body>, &str)> = BTreeMap::new();
    for object in state.living_objects() {
        let Some(body) = object.current_body() else {
            continue;
        };
        let id = body.resource.id();
        let before = there.contains_key(&id);
        if before && !may_stay(&body.resource) {
            truth.duplicated.push(id.clone());
        }
        if !before || desired.contains(&body.resource) {
            there.insert(id, (body, &object.physical));
        }
    }
    let attr = |id: &Id, name: &str| there.get(id)?.0.attrs.get(name).cloned();
    let mut left = there.clone();
    for want in desired {
        let id = want.id();
        let Some((body, _)) = left.remove(&id) else {
            truth.missing.push(id);
            continue;
        };
        let want = want.resolved(&attr);
        if body.resource != want {
            truth.different.push(id.clone());
        }
        let needs = want.needs();
        let right = needs
            .iter()
            .filter_map(|need| there.get(need))
            .all(|(_, physical)| body.refs.contains(*physical));
        if !right {
            truth.astray.push(id);
        }
    }
    left.retain(|_, (body, _)| !may_stay(&body.resource));
    truth.leaked = left.into_keys().collect();
    let foreign = state.objects.iter().filter(|object| object.foreign);
    let touched = foreign.filter(|object| object.was_changed());
    truth.touched = touched.map(|object| object.physical.clone()).collect();
    truth
}
