//! Role report: writes the current waits to the state store when they change.

use super::{CurrentWaits, to_waits};
use crate::log::RoleLog;
use crate::pace::Sleep;
use anyhow::Context;
use aws_client::store::{Expect, Store};
use node::waits::{WAITS_LIMIT, Wait, Waits, read_waits, waits_key};
use std::time::Duration;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// Shortest time between two writes.
pub const WRITE_INTERVAL: Duration = Duration::from_secs(10);

/// Longest pause while the store cannot be written.
const MAX_PAUSE: Duration = Duration::from_mins(1);

/// Time for collecting further changes before a write.
const COLLECT_TIME: Duration = Duration::from_secs(1);

/// Inputs of the role.
#[derive(Debug)]
pub struct WaitsReporter<'a> {
    /// State store at the cluster's base.
    pub store: &'a Store,
    pub current_waits: &'a CurrentWaits,
    /// Id of this instance, `i-...`.
    pub instance: &'a str,
    /// Log of this role. Its errors are not in the report, because the report cannot be written then.
    pub role_log: RoleLog,
    pub clock: fn() -> OffsetDateTime,
    pub sleep: Sleep,
}

impl WaitsReporter<'_> {
    /// Keeps the report up to date for ever. The first write replaces the report of an earlier protokube, after roles had time to
    /// start.
    pub async fn keep_report(&self) -> anyhow::Result<()> {
        const ABOUT: &str = "report of waits";
        let mut changes = self.current_waits.subscribe_changes();
        let mut written: Option<Vec<Wait>> = None;
        let mut pause = WRITE_INTERVAL;
        let mut owed = true;
        loop {
            (self.sleep)(pause).await;
            if !owed {
                changes
                    .changed()
                    .await
                    .context("the table of waits was dropped")?;
                (self.sleep)(COLLECT_TIME).await;
            }
            let now = to_waits(&changes.borrow_and_update());
            match self.write_report(&mut written, now).await {
                Ok(()) => {
                    self.role_log.report_resolved(ABOUT);
                    (owed, pause) = (false, WRITE_INTERVAL);
                }
                Err(error) => {
                    self.role_log.report_error(ABOUT, &error);
                    (owed, pause) = (true, (pause * 2).min(MAX_PAUSE));
                }
            }
        }
    }

    /// Writes the report unless the store has it already. `written` is `None` if the store's content is unknown.
    async fn write_report(
        &self,
        written: &mut Option<Vec<Wait>>,
        now: Vec<Wait>,
    ) -> anyhow::Result<()> {
        let key = waits_key(self.instance);
        let before = match written.take() {
            Some(before) => Some(before),
            None => self.read_report(&key).await?,
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
        let report = Waits::new(self.instance, release, &time, waits);
        let same = |before: &Vec<Wait>| {
            let mut pairs = before.iter().zip(&report.waits);
            before.len() == report.waits.len() && pairs.all(|(a, b)| a.is_same_report(b))
        };
        if before.as_ref().is_some_and(same) {
            *written = before;
            return Ok(());
        }
        let bytes = serde_json::to_vec_pretty(&report)?;
        // If this fails, the store's content is unknown.
        let put = self.store.put(&key, bytes, Expect::Any).await;
        put.with_context(|| format!("could not write {key}"))?;
        *written = Some(report.waits);
        Ok(())
    }

    /// The waits in the store: empty if there is no object, `None` if it cannot be parsed.
    async fn read_report(&self, key: &str) -> anyhow::Result<Option<Vec<Wait>>> {
        let bytes = self.store.get_first(key, WAITS_LIMIT + 1).await;
        let bytes = bytes.with_context(|| format!("could not read {key}"))?;
        let Some(bytes) = bytes else {
            return Ok(Some(Vec::new()));
        };
        let report = read_waits(&bytes, self.instance).ok();
        Ok(report.map(|said| said.waits))
    }
}
