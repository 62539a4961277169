//! What follows from the outcome of a call. Pure: the whole table of failure classes is here.

use super::event::Event;
use super::failure::{Class, Failure};
use super::options::{Options, backoff_delay, whole_millis};
use super::plan::Action;
use super::resource::Resource;
use super::snapshot::Observed;
use super::work::{Answer, Doubt, Phase, Work};
use super::world::{Put, Removed};
use std::time::Duration;

/// Waits between looks at something that takes its time.
const POLL: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(5));
/// Waits after AWS asked for fewer calls.
const THROTTLE: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(20));
/// Waits after an outcome nobody knows.
const RETRY: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(30));

/// What to do with a step.
pub(super) enum Verdict {
    Done,
    /// It failed for good.
    Failed(Failure),
    /// Make the call of its phase when it is due; tell that, if it is news.
    Again(Option<Event>),
}

/// Brings `work` to where it stands after `answer` came in at `now`.
pub(super) fn decide_next<R: Resource>(
    work: &mut Work<R>,
    answer: Answer<R>,
    now: Duration,
    options: &Options,
) -> Verdict {
    let throttled = matches!(&answer, Answer::Failed(failure) if failure.class == Class::Throttled);
    if !throttled {
        work.throttled = 0;
    }
    match answer {
        Answer::Put(put) => handle_put(work, put, now, options),
        Answer::Found(Some(found)) => adopt_found(work, found, now),
        Answer::Found(None) => handle_absent(work, now, options),
        Answer::Removed(Removed::Done) => Verdict::Done,
        Answer::Removed(Removed::Waiting(what)) => {
            if work.phase == Phase::Remove {
                enter_phase(work, Phase::Gone, now);
            }
            wait_and_look(work, &what, now, options)
        }
        Answer::Failed(failure) => handle_failure(work, failure, now, options),
    }
}

/// The step got further: its deadline starts anew.
fn enter_phase<R>(work: &mut Work<R>, phase: Phase, now: Duration) {
    work.phase = phase;
    work.since = now;
    work.due = now;
    work.polls = 0;
}

fn handle_put<R: Resource>(
    work: &mut Work<R>,
    put: Put,
    now: Duration,
    options: &Options,
) -> Verdict {
    work.doubt = None;
    work.physical = put.physical;
    work.attrs.extend(put.attrs);
    if work.phase == Phase::Put {
        enter_phase(work, Phase::Ready, now);
    }
    match put.waiting_for {
        None => Verdict::Done,
        Some(what) => wait_and_look(work, &what, now, options),
    }
}

/// It is there: as wanted, or to be changed.
fn adopt_found<R: Resource>(work: &mut Work<R>, found: Observed<R>, now: Duration) -> Verdict {
    work.doubt = None;
    work.adopted = true;
    let Some(want) = &mut work.want else {
        return Verdict::Done;
    };
    *want = want.accepting(&found.resource);
    if *want == found.resource {
        work.physical = found.physical;
        work.attrs.extend(found.attrs);
        enter_phase(work, Phase::Ready, now);
        return Verdict::Again(None);
    }
    if let Some(why) = want.refuses(&found.resource) {
        return Verdict::Failed(local_failure(work, Class::Invalid, "adopting", &why));
    }
    work.attrs.clone_from(&found.attrs);
    work.have = Some(found);
    work.phase = Phase::Put;
    work.due = now;
    Verdict::Again(None)
}

/// It is not there. Reads may only be late, so what could be made twice is looked for until reads have settled.
fn handle_absent<R: Resource>(work: &mut Work<R>, now: Duration, options: &Options) -> Verdict {
    if work.action == Action::Update {
        return Verdict::Failed(plan_is_stale(local_failure(
            work,
            Class::Gone,
            "changing",
            "it is not there",
        )));
    }
    let journaled = work.is_journaled();
    let Some(doubt) = &work.doubt else {
        let taken = "its name is taken, yet it is not there";
        work.phase = Phase::Put;
        let failure = local_failure(work, Class::Exists, "creating", taken);
        return poll_again(work, failure, now, options);
    };
    let failure = doubt.failure.clone();
    if journaled && now.saturating_sub(doubt.since) < options.settle {
        return poll_again(work, failure, now, options);
    }
    if work.tries >= options.attempts {
        return Verdict::Failed(failure);
    }
    work.have = None;
    work.phase = Phase::Put;
    work.due = now;
    Verdict::Again(None)
}

