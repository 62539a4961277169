//! `kctl update`: what AWS lacks of the spec is shown, and with `--yes` made; or kept in a file, and made later.

mod compare;
mod keep;
mod members;
mod named;
mod own_tags;
mod saved;
mod show;
mod versions;

use super::applying::{Work, locked};
use super::assemble::Assembled;
use super::look::{Looked, Looking, look};
use super::running::Running;
use super::scope::{Place, scope};
use super::session::Session;
use super::{export, whose};
use crate::args::{KubeconfigCredentials, PlanFormat, Update};
use crate::error::{CommandError, Kind, Outcome};
use crate::interrupt::Interrupts;
use crate::saved_plan::{self, SavedPlan, Stale};
use crate::state::{Lock, Public, StoreJournal};
use crate::ui::events::Events;
use aws_cloud::AwsWorld;
use cloud::settle::settle;
use cloud::{Cloud, OwnTags, held};
use engine::{Plan, PlanError, Snapshot};
use node::pki::{KUBERNETES_CA, Keyset};
use saved::Held;
use show::{Shown, show};
use spec::completed::Completed;
use spec::read::ReadOptions;
use std::path::PathBuf;
use std::time::Duration;

/// How to update.
#[derive(Clone, Debug)]
pub struct How {
    /// Make the changes.
    pub yes: bool,
    /// Form of the plan.
    pub output: PlanFormat,
    /// Say in the exit code that there are changes.
    pub exit_code: bool,
    /// Trust no digest.
    pub refresh: bool,
    /// How to look at the spec and at what runs.
    pub looking: Looking,
    /// How long to wait for somebody else's lock.
    pub lock_wait: Option<Duration>,
    /// Write a kubeconfig after the changes.
    pub kubeconfig: Option<KubeconfigCredentials>,
    /// Write the plan to this file.
    pub plan_out: Option<PathBuf>,
}

/// One run: how, with what, and who hears of it in JSON.
#[derive(Clone, Copy)]
struct Run<'a> {
    how: &'a How,
    session: &'a Session<'a>,
    events: Option<Events<'a>>,
}

/// Updates the cluster that the options name.
pub async fn run(options: &Update, session: &Session<'_>) -> Result<Outcome, CommandError> {
    if let Some(word) = options.target.unexpected() {
        return Err(CommandError::usage(
            format!("one word too many: {word:?}"),
            "kctl update [cluster] [NAME]",
        ));
    }
    // Who asks for credentials wants the file.
    let kubeconfig = options
        .create_kube_config
        .unwrap_or(options.credentials.admin.is_some());
    let mut how = How {
        yes: options.yes,
        output: options.output,
        exit_code: options.exit_code,
        refresh: options.refresh,
        looking: Looking {
            read: ReadOptions {
                allow_unsupported: options.allow_unsupported,
            },
            ignore_skew: options.ignore_kubelet_version_skew,
        },
        lock_wait: options.lock_wait,
        kubeconfig: kubeconfig.then(|| options.credentials.clone()),
        plan_out: options.plan_out.clone(),
    };
    let outcome = if let Some(file) = &options.plan {
        let plan = saved_plan::read(file)?;
        let named = session.named(options.target.cluster())?;
        let name = named.unwrap_or_else(|| plan.cluster.clone());
        // Compared with a plan that is made in the same way.
        how.refresh = plan.refresh;
        how.looking.read.allow_unsupported = plan.allow_unsupported;
        how.looking.ignore_skew = plan.ignore_kubelet_version_skew;
        told(&name, &how, session, async |run| {
            let plan = &plan;
            Box::pin(saved::update(&name, Held { file, plan, run })).await
        })
        .await
    } else {
        let name = session.cluster(options.target.cluster()).await?;
        update(&name, &how, session).await
    };
    tracing::debug!(reads = session.store.reads(), writes = session.store.writes(), calls = ?session.clients.calls(), "asked");
    outcome
}

/// Shows the plan of a cluster, and applies it if wanted.
pub async fn update(name: &str, how: &How, session: &Session<'_>) -> Result<Outcome, CommandError> {
    // On the heap: what is looked at is large.
    told(name, how, session, async |run| {
        Box::pin(ours(name, run)).await
    })
    .await
}

