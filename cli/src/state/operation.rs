//! `operations/TIMESTAMP-ID.json`: who did what to a cluster, when, and what came of it. Written when it begins,
//! so that one that was killed can be seen, and again when it ends.

use super::lock::hostname;
use super::spec_change::SpecChange;
use super::{Keys, store_error};
use crate::env;
use crate::error::{CommandError, Context};
use crate::planned::{Summary, Target};
use aws_client::store::{Entry, Expect, Store};
use cloud::Cloud;
use engine::{Action, Event, Failure, Id, Plan};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use time::macros::format_description;

/// So many are kept.
const KEPT: usize = 100;

/// The version of the records. Additions keep it; anything else raises it.
pub const FORMAT: u32 = 1;

/// An operation. No secrets: no argument values, only names.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Operation {
    format: u32,
    /// `update`, `delete cluster`, `edit`, ...
    pub command: String,
    /// kctl's.
    pub version: String,
    /// `user@host`.
    pub who: String,
    /// On that host. Tells whether the holder of the lock is still this operation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<u32>,
    /// Twelve digits; empty for changes of the spec, which ask nobody.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub account: String,
    /// As the account.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub region: String,
    /// RFC 3339.
    pub started: String,
    /// `running`, `done`, `failed`, `interrupted`.
    pub outcome: String,
    /// How long it took.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub took_ms: Option<u64>,
    /// sha256 of the saved plan that it applied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<String>,
    /// What it set out to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub planned: Option<Summary>,
    /// How its steps ended.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub steps: BTreeMap<Id, Ended>,
    /// Objects of the spec that it changed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub objects: Vec<SpecChange>,
    #[serde(skip)]
    key: String,
}

/// How one step ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ended {
    /// What it did or tried; not known of a step that was never begun.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub action: Option<Action>,
    /// `done`, `failed`, `skipped`.
    pub outcome: String,
    /// How long it took.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub took_ms: Option<u64>,
    /// Why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
    /// The failed step that it waited for; none for one that an interrupt kept from being tried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub because: Option<Id>,
}

/// `user@host`: who runs this.
pub fn who() -> String {
    let user = env::value(env::USER).unwrap_or_else(|| "somebody".to_owned());
    format!("{user}@{}", hostname())
}

impl Operation {
    /// One that begins now.
    pub fn begin(keys: &Keys, command: &str, target: Option<&Target>, now: OffsetDateTime) -> Self {
        let stamp = now
            .format(format_description!(
                "[year][month][day]T[hour][minute][second]Z"
            ))
            .unwrap_or_default();
        // In order within a second too: microseconds, then something of this process.
        let id = (now.microsecond() << 12) | (std::process::id() & 0xfff);
        Self {
            format: FORMAT,
            command: command.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            who: who(),
            process: Some(std::process::id()),
            account: target.map_or_else(String::new, |target| target.account.clone()),
            region: target.map_or_else(String::new, |target| target.region.clone()),
            started: now.format(&Rfc3339).unwrap_or_default(),
            outcome: "running".to_owned(),
            key: keys.operation(&format!("{stamp}-{id:08x}")),
            ..Self::default()
        }
    }

    /// The same with what it sets out to do, and the digest of the saved plan that says so.
    #[must_use]
    pub fn planned(self, plan: &Plan<Cloud>, saved: Option<&str>) -> Self {
        Self {
            planned: Some(Summary::of(plan)),
            plan: saved.map(str::to_owned),
            ..self
        }
    }

    /// A change of the spec, which is done.
    #[must_use]
    pub fn of_spec(self, objects: Vec<SpecChange>) -> Self {
        Self {
            objects,
            outcome: "done".to_owned(),
            ..self
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
                    because: None,
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
                    because: None,
                },
            ),
            Event::Skipped { step, because } => (
                step,
                Ended {
                    action: None,
                    outcome: "skipped".to_owned(),
                    took_ms: None,
                    failure: None,
                    because: because.clone(),
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
    let prefix = keys.operation_log();
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