fn handle_failure<R: Resource>(
    work: &mut Work<R>,
    failure: Failure,
    now: Duration,
    options: &Options,
) -> Verdict {
    match (failure.class, work.phase) {
        (Class::Throttled, _) => {
            let after = backoff_delay(&work.id, THROTTLE.0, THROTTLE.1, work.throttled);
            work.throttled += 1;
            repeat_phase(work, failure, after, now, options)
        }
        (Class::Gone, Phase::Remove | Phase::Gone) => Verdict::Done,
        (Class::Gone | Class::NotYet, Phase::Find) => handle_absent(work, now, options),
        // With a code it is the world's word, which it also has for what does not exist at all.
        (Class::NotYet, Phase::Put) if !failure.code.is_empty() => {
            handle_not_visible(work, failure, now, options)
        }
        (Class::NotYet | Class::Blocked, _)
        | (Class::Gone, Phase::Ready)
        | (Class::Unknown, Phase::Find | Phase::Ready | Phase::Gone) => {
            poll_again(work, failure, now, options)
        }
        (Class::Gone, Phase::Put) if work.adopted => poll_again(work, failure, now, options),
        (Class::Gone, Phase::Put) => Verdict::Failed(plan_is_stale(failure)),
        (Class::Exists, Phase::Put) => {
            work.phase = Phase::Find;
            poll_again(work, failure, now, options)
        }
        (Class::Unknown, Phase::Put | Phase::Remove) => {
            handle_unknown_outcome(work, failure, now, options)
        }
        (Class::Exists | Class::Denied | Class::Quota | Class::Invalid, _) => {
            Verdict::Failed(failure)
        }
    }
}

/// Nobody knows whether it happened: look before making it again; removing again does no harm.
fn handle_unknown_outcome<R: Resource>(
    work: &mut Work<R>,
    failure: Failure,
    now: Duration,
    options: &Options,
) -> Verdict {
    let after = backoff_delay(&work.id, RETRY.0, RETRY.1, work.tries);
    work.tries += 1;
    if work.phase == Phase::Put {
        work.doubt = Some(Doubt {
            since: now,
            failure: failure.clone(),
        });
        work.phase = Phase::Find;
    } else if work.tries >= options.attempts {
        return Verdict::Failed(failure);
    }
    repeat_phase(work, failure, after, now, options)
}

/// What a change names is not visible: late for a while, then missing.
fn handle_not_visible<R>(
    work: &mut Work<R>,
    failure: Failure,
    now: Duration,
    options: &Options,
) -> Verdict {
    let late = now.saturating_sub(work.since);
    if late < options.unseen {
        return poll_again(work, failure, now, options);
    }
    let hint = format!(
        "still so {} s after all that this step needs was made, so it is not merely late: correct what the message names, or \
         make it, then run this again",
        late.as_secs()
    );
    Verdict::Failed(Failure {
        class: Class::Invalid,
        hint: Some(hint),
        ..failure
    })
}

fn poll_again<R>(
    work: &mut Work<R>,
    failure: Failure,
    now: Duration,
    options: &Options,
) -> Verdict {
    let after = backoff_delay(&work.id, POLL.0, POLL.1, work.polls);
    work.polls += 1;
    repeat_phase(work, failure, after, now, options)
}

/// The same phase once more after a while, unless the deadline has passed.
fn repeat_phase<R>(
    work: &mut Work<R>,
    mut failure: Failure,
    after: Duration,
    now: Duration,
    options: &Options,
) -> Verdict {
    if now.saturating_sub(work.since) >= options.deadline {
        let still = still_waiting_text(options);
        failure.hint = Some(match failure.hint {
            Some(hint) => format!("{still}; {hint}"),
            None => still,
        });
        return Verdict::Failed(failure);
    }
    work.due = now + after;
    let event = is_new_message(work, &failure.to_string()).then(|| Event::Retrying {
        step: work.id.clone(),
        failure,
        in_ms: whole_millis(after),
    });
    Verdict::Again(event)
}

