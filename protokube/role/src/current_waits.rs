//! The table of what the roles wait for or refuse now. Role logs fill it, and it is reported in the state store, because the console
//! shows only the boot of an instance.

mod waits_reporter;

pub use waits_reporter::{WRITE_INTERVAL, WaitsReporter};

use node::report::Status;
use node::waits::Wait;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use tokio::sync::watch;

/// Waits by role and part of the role.
type WaitTable = BTreeMap<(String, String), CurrentWait>;

/// What all roles wait for or refuse now.
#[derive(Debug)]
pub struct CurrentWaits {
    table: watch::Sender<WaitTable>,
    clock: fn() -> OffsetDateTime,
}

#[derive(Clone, Debug)]
struct CurrentWait {
    status: Status,
    message: String,
    since: OffsetDateTime,
}

impl Default for CurrentWaits {
    fn default() -> Self {
        Self::with_clock(OffsetDateTime::now_utc)
    }
}

impl CurrentWaits {
    /// An empty table with this clock.
    pub fn with_clock(clock: fn() -> OffsetDateTime) -> Self {
        let table = watch::Sender::default();
        Self { table, clock }
    }

    /// Sets what a role waits for or refuses. The begin of an existing entry is kept.
    pub fn set_wait(&self, role: &str, about: &str, status: Status, message: &str) {
        let now = (self.clock)();
        self.table.send_if_modified(|all| {
            let entry = all.entry(table_key(role, about));
            let known = matches!(entry, Entry::Occupied(_));
            let one = entry.or_insert_with(|| CurrentWait {
                status,
                message: message.to_owned(),
                since: now,
            });
            let same = one.status == status && one.message == message;
            one.status = status;
            message.clone_into(&mut one.message);
            !(known && same)
        });
    }

    pub fn clear_wait(&self, role: &str, about: &str) {
        self.table
            .send_if_modified(|all| all.remove(&table_key(role, about)).is_some());
    }

    /// Clears an entry if it has this message.
    pub(crate) fn clear_wait_if(&self, role: &str, about: &str, message: &str) {
        let key = table_key(role, about);
        self.table.send_if_modified(|all| {
            let same = all.get(&key).is_some_and(|one| one.message == message);
            same && all.remove(&key).is_some()
        });
    }

    /// All entries, sorted by role.
    pub fn list_waits(&self) -> Vec<Wait> {
        to_waits(&self.table.borrow())
    }

    fn subscribe_changes(&self) -> watch::Receiver<WaitTable> {
        self.table.subscribe()
    }
}

fn to_waits(table: &WaitTable) -> Vec<Wait> {
    let wait = |((role, about), one): (&(String, String), &CurrentWait)| Wait {
        since: one.since.format(&Rfc3339).unwrap_or_default(),
        ..Wait::new(role, about, one.status, &one.message)
    };
    table.iter().map(wait).collect()
}

fn table_key(role: &str, about: &str) -> (String, String) {
    (role.to_owned(), about.to_owned())
}
