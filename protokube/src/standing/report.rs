//! Keeps in the state store what stands: written when it changes, and not while all stays as it is.

use super::{Standing, of};
use crate::log::Voice;
use crate::pace::Sleep;
use anyhow::Context;
use aws_client::store::{Expect, Store};
use node::waits::{WAITS_LIMIT, Wait, Waits, read_waits, waits_key};
use std::time::Duration;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// At least so long is between two writes.
pub const EVERY: Duration = Duration::from_secs(10);

/// At most so long, while the store cannot be written.
const LONGEST: Duration = Duration::from_mins(1);

/// Changes come in crowds: others of the same one are waited for this long.
const GATHER: Duration = Duration::from_secs(1);

/// Who keeps it there.
#[derive(Debug)]
pub struct Report<'a> {
    /// The cluster's base in the state store.
    pub store: &'a Store,
    /// What stands.
    pub standing: &'a Standing,
    /// This machine, `i-...`.
    pub instance: &'a str,
    /// Says what fails here. It stands nowhere: where that is read is what cannot be written.
    pub voice: Voice,
    /// The time.
    pub clock: fn() -> OffsetDateTime,
    /// How time passes.
    pub sleep: Sleep,
}

impl Report<'_> {
    /// Keeps it there for ever. What an earlier protokube left is looked at once roles had time to begin, and goes with what it said.
    pub async fn keep(&self) -> anyhow::Result<()> {
        const ABOUT: &str = "what roles wait for";
        let mut changes = self.standing.changes();
        let mut written: Option<Vec<Wait>> = None;
        let mut pause = EVERY;
        let mut owed = true;
        loop {
            (self.sleep)(pause).await;
            if !owed {
                changes.changed().await.context("nothing stands any more")?;
                (self.sleep)(GATHER).await;
            }
            let now = of(&changes.borrow_and_update());
            match self.write(&mut written, now).await {
                Ok(()) => {
                    self.voice.over(ABOUT);
                    (owed, pause) = (false, EVERY);
                }
                Err(error) => {
                    self.voice.failed(ABOUT, &error);
                    (owed, pause) = (true, (pause * 2).min(LONGEST));
                }
            }
        }
    }

    /// Writes it, unless the store has it. `None`: it is not known yet what that has.
    async fn write(&self, written: &mut Option<Vec<Wait>>, now: Vec<Wait>) -> anyhow::Result<()> {
        let key = waits_key(self.instance);
        let before = match written.take() {
            Some(before) => Some(before),
            None => self.read(&key).await?,
        };
        let time = (self.clock)().format(&Rfc3339)?;
        let since = |wait: Wait| {
            let mut all = before.iter().flatten();
            let known = all.find(|one| one.same_thing(&wait) && !one.since.is_empty());
            let since = known.map(|one| one.since.clone());
            Wait {
                since: since.unwrap_or(wait.since),
                ..wait
            }
        };
        let waits = now.into_iter().map(since).collect();
        let release = env!("CARGO_PKG_VERSION");
        let report = Waits::of(self.instance, release, &time, waits);
        let same = |before: &Vec<Wait>| {
            let mut pairs = before.iter().zip(&report.waits);
            before.len() == report.waits.len() && pairs.all(|(a, b)| a.says_as(b))
        };
        if before.as_ref().is_some_and(same) {
            *written = before;
            return Ok(());
        }
        let bytes = serde_json::to_vec_pretty(&report)?;
        // Where this fails, nobody knows what the store has.
        let put = self.store.put(&key, bytes, Expect::Any).await;
        put.with_context(|| format!("could not write {key}"))?;
        *written = Some(report.waits);
        Ok(())
    }

    /// What the store has: nothing where there is no object, and `None` where nobody can read it.
    async fn read(&self, key: &str) -> anyhow::Result<Option<Vec<Wait>>> {
        let bytes = self.store.get_first(key, WAITS_LIMIT + 1).await;
        let bytes = bytes.with_context(|| format!("could not read {key}"))?;
        let Some(bytes) = bytes else {
            return Ok(Some(Vec::new()));
        };
        let said = read_waits(&bytes, self.instance).ok();
        Ok(said.map(|said| said.waits))
    }
}