/// Looks again after a while, unless the deadline has passed.
fn wait_and_look<R>(work: &mut Work<R>, what: &str, now: Duration, options: &Options) -> Verdict {
    if now.saturating_sub(work.since) >= options.deadline {
        let doing = format!("waiting for {what}");
        return Verdict::Failed(local_failure(
            work,
            Class::NotYet,
            &doing,
            &still_waiting_text(options),
        ));
    }
    work.due = now + backoff_delay(&work.id, POLL.0, POLL.1, work.polls);
    work.polls += 1;
    let event = is_new_message(work, what).then(|| Event::Waiting {
        step: work.id.clone(),
        waiting_for: what.to_owned(),
    });
    Verdict::Again(event)
}

/// True if that was not the last message about the step.
fn is_new_message<R>(work: &mut Work<R>, text: &str) -> bool {
    let news = work.last_message != text;
    if news {
        text.clone_into(&mut work.last_message);
    }
    news
}

fn still_waiting_text(options: &Options) -> String {
    format!("still so after {} s", options.deadline.as_secs())
}

/// The plan was made before somebody else removed the object.
fn plan_is_stale(mut failure: Failure) -> Failure {
    failure.hint.get_or_insert_with(|| {
        "the world has changed since the plan was made: run the update again".to_owned()
    });
    failure
}

