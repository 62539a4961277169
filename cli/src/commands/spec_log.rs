//! Records changes of the spec in the log of operations.

use super::session::Session;
use crate::state::{Operation, SpecChange, StoreKeys};
use time::OffsetDateTime;

/// Writes an operation for changes that are already stored. A failure is only a warning.
pub async fn log_spec_changes(
    command: &str,
    keys: &StoreKeys,
    objects: Vec<SpecChange>,
    session: &Session<'_>,
) {
    if objects.is_empty() {
        return;
    }
    let operation = Operation::begin(keys, command, None, OffsetDateTime::now_utc());
    if let Err(error) = operation
        .with_spec_changes(objects)
        .write(&session.store)
        .await
    {
        let shell = session.shell;
        shell.warning("the change could not be written to the log of operations");
        shell.error(&error);
    }
}
