//! `kctl update --plan`: shows a saved plan, and with `--yes` applies it if a plan made now is the same. The steps that run are
//! those of the new plan, never those of the file.

use super::compare::{check_applies, check_same_but_for_keys, compare_with_saved};
use super::{
    PlanOutput, PlanToApply, UpdateRun, apply_plan, check_ready, preview_outcome, print_heading,
    show_plan, with_plan, write_kubeconfig,
};
use crate::args::PlanFormat;
use crate::commands::apply_plan::with_lock;
use crate::commands::assemble::AssembledCluster;
use crate::commands::observe::{ObservedCluster, observe_cluster};
use crate::error::{CommandError, Outcome};
use crate::interrupt::Interrupts;
use crate::plan_target::ClusterTarget;
use crate::saved_plan::{PlanDrift, SavedPlan};
use crate::state::{ClusterLock, StoreKeys};
use crate::ui::member_change::MemberChange;
use cloud::Cloud;
use engine::Plan;
use std::path::Path;

/// A run with a saved plan.
#[derive(Clone, Copy)]
pub struct SavedPlanRun<'a> {
    /// Path of the plan's file.
    pub file: &'a Path,
    /// The plan in the file.
    pub plan: &'a SavedPlan,
    pub run: UpdateRun<'a>,
}

/// Shows a saved plan, or applies it.
pub async fn run_saved_plan(name: &str, saved: SavedPlanRun<'_>) -> Result<Outcome, CommandError> {
    let session = saved.run.session;
    // First of all: another store may not have the cluster.
    let here = ClusterTarget {
        cluster: name.to_owned(),
        account: saved.plan.account.clone(),
        region: saved.plan.region.clone(),
    };
    saved.check_applies(&PlanDrift::from_target(saved.plan, &here, &session.url))?;
    if !saved.run.options.yes {
        return saved.show_preview(name).await;
    }
    session.check_cluster_exists(name).await?;
    let keys = StoreKeys::new(name);
    let wait = saved.run.options.lock_wait;
    let body = async |lock: &ClusterLock, interrupts: &Interrupts| {
        Box::pin(saved.apply_under_lock(name, lock, interrupts)).await
    };
    with_lock(session, &keys, "update", wait, body).await
}

/// The members of etcd that leave are not part of a plan; its other changes follow from them.
fn show_members(members: &[MemberChange], run: UpdateRun<'_>) -> Result<(), CommandError> {
    for member in members {
        if run.options.output.is_for_programs() {
            run.session.shell.note(&member.line());
        } else {
            run.session
                .shell
                .print_result(&format!("{}\n", member.line()))?;
        }
    }
    Ok(())
}

impl SavedPlanRun<'_> {
    async fn show_preview(self, name: &str) -> Result<Outcome, CommandError> {
        let (run, interrupts) = (self.run, Interrupts::default());
        let observed = self.observe(name).await?;
        let terms = self.assemble_in_plan_terms(&observed)?;
        with_plan(
            &observed,
            &terms,
            run,
            &interrupts,
            async |work, plan, snapshot| {
                let drift =
                    compare_with_saved(self.plan, plan, snapshot, &observed, &terms, run).await?;
                self.show_saved(&drift, &observed)?;
                self.check_applies(&drift)?;
                show_members(&work.members, run)?;
                if !plan.is_empty() && !run.options.output.is_for_programs() {
                    run.session.shell.hint(&format!(
                        "kctl update --plan {} --yes    makes these changes",
                        self.file.display()
                    ));
                }
                Ok(preview_outcome(work, plan, run.options))
            },
        )
        .await
    }

    /// Under the lock: plans again, compares, and applies the new plan if it is the same.
    async fn apply_under_lock(
        self,
        name: &str,
        lock: &ClusterLock,
        interrupts: &Interrupts,
    ) -> Result<Outcome, CommandError> {
        let run = self.run;
        let mut observed = self.observe(name).await?;
        check_ready(&observed, run.session).await?;
        let terms = self.assemble_in_plan_terms(&observed)?;
        let unminted = !self.plan.stand_ins.is_empty();
        let checked = with_plan(
            &observed,
            &terms,
            run,
            interrupts,
            async |work, plan, snapshot| {
                let drift =
                    compare_with_saved(self.plan, plan, snapshot, &observed, &terms, run).await?;
                // The one JSON document also reports the apply.
                if run.options.output != PlanFormat::Json
                    || !drift.still_applies()
                    || plan.is_empty()
                {
                    self.show_saved(&drift, &observed)?;
                    show_members(&work.members, run)?;
                }
                self.check_applies(&drift)?;
                if !unminted {
                    observed.clone().mint_keysets(run.session).await?;
                    let saved = Some((self.plan, &drift));
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
                    .await?;
                }
                Ok(plan.clone())
            },
        )
        .await?;
        if unminted {
            observed.mint_keysets(run.session).await?;
            self.apply_minted((&checked, &terms), &observed, lock, interrupts)
                .await?;
        }
        write_kubeconfig(&observed, &terms, run).await
    }

    /// Plans again with the cluster's new keys, and applies that plan if it differs from `checked`, which has placeholders, only
    /// in what follows from the keys.
    async fn apply_minted(
        self,
        checked: (&Plan<Cloud>, &AssembledCluster),
        observed: &ObservedCluster,
        lock: &ClusterLock,
        interrupts: &Interrupts,
    ) -> Result<(), CommandError> {
        let (run, assembled) = (self.run, observed.assemble()?);
        with_plan(
            observed,
            &assembled,
            run,
            interrupts,
            async |work, plan, snapshot| {
                check_same_but_for_keys(checked, (plan, &assembled))?;
                let saved = Some((self.plan, &PlanDrift::default()));
                apply_plan(
                    &PlanToApply {
                        plan,
                        snapshot,
                        saved,
                    },
                    work,
                    observed,
                    run,
                    lock,
                )
                .await
            },
        )
        .await
    }

    /// Observes the cluster. Fails if it is not the one that the plan was made for.
    async fn observe(self, name: &str) -> Result<ObservedCluster, CommandError> {
        let observed = observe_cluster(name, self.run.options.observe, self.run.session).await?;
        print_heading(&observed, self.run)?;
        let url = &self.run.session.url;
        self.check_applies(&PlanDrift::from_target(self.plan, &observed.target, url))?;
        observed.binaries.check_complete()?;
        Ok(observed)
    }

    /// Computes the desired state, with placeholders where the saved plan has them, so that both plans are comparable.
    fn assemble_in_plan_terms(
        self,
        observed: &ObservedCluster,
    ) -> Result<AssembledCluster, CommandError> {
        if self.plan.stand_ins.is_empty() {
            observed.assemble()
        } else {
            observed.assemble_unminted()
        }
    }

    fn show_saved(self, drift: &PlanDrift, observed: &ObservedCluster) -> Result<(), CommandError> {
        let shown = PlanOutput::new(&self.plan.plan, &self.plan.stand_ins, observed);
        let saved = Some((self.plan, drift));
        show_plan(&PlanOutput { saved, ..shown }, self.run)
    }

    fn check_applies(self, drift: &PlanDrift) -> Result<(), CommandError> {
        check_applies(drift, self.file, self.plan)
    }
}
