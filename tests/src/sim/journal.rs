//! The journal in the simulated state store: read-after-write, as S3 is.

use super::cloud::SimCloud;
use model::engine::{Failure, Id, Journal};

impl Journal for SimCloud {
    async fn open(&self) -> Result<Vec<Id>, Failure> {
        self.request("journal", None, |state, _| Ok(state.journal.clone()))
            .await
    }

    async fn record(&self, ids: &[Id]) -> Result<(), Failure> {
        let (ids, own) = (ids.to_vec(), Id::new("journal", "any"));
        self.request("journal", Some(&own), move |state, _| {
            state.journal = ids;
            Ok(())
        })
        .await
    }

    async fn clear(&self) -> Result<(), Failure> {
        self.request("journal", None, |state, _| {
            state.journal.clear();
            Ok(())
        })
        .await
    }
}
