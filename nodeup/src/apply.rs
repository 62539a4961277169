//! Closing the difference. What needs no download is done while downloads arrive: packages take as long as they do.

use crate::build::{Built, Wanted};
use crate::download::{Downloads, Limits};
use crate::retry::Told;
use crate::run::Run;
use crate::stage::Stages;
use crate::{host, stored};
use anyhow::{Context, anyhow};
use aws_client::store::Store;
use engine::{Id, Resource};
use node::host::{HostResource, Thing};
use std::collections::BTreeSet;

/// Downloads, and makes the machine what it should be. What it changes is in `changes`, however it ends.
pub async fn apply(
    run: &Run,
    built: Built,
    stages: &Stages,
    changes: &mut BTreeSet<String>,
) -> anyhow::Result<()> {
    let told = stages.attempts();
    let mut downloaded = Ok(());
    if !built.wanted.is_empty() {
        host::forget_starts(built.desired.clone(), built.context.clone()).await?;
        let downloads = download(run, &built.wanted, built.store.as_ref(), &*told);
        let early = host::apply(early(&built.desired), built.context.clone());
        let (ended, applied) = futures::join!(downloads, early);
        downloaded = ended;
        // What failed early fails again below, unless it is mended.
        changes.extend(applied?.changes);
    }
    // With one download missing, what does not need it is done all the same.
    let applied = host::apply(built.desired, built.context).await?;
    let error = applied.error();
    changes.extend(applied.changes);
    match (downloaded, error) {
        (Ok(()), None) => Ok(()),
        (Ok(()), Some(error)) => Err(anyhow!(error)),
        (Err(cause), None) => Err(cause),
        (Err(cause), Some(error)) => Err(anyhow!("{cause:#}; {error}")),
    }
}

/// What needs no download, nor anything that needs one.
fn early(desired: &[HostResource]) -> Vec<HostResource> {
    let mut late: BTreeSet<Id> = BTreeSet::new();
    loop {
        let waits = |of: &&HostResource| {
            matches!(of.thing, Thing::Download(_)) || of.needs.iter().any(|id| late.contains(id))
        };
        let found: BTreeSet<Id> = desired.iter().filter(waits).map(Resource::id).collect();
        if found.len() == late.len() {
            let early = desired.iter().filter(|of| !late.contains(&of.id()));
            return early.cloned().collect();
        }
        late = found;
    }
}

/// Everything that is wanted into the cache, verified.
async fn download(
    run: &Run,
    wanted: &Wanted,
    store: Option<&Store>,
    told: Told<'_>,
) -> anyhow::Result<()> {
    let downloads = Downloads::new(run.place.cache(), Limits::default())?;
    let own = async {
        for (name, agent) in &wanted.agents {
            let store = store.with_context(|| {
                format!("{name} lies in the state store, which only control planes read")
            })?;
            stored::agent(store, name, agent, &downloads, told).await?;
        }
        Ok(())
    };
    let (own, others) = futures::join!(own, downloads.fetch(&wanted.assets, told));
    match (own, others) {
        (Err(first), Err(second)) => Err(anyhow!("{first:#}; {second:#}")),
        (own, others) => own.and(others.map(drop)),
    }
}