/// A failure that no call reported.
fn local_failure<R>(work: &Work<R>, class: Class, doing: &str, message: &str) -> Failure {
    Failure {
        class,
        call: format!("{doing} ({})", work.id),
        code: String::new(),
        message: message.to_owned(),
        hint: None,
        request_id: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Id, Plan, Refs, Snapshot, plan};
    use serde::Serialize;

    #[derive(Clone, Debug, PartialEq, Serialize)]
    struct Thing(&'static str);

    impl Resource for Thing {
        fn id(&self) -> Id {
            Id::new("thing", "one")
        }
        fn needs(&self) -> Vec<Id> {
            Vec::new()
        }
        fn refuses(&self, _have: &Self) -> Option<String> {
            None
        }
        fn resolved(&self, _attr: &dyn Fn(&Id, &str) -> Option<String>) -> Self {
            self.clone()
        }
        fn needs_journal(&self) -> bool {
            false
        }
    }

    const PHASES: [Phase; 5] = [
        Phase::Put,
        Phase::Find,
        Phase::Ready,
        Phase::Remove,
        Phase::Gone,
    ];

    fn seen(thing: Thing) -> Observed<Thing> {
        Observed {
            resource: thing,
            physical: "p".to_owned(),
            attrs: super::super::Attrs::new(),
            created: None,
            uses: std::collections::BTreeSet::new(),
            in_use: false,
        }
    }

    /// The one step from `have` to `want`, under way.
    fn work(have: Option<&'static str>, want: Option<&'static str>) -> Work<Thing> {
        let items = have.map(|have| seen(Thing(have))).into_iter().collect();
        let desired: Vec<Thing> = want.map(Thing).into_iter().collect();
        let plan: Plan<Thing> = plan(&desired, &Snapshot { items }).unwrap();
        let step = plan.steps.into_values().next().unwrap();
        Work::start(&step, &Refs::default(), Duration::ZERO)
    }

    fn failing(class: Class) -> Answer<Thing> {
        Answer::Failed(Failure {
            class,
            call: "do".to_owned(),
            code: String::new(),
            message: String::new(),
            hint: None,
            request_id: None,
        })
    }

    /// In one word, what follows from that failure.
    fn follows(work: &mut Work<Thing>, class: Class, at: u64) -> String {
        let now = Duration::from_secs(at);
        let before = work.phase;
        match decide_next(work, failing(class), now, &Options::default()) {
            Verdict::Done => "done".to_owned(),
            Verdict::Failed(_) => "fails".to_owned(),
            Verdict::Again(_) if work.phase == before => "again".to_owned(),
            Verdict::Again(_) => format!("{:?}", work.phase).to_lowercase(),
        }
    }

    #[test]
    fn the_table_of_failures() {
        let classes = [
            (
                Class::Throttled,
                ["again", "again", "again", "again", "again"],
            ),
            (Class::NotYet, ["again", "put", "again", "again", "again"]),
            (Class::Exists, ["find", "fails", "fails", "fails", "fails"]),
            (Class::Gone, ["fails", "put", "again", "done", "done"]),
            (
                Class::Blocked,
                ["again", "again", "again", "again", "again"],
            ),
            (Class::Denied, ["fails"; 5]),
            (Class::Quota, ["fails"; 5]),
            (Class::Invalid, ["fails"; 5]),
            (Class::Unknown, ["find", "again", "again", "again", "again"]),
        ];
        for (class, verdicts) in classes {
            for (phase, verdict) in PHASES.into_iter().zip(verdicts) {
                let removing = matches!(phase, Phase::Remove | Phase::Gone);
                let mut work = if removing {
                    work(Some("a"), None)
                } else {
                    work(None, Some("a"))
                };
                work.phase = phase;
                assert_eq!(
                    follows(&mut work, class, 1),
                    verdict,
                    "{class:?} in {phase:?}"
                );
            }
        }
    }

    #[test]
    fn what_waits_is_given_up_at_the_deadline_and_not_before() {
        for class in [Class::Throttled, Class::NotYet, Class::Blocked] {
            let mut work = work(None, Some("a"));
            assert_eq!(follows(&mut work, class, 599), "again");
            assert_eq!(follows(&mut work, class, 600), "fails");
        }
    }

    #[test]
    fn what_a_change_names_may_be_late_for_two_minutes_and_is_missing_after_that() {
        let mut work = work(None, Some("a"));
        let failure = Failure {
            class: Class::NotYet,
            call: "do".to_owned(),
            code: "ValidationError".to_owned(),
            message: "the key pair 'mine' does not exist".to_owned(),
            hint: None,
            request_id: None,
        };
        let mut at = |seconds| {
            let failed = Answer::Failed(failure.clone());
            let now = Duration::from_secs(seconds);
            decide_next(&mut work, failed, now, &Options::default())
        };
        assert!(matches!(at(119), Verdict::Again(_)));
        let Verdict::Failed(missing) = at(120) else {
            panic!("it waits for what does not exist");
        };
        assert_eq!(missing.class, Class::Invalid);
        assert!(missing.hint.unwrap().contains("not merely late"));
    }

    #[test]
    fn a_step_that_gets_further_gets_a_new_deadline() {
        let mut work = work(None, Some("a"));
        let made = Answer::Put(Put {
            physical: "p".to_owned(),
            attrs: super::super::Attrs::new(),
            waiting_for: Some("it".to_owned()),
        });
        decide_next(
            &mut work,
            made,
            Duration::from_secs(500),
            &Options::default(),
        );
        assert_eq!(follows(&mut work, Class::NotYet, 1000), "again");
        assert_eq!(follows(&mut work, Class::NotYet, 1100), "fails");
    }

    #[test]
    fn what_was_just_found_may_be_hidden_from_the_change_for_a_while() {
        let mut work = work(None, Some("a"));
        assert_eq!(follows(&mut work, Class::Exists, 1), "find");
        let now = Duration::from_secs(2);
        decide_next(
            &mut work,
            Answer::Found(Some(seen(Thing("b")))),
            now,
            &Options::default(),
        );
        assert_eq!(work.phase, Phase::Put);
        assert_eq!(follows(&mut work, Class::Gone, 3), "again");
    }

    #[test]
    fn a_change_is_made_as_often_as_allowed_and_a_removal_too() {
        let attempts = Options::default().attempts;
        let mut removal = work(Some("a"), None);
        let tries = (1..100).find(|_| follows(&mut removal, Class::Unknown, 1) == "fails");
        assert_eq!(tries, Some(attempts));
        let mut creation = work(None, Some("a"));
        let tries = (1..100).find(|_| {
            follows(&mut creation, Class::Unknown, 1);
            follows(&mut creation, Class::Gone, 1) == "fails"
        });
        assert_eq!(tries, Some(attempts));
    }
}
