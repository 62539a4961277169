//! The formation record of an etcd cluster in the state store, as kctl reads and changes it.

use super::reports::RECORD_LIMIT;
use crate::commands::session::Session;
use crate::error::{CommandError, ErrorContext, ErrorKind};
use crate::state::{StoreKeys, store_error};
use aws_client::store::{Expect, StoreError, Version};
use node::etcd::{FormationRecord, member_name_matches, record_key};

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
                // A write whose answer was lost was repeated.
                if self.read().await?.0.token() == record.token() {
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

/// A random token of a new etcd cluster.
pub fn new_token() -> Result<String, CommandError> {
    let mut random = [0; 16];
    getrandom::fill(&mut random).or_failed(
        "could not get random numbers from the system",
        "report this: it is a defect of kctl",
    )?;
    Ok(node::digest::to_hex(&random))
}
