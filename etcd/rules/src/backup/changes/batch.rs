//! Collects what etcd's watch sends, until it is a part. A transaction is never divided: a restore would end with half of it.

use super::part::EVENTS_LIMIT;
use super::{ChangesError, WatchedEvent};

/// The changes of one part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CollectedChanges {
    /// The last revision before them.
    pub after: u64,
    /// Their last revision; that of `after` if there are none.
    pub until: u64,
    /// In etcd's order. All changes of these revisions are among them.
    pub events: Vec<WatchedEvent>,
}

/// What was received of etcd's watch of all keys, and is in no part yet. After an error it is of no use.
#[derive(Debug)]
pub struct ChangesBatch {
    /// A part is closed when it has so many bytes.
    limit: usize,
    /// The last revision of the part before.
    after: u64,
    /// All changes of this revision are known, and of those before.
    complete: u64,
    /// The revision of the last event.
    last: u64,
    /// Events up to the complete revision, and bytes of their lines.
    closed: (Vec<WatchedEvent>, usize),
    /// Events of the last revision, of which more may come.
    open: (Vec<WatchedEvent>, usize),
}

impl ChangesBatch {
    /// Nothing yet of a watch that begins behind the revision `after`. `limit`: bytes of a part, uncompressed, at which it is closed although
    /// nobody asks for it. A transaction that has more makes a larger part.
    pub fn new(after: u64, limit: usize) -> Self {
        Self {
            limit,
            after,
            complete: after,
            last: after,
            closed: (Vec::new(), 0),
            open: (Vec::new(), 0),
        }
    }

    /// Adds the next event. Returns a part that has to be closed because of its size. The error is a [`ChangesError::Watch`] if an event is
    /// missing or repeated, or a transaction has more than a part may have.
    pub fn add(&mut self, event: WatchedEvent) -> Result<Option<CollectedChanges>, ChangesError> {
        event.check().map_err(ChangesError::Watch)?;
        if Some(event.revision) == self.last.checked_add(1) {
            self.complete_last();
            self.last = event.revision;
        } else if event.revision != self.last || self.last == self.complete {
            // etcd gives each revision to a transaction that changes something.
            return Err(ChangesError::Watch(format!(
                "an event of revision {} comes after revision {}",
                event.revision, self.last
            )));
        }
        let (events, bytes) = &mut self.open;
        *bytes = bytes.saturating_add(event.most_bytes());
        if *bytes > EVENTS_LIMIT {
            return Err(ChangesError::Watch(format!(
                "the changes of revision {} have more than {EVENTS_LIMIT} bytes",
                self.last
            )));
        }
        events.push(event);
        Ok(self.close_full())
    }

    /// Takes note of what etcd says of its progress: all events up to this revision were sent. Returns as [`Self::add`] does; it is an error if
    /// some were not received.
    pub fn note_progress(
        &mut self,
        revision: u64,
    ) -> Result<Option<CollectedChanges>, ChangesError> {
        if revision > self.last {
            return Err(ChangesError::Watch(format!(
                "etcd has sent all events up to revision {revision}, and the last one that was received is of {}",
                self.last
            )));
        }
        if revision == self.last {
            self.complete_last();
        }
        Ok(self.close_full())
    }

    /// Closes a part, with all that is complete: a later revision was seen, or etcd has said so. It may be nothing, a sign of life.
    pub fn close(&mut self) -> CollectedChanges {
        let (events, _) = std::mem::take(&mut self.closed);
        let after = std::mem::replace(&mut self.after, self.complete);
        CollectedChanges {
            after,
            until: self.complete,
            events,
        }
    }

    /// No more events of the last revision will come.
    fn complete_last(&mut self) {
        let (events, bytes) = std::mem::take(&mut self.open);
        self.closed.0.extend(events);
        self.closed.1 = self.closed.1.saturating_add(bytes);
        self.complete = self.last;
    }

    /// Closes a part before it has more bytes than the limit. What is open counts too: it would be in the same part.
    fn close_full(&mut self) -> Option<CollectedChanges> {
        let bytes = self.closed.1.saturating_add(self.open.1);
        let is_full = bytes > self.limit.min(EVENTS_LIMIT) && !self.closed.0.is_empty();
        is_full.then(|| self.close())
    }
}

