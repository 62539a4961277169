//! Orders things by what they need, and names the cycle if there is one.

use super::resource::Id;
use std::collections::{BTreeMap, BTreeSet};

/// What each thing needs. Needs that are no keys themselves do not count.
pub(super) type Needs = BTreeMap<Id, BTreeSet<Id>>;

/// All keys, each after what it needs, equal ones by id; or one cycle, each needing the next, the last the first.
pub(super) fn topological_order(needs: &Needs) -> Result<Vec<Id>, Vec<Id>> {
    let known = |of: &BTreeSet<Id>| of.iter().filter(|id| needs.contains_key(*id)).count();
    let mut missing: BTreeMap<&Id, usize> = BTreeMap::new();
    let mut wanted_by: BTreeMap<&Id, Vec<&Id>> = BTreeMap::new();
    for (id, of) in needs {
        missing.insert(id, known(of));
        for need in of {
            wanted_by.entry(need).or_default().push(id);
        }
    }
    let mut ready: BTreeSet<&Id> = missing
        .iter()
        .filter(|(_, count)| **count == 0)
        .map(|(id, _)| *id)
        .collect();
    let mut order = Vec::with_capacity(needs.len());
    while let Some(id) = ready.pop_first() {
        order.push(id.clone());
        missing.remove(id);
        for waiting in wanted_by.get(id).into_iter().flatten() {
            if let Some(count) = missing.get_mut(waiting) {
                *count -= 1;
                if *count == 0 {
                    ready.insert(waiting);
                }
            }
        }
    }
    if missing.is_empty() {
        Ok(order)
    } else {
        Err(find_cycle(needs, &missing.into_keys().collect()))
    }
}

/// Walks along needs within `left` (each of which needs another of them) until it meets itself.
fn find_cycle(needs: &Needs, left: &BTreeSet<&Id>) -> Vec<Id> {
    let mut path: Vec<&Id> = Vec::new();
    let mut here = left.first().copied();
    while let Some(id) = here {
        if let Some(start) = path.iter().position(|seen| *seen == id) {
            return path.split_off(start).into_iter().cloned().collect();
        }
        path.push(id);
        here = needs
            .get(id)
            .and_then(|of| of.iter().find(|need| left.contains(need)));
    }
    path.into_iter().cloned().collect()
}
