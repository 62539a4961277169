//! Addons: what the state store lists is applied to the cluster, and what left the list is removed, for ever.

mod cluster;
mod kinds;
mod object;
mod record;
mod round;
#[cfg(test)]
mod tests;
mod wanted;

use crate::log::Voice;
use aws_client::store::Store;
use kube::Client;
use round::Follower;
use std::time::Duration;
use tokio::time::{sleep, timeout};

/// When to look.
#[derive(Clone, Copy, Debug)]
struct Pace {
    /// After all was well, and at most after an error.
    usual: Duration,
    /// After the first error; doubled with each further one.
    retry: Duration,
    /// A look that takes longer is given up.
    longest: Duration,
}

const PACE: Pace = Pace {
    usual: Duration::from_mins(1),
    retry: Duration::from_secs(2),
    longest: Duration::from_mins(5),
};

/// Keeps the cluster's addons as the store has them. `store` is that of the cluster's base. Says one line for each change and each
/// new error; ends never: what fails is tried again.
///
/// Several control planes may do this at once. What is applied is recorded in the cluster, so that a look at an unchanged list is
/// one read of the store and one of the API.
pub async fn run(client: Client, store: Store, voice: Voice) -> anyhow::Result<()> {
    follow(Follower::new(client, store, voice), PACE).await
}

async fn follow(mut follower: Follower, pace: Pace) -> anyhow::Result<()> {
    let mut wait = pace.retry;
    loop {
        let well = match timeout(pace.longest, follower.look()).await {
            Ok(well) => well,
            Err(_) => follower.too_long(pace.longest),
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
