//! `kctl update`: plans the changes that make AWS match the spec, and shows, saves or applies the plan.

mod apply_saved;
mod balancer_users;
mod compare;
mod etcd_members;
mod etcd_removals;
mod etcd_versions;
mod given_addresses;
mod own_tags;
mod save_plan;
mod show;

use super::apply_plan::{PlanContext, with_lock};
use super::assemble::AssembledCluster;
use super::cluster_scope::{ScopeTarget, cluster_scope};
use super::existing_cluster::ExistingCluster;
use super::observe::{ObserveOptions, ObservedCluster, observe_cluster};
use super::session::Session;
use super::{export, ownership, secret};
use crate::args::{KubeconfigCredentials, PlanFormat, Update};
use crate::error::{CommandError, ErrorKind, Outcome};
use crate::interrupt::Interrupts;
use crate::saved_plan::{self, PlanDrift, SavedPlan};
use crate::state::{ClusterLock, PublicKeys, StoreJournal};
use crate::ui::events::Events;
pub use own_tags::read_stored_own_tags;

use apply_saved::SavedPlanRun;
use aws_cloud::AwsWorld;
use cloud::settle::settle;
use cloud::{Cloud, OwnTags, used_load_balancers};
use engine::{Plan, PlanError, Snapshot};
use node::pki::{JsonWebKeySet, KUBERNETES_CA, Keyset, SERVICE_ACCOUNT, STATE_SIGNER};
use show::{PlanOutput, show_plan};
use spec::completed::CompletedCluster;
use spec::read::ReadOptions;
use std::path::PathBuf;
use std::time::Duration;

/// Options of an update. Default: the plan is shown, and nothing changes.
#[derive(Clone, Debug, Default)]
pub struct UpdateOptions {
    pub yes: bool,
    /// Form of the plan.
    pub output: PlanFormat,
    /// Exit with 10 if changes are pending.
    pub exit_code: bool,
    /// Read everything from AWS instead of comparing digests.
    pub refresh: bool,
    /// Options of the observation.
    pub observe: ObserveOptions,
    /// How long to wait for the lock.
    pub lock_wait: Option<Duration>,
    /// What happens to the user's kubeconfig after the changes.
    pub kubeconfig: KubeconfigChange,
    /// Write the plan to this file.
    pub plan_out: Option<PathBuf>,
}

/// What an update does to the user's kubeconfig.
#[derive(Clone, Debug, Default)]
pub enum KubeconfigChange {
    /// Writes the cluster into it, with a new certificate.
    Write(KubeconfigCredentials),
    /// Follows a new address of the API, if this file (else the default one) has the cluster.
    Follow(Option<PathBuf>),
    #[default]
    Leave,
}

/// One run of an update.
#[derive(Clone, Copy)]
struct UpdateRun<'a> {
    options: &'a UpdateOptions,
    session: &'a Session<'a>,
    events: Option<Events<'a>>,
}