/// Runs `body`, and tells programs that listen how it begins and ends.
async fn told(
    name: &str,
    how: &How,
    session: &Session<'_>,
    body: impl AsyncFnOnce(Run<'_>) -> Result<Outcome, CommandError>,
) -> Result<Outcome, CommandError> {
    let listened = how.output == PlanFormat::Events;
    let events = listened.then(|| Events::begin(session.shell, "update", name));
    let ended = body(Run {
        how,
        session,
        events,
    })
    .await;
    if let Some(events) = events {
        events.end(&ended);
    }
    ended
}

/// The plan that is made now: shown, kept, or applied.
async fn ours(name: &str, run: Run<'_>) -> Result<Outcome, CommandError> {
    let Run { how, session, .. } = run;
    let looked = look(name, how.looking, session).await?;
    heading(&looked, run)?;
    if !how.yes {
        doubts(&looked, session);
        if how.plan_out.is_some() {
            // With a stand-in in the place of a binary it could never be applied.
            looked.found.complete()?;
        }
        looked.found.missing.iter().for_each(|missing| {
            session.shell.warning(&format!(
                "{missing} was not found: what follows from it is not known yet"
            ));
        });
        return preview(&looked, run).await;
    }
    ready(&looked, session)?;
    let keys = looked.state.keys.clone();
    let body = async |lock: &Lock, interrupts: &Interrupts| {
        let mut looked = Box::pin(looked.again(how.looking, session)).await?;
        looked.mint(session).await?;
        let assembled = looked.assemble()?;
        let plan = async |work: &Work<'_>, plan: &Plan<Cloud>, seen: &Snapshot<Cloud>| {
            // One JSON document tells of the apply too.
            if how.output != PlanFormat::Json || plan.is_empty() {
                let shown = Shown::of(plan, &assembled.stand_ins, &looked);
                show(&shown, run)?;
            }
            let saved = None;
            make(&Applied { plan, seen, saved }, work, &looked, run, lock).await
        };
        planning(&looked, &assembled, run, interrupts, plan).await?;
        kubeconfig(&looked, &assembled, run).await
    };
    locked(session, &keys, "update", how.lock_wait, body).await
}

/// Fails if machines could not be made; says what else they would lack.
fn ready(looked: &Looked, session: &Session<'_>) -> Result<(), CommandError> {
    looked.found.complete()?;
    doubts(looked, session);
    Ok(())
}

/// Says what may keep the machines from starting.
fn doubts(looked: &Looked, session: &Session<'_>) {
    if session.url.starts_with("file://") {
        session.shell.warning(&format!(
            "machines in AWS cannot read {}: use a bucket for clusters that should work",
            session.url
        ));
    }
    if let Some(warning) = looked.found.warning() {
        session.shell.warning(&warning);
    }
}

fn heading(looked: &Looked, run: Run<'_>) -> Result<(), CommandError> {
    let target = &looked.target;
    if let Some(events) = run.events {
        events.target(target);
        events.not_yet(&looked.not_yet);
    }
    let line = format!(
        "Cluster {}  account {}  {}",
        target.cluster, target.account, target.region
    );
    if run.how.output.is_for_programs() {
        run.session.shell.note(&line);
        return Ok(());
    }
    run.session.shell.result(&format!("{line}\n\n"))
}

/// AWS as the cluster's.
fn world(
    looked: &Looked,
    assembled: &Assembled,
    journal: &StoreJournal<'_>,
    own_tags: OwnTags,
    run: Run<'_>,
) -> AwsWorld {
    let (how, session) = (run.how, run.session);
    let place = Place {
        account: looked.target.account.clone(),
        partition: looked.partition.clone(),
        region: looked.target.region.clone(),
        hosted_zone: assembled
            .expanded
            .full
            .dns
            .zone
            .as_ref()
            .map(|zone| zone.id.clone()),
        generation: format!("{}-{}", incarnation(&looked.public), journal.generation()),
        own_tags: Some(own_tags),
    };
    let scope = scope(
        &Completed::read(&assembled.expanded.cluster),
        place,
        assembled.desired.clone(),
        how.refresh,
        looked.found.source(),
    );
    AwsWorld::new(looked.clients.clone(), session.store.clone(), scope)
}

/// Tells a cluster from an earlier one of the same name: the id of its first CA. AWS remembers client tokens
/// longer than some clusters live.
fn incarnation(public: &Public) -> &str {
    authority(public)
        .and_then(|set| set.items.first())
        .map_or("", |item| item.id.as_str())
}

fn authority(public: &Public) -> Option<&Keyset> {
    public.keysets.iter().find(|set| set.name == KUBERNETES_CA)
}

