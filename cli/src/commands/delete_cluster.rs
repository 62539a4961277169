//! `kctl delete cluster`: the plan from what is to nothing, then the cluster's folder in the store.

use super::applying::{Work, locked};
use super::running::completed;
use super::scope::{Place, scope};
use super::session::Session;
use super::{look, whose};
use crate::agents::Found;
use crate::args::{DeleteCluster, PlanFormat};
use crate::error::{CommandError, Context, Kind, Outcome};
use crate::interrupt::Interrupts;
use crate::kubeconfig;
use crate::planned::Target;
use crate::state::{Acted, ClusterState, Keys, Lock, StoreJournal, keyset, store_error};
use crate::ui::events::Events;
use crate::ui::plan::{self, View};
use crate::ui::plan_json::Document;
use aws_client::store::{Entry, Expect, StoreError};
use aws_cloud::{AwsWorld, CloudClients};
use cloud::Cloud;
use cloud::claim::Claim;
use cloud::facts::{Facts, FactsWanted};
use engine::{Plan, Report};
use full::DnsKind;
use node::pki::KUBERNETES_CA;
use spec::completed::Completed;
use spec::read::ReadOptions;

/// A spec that can no longer be used can still be deleted.
const LENIENT: ReadOptions = ReadOptions {
    allow_unsupported: true,
};

/// A cluster that goes.
struct Doomed {
    state: ClusterState,
    /// What the last update left; before the first, what the spec says.
    completed: Completed,
    clients: CloudClients,
    facts: Facts,
    target: Target,
    /// What shows that it is the store's.
    claim: Claim,
}

/// Deletes a cluster, or shows what that would delete.
pub async fn run(what: &DeleteCluster, session: &Session<'_>) -> Result<Outcome, CommandError> {
    let name = session.spelled_out(what.cluster.as_deref()).await?;
    let keys = Keys::of(&name);
    let listened = what.output == PlanFormat::Events;
    let events = listened.then(|| Events::begin(session.shell, "delete cluster", &name));
    let ended = if what.unregister {
        unregister(&name, &keys, what, session).await
    } else {
        ours(&name, &keys, what, events, session).await
    };
    if let Some(events) = events {
        events.end(&ended);
    }
    ended
}

async fn ours(
    name: &str,
    keys: &Keys,
    what: &DeleteCluster,
    events: Option<Events<'_>>,
    session: &Session<'_>,
) -> Result<Outcome, CommandError> {
    let doomed = doomed(name, session).await?;
    if let Some(events) = events {
        events.target(&doomed.target);
    }
    let Target {
        cluster,
        account,
        region,
    } = &doomed.target;
    let line = format!("Cluster {cluster}  account {account}  {region}");
    let programs = what.output.is_for_programs();
    if programs {
        session.shell.note(&line);
    } else {
        session.shell.result(&format!("{line}\n\n"))?;
    }
    if what.yes || (session.shell.asks() && !programs) {
        return locked(
            session,
            keys,
            "delete cluster",
            what.lock_wait,
            async |lock, interrupts| {
                let doomed = match doomed.state.is_current(&session.store).await? {
                    true => doomed,
                    false => self::doomed(name, session).await?,
                };
                delete(&doomed, what, events, session, lock, interrupts).await
            },
        )
        .await;
    }
    let journal = StoreJournal::read(&session.store, keys, &doomed.state.entries).await?;
    let world = world(&doomed, &journal, session);
    let interrupts = Interrupts::default();
    let work = work(
        &doomed,
        session,
        &world,
        &journal,
        &interrupts,
        events,
        programs,
    );
    let seen = work.observe().await?;
    whose::check(&doomed.claim, &seen, &doomed.state, session)?;
    let plan = super::update::planned(engine::plan(&[], &seen))?;
    show(&plan, &doomed, what, None, events, session).await?;
    session.shell.hint(&format!(
        "kctl delete cluster {name} --yes    deletes all of it"
    ));
    Ok(Outcome::Fine)
}

