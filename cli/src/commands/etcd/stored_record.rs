//! The formation record of an etcd cluster in the state store, as kctl reads and changes it.

use super::reports::RECORD_LIMIT;
use crate::commands::session::Session;
use crate::error::{CommandError, ErrorContext, ErrorKind};
use crate::state::{StoreKeys, store_error};
use aws_client::store::{Expect, StoreError, Version};
use etcd_rules::{FormationRecord, FormationState, member_name_matches, record_key};

/// The record of one etcd cluster.
#[derive(Clone, Copy, Debug)]
pub struct StoredRecord<'a> {
    pub session: &'a Session<'a>,
    /// The cluster.
    pub name: &'a str,
    /// The etcd cluster.
    pub etcd: &'a str,
}

impl StoredRecord<'_> {
    fn key(&self) -> String {
        StoreKeys::new(self.name).key_below(&record_key(self.etcd))
    }

    /// Reads it.
    pub async fn read(&self) -> Result<(FormationRecord, Version), CommandError> {
        let key = self.key();
        let object = self.session.store.get(&key).await.map_err(store_error)?;
        let object = object.filter(|object| object.bytes.len() < RECORD_LIMIT);
        let object = object.ok_or_else(|| self.missing_error())?;
        let record = FormationRecord::parse(&key, &object.bytes).or_failed(
            "the record cannot be read",
            "use the kctl of the cluster's release",
        )?;
        Ok((record, object.version))
    }

    /// Writes it if nobody else has changed it.
    pub async fn write(&self, record: &FormationRecord, read: Version) -> Result<(), CommandError> {
        let (text, expect) = (record.to_json().into_bytes(), Expect::Version(read));
        match self.session.store.put(&self.key(), text, expect).await {
            Ok(_) => Ok(()),
            Err(StoreError::Conflict { .. }) => {
                // A write whose answer was lost was repeated. protokube may have gone on from it; what was asked for is in it nevertheless.
                if is_asked_in(record, &self.read().await?.0) {
                    return Ok(());
                }
                Err(self.refuse(
                    "the record was changed by somebody else meanwhile; nothing was changed",
                    "look at the members and ask again",
                ))
            }
            Err(error) => Err(store_error(error)),
        }
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
    let is_forced = match (&record.state, &stored.state) {
        (FormationState::Recovering(asked), FormationState::Recovering(stored)) => {
            (stored.force, &stored.from) == (asked.force, &asked.from)
        }
        _ => true,
    };
    record.token() == stored.token() && is_forced
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
    use etcd_rules::{RecordedMember, RecoveryTerms, begin_recovery, mark_stopped};

    /// Only then is a conflict no error.
    #[test]
    fn a_stored_record_is_what_was_asked_for_only_with_the_same_terms() {
        let member = RecordedMember {
            member_id: Some("id-a".to_owned()),
            ..RecordedMember::on_volume("vol-a", true)
        };
        let state = FormationState::formed("c1", "t1");
        let formed = FormationRecord::new(state, [("a".to_owned(), member)].into());
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
