//! Laws of the judge, on histories of a model store: it accepts every one of a correct store, and rejects losses, stale reads, broken
//! watches and conditions that held twice.

use super::*;
use proptest::prelude::*;

const CLIENTS: usize = 3;
const KEYS: usize = 3;

/// One step of a client.
#[derive(Debug, Clone)]
struct Step {
    client: usize,
    key: usize,
    /// Chooses between read, update and delete.
    choice: u8,
    fate: Fate,
    /// How long before its effect the attempt began, and how long after it ended, in steps.
    early: f64,
    late: f64,
    /// Revisions that other objects take before.
    others: u64,
    /// The client's watch ends, and it lists anew.
    relists: bool,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Fate {
    Answered,
    /// The effect is there, the answer is not.
    AnswerLost,
    /// Neither is there.
    RequestLost,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let fate = prop_oneof![
        8 => Just(Fate::Answered),
        1 => Just(Fate::AnswerLost),
        1 => Just(Fate::RequestLost),
    ];
    let step = (
        0..CLIENTS,
        0..KEYS,
        0..8_u8,
        fate,
        0.0..3.0_f64,
        0.0..3.0_f64,
        0..2_u64,
        prop::bool::weighted(0.1),
    );
    let step = step.prop_map(
        |(client, key, choice, fate, early, late, others, relists)| Step {
            client,
            key,
            choice,
            fate,
            early,
            late,
            others,
            relists,
        },
    );
    prop::collection::vec(step, 1..80)
}

#[derive(Debug, Clone, Default)]
struct Store {
    revision: u64,
    items: BTreeMap<String, (String, u64)>,
}

/// What a client believes of a key. Nothing: it has to read.
type Belief = BTreeMap<(usize, usize), Option<u64>>;

/// A store, its clients, and what they recorded.
#[derive(Debug, Default)]
struct Run {
    store: Store,
    /// The store after each step.
    past: Vec<Store>,
    beliefs: Belief,
    history: History,
    /// Whether each client's watch is open.
    watching: [bool; CLIENTS],
    /// Nothing that begins from now on began before this, and nothing that ended before ends after.
    crashed: f64,
}

impl Run {
    fn of(steps: &[Step]) -> Self {
        let mut run = Self::default();
        for step in steps {
            run.take(step);
        }
        run
    }

    fn now(&self) -> f64 {
        f64::from(u32::try_from(self.past.len()).unwrap()) + 10.0
    }

    fn take(&mut self, step: &Step) {
        self.past.push(self.store.clone());
        self.store.revision += step.others;
        if step.relists || !self.watching[step.client] {
            self.list(&client_name(step.client));
            self.watching[step.client] = true;
        }
        let key = (step.client, step.key);
        let name = format!("key-{}", step.key);
        let belief = self.beliefs.get(&key).copied();
        let (did, expected) = match (belief, step.choice) {
            (None, _) | (_, 0) => (AttemptKind::Read, None),
            (Some(None), _) => (AttemptKind::Create, None),
            (Some(Some(version)), 1 | 2) => (AttemptKind::Delete, Some(version)),
            (Some(Some(version)), _) => (AttemptKind::Update, Some(version)),
        };
        let mut attempt = Attempt {
            client: client_name(step.client),
            begun: (self.now() - step.early).max(self.crashed),
            ended: self.now() + step.late,
            did,
            value: format!("value-{}", self.past.len()),
            name,
            expected,
            outcome: Outcome::Unknown,
            version: None,
            why: String::new(),
        };
        if step.fate != Fate::RequestLost {
            self.apply(&mut attempt);
        }
        if step.fate != Fate::Answered {
            (attempt.outcome, attempt.version) = (Outcome::Unknown, None);
        }
        match attempt.outcome {
            Outcome::Done => self.beliefs.insert(key, attempt.version),
            _ => self.beliefs.remove(&key),
        };
        self.history.attempts.push(attempt);
    }

