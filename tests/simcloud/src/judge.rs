//! The judge: compares what is wanted with what is truly there, not with what reads show.

use super::state::{Body, State};
use model::cloud::Cloud;
use model::engine::{Id, Resource};
use std::collections::BTreeMap;
use std::rc::Rc;

/// How the truth differs from what is wanted; all empty if it does not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Truth {
    /// Wanted, and not there.
    pub missing: Vec<Id>,
    /// There, but otherwise.
    pub different: Vec<Id>,
    /// There more than once.
    pub duplicated: Vec<Id>,
    /// There, and not wanted.
    pub leaked: Vec<Id>,
    /// Refers to something that is not what stands under that name.
    pub astray: Vec<Id>,
    /// Physical ids of what is not this cluster's and is not as it was.
    pub touched: Vec<String>,
}

/// Compares. Late values are filled in with the true attributes.
pub fn judge(state: &State, desired: &[Cloud]) -> Truth {
    let mut truth = Truth::default();
    let mut there: BTreeMap<Id, (&Rc<Body>, &str)> = BTreeMap::new();
    for object in state.living() {
        let Some(body) = object.body() else { continue };
        let id = body.resource.id();
        if there.insert(id.clone(), (body, &object.physical)).is_some() {
            truth.duplicated.push(id);
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
    truth.leaked = left.into_keys().collect();
    let foreign = state.objects.iter().filter(|object| object.foreign);
    let touched = foreign.filter(|object| object.was_changed());
    truth.touched = touched.map(|object| object.physical.clone()).collect();
    truth
}
