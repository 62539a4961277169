//! `operations/TIMESTAMP-ID.json`: the record of one operation: who, when, what, result. Written when the operation begins, so
//! that a killed one is visible, and when it ends.

use super::lock::host_name;
use super::spec_change::SpecChange;
use super::{StoreKeys, store_error};
use crate::env;
use crate::error::{CommandError, ErrorContext};
use crate::plan_target::{ClusterTarget, PlanSummary};
use aws_client::store::{Entry, Expect, Store};
use cloud::Cloud;
use engine::{Action, Event, Failure, Id, Plan};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use time::format_description::BorrowedFormatItem;
use time::format_description::well_known::Rfc3339;
use time::macros::format_description;
use time::{OffsetDateTime, PrimitiveDateTime};

/// Number of records that are kept.
const KEPT: usize = 100;

/// Version of the record format. Additions keep it; any other change raises it.
pub const FORMAT: u32 = 1;

/// An operation. No secrets: no argument values, only names.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Operation {
    format: u32,
    /// `update`, `delete cluster`, `edit`, ...
    pub command: String,
    pub version: String,
    /// `user@host`.
    pub who: String,
    /// Process id on that host. Shows whether this operation still holds the lock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<u32>,
    /// AWS account id; empty for changes of the spec, which make no AWS call.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub account: String,
    /// AWS region; empty for changes of the spec.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub region: String,
    /// Start time in RFC 3339.
    pub started: String,
    /// `running`, `done`, `failed`, `interrupted`.
    pub outcome: String,
    /// How long it took.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub took_ms: Option<u64>,
    /// sha256 of the saved plan that it applied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<String>,
    /// Number of planned steps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub planned: Option<PlanSummary>,
    /// Results of the steps.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub steps: BTreeMap<Id, StepResult>,
    /// Objects of the spec that it changed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub objects: Vec<SpecChange>,
    #[serde(skip)]
    key: String,
}

/// How one step ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StepResult {
    /// The action; `None` for a step that was not begun.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub action: Option<Action>,
    /// `done`, `failed`, `skipped`.
    pub outcome: String,
    /// How long it took.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub took_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
    /// The failed step that it depends on; `None` if an interrupt prevented it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub because: Option<Id>,
}

/// `user@host` of this process.
pub fn user_at_host() -> String {
    let user = env::get_variable(env::USER).unwrap_or_else(|| "somebody".to_owned());
    format!("{user}@{}", host_name())
}

impl Operation {
    pub fn begin(
        keys: &StoreKeys,
        command: &str,
        target: Option<&ClusterTarget>,
        now: OffsetDateTime,
    ) -> Self {
        let stamp = now.format(STAMP).unwrap_or_default();
        // Sorted also within a second: microseconds, then bits of the process id.
        let id = (now.microsecond() << 12) | (std::process::id() & 0xfff);
        Self {
            format: FORMAT,
            command: command.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            who: user_at_host(),
            process: Some(std::process::id()),
            account: target.map_or_else(String::new, |target| target.account.clone()),
            region: target.map_or_else(String::new, |target| target.region.clone()),
            started: now.format(&Rfc3339).unwrap_or_default(),
            outcome: "running".to_owned(),
            key: keys.operation(&format!("{stamp}-{id:08x}")),
            ..Self::default()
        }
    }

    /// Adds the number of planned steps and the digest of the saved plan, if there is one.
    #[must_use]
    pub fn with_plan(self, plan: &Plan<Cloud>, saved: Option<&str>) -> Self {
        Self {
            planned: Some(PlanSummary::new(plan)),
            plan: saved.map(str::to_owned),
            ..self
        }
    }

    /// Makes it the record of a completed change of the spec.
    #[must_use]
    pub fn with_spec_changes(self, objects: Vec<SpecChange>) -> Self {
        Self {
            objects,
            outcome: "done".to_owned(),
            ..self
        }
    }

    /// Records the end of a step.
    pub fn record_event(&mut self, event: &Event) {
        let (step, ended) = match event {
            Event::Done {
                step,
                action,
                took_ms,
                ..
            } => (
                step,
                StepResult {
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
                StepResult {
                    action: Some(*action),
                    outcome: "failed".to_owned(),
                    took_ms: Some(*took_ms),
                    failure: Some(failure.clone()),
                    because: None,
                },
            ),
            Event::Skipped { step, because } => (
                step,
                StepResult {
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

    /// Records the end of the operation.
    pub fn end(&mut self, outcome: &str, took_ms: u64) {
        outcome.clone_into(&mut self.outcome);
        self.took_ms = Some(took_ms);
    }

    pub async fn write(&self, store: &Store) -> Result<(), CommandError> {
        let text = serde_json::to_vec_pretty(self);
        let text = text.or_failed(
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

/// How a name begins: when the operation began.
const STAMP: &[BorrowedFormatItem<'_>] =
    format_description!("[year][month][day]T[hour][minute][second]Z");

/// When the oldest operation began that the log still has.
pub fn first_operation(keys: &StoreKeys, entries: &[Entry]) -> Option<OffsetDateTime> {
    let prefix = keys.operation_prefix();
    let begun = entries.iter().filter_map(|entry| {
        let (stamp, _) = entry.key.strip_prefix(&prefix)?.split_once('-')?;
        Some(PrimitiveDateTime::parse(stamp, STAMP).ok()?.assume_utc())
    });
    begun.min()
}

/// Keys of the operations that are too old to keep. Names sort by time.
pub fn outdated_keys(keys: &StoreKeys, entries: &[Entry]) -> Vec<String> {
    let prefix = keys.operation_prefix();
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
