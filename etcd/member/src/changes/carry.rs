//! Begins the chain of a new snapshot with what the chain before has already: a snapshot is verified and uploaded for minutes, and meanwhile
//! clients compact etcd.

use super::following::PART_BYTES;
use super::role::ChangesRole;
use super::watch::ChangesSource;
use aws_client::store::Store;
use etcd_rules::backup::{ChainEnd, ChangesBatch, ChangesError, check_follows};
use etcd_store::{end_before, find_part_behind, require_part};
use std::collections::BTreeMap;

impl<S: ChangesSource> ChangesRole<S> {
    /// Stores in the chain of the newest snapshot what the one before has behind its end. Returns how far it is stored then. The error is a
    /// [`ChangesError`] if the chain before does not have all of it.
    pub(super) async fn carry_over(
        &self,
        backups: &Store,
        newest: ChainEnd,
        before: &ChainEnd,
    ) -> anyhow::Result<ChainEnd> {
        let (begin, mut end) = (newest.revision, newest);
        let mut batch = ChangesBatch::new(begin, PART_BYTES);
        let mut leases = BTreeMap::new();
        let mut known: Option<ChainEnd> = None;
        let first = find_part_behind(backups, before, begin).await?;
        for sequence in first..=before.sequence {
            let read = require_part(backups, &before.snapshot, sequence).await?;
            let previous = known.unwrap_or_else(|| end_before(before, sequence, &read));
            known = Some(check_follows(&previous, &read)?);
            leases.extend(read.leases());
            let until = read.part().header.until;
            let events = read.into_events().into_iter();
            for event in events.filter(|event| event.revision > begin) {
                if let Some(full) = batch.add(event)? {
                    end = self.store_part(backups, &end, (full, &leases)).await?;
                }
            }
            if let Some(full) = batch.note_progress(until)? {
                end = self.store_part(backups, &end, (full, &leases)).await?;
            }
        }
        if known.as_ref() != Some(before) {
            let why = format!("the chain after {} has changed meanwhile", before.snapshot);
            return Err(ChangesError::Watch(why).into());
        }
        let rest = batch.close();
        if rest.until > rest.after {
            end = self.store_part(backups, &end, (rest, &leases)).await?;
        }
        Ok(end)
    }
}