/// Looks at AWS, plans, and hands over the plan with what it is applied with.
async fn planning<T>(
    looked: &Looked,
    assembled: &Assembled,
    run: Run<'_>,
    interrupts: &Interrupts,
    body: impl AsyncFnOnce(&Work<'_>, &Plan<Cloud>, &Snapshot<Cloud>) -> Result<T, CommandError>,
) -> Result<T, CommandError> {
    let session = run.session;
    let journal =
        StoreJournal::read(&session.store, &looked.state.keys, &looked.state.entries).await?;
    let known = own_tags::known(looked, assembled, session).await?;
    let beforehand = known.to_remember(looked);
    let world = world(looked, assembled, &journal, known.own, run);
    let work = Work {
        session,
        target: &looked.target,
        keys: &looked.state.keys,
        entries: &looked.state.entries,
        world: &world,
        journal: &journal,
        interrupts,
        events: run.events,
        programs: run.how.output.is_for_programs(),
        beforehand,
    };
    let (desired, seen) = settle(assembled.desired.clone(), work.observe().await?);
    let authority = authority(&looked.public);
    let claim = whose::claim(&looked.state, authority, looked.acted.as_ref());
    whose::check(&claim, &seen, &looked.state, session)?;
    members::check(looked, &seen, session).await?;
    planned(held::check(&desired, &seen))?;
    let named = named::balancers(looked, &held::leaving(&desired, &seen)).await?;
    let (desired, kept) = held::hold(desired, &seen, &named);
    let mut plan = planned(engine::plan(&desired, &seen))?;
    plan.kept.extend(kept);
    body(&work, &plan, &seen).await
}

async fn preview(looked: &Looked, run: Run<'_>) -> Result<Outcome, CommandError> {
    let (assembled, interrupts) = (looked.assemble()?, Interrupts::default());
    planning(
        looked,
        &assembled,
        run,
        &interrupts,
        async |_, plan, seen| {
            show(&Shown::of(plan, &assembled.stand_ins, looked), run)?;
            if let Some(file) = &run.how.plan_out {
                keep::keep(file, plan, seen, looked, &assembled, run)?;
            } else if !plan.is_empty() && !run.how.output.is_for_programs() {
                run.session.shell.hint(&format!(
                    "kctl update {} --yes    makes these changes",
                    looked.target.cluster
                ));
            }
            Ok(pending(plan, run.how))
        },
    )
    .await
}

/// How a preview ends.
fn pending(plan: &Plan<Cloud>, how: &How) -> Outcome {
    if how.exit_code && !plan.is_empty() {
        Outcome::ChangesPending
    } else {
        Outcome::Fine
    }
}

/// A plan that is applied.
struct Applied<'a> {
    plan: &'a Plan<Cloud>,
    /// What it was made from.
    seen: &'a Snapshot<Cloud>,
    /// The saved plan that it is.
    saved: Option<(&'a SavedPlan, &'a Stale)>,
}

/// Makes the changes.
async fn make(
    applied: &Applied<'_>,
    work: &Work<'_>,
    looked: &Looked,
    run: Run<'_>,
    lock: &Lock,
) -> Result<(), CommandError> {
    let Applied { plan, seen, saved } = *applied;
    if plan.is_empty() {
        return Ok(());
    }
    looked.check_authority(run.session).await?;
    let digest = saved.map(|(saved, _)| saved.sha256());
    let report = work.apply("update", plan, seen, digest, lock).await?;
    if run.how.output == PlanFormat::Json {
        let shown = Shown::of(plan, &[], looked);
        let report = Some(&report);
        show(
            &Shown {
                report,
                saved,
                ..shown
            },
            run,
        )?;
    }
    let again = format!("kctl update {} --yes", looked.target.cluster);
    if let Some(error) = Work::incomplete(&report, &again) {
        return Err(error);
    }
    show::hints(plan, &report, run.session);
    if looked.acted.is_none() {
        show::first_steps(&looked.target.cluster, run);
    }
    Ok(())
}

async fn kubeconfig(
    looked: &Looked,
    assembled: &Assembled,
    run: Run<'_>,
) -> Result<Outcome, CommandError> {
    if let Some(credentials) = &run.how.kubeconfig {
        let made = Running {
            state: looked.state.clone(),
            spec: assembled.expanded.cluster.clone(),
            completed: Completed::read(&assembled.expanded.cluster),
            clients: looked.clients.clone(),
        };
        export::write(&made, credentials, run.session).await?;
    }
    Ok(Outcome::Fine)
}

/// A plan that cannot be made says what to do instead.
pub fn planned<T>(plan: Result<T, PlanError>) -> Result<T, CommandError> {
    plan.map_err(|error| match error {
        PlanError::Refused(_) => {
            CommandError::new(Kind::Usage, error, "do that, or change the spec back")
        }
        PlanError::BothUsed(_) => {
            CommandError::new(Kind::Precondition, error, "then repeat the command")
        }
        _ => CommandError::new(Kind::Failed, error, "report this: it is a defect of kctl"),
    })
}