async fn doomed(name: &str, session: &Session<'_>) -> Result<Doomed, CommandError> {
    let state = ClusterState::read(&session.store, name, LENIENT).await?;
    let spec = match completed(&state, session).await? {
        Some(spec) => spec,
        None => state.cluster.object.clone(),
    };
    let completed = Completed::read(&spec);
    let clients = session.cloud_clients(completed.region.as_deref());
    let ask = FactsWanted {
        hosted_zones: completed.dns != DnsKind::None,
        ..FactsWanted::default()
    };
    let (facts, acted) = tokio::try_join!(
        look::facts(&clients, &ask),
        Acted::read(&session.store, &state.keys, &state.entries),
    )?;
    whose::same_account(name, &facts.account, acted.as_ref())?;
    let authority = match state.entry(&state.keys.keyset(KUBERNETES_CA)) {
        Some(_) => Some(keyset(&session.store, &state.keys, KUBERNETES_CA).await?),
        None => None,
    };
    let claim = whose::claim(&state, authority.as_ref(), acted.as_ref());
    let target = Target {
        cluster: name.to_owned(),
        account: facts.account.clone(),
        region: clients.region().to_owned(),
    };
    Ok(Doomed {
        state,
        completed,
        clients,
        facts,
        target,
        claim,
    })
}

fn world(doomed: &Doomed, journal: &StoreJournal<'_>, session: &Session<'_>) -> AwsWorld {
    let place = Place {
        account: doomed.target.account.clone(),
        partition: doomed.facts.partition.clone(),
        region: doomed.target.region.clone(),
        hosted_zone: doomed.completed.hosted_zone(&doomed.facts.hosted_zones),
        generation: journal.generation(),
        own_tags: None,
    };
    let scope = scope(
        &doomed.completed,
        place,
        Vec::new(),
        true,
        Found::default().source(),
    );
    AwsWorld::new(doomed.clients.clone(), session.store.clone(), scope)
}

fn work<'a>(
    doomed: &'a Doomed,
    session: &'a Session<'a>,
    world: &'a AwsWorld,
    journal: &'a StoreJournal<'a>,
    interrupts: &'a Interrupts,
    events: Option<Events<'a>>,
    programs: bool,
) -> Work<'a> {
    Work {
        session,
        target: &doomed.target,
        keys: &doomed.state.keys,
        entries: &doomed.state.entries,
        world,
        journal,
        interrupts,
        events,
        programs,
        beforehand: None,
    }
}

async fn delete(
    doomed: &Doomed,
    what: &DeleteCluster,
    events: Option<Events<'_>>,
    session: &Session<'_>,
    lock: &Lock,
    interrupts: &Interrupts,
) -> Result<Outcome, CommandError> {
    let name = doomed.state.name();
    let journal =
        StoreJournal::read(&session.store, &doomed.state.keys, &doomed.state.entries).await?;
    let world = world(doomed, &journal, session);
    let programs = what.output.is_for_programs();
    let work = work(
        doomed, session, &world, &journal, interrupts, events, programs,
    );
    let seen = work.observe().await?;
    whose::check(&doomed.claim, &seen, &doomed.state, session)?;
    let plan = super::update::planned(engine::plan(&[], &seen))?;
    let json = what.output == PlanFormat::Json;
    if !json {
        show(&plan, doomed, what, None, events, session).await?;
    }
    let question =
        format!("All of this is deleted, and nothing brings it back. Type {name} to go on:");
    if !what.yes && !session.shell.confirm(&question, name).await {
        return Err(CommandError::said(
            Kind::Usage,
            format!("{name} was not deleted"),
            format!("type its name, or: kctl delete cluster {name} --yes"),
        ));
    }
    let mut report = Report::default();
    if !plan.is_empty() {
        report = work
            .apply("delete cluster", &plan, &seen, None, lock)
            .await?;
        let again = format!("kctl delete cluster {name} --yes");
        if let Some(error) = Work::incomplete(&report, &again) {
            return Err(error.hint("the spec is kept until everything in AWS is gone"));
        }
    }
    if json {
        show(&plan, doomed, what, Some(&report), events, session).await?;
    }
    forget(name, &doomed.state.keys, session).await
}

