//! What this machine's roles wait for or refuse at this moment. Their voices say so, and the state store has it for operators,
//! whom the console of a machine that joined long ago does not reach.

mod report;

pub use report::{EVERY, Report};

use node::report::Status;
use node::waits::Wait;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use tokio::sync::watch;

/// By role, and what of the role's it is.
type Said = BTreeMap<(String, String), Stands>;

/// All that stands.
#[derive(Debug)]
pub struct Standing {
    said: watch::Sender<Said>,
    clock: fn() -> OffsetDateTime,
}

#[derive(Clone, Debug)]
struct Stands {
    status: Status,
    message: String,
    since: OffsetDateTime,
}

impl Default for Standing {
    fn default() -> Self {
        Self::by(OffsetDateTime::now_utc)
    }
}

impl Standing {
    /// By that clock; nothing stands yet.
    pub fn by(clock: fn() -> OffsetDateTime) -> Self {
        let said = watch::Sender::default();
        Self { said, clock }
    }

    /// That role waits for this, or refuses it.
    pub fn stands(&self, role: &str, about: &str, status: Status, message: &str) {
        let now = (self.clock)();
        self.said.send_if_modified(|all| {
            let entry = all.entry(key(role, about));
            let known = matches!(entry, Entry::Occupied(_));
            let one = entry.or_insert_with(|| Stands {
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

    /// It does so no more.
    pub fn over(&self, role: &str, about: &str) {
        self.said
            .send_if_modified(|all| all.remove(&key(role, about)).is_some());
    }

    /// It does so no more, if it was this.
    pub(crate) fn over_if(&self, role: &str, about: &str, message: &str) {
        let key = key(role, about);
        self.said.send_if_modified(|all| {
            let same = all.get(&key).is_some_and(|one| one.message == message);
            same && all.remove(&key).is_some()
        });
    }

    /// All of it, by role.
    pub fn waits(&self) -> Vec<Wait> {
        of(&self.said.borrow())
    }

    fn changes(&self) -> watch::Receiver<Said> {
        self.said.subscribe()
    }
}

fn of(said: &Said) -> Vec<Wait> {
    let wait = |((role, about), one): (&(String, String), &Stands)| Wait {
        since: one.since.format(&Rfc3339).unwrap_or_default(),
        ..Wait::new(role, about, one.status, &one.message)
    };
    said.iter().map(wait).collect()
}

fn key(role: &str, about: &str) -> (String, String) {
    (role.to_owned(), about.to_owned())
}