/// Updates the cluster that the options name.
pub async fn run(args: &Update, session: &Session<'_>) -> Result<Outcome, CommandError> {
    if let Some(word) = args.target.unexpected_word() {
        return Err(CommandError::usage_error(
            format!("one word too many: {word:?}"),
            "kctl update [cluster] [NAME]",
        ));
    }
    let credentials = &args.credentials;
    let kubeconfig = match args.create_kube_config {
        Some(false) => KubeconfigChange::Leave,
        // `--admin` implies a kubeconfig.
        None if credentials.admin.is_none() => {
            KubeconfigChange::Follow(credentials.kubeconfig.clone())
        }
        _ => KubeconfigChange::Write(credentials.clone()),
    };
    let mut options = UpdateOptions {
        yes: args.yes,
        output: args.output,
        exit_code: args.exit_code,
        refresh: args.refresh,
        observe: ObserveOptions {
            read: ReadOptions {
                allow_unsupported: args.allow_unsupported,
            },
            ignore_skew: args.ignore_kubelet_version_skew,
            ..ObserveOptions::default()
        },
        lock_wait: args.lock_wait,
        kubeconfig,
        plan_out: args.plan_out.clone(),
    };
    let outcome = if let Some(file) = &args.plan {
        let plan = saved_plan::read(file)?;
        let named = session.named_cluster(args.target.cluster())?;
        let name = named.unwrap_or_else(|| plan.cluster.clone());
        // The saved plan is compared with one that is made with the same options.
        options.refresh = plan.refresh;
        options.observe.read.allow_unsupported = plan.allow_unsupported;
        options.observe.ignore_skew = plan.ignore_kubelet_version_skew;
        with_events(&name, &options, session, async |run| {
            let plan = &plan;
            Box::pin(apply_saved::run_saved_plan(
                &name,
                SavedPlanRun { file, plan, run },
            ))
            .await
        })
        .await
    } else {
        let name = session.cluster_name(args.target.cluster()).await?;
        update_cluster(&name, &options, session).await
    };
    tracing::debug!(reads = session.store.reads(), writes = session.store.writes(), calls = ?session.clients.calls(), "asked");
    outcome
}

/// Shows the plan of a cluster; with `--yes` applies it.
pub async fn update_cluster(
    name: &str,
    options: &UpdateOptions,
    session: &Session<'_>,
) -> Result<Outcome, CommandError> {
    // On the heap: the future is large.
    with_events(name, options, session, async |run| {
        Box::pin(plan_and_apply(name, run)).await
    })
    .await
}

/// Runs `body` between the first and the last event of `-o events`.
async fn with_events(
    name: &str,
    options: &UpdateOptions,
    session: &Session<'_>,
    body: impl AsyncFnOnce(UpdateRun<'_>) -> Result<Outcome, CommandError>,
) -> Result<Outcome, CommandError> {
    let listened = options.output == PlanFormat::Events;
    let events = listened.then(|| Events::begin(session.shell, "update", name));
    let ended = body(UpdateRun {
        options,
        session,
        events,
    })
    .await;
    if let Some(events) = events {
        events.emit_end(&ended);
    }
    ended
}

/// Makes a plan, and shows, saves or applies it.
async fn plan_and_apply(name: &str, run: UpdateRun<'_>) -> Result<Outcome, CommandError> {
    let UpdateRun {
        options: how,
        session,
        ..
    } = run;
    let observed = observe_cluster(name, how.observe, session).await?;
    print_heading(&observed, run)?;
    if !how.yes {
        print_launch_warnings(&observed, session);
        if how.plan_out.is_some() {
            // A plan with placeholders for binaries could never be applied.
            observed.binaries.check_complete()?;
        }
        observed.binaries.missing.iter().for_each(|missing| {
            session.shell.warning(&format!(
                "{missing} was not found: what follows from it is not known yet"
            ));
        });
        return show_preview(&observed, run).await;
    }
    check_ready(&observed, session).await?;
    let keys = observed.state.keys.clone();
    let body = async |lock: &ClusterLock, interrupts: &Interrupts| {
        let mut observed = Box::pin(observed.refresh_under_lock(how.observe, session)).await?;
        observed.mint_keysets(session).await?;
        let assembled = observed.assemble()?;
        let plan =
            async |work: &PlanContext<'_>, plan: &Plan<Cloud>, snapshot: &Snapshot<Cloud>| {
                // The one JSON document also reports the apply.
                if how.output != PlanFormat::Json || plan.is_empty() {
                    let shown = PlanOutput::new(plan, &assembled.stand_ins, &observed);
                    show_plan(&shown.with_members(&work.members), run)?;
                }
                let saved = None;
                apply_plan(
                    &PlanToApply {
                        plan,
                        snapshot,
                        saved,
                    },
                    work,
                    &observed,
                    run,
                    lock,
                )
                .await
            };
        with_plan(&observed, &assembled, run, interrupts, plan).await?;
        let (digests, keys) = (&observed.digests, &observed.state.keys);
        digests.write_changed(&session.store, keys).await?;
        write_kubeconfig(&observed, &assembled, run).await
    };
    with_lock(session, &keys, "update", how.lock_wait, body).await
}

