//! `kctl update`: what AWS lacks of the spec is shown, and with `--yes` made.

use super::applying::{Work, locked};
use super::assemble::Assembled;
use super::export;
use super::look::{Looked, look};
use super::running::Running;
use super::scope::{Place, scope};
use super::session::Session;
use crate::args::{KubeconfigCredentials, PlanFormat, Update};
use crate::error::{CommandError, Context, Kind, Outcome};
use crate::interrupt::Interrupts;
use crate::state::{Lock, Public, StoreJournal};
use crate::ui::plan::{self, View};
use crate::ui::plan_json::Document;
use aws::AwsWorld;
use model::cloud::Cloud;
use model::cloud::settle::settle;
use model::engine::{Plan, PlanError, Report};
use model::pki::KUBERNETES_CA;
use model::read::ReadOptions;
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
    /// How strictly to read the spec.
    pub read: ReadOptions,
    /// How long to wait for somebody else's lock.
    pub lock_wait: Option<Duration>,
    /// Write a kubeconfig after the changes.
    pub kubeconfig: Option<KubeconfigCredentials>,
}

/// Updates the cluster that the options name.
pub async fn run(options: &Update, session: &Session<'_>) -> Result<Outcome, CommandError> {
    if let Some(word) = options.target.unexpected() {
        return Err(CommandError::usage(
            format!("what is {word:?}?"),
            "kctl update [cluster] [NAME]",
        ));
    }
    let name = session.cluster(options.target.cluster()).await?;
    // Who asks for credentials wants the file.
    let kubeconfig = options
        .create_kube_config
        .unwrap_or(options.credentials.admin.is_some());
    let how = How {
        yes: options.yes,
        output: options.output,
        exit_code: options.exit_code,
        refresh: options.refresh,
        read: ReadOptions {
            allow_unsupported: options.allow_unsupported,
        },
        lock_wait: options.lock_wait,
        kubeconfig: kubeconfig.then(|| options.credentials.clone()),
    };
    let outcome = update(&name, &how, session).await;
    tracing::debug!(reads = session.store.reads(), writes = session.store.writes(), calls = ?session.clients.calls(), "asked");
    outcome
}

/// Shows the plan of a cluster, and applies it if wanted.
pub async fn update(name: &str, how: &How, session: &Session<'_>) -> Result<Outcome, CommandError> {
    let looked = look(name, how.read, session).await?;
    heading(&looked, how, session)?;
    if !how.yes {
        looked.found.missing.iter().for_each(|missing| {
            session.shell.warning(&format!(
                "{missing} was not found: what follows from it is not known yet"
            ));
        });
        return preview(&looked, how, session).await;
    }
    looked.found.complete()?;
    if session.url.starts_with("file://") {
        session.shell.warning(&format!(
            "machines in AWS cannot read {}: use a bucket for clusters that should work",
            session.url
        ));
    }
    let keys = looked.state.keys.clone();
    locked(
        session,
        &keys,
        "update",
        how.lock_wait,
        async |lock, interrupts| {
            let mut looked = Box::pin(looked.again(how.read, session)).await?;
            looked.mint(session).await?;
            make(&looked, how, session, lock, interrupts).await
        },
    )
    .await
}

fn heading(looked: &Looked, how: &How, session: &Session<'_>) -> Result<(), CommandError> {
    let target = &looked.target;
    let line = format!(
        "Cluster {}  account {}  {}",
        target.cluster, target.account, target.region
    );
    if how.output == PlanFormat::Json {
        session.shell.note(&line);
        return Ok(());
    }
    session.shell.result(&format!("{line}\n\n"))
}

/// AWS as the cluster's.
fn world(
    looked: &Looked,
    assembled: &Assembled,
    journal: &StoreJournal<'_>,
    how: &How,
    session: &Session<'_>,
) -> AwsWorld {
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
    };
    let spec = &assembled.expanded.cluster;
    let scope = scope(
        spec,
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
    let authority = public.keysets.iter().find(|set| set.name == KUBERNETES_CA);
    authority
        .and_then(|set| set.items.first())
        .map_or("", |item| item.id.as_str())
}

