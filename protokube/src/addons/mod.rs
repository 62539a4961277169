//! Role addons: keeps applying the addons in the state store's list to the cluster, and removes those that left the list.

mod addon_list;
mod cluster;
mod kinds;
mod object;
mod record;
mod round;
#[cfg(test)]
mod tests;

use crate::api::ApiAccess;
use protokube_role::log::RoleLog;
use protokube_role::signed_objects::SignedObjects;
use round::AddonReconciler;
use std::time::Duration;
use tokio::time::{sleep, timeout};

#[derive(Clone, Copy, Debug)]
struct AddonPace {
    /// Pause after success, and longest pause after errors.
    usual: Duration,
    /// Pause after the first error; doubled for each further one.
    retry: Duration,
    /// Timeout of a round.
    longest: Duration,
}

const PACE: AddonPace = AddonPace {
    usual: Duration::from_mins(1),
    retry: Duration::from_secs(2),
    longest: Duration::from_mins(5),
};

/// Keeps the cluster's addons as in the state store, for ever. Logs each change and each new error; failures are retried. Nothing is
/// applied or removed while the list is not one that kctl has signed, or is older than one that was used before.
///
/// Several control planes may do this at the same time. Applied addons are recorded in the cluster, so that a round with an
/// unchanged list costs one read of the store and one of the API, and needs no administrator.
pub async fn keep_addons(
    access: impl Into<ApiAccess>,
    signed: SignedObjects,
    role_log: RoleLog,
) -> anyhow::Result<()> {
    keep_list_applied(AddonReconciler::new(access.into(), signed, role_log), PACE).await
}

async fn keep_list_applied(mut reconciler: AddonReconciler, pace: AddonPace) -> anyhow::Result<()> {
    let mut wait = pace.retry;
    loop {
        let well = match timeout(pace.longest, reconciler.run_round()).await {
            Ok(well) => well,
            Err(_) => reconciler.abandon_round(pace.longest),
        };
        if well {
            wait = pace.retry;
            sleep(pace.usual).await;
        } else {
            sleep(wait).await;
            wait = (wait * 2).min(pace.usual);
        }
    }
}