    /// What a correct store does.
    fn apply(&mut self, attempt: &mut Attempt) {
        let now = self.store.items.get(&attempt.name).cloned();
        attempt.outcome = Outcome::Done;
        if attempt.did == AttemptKind::Read {
            attempt.version = now.as_ref().map(|now| now.1);
            attempt.value = now.map(|now| now.0).unwrap_or_default();
            return;
        }
        if now.map(|now| now.1) != attempt.expected {
            attempt.outcome = Outcome::Refused;
            return;
        }
        self.store.revision += 1;
        let version = self.store.revision;
        let name = attempt.name.clone();
        let what = if attempt.did == AttemptKind::Delete {
            self.store.items.remove(&name);
            SeenKind::Deleted { name, version }
        } else {
            attempt.version = Some(version);
            let value = attempt.value.clone();
            self.store
                .items
                .insert(name.clone(), (value.clone(), version));
            SeenKind::Stored {
                name,
                value,
                version,
            }
        };
        for client in (0..CLIENTS).filter(|client| self.watching[*client]) {
            self.history.seen.push(Seen {
                client: client_name(client),
                what: what.clone(),
            });
        }
    }

    fn list(&mut self, client: &str) {
        self.history.seen.push(Seen {
            client: client.to_owned(),
            what: SeenKind::List {
                begun: (self.now() - 0.5).max(self.crashed),
                ended: self.now() + 0.5,
                version: self.store.revision,
                items: self.store.items.clone(),
            },
        });
    }

    /// All control planes lose their power, and `steps` steps of what they had acknowledged. Clients list anew afterwards.
    fn crash(&mut self, steps: usize) {
        self.crashed = self.now() + 0.25;
        for attempt in &mut self.history.attempts {
            attempt.ended = attempt.ended.min(self.crashed - 0.1).max(attempt.begun);
        }
        for seen in &mut self.history.seen {
            if let SeenKind::List { ended, .. } = &mut seen.what {
                *ended = ended.min(self.crashed - 0.1);
            }
        }
        if steps > 0 {
            self.store = self.past[self.past.len().saturating_sub(steps)].clone();
        }
        self.watching = [false; CLIENTS];
    }