async fn preview(
    looked: &Looked,
    how: &How,
    session: &Session<'_>,
) -> Result<Outcome, CommandError> {
    let assembled = looked.assemble()?;
    let journal =
        StoreJournal::read(&session.store, &looked.state.keys, &looked.state.entries).await?;
    let world = world(looked, &assembled, &journal, how, session);
    let interrupts = Interrupts::default();
    let work = work(looked, session, &world, &journal, &interrupts);
    let (desired, seen) = settle(assembled.desired.clone(), work.observe().await?);
    let plan = planned(model::engine::plan(&desired, &seen))?;
    show(&plan, &assembled, looked, how, None, session)?;
    if plan.is_empty() {
        return Ok(Outcome::Fine);
    }
    if how.output != PlanFormat::Json {
        session.shell.hint(&format!(
            "kctl update {} --yes    makes these changes",
            looked.target.cluster
        ));
    }
    Ok(if how.exit_code {
        Outcome::ChangesPending
    } else {
        Outcome::Fine
    })
}

async fn make(
    looked: &Looked,
    how: &How,
    session: &Session<'_>,
    lock: &Lock,
    interrupts: &Interrupts,
) -> Result<Outcome, CommandError> {
    let assembled = looked.assemble()?;
    let journal =
        StoreJournal::read(&session.store, &looked.state.keys, &looked.state.entries).await?;
    let world = world(looked, &assembled, &journal, how, session);
    let work = work(looked, session, &world, &journal, interrupts);
    let (desired, seen) = settle(assembled.desired.clone(), work.observe().await?);
    let plan = planned(model::engine::plan(&desired, &seen))?;
    let json = how.output == PlanFormat::Json;
    if !json || plan.is_empty() {
        show(&plan, &assembled, looked, how, None, session)?;
    }
    if !plan.is_empty() {
        let report = work.apply("update", &plan, &seen, lock).await?;
        if json {
            show(&plan, &assembled, looked, how, Some(&report), session)?;
        }
        let again = format!("kctl update {} --yes", looked.target.cluster);
        if let Some(error) = Work::incomplete(&report, &again) {
            return Err(error);
        }
        hints(&plan, &report, session);
    }
    if let Some(credentials) = &how.kubeconfig {
        let made = Running {
            state: looked.state.clone(),
            spec: assembled.expanded.cluster.clone(),
            clients: looked.clients.clone(),
        };
        export::write(&made, credentials, session).await?;
    }
    Ok(Outcome::Fine)
}

fn work<'a>(
    looked: &'a Looked,
    session: &'a Session<'a>,
    world: &'a AwsWorld,
    journal: &'a StoreJournal<'a>,
    interrupts: &'a Interrupts,
) -> Work<'a> {
    Work {
        session,
        target: &looked.target,
        keys: &looked.state.keys,
        entries: &looked.state.entries,
        world,
        journal,
        interrupts,
    }
}

/// A plan that cannot be made says what to do instead.
pub fn planned(plan: Result<Plan<Cloud>, PlanError>) -> Result<Plan<Cloud>, CommandError> {
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

fn show(
    plan: &Plan<Cloud>,
    assembled: &Assembled,
    looked: &Looked,
    how: &How,
    report: Option<&Report>,
    session: &Session<'_>,
) -> Result<(), CommandError> {
    if how.output == PlanFormat::Json {
        let document = Document::of(plan, &looked.target, report);
        let text = serde_json::to_string_pretty(&document);
        let mut text = text.failed(
            "the plan has no JSON form",
            "report this: it is a defect of kctl",
        )?;
        for stand_in in &assembled.stand_ins {
            text = text.replace(stand_in.as_str(), crate::ui::diff::LATE);
        }
        return session.shell.result(&text);
    }
    if plan.is_empty() {
        return session.shell.result(&format!(
            "No changes. AWS matches the spec of {}.\n",
            looked.target.cluster
        ));
    }
    let view = View {
        plan,
        wide: how.output == PlanFormat::Wide,
        paint: session.shell.paint(),
        stand_ins: &assembled.stand_ins,
    };
    session
        .shell
        .result(&format!("{}{}\n", plan::render(view), plan::summary(plan)))
}

/// What comes next.
fn hints(plan: &Plan<Cloud>, report: &Report, session: &Session<'_>) {
    let steps = report.done.iter().filter_map(|id| plan.steps.get(id));
    let templates =
        steps.filter(|step| step.id.kind() == "launch_template" && step.before.is_some());
    let templates = templates.count();
    if templates > 0 {
        let groups = if templates == 1 {
            "1 instance group".to_owned()
        } else {
            format!("{templates} instance groups")
        };
        session.shell.hint(&format!("new machines of {groups} get the new launch template; those that run keep the old one until they are replaced"));
    }
}
