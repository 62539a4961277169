//! The journal in the simulated state store: read-after-write, as S3 is.

use super::cloud::SimCloud;
use model::engine::{Failure, Id, Journal, Noted};

impl Journal for SimCloud {
    async fn open(&self) -> Result<Noted, Failure> {
        self.request("journal", None, |state, _| Ok(state.journal.clone()))
            .await
    }

    async fn record(&self, ids: &[Id]) -> Result<(), Failure> {
        let (ids, own) = (ids.to_vec(), Id::new("journal", "any"));
        self.request("journal", Some(&own), move |state, _| {
            state.journal.creating = ids;
            Ok(())
        })
        .await
    }

    async fn close(&self, made: &[Id]) -> Result<(), Failure> {
        let made = made.to_vec();
        self.request("journal", None, move |state, _| {
            state.journal = Noted {
                creating: Vec::new(),
                made,
            };
            Ok(())
        })
        .await
    }
}
