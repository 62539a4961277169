//! AWS as the engine's [`World`]: one sweep, and the verbs of whichever kind an object is.

use crate::world::AwsWorld;
use crate::{kinds, observe};
use cloud::Cloud;
use engine::{Failure, Observed, Put, Refs, Removed, Snapshot, World};

impl World<Cloud> for AwsWorld {
    async fn observe(&self) -> Result<Snapshot<Cloud>, Failure> {
        let seen = Box::pin(observe::observe_cluster(self)).await?;
        let items = seen.items.into_iter();
        let items = items.map(|item| self.scope.without_tags_of_others(item));
        Ok(Snapshot {
            items: items.collect(),
        })
    }

    async fn find(&self, want: &Cloud, refs: &Refs) -> Result<Option<Observed<Cloud>>, Failure> {
        let found = kinds::find(self, want, refs).await?;
        Ok(found.map(|found| self.scope.without_tags_of_others(found)))
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
