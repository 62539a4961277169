//! Reads the log of a cluster's operations. Records that cannot be read are listed with the reason.

use super::operation::{FORMAT, Operation};
use super::{LockKind, LockState, ObservedLock, StoreKeys, store_error};
use crate::error::CommandError;
use aws_client::store::Store;
use futures::future::try_join_all;
use serde_json::Value;

/// One operation of the log.
#[derive(Clone, Debug)]
pub struct ListedOperation {
    /// Its name in the store: start time and a unique suffix.
    pub id: String,
    /// The record, or why it cannot be read.
    pub record: Result<Operation, String>,
    /// True if it holds a valid lock.
    pub runs: bool,
}

impl ListedOperation {
    /// `done`, `failed`, `interrupted`, `running`, `no end recorded` or `unreadable`.
    pub fn result(&self) -> &str {
        match &self.record {
            Err(_) => "unreadable",
            Ok(record) if record.outcome == "running" && !self.runs => "no end recorded",
            Ok(record) => &record.outcome,
        }
    }
}

/// The ids of a cluster's operations.
#[derive(Debug)]
pub struct OperationLog<'a> {
    store: &'a Store,
    keys: &'a StoreKeys,
    /// Newest first.
    ids: Vec<String>,
}

impl<'a> OperationLog<'a> {
    pub async fn list(store: &'a Store, keys: &'a StoreKeys) -> Result<Self, CommandError> {
        let prefix = keys.operation_prefix();
        let entries = store.list(&prefix, None).await.map_err(store_error)?;
        let id = |key: &str| Some(key.strip_prefix(&prefix)?.strip_suffix(".json")?.to_owned());
        let mut ids: Vec<String> = entries.iter().filter_map(|entry| id(&entry.key)).collect();
        // Names begin with times.
        ids.sort_by(|a, b| b.cmp(a));
        Ok(Self { store, keys, ids })
    }

    /// Ids, the newest first.
    pub fn ids(&self) -> &[String] {
        &self.ids
    }

    /// Reads the records of some ids, and the locks if one of them may be running.
    pub async fn read(&self, ids: &[String]) -> Result<Vec<ListedOperation>, CommandError> {
        let records = try_join_all(ids.iter().map(|id| self.read_record(id))).await?;
        let runs = |record: &Result<Operation, String>| {
            record
                .as_ref()
                .is_ok_and(|record| record.outcome == "running")
        };
        let mut locks = Vec::new();
        if records.iter().any(runs) {
            for kind in [LockKind::Changes, LockKind::RollingUpdate] {
                locks.extend(ObservedLock::read(self.store, self.keys, kind).await?);
            }
        }
        let listed = ids.iter().zip(records).map(|(id, record)| ListedOperation {
            id: id.clone(),
            runs: record
                .as_ref()
                .is_ok_and(|record| locks.iter().any(|lock| is_holder(lock, record))),
            record,
        });
        Ok(listed.collect())
    }

    async fn read_record(&self, id: &str) -> Result<Result<Operation, String>, CommandError> {
        let key = self.keys.operation(id);
        let Some(object) = self.store.get(&key).await.map_err(store_error)? else {
            return Ok(Err("it was deleted a moment ago".to_owned()));
        };
        Ok(parse(&object.bytes))
    }
}

fn parse(bytes: &[u8]) -> Result<Operation, String> {
    let json: Value =
        serde_json::from_slice(bytes).map_err(|error| format!("not JSON: {error}"))?;
    match json.get("format").and_then(Value::as_u64) {
        Some(format) if format == u64::from(FORMAT) => {}
        Some(format) => {
            return Err(format!(
                "it has format {format}, and this kctl reads {FORMAT}"
            ));
        }
        None => return Err("it has no format".to_owned()),
    }
    serde_json::from_value(json).map_err(|error| error.to_string())
}

/// True if the operation holds the lock, and the lock is valid.
fn is_holder(lock: &ObservedLock, record: &Operation) -> bool {
    let Some(holder) = &lock.holder else {
        return false;
    };
    let same = (&holder.who, Some(holder.process)) == (&record.who, record.process);
    same && matches!(lock.state(), LockState::Alive(_))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::lock::LockHolder;
    use aws_client::store::Version;
    use std::time::Duration;

    /// One of this process.
    fn test_record(outcome: &str) -> Operation {
        let holder = LockHolder::this_process("update", Duration::from_secs(30));
        let mut record = Operation::default();
        record.who = holder.who;
        record.process = Some(holder.process);
        outcome.clone_into(&mut record.outcome);
        record
    }

    #[test]
    fn what_has_no_end_runs_only_while_the_lock_is_its_own_and_counts() {
        let life = Duration::from_secs(30);
        let lock = |change: fn(&mut LockHolder), age: u64| {
            let mut holder = LockHolder::this_process("update", life);
            change(&mut holder);
            ObservedLock {
                holder: Some(holder),
                version: Version("1".to_owned()),
                age: Some(Duration::from_secs(age)),
            }
        };
        let result = |outcome: &str, lock: Option<ObservedLock>| {
            let record = test_record(outcome);
            let runs = lock.is_some_and(|lock| is_holder(&lock, &record));
            let listed = ListedOperation {
                id: String::new(),
                record: Ok(record),
                runs,
            };
            listed.result().to_owned()
        };
        assert_eq!(result("running", Some(lock(|_| {}, 1))), "running");
        for other in [
            lock(|holder| holder.process += 1, 1),
            lock(|holder| holder.who.push('x'), 1),
            lock(|_| {}, 31),
        ] {
            assert_eq!(result("running", Some(other)), "no end recorded");
        }
        assert_eq!(result("running", None), "no end recorded");
        assert_eq!(result("done", Some(lock(|_| {}, 1))), "done");
    }

    #[test]
    fn what_cannot_be_read_says_why() {
        for (bytes, why) in [
            ("{", "not JSON"),
            ("{}", "no format"),
            (r#"{"format": 2}"#, "format 2"),
            (r#"{"format": 1}"#, "missing field"),
        ] {
            let error = parse(bytes.as_bytes()).unwrap_err();
            assert!(error.contains(why), "{error}");
        }
    }
}