/// Fails if binaries for the instances are missing or no API server would start, and prints warnings about the launch of instances.
async fn check_ready(
    observed: &ObservedCluster,
    session: &Session<'_>,
) -> Result<(), CommandError> {
    observed.binaries.check_complete()?;
    secret::check_encryption_config(&observed.state, session).await?;
    print_launch_warnings(observed, session);
    Ok(())
}

/// Prints warnings about what may keep instances from starting.
fn print_launch_warnings(observed: &ObservedCluster, session: &Session<'_>) {
    if session.url.starts_with("file://") {
        session.shell.warning(&format!(
            "instances in AWS cannot read {}: use a bucket for a working cluster",
            session.url
        ));
    }
    if let Some(warning) = observed.binaries.own_build_warning() {
        session.shell.warning(&warning);
    }
}

fn print_heading(observed: &ObservedCluster, run: UpdateRun<'_>) -> Result<(), CommandError> {
    let target = &observed.target;
    if let Some(events) = run.events {
        events.emit_target(target);
        events.emit_not_yet(&observed.not_yet);
    }
    let line = format!(
        "Cluster {}  account {}  {}",
        target.cluster, target.account, target.region
    );
    if run.options.output.is_for_programs() {
        run.session.shell.note(&line);
        return Ok(());
    }
    run.session.shell.print_result(&format!("{line}\n\n"))
}

/// The cluster's scope of AWS.
fn aws_world(
    observed: &ObservedCluster,
    assembled: &AssembledCluster,
    journal: &StoreJournal<'_>,
    own_tags: OwnTags,
    run: UpdateRun<'_>,
) -> AwsWorld {
    let (how, session) = (run.options, run.session);
    let target = ScopeTarget {
        account: observed.target.account.clone(),
        partition: observed.partition.clone(),
        region: observed.target.region.clone(),
        hosted_zone: assembled
            .expanded
            .full
            .dns
            .zone
            .as_ref()
            .map(|zone| zone.id.clone()),
        generation: format!(
            "{}-{}",
            cluster_incarnation(&observed.public),
            journal.generation()
        ),
        issuers: own_tags.issuers().clone(),
        token_keys: find_keyset(&observed.public, SERVICE_ACCOUNT)
            .and_then(|keyset| JsonWebKeySet::ever_trusted(keyset).ok()),
        own_tags: Some(own_tags),
        signer: find_keyset(&observed.public, STATE_SIGNER).cloned(),
    };
    let scope = cluster_scope(
        &CompletedCluster::from_cluster(&assembled.expanded.cluster),
        target,
        assembled.desired.clone(),
        how.refresh,
        observed.binaries.asset_source(),
    );
    AwsWorld::new(observed.clients.clone(), session.store.clone(), scope)
}

/// The id of the cluster's first CA, which tells it apart from an earlier cluster of the same name. AWS may remember client
/// tokens longer than a cluster exists.
fn cluster_incarnation(public: &PublicKeys) -> &str {
    kubernetes_ca(public)
        .and_then(|set| set.items.first())
        .map_or("", |item| item.id.as_str())
}

fn kubernetes_ca(public: &PublicKeys) -> Option<&Keyset> {
    find_keyset(public, KUBERNETES_CA)
}

fn find_keyset<'a>(public: &'a PublicKeys, name: &str) -> Option<&'a Keyset> {
    public.keysets.iter().find(|set| set.name == name)
}

