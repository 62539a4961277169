//! AWS as the engine's [`World`]: one sweep, and the verbs of whichever kind an object is.

use crate::kinds;
use crate::observe;
use crate::world::AwsWorld;
use model::cloud::Cloud;
use model::engine::{Failure, Observed, Put, Refs, Removed, Snapshot, World};

impl World<Cloud> for AwsWorld {
    async fn observe(&self) -> Result<Snapshot<Cloud>, Failure> {
        Box::pin(observe::sweep(self)).await
    }

    async fn find(&self, want: &Cloud, refs: &Refs) -> Result<Option<Observed<Cloud>>, Failure> {
        kinds::find(self, want, refs).await
    }

    async fn put(
        &self,
        want: &Cloud,
        have: Option<&Observed<Cloud>>,
        refs: &Refs,
    ) -> Result<Put, Failure> {
        kinds::put(self, want, have, refs).await
    }

    async fn remove(&self, have: &Observed<Cloud>) -> Result<Removed, Failure> {
        kinds::remove(self, have).await
    }

    async fn ready(&self, want: &Cloud, physical: &str) -> Result<Put, Failure> {
        kinds::ready(self, want, physical).await
    }

    async fn gone(&self, have: &Observed<Cloud>) -> Result<Removed, Failure> {
        kinds::gone(self, have).await
    }
}