    /// The history with the final list.
    fn end(mut self) -> History {
        for _ in 0..8 {
            self.past.push(self.store.clone());
        }
        self.list("public");
        self.history
    }
}

fn client_name(client: usize) -> String {
    format!("server-{client}")
}

/// Acknowledged creates and updates that are still there at the end, or were replaced.
fn acknowledged(history: &History) -> Vec<&Attempt> {
    let stored = |one: &&Attempt| one.is_acknowledged() && one.version.is_some();
    history.attempts.iter().filter(stored).collect()
}

/// A correct history, and one of its acknowledged writes by index.
fn histories() -> impl Strategy<Value = (History, prop::sample::Index)> {
    let history = steps().prop_map(|steps| Run::of(&steps).end());
    (history, any::<prop::sample::Index>())
}

proptest! {
    #[test]
    fn a_correct_history_is_accepted(before in steps(), after in steps()) {
        let mut run = Run::of(&before);
        run.crash(0);
        for step in &after {
            run.take(step);
        }
        let history = run.end();
        let tally = history.judge();
        prop_assert!(tally.is_ok(), "{:#}\n{history:#?}", tally.unwrap_err());
        let tally = tally.unwrap();
        let writes = history.attempts.iter().filter(|one| one.is_write()).count();
        prop_assert_eq!(tally.acknowledged + tally.refused + tally.unknown, writes);
    }

    /// As with fsync off: the store comes back as it was some writes ago, and goes on, also with the same revisions.
    #[test]
    fn a_lost_acknowledged_write_is_found(before in steps(), lost in 1..20_usize, after in prop_oneof![Just(Vec::new()), steps()]) {
        let mut run = Run::of(&before);
        let kept = run.past.len().saturating_sub(lost);
        let kept = run.past[kept].revision;
        let loses = acknowledged(&run.history).iter().any(|one| one.version > Some(kept));
        prop_assume!(loses);
        run.crash(lost);
        for step in &after {
            run.take(step);
        }
        let history = run.end();
        prop_assert!(history.judge().is_err(), "{history:#?}");
    }

    #[test]
    fn a_stale_read_is_found((mut history, index) in histories(), absent in any::<bool>()) {
        let acknowledged: Vec<Attempt> = acknowledged(&history).into_iter().cloned().collect();
        let replaced = |one: &&Attempt| acknowledged.iter().any(|other| other.name == one.name && other.version > one.version);
        let old: Vec<Attempt> = acknowledged.iter().filter(replaced).cloned().collect();
        prop_assume!(!old.is_empty());
        let mut read = old[index.index(old.len())].clone();
        (read.did, read.expected) = (AttemptKind::Read, None);
        let last = history.seen.last_mut().unwrap();
        let SeenKind::List { begun, items, .. } = &mut last.what else { panic!("the final list") };
        // After all writes, and before the final list.
        (read.begun, read.ended) = (*begun - 0.2, *begun - 0.1);
        if absent {
            // An unknown write may have come after the read.
            let last = items.get(&read.name).map(|item| item.1);
            let certain = |one: &Attempt| one.version == last;
            prop_assume!(last.is_some() && acknowledged.iter().any(certain));
            read.version = None;
        }
        history.attempts.push(read);
        prop_assert!(history.judge().is_err(), "{history:#?}");
    }

    /// Also one that no client knew to be acknowledged when the list began.
    #[test]
    fn a_list_that_lacks_an_object_is_found((mut history, index) in histories()) {
        let deleted: BTreeSet<_> = history.attempts.iter()
            .filter(|one| one.did == AttemptKind::Delete).map(|one| one.expected).collect();
        let mut all = Vec::new();
        for (at, seen) in history.seen.iter().enumerate() {
            if let SeenKind::List { items, .. } = &seen.what {
                let certain = items.iter().filter(|(_, item)| !deleted.contains(&Some(item.1)));
                let version = |item: &(String, u64)| acknowledged(&history).iter().any(|one| one.version == Some(item.1));
                all.extend(certain.filter(|(_, item)| version(item)).map(|(name, _)| (at, name.clone())));
            }
        }
        prop_assume!(!all.is_empty());
        let (at, name) = all.swap_remove(index.index(all.len()));
        let SeenKind::List { items, .. } = &mut history.seen[at].what else { panic!("a list") };
        items.remove(&name);
        prop_assert!(history.judge().is_err(), "{history:#?}");
    }

    #[test]
    fn a_watch_that_skips_a_write_is_found((mut history, index) in histories()) {
        let shown = history.seen.clone();
        // Those that a later event of the same watch follows, so that it is not just late.
        let followed = |&at: &usize| {
            let of = |seen: &&Seen| seen.client == shown[at].client;
            let next = shown[at + 1..].iter().find(of);
            matches!(shown[at].what, SeenKind::Stored { .. })
                && next.is_some_and(|next| !matches!(next.what, SeenKind::List { .. }))
        };
        let version = |seen: &Seen| match seen.what {
            SeenKind::Stored { version, .. } => Some(version),
            _ => None,
        };
        let acknowledged: BTreeSet<_> = acknowledged(&history).iter().map(|one| one.version).collect();
        let all: Vec<usize> = (0..shown.len()).filter(followed).filter(|at| acknowledged.contains(&version(&shown[*at]))).collect();
        prop_assume!(!all.is_empty());
        history.seen.remove(all[index.index(all.len())]);
        prop_assert!(history.judge().is_err(), "{history:#?}");
    }

    #[test]
    fn a_watch_that_goes_back_is_found((mut history, index) in histories()) {
        let event = |at: &usize| matches!(history.seen[*at].what, SeenKind::Stored { .. });
        let all: Vec<usize> = (0..history.seen.len()).filter(event).collect();
        prop_assume!(!all.is_empty());
        let at = all[index.index(all.len())];
        let again = history.seen[at].clone();
        history.seen.insert(at + 1, again);
        prop_assert!(history.judge().is_err(), "{history:#?}");
    }

    #[test]
    fn a_condition_that_held_twice_is_found((mut history, index) in histories(), deletes in any::<bool>()) {
        let all: Vec<Attempt> = history.attempts.iter()
            .filter(|one| one.is_acknowledged() && one.expected.is_some()).cloned().collect();
        prop_assume!(!all.is_empty());
        let mut again = all[index.index(all.len())].clone();
        let last = history.seen.last_mut().unwrap();
        let SeenKind::List { begun, version, items, .. } = &mut last.what else { panic!("the final list") };
        (again.begun, again.ended) = (*begun - 0.2, *begun - 0.1);
        again.did = if deletes { AttemptKind::Delete } else { AttemptKind::Update };
        again.value = "again".to_owned();
        again.version = None;
        // The final list fits, as if the second had been the only one.
        *version += 1;
        if deletes {
            items.remove(&again.name);
        } else {
            again.version = Some(*version);
            items.insert(again.name.clone(), (again.value.clone(), *version));
        }
        history.attempts.push(again);
        prop_assert!(history.judge().is_err(), "{history:#?}");
    }

    /// What is later than the restored data is told and gone; data of another moment than the one that is said is found.
    #[test]
    fn a_restore_keeps_everything_up_to_its_revision(taken in steps(), at in any::<prop::sample::Index>(), other in any::<prop::sample::Index>()) {
        let run = Run::of(&taken);
        let [store, wrong] = [at, other].map(|moment| run.past[moment.index(run.past.len())].clone());
        let (kept, lost) = run.history.clone().restored_at(store.revision, store.items.clone());
        let tally = kept.judge();
        prop_assert!(tally.is_ok(), "{:#}\n{kept:#?}", tally.unwrap_err());
        let later = acknowledged(&run.history).into_iter().filter(|one| one.version > Some(store.revision));
        let told = lost.iter().filter(|one| one.version.is_some());
        prop_assert_eq!(told.count(), later.count());
        // An unknown deletion may have had its effect unseen.
        let deleted: BTreeSet<_> = run.history.attempts.iter()
            .filter(|one| one.did == AttemptKind::Delete && one.outcome == Outcome::Unknown).map(|one| one.expected).collect();
        let mut certain = store.items.iter().filter(|(_, item)| !deleted.contains(&Some(item.1)));
        prop_assume!(certain.any(|(name, item)| wrong.items.get(name) != Some(item)));
        let (kept, _) = run.history.restored_at(store.revision, wrong.items);
        prop_assert!(kept.judge().is_err(), "{kept:#?}");
    }

    #[test]
    fn a_refused_write_that_is_there_is_found((mut history, index) in histories()) {
        let writes = |at: &usize| history.attempts[*at].is_acknowledged() && history.attempts[*at].version.is_some();
        let all: Vec<usize> = (0..history.attempts.len()).filter(writes).collect();
        prop_assume!(!all.is_empty());
        let refused = &mut history.attempts[all[index.index(all.len())]];
        let version = refused.version.take();
        refused.outcome = Outcome::Refused;
        let seen = |seen: &Seen| match &seen.what {
            SeenKind::Stored { version: shown, .. } => version == Some(*shown),
            SeenKind::List { items, .. } => items.values().any(|item| Some(item.1) == version),
            _ => false,
        };
        prop_assume!(history.seen.iter().any(seen));
        prop_assert!(history.judge().is_err(), "{history:#?}");
    }
}

#[test]
fn a_history_without_its_final_state_proves_nothing() {
    let step = Step {
        client: 0,
        key: 0,
        choice: 0,
        fate: Fate::Answered,
        early: 0.0,
        late: 0.0,
        others: 0,
        relists: false,
    };
    let mut history = Run::of(&[step]).end();
    assert!(history.judge().is_ok());
    history.seen.pop();
    assert!(history.judge().is_err());
}