#[cfg(test)]
mod tests {
    use super::super::samples::{event, stream};
    use super::*;
    use proptest::prelude::*;

    const AFTER: u64 = 10;

    proptest! {
        /// However etcd divides the stream into responses, and whenever somebody closes a part: nothing is lost, repeated or divided.
        #[test]
        fn the_parts_together_are_the_stream_and_no_transaction_is_in_two(
            events in stream(AFTER), limit in 0..3000_usize,
            steps in proptest::collection::vec((any::<bool>(), any::<bool>(), any::<proptest::sample::Index>()), 40),
        ) {
            let mut batch = ChangesBatch::new(AFTER, limit);
            let mut parts = Vec::new();
            for (place, (is_closed, is_told, told)) in steps.into_iter().take(events.len()).enumerate() {
                parts.extend(batch.add(events[place].clone()).unwrap());
                let revision = events[place].revision;
                let is_whole = events.get(place + 1).is_none_or(|next| next.revision > revision);
                // etcd tells of its progress between transactions. What it said of a former one may come late.
                if is_told {
                    let former = AFTER + told.index(usize::try_from(revision - AFTER).unwrap()) as u64;
                    let said = if is_whole { revision } else { former };
                    parts.extend(batch.note_progress(said).unwrap());
                }
                if is_closed {
                    parts.push(batch.close());
                }
            }
            let last = events.last().map_or(AFTER, |event| event.revision);
            parts.extend(batch.note_progress(last).unwrap());
            parts.push(batch.close());

            let mut after = AFTER;
            for part in &parts {
                prop_assert_eq!(part.after, after);
                after = part.until;
                let mut revisions = part.events.iter().map(|event| event.revision);
                prop_assert!(revisions.all(|one| part.after < one && one <= part.until));
                let bytes: usize = part.events.iter().map(WatchedEvent::most_bytes).sum();
                prop_assert!(bytes <= limit || part.until == part.after + 1);
            }
            prop_assert_eq!(after, last);
            let all: Vec<WatchedEvent> = parts.into_iter().flat_map(|part| part.events).collect();
            prop_assert_eq!(all, events);
        }
    }

    #[test]
    fn a_revision_is_in_no_part_until_it_is_known_to_be_complete() {
        let mut batch = ChangesBatch::new(AFTER, usize::MAX);
        let closed = |batch: &mut ChangesBatch| {
            let part = batch.close();
            (part.after, part.until, part.events.len())
        };
        assert_eq!(closed(&mut batch), (10, 10, 0));
        for key in ["/a", "/b"] {
            assert_eq!(batch.add(event(11, key, Some("1"))), Ok(None));
            assert_eq!(closed(&mut batch), (10, 10, 0));
        }
        assert_eq!(batch.note_progress(10), Ok(None));
        assert_eq!(closed(&mut batch), (10, 10, 0));
        assert_eq!(batch.add(event(12, "/a", None)), Ok(None));
        assert_eq!(closed(&mut batch), (10, 11, 2));
        assert_eq!(batch.note_progress(12), Ok(None));
        assert_eq!(closed(&mut batch), (11, 12, 1));
        assert_eq!(closed(&mut batch), (12, 12, 0));
    }

    #[test]
    fn a_watch_that_leaves_something_out_or_repeats_it_is_no_chain() {
        let begin = || {
            let mut batch = ChangesBatch::new(AFTER, usize::MAX);
            assert_eq!(batch.add(event(11, "/a", Some("1"))), Ok(None));
            batch
        };
        for revision in [0, 9, 10, 13, u64::MAX] {
            let added = begin().add(event(revision, "/a", None));
            assert!(matches!(added, Err(ChangesError::Watch(_))), "{revision}");
        }
        assert!(begin().note_progress(12).is_err());
        // All of it was sent.
        let mut batch = begin();
        assert_eq!(batch.note_progress(11), Ok(None));
        assert!(batch.add(event(11, "/b", None)).is_err());
        assert!(
            ChangesBatch::new(AFTER, 0)
                .add(event(10, "/a", None))
                .is_err()
        );
    }
}
