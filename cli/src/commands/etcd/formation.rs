//! The formation record of an etcd cluster in the state store, with errors for an operator.

use crate::commands::session::Session;
use crate::error::{CommandError, ErrorContext, ErrorKind};
use crate::state::{StoreKeys, stored_error};
use etcd_rules::{FormationRecord, member_name_matches};
use etcd_store::{FormationStore, StoredRecord};

/// Access to the record of one etcd cluster.
#[derive(Clone, Copy, Debug)]
pub struct Formation<'a> {
    pub session: &'a Session<'a>,
    /// The cluster.
    pub name: &'a str,
    /// The etcd cluster.
    pub etcd: &'a str,
}

impl Formation<'_> {
    fn store(&self) -> FormationStore {
        let folder = StoreKeys::new(self.name).key_below("");
        FormationStore::in_folder(&self.session.store, &folder, self.etcd)
    }

    /// Reads it; `None`: no instance has begun to form the etcd cluster.
    pub async fn find(&self) -> Result<Option<(FormationRecord, StoredRecord)>, CommandError> {
        let read = self.store().read_record().await;
        let read = read.map_err(|error| {
            stored_error(
                error,
                "use the release that wrote it, or restore it from the bucket's versions: without it kctl cannot know which volumes hold the \
                 cluster's data",
            )
        })?;
        let record = read.record.clone();
        Ok(record.map(|record| (record, read)))
    }

    /// Reads it.
    pub async fn read(&self) -> Result<(FormationRecord, StoredRecord), CommandError> {
        self.find().await?.ok_or_else(|| self.missing_error())
    }

    /// Writes it. False if somebody else has changed it.
    pub async fn try_write(
        &self,
        record: &FormationRecord,
        read: &StoredRecord,
    ) -> Result<bool, CommandError> {
        let written = self.store().write_record(read, record).await;
        written.map_err(|error| stored_error(error, "see who may write the state store"))
    }

    /// Writes it if nobody else has changed it.
    pub async fn write(
        &self,
        record: &FormationRecord,
        read: &StoredRecord,
    ) -> Result<(), CommandError> {
        // A write whose answer was lost was repeated. protokube may have gone on from it; what was asked for is in it nevertheless.
        if self.try_write(record, read).await? || is_asked_in(record, &self.read().await?.0) {
            return Ok(());
        }
        Err(self.refuse(
            "the record was changed by somebody else meanwhile; nothing was changed",
            "look at the members and ask again",
        ))
    }

    /// The error of a cluster without a record.
    pub fn missing_error(&self) -> CommandError {
        CommandError::from_message(
            ErrorKind::Precondition,
            format!(
                "{} has no record of an etcd cluster {}",
                self.name, self.etcd
            ),
            format!(
                "see the etcd clusters with `kctl etcd status {}`",
                self.name
            ),
        )
    }

    /// A refusal with the status as the next step.
    pub fn refuse(&self, why: impl Into<String>, next: &str) -> CommandError {
        CommandError::from_message(
            ErrorKind::Precondition,
            why,
            format!("{next}: `kctl etcd status {}`", self.name),
        )
    }

    /// The short name of the member that was named: `etcd-b` or `b`.
    pub fn find_member(
        &self,
        record: &FormationRecord,
        named: &str,
    ) -> Result<String, CommandError> {
        let etcd = self.etcd;
        let is_named =
            |member: &&String| *member == named || member_name_matches(etcd, named, member);
        let found = record.members.keys().find(is_named).cloned();
        found.ok_or_else(|| {
            let members: Vec<&str> = record.members.keys().map(String::as_str).collect();
            let members = members.join(", ");
            let why = format!("etcd {etcd} has no member {named}; its members: {members}");
            self.refuse(why, "see the members")
        })
    }
}

/// True if the stored record is this one, or one that protokube made of it: the same formation, recovery or restore, with the same
/// terms.
fn is_asked_in(record: &FormationRecord, stored: &FormationRecord) -> bool {
    let has_terms = match (&record.next, &stored.next) {
        (Some(asked), Some(stored)) => {
            (stored.is_forced(), &stored.from) == (asked.is_forced(), &asked.from)
        }
        _ => true,
    };
    record.newest_token() == stored.newest_token() && has_terms
}

/// A random token of a new etcd cluster.
pub fn new_token() -> Result<String, CommandError> {
    let mut random = [0; 16];
    getrandom::fill(&mut random).or_failed(
        "could not get random numbers from the system",
        "report this: it is a defect of kctl",
    )?;
    Ok(node::digest::to_hex(&random))
}

#[cfg(test)]
mod tests {
    use super::*;
    use etcd_rules::{Generation, RecordedMember, RecoveryTerms, begin_recovery, mark_stopped};

    /// Only then is a conflict no error.
    #[test]
    fn a_stored_record_is_what_was_asked_for_only_with_the_same_terms() {
        let member = RecordedMember {
            member_id: Some("id-a".to_owned()),
            ..RecordedMember::on_volume("vol-a", true)
        };
        let generation = Generation::formed("c1", "t1");
        let formed = FormationRecord::new(generation, [("a".to_owned(), member)].into());
        let begin = |record: &FormationRecord, force| {
            let terms = RecoveryTerms {
                revision: None,
                force,
            };
            begin_recovery(record, "a", "t2", terms).unwrap()
        };
        let asked = begin(&formed, false);
        let forced = begin(&asked, true);
        assert!(is_asked_in(&asked, &asked));
        // protokube has gone on.
        assert!(is_asked_in(&asked, &mark_stopped(&asked, "b", None)));
        assert!(!is_asked_in(&forced, &asked) && !is_asked_in(&asked, &formed));
    }
}
