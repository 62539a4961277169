//! Changes of the spec, in the log of operations: who changed what when.

use super::session::Session;
use crate::state::{Keys, Operation, SpecChange};
use time::OffsetDateTime;

/// Writes what a command changed into the log. The change is made already: a log that cannot be written is told.
pub async fn log(command: &str, keys: &Keys, objects: Vec<SpecChange>, session: &Session<'_>) {
    if objects.is_empty() {
        return;
    }
    let operation = Operation::begin(keys, command, None, OffsetDateTime::now_utc());
    if let Err(error) = operation.of_spec(objects).write(&session.store).await {
        let shell = session.shell;
        shell.warning("the change could not be written to the log of operations");
        shell.error(&error);
    }
}