/// Observes AWS, makes a plan, and passes it to `body` with everything needed to apply it.
async fn with_plan<T>(
    observed: &ObservedCluster,
    assembled: &AssembledCluster,
    run: UpdateRun<'_>,
    interrupts: &Interrupts,
    body: impl AsyncFnOnce(&PlanContext<'_>, &Plan<Cloud>, &Snapshot<Cloud>) -> Result<T, CommandError>,
) -> Result<T, CommandError> {
    let session = run.session;
    let journal = StoreJournal::read(
        &session.store,
        &observed.state.keys,
        &observed.state.entries,
    )
    .await?;
    let own_tags = own_tags::read_own_tags(observed, assembled, session).await?;
    let write_first = own_tags.pending_write(observed);
    let cloud = aws_world(observed, assembled, &journal, own_tags.own, run);
    let mut context = PlanContext {
        session,
        target: &observed.target,
        keys: &observed.state.keys,
        entries: &observed.state.entries,
        world: &cloud,
        journal: &journal,
        interrupts,
        events: run.events,
        for_programs: run.options.output.is_for_programs(),
        write_first,
        members: Vec::new(),
    };
    let (desired, snapshot) = settle(assembled.desired.clone(), context.observe_cloud().await?);
    let ca = kubernetes_ca(&observed.public);
    let claim = ownership::ownership_claim(&observed.state, ca, observed.last_operation.as_ref());
    ownership::check_ownership(&claim, &snapshot, &observed.state, session)?;
    Box::pin(ownership::check_place_to_update(
        &snapshot,
        &observed.state,
        session,
    ))
    .await?;
    let checked = Box::pin(etcd_members::check_etcd_members(
        observed, &snapshot, session,
    ));
    context.members = checked.await?;
    explain_plan_error(used_load_balancers::check_zones(&desired, &snapshot))?;
    let named = balancer_users::find_balancer_users(
        observed,
        &used_load_balancers::unwanted_load_balancers(&desired, &snapshot),
    )
    .await?;
    let (desired, kept) = used_load_balancers::keep_used_load_balancers(desired, &snapshot, &named);
    let mut plan = explain_plan_error(engine::plan(&desired, &snapshot))?;
    plan.kept.extend(kept);
    given_addresses::check_given_addresses(observed, &plan, &snapshot).await?;
    body(&context, &plan, &snapshot).await
}

/// Makes a plan that is not applied, and passes it to `body` with the desired state that it is made from.
async fn with_preview<T>(
    observed: &ObservedCluster,
    run: UpdateRun<'_>,
    body: impl AsyncFnOnce(
        &PlanContext<'_>,
        &AssembledCluster,
        &Plan<Cloud>,
        &Snapshot<Cloud>,
    ) -> Result<T, CommandError>,
) -> Result<T, CommandError> {
    let (assembled, interrupts) = (observed.assemble()?, Interrupts::default());
    let body = async |work: &PlanContext<'_>, plan: &Plan<Cloud>, snapshot: &Snapshot<Cloud>| {
        body(work, &assembled, plan, snapshot).await
    };
    with_plan(observed, &assembled, run, &interrupts, body).await
}

async fn show_preview(
    observed: &ObservedCluster,
    run: UpdateRun<'_>,
) -> Result<Outcome, CommandError> {
    with_preview(observed, run, async |work, assembled, plan, snapshot| {
        let shown = PlanOutput::new(plan, &assembled.stand_ins, observed);
        show_plan(&shown.with_members(&work.members), run)?;
        if let Some(file) = &run.options.plan_out {
            save_plan::save_plan(file, plan, snapshot, observed, assembled, run)?;
        } else if (!plan.is_empty() || !work.members.is_empty())
            && !run.options.output.is_for_programs()
        {
            run.session.shell.hint(&format!(
                "kctl update {} --yes    makes these changes",
                observed.target.cluster
            ));
        }
        Ok(preview_outcome(work, plan, run.options))
    })
    .await
}

/// The plan that an update would show now, and the observation that it is made from.
pub async fn preview_plan(
    observed: &ObservedCluster,
    session: &Session<'_>,
) -> Result<(Plan<Cloud>, Snapshot<Cloud>), CommandError> {
    let options = UpdateOptions::default();
    let run = UpdateRun {
        options: &options,
        session,
        events: None,
    };
    with_preview(observed, run, async |_, _, plan, snapshot| {
        Ok((plan.clone(), snapshot.clone()))
    })
    .await
}

