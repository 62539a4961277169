//! `journal/creations.json`: the resources of kinds that AWS would create twice, written before an apply creates the first of
//! them, and those that existed at its orderly end. The generation is part of client tokens: it stays the same when an
//! interrupted apply is repeated, and changes after an orderly end.

use super::{StoreKeys, store_error};
use crate::error::CommandError;
use aws_client::store::{Entry, Expect, Store, StoreError, Version};
use engine::{Class, Failure, Id, Journal, Noted, error_chain};
use serde::{Deserialize, Serialize};
use std::cell::RefCell;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct JournalContent {
    generation: u64,
    creating: Vec<Id>,
    #[serde(default)]
    made: Vec<Id>,
}

/// The journal of one cluster.
#[derive(Debug)]
pub struct StoreJournal<'a> {
    store: &'a Store,
    key: String,
    now: RefCell<(JournalContent, Option<Version>)>,
}

impl<'a> StoreJournal<'a> {
    /// Reads the journal, if the listing has it.
    pub async fn read(
        store: &'a Store,
        keys: &StoreKeys,
        entries: &[Entry],
    ) -> Result<Self, CommandError> {
        let key = keys.journal();
        let listed = entries.iter().any(|entry| entry.key == key);
        let object = if listed {
            store.get(&key).await.map_err(store_error)?
        } else {
            None
        };
        // An unreadable journal may be the result of a kill: treat it as if a creation were pending.
        let now = match object {
            Some(object) => {
                let unreadable = || JournalContent {
                    generation: 0,
                    creating: vec![Id::new("journal", "unreadable")],
                    made: Vec::new(),
                };
                let content =
                    serde_json::from_slice(&object.bytes).unwrap_or_else(|_| unreadable());
                (content, Some(object.version))
            }
            None => (JournalContent::default(), None),
        };
        Ok(Self {
            store,
            key,
            now: RefCell::new(now),
        })
    }

    /// The generation, for client tokens.
    pub fn generation(&self) -> String {
        self.now.borrow().0.generation.to_string()
    }

    async fn write_content(&self, content: JournalContent) -> Result<(), Failure> {
        let version = self.now.borrow().1.clone();
        let bytes = serde_json::to_vec(&content)
            .map_err(|error| journal_failure(Class::Invalid, &error.to_string()))?;
        let expect = version.map_or(Expect::Absent, Expect::Version);
        let written = self
            .store
            .put(&self.key, bytes, expect)
            .await
            .map_err(store_failure)?;
        *self.now.borrow_mut() = (content, Some(written));
        Ok(())
    }
}

impl Journal for StoreJournal<'_> {
    async fn open(&self) -> Result<Noted, Failure> {
        let JournalContent { creating, made, .. } = self.now.borrow().0.clone();
        Ok(Noted { creating, made })
    }

    async fn record(&self, ids: &[Id]) -> Result<(), Failure> {
        let mut content = self.now.borrow().0.clone();
        content.creating = ids.to_vec();
        self.write_content(content).await
    }

    async fn close(&self, made: &[Id]) -> Result<(), Failure> {
        let generation = self.now.borrow().0.generation + 1;
        self.write_content(JournalContent {
            generation,
            creating: Vec::new(),
            made: made.to_vec(),
        })
        .await
    }
}

fn store_failure(error: StoreError) -> Failure {
    match error {
        StoreError::S3 { source, .. } | StoreError::Denied { source, .. } => source,
        StoreError::Conflict { .. } => Failure {
            hint: Some("wait until it is done, and repeat the command".to_owned()),
            ..journal_failure(Class::Invalid, "another kctl works on this cluster")
        },
        other => journal_failure(Class::Invalid, &error_chain(&other)),
    }
}

fn journal_failure(class: Class, message: &str) -> Failure {
    Failure {
        class,
        call: "store:WriteJournal".to_owned(),
        code: String::new(),
        message: message.to_owned(),
        hint: None,
        request_id: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use aws_client::Clients;

    #[tokio::test]
    async fn generations_change_with_orderly_ends_only() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(
            &format!("file://{}", dir.path().display()),
            &Clients::load(None, None).await,
        )
        .unwrap();
        let keys = StoreKeys::new("demo.example.com");
        let listed = async || store.list("", None).await.unwrap();
        let journal = StoreJournal::read(&store, &keys, &listed().await)
            .await
            .unwrap();
        let ids = vec![Id::new("vpc", "demo.example.com")];
        journal.record(&ids).await.unwrap();

        let after_a_kill = StoreJournal::read(&store, &keys, &listed().await)
            .await
            .unwrap();
        assert_eq!(after_a_kill.open().await.unwrap().creating, ids);
        assert_eq!(after_a_kill.generation(), journal.generation());
        after_a_kill.close(&ids).await.unwrap();

        let next = StoreJournal::read(&store, &keys, &listed().await)
            .await
            .unwrap();
        let noted = next.open().await.unwrap();
        assert_eq!((noted.creating, noted.made), (Vec::new(), ids.clone()));
        assert_ne!(next.generation(), journal.generation());
        assert!(
            journal.record(&ids).await.is_err(),
            "whoever was overtaken writes nothing"
        );
    }
}