async fn show(
    plan: &Plan<Cloud>,
    doomed: &Doomed,
    what: &DeleteCluster,
    report: Option<&Report>,
    events: Option<Events<'_>>,
    session: &Session<'_>,
) -> Result<(), CommandError> {
    if let Some(events) = events {
        events.planned(plan, &[]);
        return Ok(());
    }
    if what.output == PlanFormat::Json {
        let text = serde_json::to_string_pretty(&Document::of(plan, &doomed.target, report));
        return session.shell.document(&text.failed(
            "the plan has no JSON form",
            "report this: it is a defect of kctl",
        )?);
    }
    let view = View {
        plan,
        wide: what.output == PlanFormat::Wide,
        paint: session.shell.paint(),
        stand_ins: &[],
    };
    let keys = &doomed.state.keys;
    let all = session
        .store
        .list(&keys.all(), None)
        .await
        .map_err(store_error)?;
    let store = store_words(keys, &all, session).await?;
    let text = format!("{}{}\n{store}", plan::render(view), plan::summary(plan));
    session.shell.result(&text)
}

/// What goes from the store, in words.
async fn store_words(
    keys: &Keys,
    all: &[Entry],
    session: &Session<'_>,
) -> Result<String, CommandError> {
    let backups = all
        .iter()
        .filter(|entry| entry.key.starts_with(&keys.below("backups/")))
        .count();
    let backups = if backups > 0 {
        format!(", {backups} of them of etcd backups")
    } else {
        String::new()
    };
    let kept = match session.store.keeps_versions().await {
        Ok(false) => "",
        Ok(true) => KEPT,
        Err(StoreError::Denied { .. }) => PERHAPS_KEPT,
        Err(error) => return Err(store_error(error)),
    };
    Ok(format!(
        "Then {} objects below {}/{} go: the spec, keys and certificates, and the log of operations{backups}.\n{kept}",
        all.len(),
        session.url,
        keys.all()
    ))
}

/// What deleting means in a bucket with versioning: S3 puts a marker on top, and every version stays.
const KEPT: &str = "The bucket has versioning: earlier versions of all of it, private keys too, stay there and can be read, until a \
                    lifecycle rule (NoncurrentVersionExpiration) or `aws s3api delete-objects` removes them.\n";

const PERHAPS_KEPT: &str = "If the bucket has versioning (s3:GetBucketVersioning, which would say so, is denied), earlier versions of all of \
                            it, private keys too, stay there and can be read.\n";

/// Deletes the cluster's folder, the spec last: until it is gone the command can be repeated.
async fn forget(name: &str, keys: &Keys, session: &Session<'_>) -> Result<Outcome, CommandError> {
    let store = &session.store;
    let entries = store.list(&keys.all(), None).await.map_err(store_error)?;
    let last = [keys.config(), keys.lock()];
    let first: Vec<String> = entries
        .into_iter()
        .map(|entry| entry.key)
        .filter(|key| !last.contains(key))
        .collect();
    store.delete_all(&first).await.map_err(store_error)?;
    store
        .delete(&keys.config(), Expect::Any)
        .await
        .map_err(store_error)?;
    // Only tidiness: a kubeconfig that is not there or not ours to change is no failure.
    let forgotten =
        kubeconfig::path(None).and_then(|path| Ok((kubeconfig::forget(&path, name)?, path)));
    if let Ok((true, path)) = forgotten {
        session
            .shell
            .note(&format!("took {name} out of {}", path.display()));
    }
    session.shell.done(&format!("deleted cluster {name}"));
    Ok(Outcome::Fine)
}

async fn unregister(
    name: &str,
    keys: &Keys,
    what: &DeleteCluster,
    session: &Session<'_>,
) -> Result<Outcome, CommandError> {
    session.existing(name).await?;
    let all = session
        .store
        .list(&keys.all(), None)
        .await
        .map_err(store_error)?;
    let words = store_words(keys, &all, session).await?;
    session
        .shell
        .note(&format!("AWS stays as it is. {}", words.trim_end()));
    let question = format!("Type {name} to go on:");
    if !what.yes && !session.shell.confirm(&question, name).await {
        return Err(CommandError::said(
            Kind::Usage,
            format!("{name} was not unregistered"),
            format!("type its name, or: kctl delete cluster {name} --unregister --yes"),
        ));
    }
    locked(
        session,
        keys,
        "delete cluster",
        what.lock_wait,
        async |_, _| forget(name, keys, session).await,
    )
    .await
}
