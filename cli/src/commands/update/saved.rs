//! `kctl update --plan`: shows a saved plan, and with `--yes` applies it, if a plan made now from the spec and AWS as they
//! are is the same one. No step of the file itself ever runs.

use super::compare::{compared, same_but_for_keys, still};
use super::{Applied, Run, Shown, heading, kubeconfig, make, pending, planning, ready, show};
use crate::args::PlanFormat;
use crate::commands::applying::locked;
use crate::commands::assemble::Assembled;
use crate::commands::look::{Looked, look};
use crate::error::{CommandError, Outcome};
use crate::interrupt::Interrupts;
use crate::planned::Target;
use crate::saved_plan::{SavedPlan, Stale};
use crate::state::{Keys, Lock};
use cloud::Cloud;
use engine::Plan;
use std::path::Path;

/// A saved plan, and the run that is about it.
#[derive(Clone, Copy)]
pub struct Held<'a> {
    /// Its file.
    pub file: &'a Path,
    /// What is in it.
    pub plan: &'a SavedPlan,
    /// The run.
    pub run: Run<'a>,
}

/// Shows a saved plan, or applies it.
pub async fn update(name: &str, held: Held<'_>) -> Result<Outcome, CommandError> {
    let session = held.run.session;
    // Before anything is asked: in another store there may be no such cluster.
    let here = Target {
        cluster: name.to_owned(),
        account: held.plan.account.clone(),
        region: held.plan.region.clone(),
    };
    held.still(&Stale::elsewhere(held.plan, &here, &session.url))?;
    if !held.run.how.yes {
        return held.preview(name).await;
    }
    session.existing(name).await?;
    let keys = Keys::of(name);
    let wait = held.run.how.lock_wait;
    let body = async |lock: &Lock, interrupts: &Interrupts| {
        Box::pin(held.apply(name, lock, interrupts)).await
    };
    locked(session, &keys, "update", wait, body).await
}

impl Held<'_> {
    async fn preview(self, name: &str) -> Result<Outcome, CommandError> {
        let (run, interrupts) = (self.run, Interrupts::default());
        let looked = self.looked(name).await?;
        let terms = self.in_its_terms(&looked)?;
        planning(&looked, &terms, run, &interrupts, async |_, plan, seen| {
            let moved = compared(self.plan, plan, seen, &looked, &terms, run).await?;
            self.tell(&moved, &looked)?;
            self.still(&moved)?;
            if !plan.is_empty() && !run.how.output.is_for_programs() {
                run.session.shell.hint(&format!(
                    "kctl update --plan {} --yes    makes these changes",
                    self.file.display()
                ));
            }
            Ok(pending(plan, run.how))
        })
        .await
    }

    /// Under the lock: reads everything anew, compares, and makes what is the same.
    async fn apply(
        self,
        name: &str,
        lock: &Lock,
        interrupts: &Interrupts,
    ) -> Result<Outcome, CommandError> {
        let run = self.run;
        let mut looked = self.looked(name).await?;
        ready(&looked, run.session)?;
        let terms = self.in_its_terms(&looked)?;
        let unminted = !self.plan.stand_ins.is_empty();
        let checked = planning(
            &looked,
            &terms,
            run,
            interrupts,
            async |work, plan, seen| {
                let moved = compared(self.plan, plan, seen, &looked, &terms, run).await?;
                // One JSON document tells of the apply too.
                if run.how.output != PlanFormat::Json || !moved.applies() || plan.is_empty() {
                    self.tell(&moved, &looked)?;
                }
                self.still(&moved)?;
                if !unminted {
                    looked.clone().mint(run.session).await?;
                    let saved = Some((self.plan, &moved));
                    make(&Applied { plan, seen, saved }, work, &looked, run, lock).await?;
                }
                Ok(plan.clone())
            },
        )
        .await?;
        if unminted {
            looked.mint(run.session).await?;
            self.apply_minted((&checked, &terms), &looked, lock, interrupts)
                .await?;
        }
        kubeconfig(&looked, &terms, run).await
    }

    /// Makes the plan that `checked`, which has stand-ins, has become with the cluster's keys.
    async fn apply_minted(
        self,
        checked: (&Plan<Cloud>, &Assembled),
        looked: &Looked,
        lock: &Lock,
        interrupts: &Interrupts,
    ) -> Result<(), CommandError> {
        let (run, assembled) = (self.run, looked.assemble()?);
        planning(
            looked,
            &assembled,
            run,
            interrupts,
            async |work, plan, seen| {
                same_but_for_keys(checked, (plan, &assembled))?;
                let saved = Some((self.plan, &Stale::default()));
                make(&Applied { plan, seen, saved }, work, looked, run, lock).await
            },
        )
        .await
    }

    /// The cluster as it is now, if it is the one that the plan was made for.
    async fn looked(self, name: &str) -> Result<Looked, CommandError> {
        let looked = look(name, self.run.how.looking, self.run.session).await?;
        heading(&looked, self.run)?;
        let url = &self.run.session.url;
        self.still(&Stale::elsewhere(self.plan, &looked.target, url))?;
        looked.found.complete()?;
        Ok(looked)
    }

    /// Everything that should be, with stand-ins where the plan has them: like is compared with like.
    fn in_its_terms(self, looked: &Looked) -> Result<Assembled, CommandError> {
        if self.plan.stand_ins.is_empty() {
            looked.assemble()
        } else {
            looked.assemble_unminted()
        }
    }

    fn tell(self, moved: &Stale, looked: &Looked) -> Result<(), CommandError> {
        let shown = Shown::of(&self.plan.plan, &self.plan.stand_ins, looked);
        let saved = Some((self.plan, moved));
        show(&Shown { saved, ..shown }, self.run)
    }

    fn still(self, moved: &Stale) -> Result<(), CommandError> {
        still(moved, self.file, self.plan)
    }
}