/// The outcome of a preview.
fn preview_outcome(work: &PlanContext<'_>, plan: &Plan<Cloud>, options: &UpdateOptions) -> Outcome {
    if options.exit_code && (!plan.is_empty() || !work.members.is_empty()) {
        Outcome::ChangesPending
    } else {
        Outcome::Fine
    }
}

/// A plan to apply.
struct PlanToApply<'a> {
    plan: &'a Plan<Cloud>,
    /// The observation that it was made from.
    snapshot: &'a Snapshot<Cloud>,
    /// The saved plan, if it comes from one, and its comparison with this plan.
    saved: Option<(&'a SavedPlan, &'a PlanDrift)>,
}

/// Applies a plan, prints the report and next steps.
async fn apply_plan(
    applied: &PlanToApply<'_>,
    context: &PlanContext<'_>,
    observed: &ObservedCluster,
    run: UpdateRun<'_>,
    lock: &ClusterLock,
) -> Result<(), CommandError> {
    let PlanToApply {
        plan,
        snapshot,
        saved,
    } = *applied;
    if !context.members.is_empty() {
        observed.check_authority(run.session).await?;
        let ends = (lock, context.interrupts);
        etcd_removals::carry_out(&context.members, observed, run.session, ends).await?;
    }
    if plan.is_empty() {
        return Ok(());
    }
    observed.check_authority(run.session).await?;
    let digest = saved.map(|(saved, _)| saved.sha256());
    let report = context
        .apply_plan("update", plan, snapshot, digest, lock)
        .await?;
    if run.options.output == PlanFormat::Json {
        let shown = PlanOutput::new(plan, &[], observed);
        let report = Some(&report);
        let members = &context.members;
        show_plan(
            &PlanOutput {
                report,
                saved,
                members,
                ..shown
            },
            run,
        )?;
    }
    let command = format!("kctl update {} --yes", observed.target.cluster);
    if let Some(error) = PlanContext::incomplete_error(&report, &command) {
        return Err(error);
    }
    show::print_next_steps(plan, &report, run.session);
    if observed.last_operation.is_none() {
        show::print_first_steps(&observed.target.cluster, run);
    }
    Ok(())
}

async fn write_kubeconfig(
    observed: &ObservedCluster,
    assembled: &AssembledCluster,
    run: UpdateRun<'_>,
) -> Result<Outcome, CommandError> {
    let cluster = || ExistingCluster {
        state: observed.state.clone(),
        spec: assembled.expanded.cluster.clone(),
        completed: CompletedCluster::from_cluster(&assembled.expanded.cluster),
        clients: observed.clients.clone(),
    };
    match &run.options.kubeconfig {
        KubeconfigChange::Write(credentials) => {
            export::write_kubeconfig(&cluster(), credentials, run.session).await?;
        }
        KubeconfigChange::Follow(file) => {
            if let Some(authority) = kubernetes_ca(&observed.public) {
                export::follow_address(&cluster(), authority, file.as_deref(), run.session).await?;
            }
        }
        KubeconfigChange::Leave => {}
    }
    Ok(Outcome::Fine)
}

/// Turns an error of the planner into a command error with a next step.
pub fn explain_plan_error<T>(plan: Result<T, PlanError>) -> Result<T, CommandError> {
    plan.map_err(|error| match error {
        PlanError::Refused(_) => {
            CommandError::new(ErrorKind::Usage, error, "do that, or change the spec back")
        }
        PlanError::BothUsed(_) => {
            CommandError::new(ErrorKind::Precondition, error, "then repeat the command")
        }
        _ => CommandError::new(
            ErrorKind::Failed,
            error,
            "report this: it is a defect of kctl",
        ),
    })
}
