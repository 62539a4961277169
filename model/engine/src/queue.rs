//! Which step may start next: any whose needs are all done, the one with the longest way behind it first.

use super::order::Needs;
use super::resource::Id;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// The steps that have not started. There are no waves: a step is ready as soon as its last need is done.
pub(super) struct Queue {
    /// Steps that still wait, and for how many others.
    missing: BTreeMap<Id, usize>,
    /// Who waits for a step.
    waiting: BTreeMap<Id, Vec<Id>>,
    /// Length of the longest chain that begins with a step.
    weight: BTreeMap<Id, usize>,
    ready: BTreeSet<(Reverse<usize>, Id)>,
}

impl Queue {
    /// A queue of all keys of `needs`; `order` has each after its needs.
    pub(super) fn new(needs: &Needs, order: &[Id]) -> Self {
        let mut queue = Self {
            missing: BTreeMap::new(),
            waiting: BTreeMap::new(),
            weight: BTreeMap::new(),
            ready: BTreeSet::new(),
        };
        for (id, of) in needs {
            queue.missing.insert(id.clone(), of.len());
            for need in of {
                queue
                    .waiting
                    .entry(need.clone())
                    .or_default()
                    .push(id.clone());
            }
        }
        for id in order.iter().rev() {
            let after = queue.waiting.get(id).into_iter().flatten();
            let longest = after.filter_map(|id| queue.weight.get(id)).max();
            let weight = 1 + longest.copied().unwrap_or_default();
            queue.weight.insert(id.clone(), weight);
        }
        for id in order {
            queue.reduce_waits(id, 0);
        }
        queue
    }

    /// Takes `less` off what the step waits for, and makes it ready if that was the last.
    fn reduce_waits(&mut self, id: &Id, less: usize) {
        let Some(missing) = self.missing.get_mut(id) else {
            return;
        };
        *missing = missing.saturating_sub(less);
        if *missing == 0 {
            self.missing.remove(id);
            let weight = self.weight.get(id).copied().unwrap_or_default();
            self.ready.insert((Reverse(weight), id.clone()));
        }
    }

    /// The next step to start.
    pub(super) fn next_ready(&mut self) -> Option<Id> {
        self.ready.pop_first().map(|(_, id)| id)
    }

    /// The step is done: what waited for it alone is ready now.
    pub(super) fn finish(&mut self, id: &Id) {
        for waiting in self.waiting.remove(id).unwrap_or_default() {
            self.reduce_waits(&waiting, 1);
        }
    }

    /// The step failed: takes out and returns everything that waited for it, at any distance.
    pub(super) fn fail(&mut self, id: &Id) -> Vec<Id> {
        let mut given_up = Vec::new();
        let mut failed = vec![id.clone()];
        while let Some(id) = failed.pop() {
            for waiting in self.waiting.remove(&id).unwrap_or_default() {
                if self.missing.remove(&waiting).is_some() {
                    given_up.push(waiting.clone());
                    failed.push(waiting);
                }
            }
        }
        given_up.sort();
        given_up
    }

    /// Takes out one step; false if it started or was taken out before.
    pub(super) fn remove(&mut self, id: &Id) -> bool {
        let weight = self.weight.get(id).copied().unwrap_or_default();
        self.ready.remove(&(Reverse(weight), id.clone())) || self.missing.remove(id).is_some()
    }

    /// Takes out everything that never started, by id.
    pub(super) fn take_unstarted(&mut self) -> BTreeSet<Id> {
        let ready = std::mem::take(&mut self.ready).into_iter();
        let missing = std::mem::take(&mut self.missing).into_keys();
        ready.map(|(_, id)| id).chain(missing).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::order;

    fn id(name: &str) -> Id {
        Id::new("thing", name)
    }

    /// `pairs`: who needs what.
    fn queue(names: &str, pairs: &[(&str, &str)]) -> Queue {
        let mut needs: Needs = names
            .split(' ')
            .map(|name| (id(name), BTreeSet::new()))
            .collect();
        for (who, what) in pairs {
            needs.entry(id(who)).or_default().insert(id(what));
        }
        Queue::new(&needs, &order::topological_order(&needs).unwrap())
    }

    fn take_all(queue: &mut Queue) -> String {
        let names = std::iter::from_fn(|| queue.next_ready()).map(|id| id.name().to_owned());
        names.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn the_longest_chain_starts_first() {
        let mut queue = queue("a b c d", &[("d", "c"), ("c", "b")]);
        assert_eq!(take_all(&mut queue), "b a");
    }

    #[test]
    fn a_step_is_ready_when_its_last_need_is_done_and_not_before() {
        let mut queue = queue("a b c", &[("c", "a"), ("c", "b")]);
        assert_eq!(take_all(&mut queue), "a b");
        queue.finish(&id("a"));
        assert_eq!(take_all(&mut queue), "");
        queue.finish(&id("b"));
        assert_eq!(take_all(&mut queue), "c");
        assert!(queue.take_unstarted().is_empty());
    }

    #[test]
    fn a_failure_takes_all_that_waits_for_it_and_nothing_else() {
        let mut queue = queue("a b c d e", &[("b", "a"), ("c", "b"), ("e", "d")]);
        assert_eq!(queue.next_ready(), Some(id("a")));
        assert_eq!(queue.fail(&id("a")), [id("b"), id("c")]);
        assert_eq!(queue.take_unstarted(), BTreeSet::from([id("d"), id("e")]));
    }
}
