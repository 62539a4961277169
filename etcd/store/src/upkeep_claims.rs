//! The claim on the upkeep of an etcd cluster in the state store (`etcd_rules::UpkeepClaim`): who has it may defragment the member on
//! its instance.

use anyhow::Context;
use aws_client::store::{Expect, Store, StoreError, Version};
use etcd_rules::{UPKEEP_CLAIM_LIMIT, UpkeepClaim, upkeep_claim_key};
use time::OffsetDateTime;

/// Access to the claim on one etcd cluster.
#[derive(Clone, Debug)]
pub struct UpkeepClaims {
    /// State store at the cluster's base.
    pub store: Store,
    /// The etcd cluster: `main`.
    pub etcd: String,
    /// Id of this instance, `i-...`.
    pub instance: String,
    pub clock: fn() -> OffsetDateTime,
}

impl UpkeepClaims {
    /// Takes the claim. `None`: another one has it.
    pub async fn take(&self) -> anyhow::Result<Option<Version>> {
        let key = upkeep_claim_key(&self.etcd);
        let now = (self.clock)();
        let own = UpkeepClaim::new(&self.instance, now);
        let object = self.store.get(&key).await;
        let object = object.with_context(|| format!("could not read {key}"))?;
        let expect = match object {
            None => Expect::Absent,
            Some(object) => {
                let fits = object.bytes.len() <= UPKEEP_CLAIM_LIMIT;
                let held = fits.then(|| UpkeepClaim::parse(&key, &object.bytes));
                // Whatever else is there counts as long as a claim.
                let held = held.and_then(Result::ok);
                let held = held.unwrap_or_else(|| UpkeepClaim::new("unknown", now));
                if !held.gives_way(&own, object.age, now) {
                    return Ok(None);
                }
                Expect::Version(object.version)
            }
        };
        match self
            .store
            .put(&key, own.to_json().into_bytes(), expect)
            .await
        {
            Ok(version) => Ok(Some(version)),
            Err(StoreError::Conflict { .. }) => Ok(None),
            Err(error) => Err(error).with_context(|| format!("could not write {key}")),
        }
    }

    /// Gives back a claim that this instance took before its protokube was restarted.
    pub async fn release_left(&self) -> anyhow::Result<()> {
        let key = upkeep_claim_key(&self.etcd);
        let object = self.store.get(&key).await;
        let object = object.with_context(|| format!("could not read {key}"))?;
        let Some(object) = object else {
            return Ok(());
        };
        let held = UpkeepClaim::parse(&key, &object.bytes).ok();
        let own = held.is_some_and(|held| held.instance == self.instance);
        if own {
            self.release(object.version).await?;
        }
        Ok(())
    }

    /// Gives the claim back. One that cannot be deleted ends by itself.
    pub async fn release(&self, claim: Version) -> anyhow::Result<()> {
        let key = upkeep_claim_key(&self.etcd);
        match self.store.delete(&key, Expect::Version(claim)).await {
            Ok(()) | Err(StoreError::Conflict { .. }) => Ok(()),
            Err(error) => Err(error).with_context(|| format!("could not delete {key}")),
        }
    }
}
