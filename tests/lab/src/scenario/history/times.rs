//! What ended before something else began comes first, also for clients of different API servers.

use super::order::{Order, Place};
use super::{AttemptKind, History, List, Outcome};
use anyhow::{Context, Result, ensure};

/// Something with a begin and an end, as far as its place matters.
struct Span<'a> {
    begun: f64,
    /// `None`: it may have had its effect at any time after its begin.
    ended: Option<f64>,
    at: At,
    shown: &'a dyn std::fmt::Debug,
}

#[derive(Clone, Copy)]
enum At {
    /// A write is after all that ended before.
    Write(Place),
    /// A read is not before.
    Read(Place),
    /// A read that found nothing.
    Absent,
    /// Whatever else is known, it is not before this; nothing follows for it from what ended before.
    Least(Place),
}

/// Passes over all in order of their begins. `absence` gives an absent read its place, from the place that it must not be before.
fn check_spans(mut spans: Vec<Span>, absence: impl Fn(Place) -> Option<Place>) -> Result<()> {
    spans.sort_by(|one, other| one.begun.total_cmp(&other.begun));
    let mut by_end: Vec<(f64, usize)> = spans
        .iter()
        .enumerate()
        .filter_map(|(at, span)| Some((span.ended?, at)))
        .collect();
    by_end.sort_by(|one, other| one.0.total_cmp(&other.0));
    let mut by_end = by_end.into_iter().peekable();
    let mut places: Vec<Place> = Vec::with_capacity(spans.len());
    let mut floor = (0, false);
    for span in &spans {
        while let Some((_, ended)) = by_end.next_if(|(ended, _)| *ended < span.begun) {
            // What has ended has begun: its place is known.
            let place = places
                .get(ended)
                .context("a span that ended before its begin")?;
            floor = floor.max(*place);
        }
        let (place, fits) = match span.at {
            At::Write(place) => (place, place > floor),
            At::Read(place) => (place, place >= floor),
            At::Absent => match absence(floor) {
                Some(place) => (place, true),
                None => (floor, false),
            },
            At::Least(place) => (place, true),
        };
        ensure!(
            fits,
            "version {} was acknowledged or seen before this began: {:?}",
            floor.0,
            span.shown
        );
        places.push(place);
    }
    Ok(())
}

/// Each key by itself: reads and lists show what was acknowledged before, or something later.
pub(super) fn check_keys(history: &History, order: &Order, lists: &[List]) -> Result<()> {
    let mut names: Vec<&str> = history
        .attempts
        .iter()
        .map(|one| one.name.as_str())
        .collect();
    names.extend(order.names());
    names.sort_unstable();
    names.dedup();
    for name in names {
        let mut spans = Vec::new();
        for one in history.attempts.iter().filter(|one| one.name == name) {
            let done = one.outcome == Outcome::Done;
            let at = match (one.did, one.version) {
                (AttemptKind::Read, _) if !done => continue,
                (AttemptKind::Read, Some(version)) => At::Read((version, false)),
                (AttemptKind::Read, None) => At::Absent,
                _ => match order.place_of(one) {
                    Some(place) => At::Write(place),
                    None => continue,
                },
            };
            spans.push(Span {
                begun: one.begun,
                ended: done.then_some(one.ended),
                at,
                shown: one,
            });
        }
        for list in lists {
            let version = list.items.get(name).map(|item| item.1);
            spans.push(Span {
                begun: list.begun,
                ended: Some(list.ended),
                at: version.map_or(At::Absent, |version| At::Read((version, false))),
                shown: &list.client,
            });
        }
        check_spans(spans, |floor| order.first_absence(name, floor))
            .with_context(|| format!("key {name}"))?;
    }
    Ok(())
}

/// All keys together: revisions grow, and a list is not older than what was acknowledged before.
pub(super) fn check_revisions(history: &History, order: &Order, lists: &[List]) -> Result<()> {
    let mut spans = Vec::new();
    for one in &history.attempts {
        let place = match one.did {
            AttemptKind::Read => one.version.map(|version| (version, false)),
            _ => order.place_of(one),
        };
        let Some(place) = place else { continue };
        spans.push(Span {
            begun: one.begun,
            ended: (one.outcome == Outcome::Done).then_some(one.ended),
            // A deletion that nobody saw has only the revision of what it deleted.
            at: match one.did {
                AttemptKind::Read => At::Least(place),
                _ if place.1 => At::Least(place),
                _ => At::Write(place),
            },
            shown: one,
        });
    }
    for list in lists {
        spans.push(Span {
            begun: list.begun,
            ended: Some(list.ended),
            at: At::Read((list.version, true)),
            shown: &list.client,
        });
    }
    check_spans(spans, Some)
}
