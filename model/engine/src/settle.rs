//! Creations that the world would make twice: noted before they begin, waited for before the next look.

use super::event::Event;
use super::failure::{Class, Failure};
use super::options::{EngineContext, Options, backoff_delay, whole_millis};
use super::resource::{Id, Resource};
use super::snapshot::Snapshot;
use super::world::{Clock, Journal, Refs, World};
use futures::stream::{self, StreamExt};
use std::collections::BTreeSet;
use std::future::Future;
use std::time::Duration;

/// Observes the world. If an earlier run died in the middle of creations that could be duplicated, first waits
/// until reads show what it made. If an object that was made is not seen, waits and looks again before it counts as gone: reads
/// may be answered by servers of which one is behind the other.
pub async fn observe_settled<R: Resource, W: World<R>, J: Journal, C: Clock>(
    outside: &EngineContext<'_, W, J, C>,
    events: &mut impl FnMut(Event),
) -> Result<Snapshot<R>, Failure> {
    let EngineContext {
        world,
        journal,
        clock,
        options,
        ..
    } = outside;
    let noted = retry_call(*clock, options, || journal.open()).await?;
    let mut ids = noted.creating;
    if ids.is_empty() {
        let seen: Snapshot<R> = retry_call(*clock, options, || world.observe()).await?;
        ids = noted.made;
        let there: BTreeSet<Id> = seen.items.iter().map(|item| item.resource.id()).collect();
        ids.retain(|id| !there.contains(id));
        if ids.is_empty() {
            return Ok(seen);
        }
    }
    events(Event::Settling {
        ids,
        for_ms: whole_millis(options.settle),
    });
    clock.sleep(options.settle).await;
    retry_call(*clock, options, || world.observe()).await
}

/// Makes the call until it succeeds or fails for good; for calls that do no harm twice.
pub(super) async fn retry_call<T, C: Clock, F: Future<Output = Result<T, Failure>>>(
    clock: &C,
    options: &Options,
    call: impl Fn() -> F,
) -> Result<T, Failure> {
    let (mut throttled, mut tries) = (0, 0);
    let until = clock.now() + options.deadline;
    loop {
        let failure = match call().await {
            Ok(done) => return Ok(done),
            Err(failure) => failure,
        };
        match failure.class {
            Class::Throttled if clock.now() < until => throttled += 1,
            Class::NotYet | Class::Unknown if tries + 1 < options.attempts => tries += 1,
            _ => return Err(failure),
        }
        let whose = Id::new("call", failure.call.as_str());
        let most = Duration::from_secs(20);
        clock
            .sleep(backoff_delay(
                &whose,
                Duration::from_millis(500),
                most,
                throttled + tries,
            ))
            .await;
    }
}

/// Waits until reads show every one of `made` (what was made, and when), at longest until they must have
/// settled. False if that could not be seen.
pub(super) async fn wait_until_shown<R: Resource, W: World<R>, J, C: Clock>(
    outside: &EngineContext<'_, W, J, C>,
    refs: &Refs,
    made: &[(R, Duration)],
) -> bool {
    let one = |(want, at): &(R, Duration)| {
        let (want, settled) = (want.clone(), *at + outside.options.settle);
        async move {
            let mut polls = 0;
            while outside.clock.now() < settled {
                match outside.world.find(&want, refs).await {
                    Ok(Some(_)) => return true,
                    Ok(None) => {}
                    Err(failure) if failure.class == Class::Throttled => {}
                    Err(_) => return false,
                }
                let (first, most) = (Duration::from_millis(200), Duration::from_secs(2));
                outside
                    .clock
                    .sleep(backoff_delay(&want.id(), first, most, polls))
                    .await;
                polls += 1;
            }
            true
        }
    };
    stream::iter(made.iter().map(one))
        .buffer_unordered(outside.options.parallelism.max(1))
        .all(|shown| async move { shown })
        .await
}
