//! `operations/TIMESTAMP-ID.json`: who did what to a cluster, when, and what came of it. Written when it begins,
//! so that one that was killed can be seen, and again when it ends.

use super::lock::hostname;
use super::{Keys, store_error};
use crate::env;
use crate::error::{CommandError, Context};
use aws::store::{Entry, Expect, Store};
use model::engine::{Action, Event, Failure, Id};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use time::macros::format_description;

/// So many are kept.
const KEPT: usize = 100;

/// An operation. No secrets: no argument values, only names.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Operation {
    format: u32,
    command: String,
    version: String,
    who: String,
    account: String,
    region: String,
    started: String,
    /// `running`, `done`, `failed`, `interrupted`.
    outcome: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    took_ms: Option<u64>,
    steps: BTreeMap<Id, Ended>,
    #[serde(skip)]
    key: String,
}

/// How one step ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Ended {
    #[serde(skip_serializing_if = "Option::is_none")]
    action: Option<Action>,
    /// `done`, `failed`, `skipped`.
    outcome: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    took_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    failure: Option<Failure>,
}

impl Operation {
    /// One that begins now.
    pub fn begin(
        keys: &Keys,
        command: &str,
        account: &str,
        region: &str,
        now: OffsetDateTime,
    ) -> Self {
        let stamp = now
            .format(format_description!(
                "[year][month][day]T[hour][minute][second]Z"
            ))
            .unwrap_or_default();
        let id = (now.unix_timestamp_nanos() ^ i128::from(std::process::id())) & 0xff_ffff;
        let user = env::value(env::USER).unwrap_or_else(|| "somebody".to_owned());
        Self {
            format: 1,
            command: command.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            who: format!("{user}@{}", hostname()),
            account: account.to_owned(),
            region: region.to_owned(),
            started: now.format(&Rfc3339).unwrap_or_default(),
            outcome: "running".to_owned(),
            took_ms: None,
            steps: BTreeMap::new(),
            key: keys.operation(&format!("{stamp}-{id:06x}")),
        }
    }

    /// Takes down what an event says of a step's end.
    pub fn on(&mut self, event: &Event) {
        let (step, ended) = match event {
            Event::Done {
                step,
                action,
                took_ms,
                ..
            } => (
                step,
                Ended {
                    action: Some(*action),
                    outcome: "done".to_owned(),
                    took_ms: Some(*took_ms),
                    failure: None,
                },
            ),
            Event::Failed {
                step,
                action,
                failure,
                took_ms,
            } => (
                step,
                Ended {
                    action: Some(*action),
                    outcome: "failed".to_owned(),
                    took_ms: Some(*took_ms),
                    failure: Some(failure.clone()),
                },
            ),
            Event::Skipped { step, .. } => (
                step,
                Ended {
                    action: None,
                    outcome: "skipped".to_owned(),
                    took_ms: None,
                    failure: None,
                },
            ),
            _ => return,
        };
        self.steps.insert(step.clone(), ended);
    }

    /// It has ended.
    pub fn end(&mut self, outcome: &str, took_ms: u64) {
        outcome.clone_into(&mut self.outcome);
        self.took_ms = Some(took_ms);
    }

    /// Writes it.
    pub async fn write(&self, store: &Store) -> Result<(), CommandError> {
        let text = serde_json::to_vec_pretty(self);
        let text = text.failed(
            "the operation has no JSON form",
            "report this: it is a defect of kctl",
        )?;
        store
            .put(&self.key, text, Expect::Any)
            .await
            .map_err(store_error)?;
        Ok(())
    }
}

/// Keys of operations in a listing that are too old to keep, names being times.
pub fn outdated(keys: &Keys, entries: &[Entry]) -> Vec<String> {
    let prefix = keys.below("operations/");
    let mut all: Vec<String> = entries
        .iter()
        .filter(|entry| entry.key.starts_with(&prefix))
        .map(|entry| entry.key.clone())
        .collect();
    all.sort();
    let extra = all.len().saturating_sub(KEPT);
    all.truncate(extra);
    all
}
