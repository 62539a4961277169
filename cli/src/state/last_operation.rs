//! The AWS account in which a cluster was last changed, from the log of operations.

use super::{StoreKeys, store_error};
use crate::error::CommandError;
use aws_client::store::{Entry, Store};
use serde::Deserialize;
use std::collections::BTreeMap;

/// The newest operation that changed something in AWS, or may have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LastOperation {
    /// AWS account id: twelve digits.
    pub account: String,
    /// `update`, `delete cluster`.
    pub command: String,
    /// When it began, in RFC 3339.
    pub started: String,
}

/// The fields of a record that are read, from any release.
#[derive(Deserialize)]
struct OperationRecord {
    #[serde(default)]
    account: String,
    #[serde(default)]
    command: String,
    #[serde(default)]
    started: String,
    #[serde(default)]
    outcome: String,
    #[serde(default)]
    steps: BTreeMap<String, StepRecord>,
}

#[derive(Deserialize)]
struct StepRecord {
    #[serde(default)]
    outcome: String,
}

impl LastOperation {
    /// Reads records from the newest one on, until one of them acted in AWS.
    pub async fn read(
        store: &Store,
        keys: &StoreKeys,
        entries: &[Entry],
    ) -> Result<Option<Self>, CommandError> {
        let prefix = keys.operation_prefix();
        let log = entries.iter().map(|entry| &entry.key);
        let mut log: Vec<&String> = log.filter(|key| key.starts_with(&prefix)).collect();
        // Names begin with times.
        log.sort_by(|a, b| b.cmp(a));
        for key in log {
            let object = store.get(key).await.map_err(store_error)?;
            if let Some(acted) = object.and_then(|object| Self::parse(&object.bytes)) {
                return Ok(Some(acted));
            }
        }
        Ok(None)
    }

    /// `None` for a change of the spec, and for an operation that ended without any successful step.
    fn parse(bytes: &[u8]) -> Option<Self> {
        let record: OperationRecord = serde_json::from_slice(bytes).ok()?;
        let mut steps = record.steps.values();
        let acted = record.outcome == "running" || steps.any(|step| step.outcome == "done");
        (acted && !record.account.is_empty()).then_some(Self {
            account: record.account,
            command: record.command,
            started: record.started,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_came_to_nothing_is_no_proof_of_an_account() {
        let account = |outcome: &str, steps: serde_json::Value| {
            let record =
                json!({"format": 2, "account": "1", "outcome": outcome, "steps": steps, "new": 1});
            LastOperation::parse(record.to_string().as_bytes()).map(|acted| acted.account)
        };
        let failed = json!({"vpc/a": {"outcome": "failed"}, "subnet/a": {"outcome": "skipped"}});
        let made = json!({"vpc/a": {"outcome": "done"}, "subnet/a": {"outcome": "failed"}});
        assert_eq!(account("failed", failed), None);
        assert_eq!(account("failed", made.clone()), Some("1".to_owned()));
        assert_eq!(account("done", made), Some("1".to_owned()));
        // Killed: what it did is written at its end.
        assert_eq!(account("running", json!({})), Some("1".to_owned()));
        assert_eq!(
            LastOperation::parse(br#"{"outcome": "done"}"#),
            None,
            "the spec"
        );
        assert_eq!(LastOperation::parse(b"{"), None);
    }
}
