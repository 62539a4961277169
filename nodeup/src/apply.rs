//! Stage apply: downloads what is needed and applies the plan. Objects that need no download are applied while downloads run,
//! because installing packages takes equally long.

use crate::build::{BuildResult, NeededDownloads};
use crate::download::{DownloadLimits, Downloads};
use crate::retry::AttemptLog;
use crate::run::Run;
use crate::stage::Stages;
use crate::{host, stored};
use anyhow::{Context, anyhow};
use aws_client::store::Store;
use engine::{Id, Resource};
use node::host::{HostObject, HostResource};
use std::collections::BTreeSet;
use std::io::ErrorKind;

/// Downloads what is needed and brings the instance to its desired state. Ids of changed objects are added to `changes`, even if
/// an error is returned.
pub async fn apply_plan(
    run: &Run,
    built: BuildResult,
    stages: &Stages,
    changes: &mut BTreeSet<String>,
) -> anyhow::Result<()> {
    let attempt_log = stages.attempt_logger();
    let mut downloaded = Ok(());
    if !built.downloads.is_empty() {
        host::forget_starts(built.desired.clone(), built.context.clone()).await?;
        let downloads = download_needed(run, &built.downloads, built.store.as_ref(), &*attempt_log);
        let early = host::apply_desired(without_downloads(&built.desired), built.context.clone());
        let (ended, applied) = futures::join!(downloads, early);
        downloaded = ended;
        // Early failures are retried below.
        changes.extend(applied?.changes);
    }
    let archives = archives_of(&built.desired);
    // If a download is missing, objects that do not need it are still applied.
    let applied = host::apply_desired(built.desired, built.context).await?;
    let error = applied.error_text();
    changes.extend(applied.changes);
    if error.is_none() {
        remove_archives(run, &archives)?;
    }
    match (downloaded, error) {
        (Ok(()), None) => Ok(()),
        (Ok(()), Some(error)) => Err(anyhow!(error)),
        (Err(cause), None) => Err(cause),
        (Err(cause), Some(error)) => Err(anyhow!("{cause:#}; {error}")),
    }
}

/// The objects that depend on no download, directly or indirectly.
fn without_downloads(desired: &[HostResource]) -> Vec<HostResource> {
    let mut late: BTreeSet<Id> = BTreeSet::new();
    loop {
        let waits = |resource: &&HostResource| {
            matches!(
                resource.thing,
                HostObject::Download(_) | HostObject::Image(_)
            ) || resource.needs.iter().any(|id| late.contains(id))
        };
        let found: BTreeSet<Id> = desired.iter().filter(waits).map(Resource::id).collect();
        if found.len() == late.len() {
            let early = desired
                .iter()
                .filter(|resource| !late.contains(&resource.id()));
            return early.cloned().collect();
        }
        late = found;
    }
}

/// Downloads and verifies all needed files into the cache.
async fn download_needed(
    run: &Run,
    wanted: &NeededDownloads,
    store: Option<&Store>,
    attempt_log: AttemptLog<'_>,
) -> anyhow::Result<()> {
    let downloads = Downloads::new(run.paths.cache_folder(), DownloadLimits::default())?;
    let downloads = downloads.with_clients(run.identified.clients.clone());
    let own = async {
        for (name, agent) in &wanted.agents {
            let store = store.with_context(|| {
                format!("{name} is in the state store, which only control planes may read")
            })?;
            stored::fetch_agent(store, name, agent, &downloads, attempt_log).await?;
        }
        Ok(())
    };
    let files = [wanted.assets.clone(), wanted.images.clone()].concat();
    let (own, others) = futures::join!(own, downloads.fetch_all(&files, attempt_log));
    match (own, others) {
        (Err(first), Err(second)) => Err(anyhow!("{first:#}; {second:#}")),
        (own, others) => own.and(others.map(drop)),
    }
}

/// The archives of all desired images, by sha256. An apply that failed may have left some that later ones do not need.
fn archives_of(desired: &[HostResource]) -> Vec<String> {
    let images = desired.iter().filter_map(|resource| match &resource.thing {
        HostObject::Image(image) => Some(image.archive.clone()),
        _ => None,
    });
    images.collect()
}

/// Removes the archives of images that containerd has now: they are as large as the images, and of use once.
fn remove_archives(run: &Run, archives: &[String]) -> anyhow::Result<()> {
    for sha256 in archives {
        let path = run.paths.cache_folder().join(sha256);
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                return Err(error).with_context(|| format!("could not remove {}", path.display()));
            }
            Ok(()) | Err(_) => {}
        }
    }
    Ok(())
}
