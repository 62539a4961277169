//! `kctl update --plan-out` keeps a plan in a file; `--plan` shows it, and with `--yes` applies it, if a plan made now
//! from the spec and AWS as they are is the same one. No step of the file itself ever runs.

use super::{Applied, Run, Shown, heading, kubeconfig, make, pending, planning, ready, show};
use crate::args::PlanFormat;
use crate::commands::applying::locked;
use crate::commands::assemble::{Assembled, completed_documents};
use crate::commands::look::{Looked, look};
use crate::error::{CommandError, Kind, Outcome};
use crate::interrupt::Interrupts;
use crate::planned::Target;
use crate::saved_plan::{self, Circumstances, MadeFrom, Now, SavedPlan, Stale, stale};
use crate::state::{Keys, who};
use crate::ui::stale::reasons;
use model::cloud::Cloud;
use model::engine::{Action, Id, Plan, Snapshot};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// Writes the plan to a file.
pub fn keep(
    file: &Path,
    plan: &Plan<Cloud>,
    seen: &Snapshot<Cloud>,
    looked: &Looked,
    assembled: &Assembled,
    run: Run<'_>,
) -> Result<(), CommandError> {
    let made = OffsetDateTime::now_utc().replace_nanosecond(0);
    let made = made.map(|made| made.format(&Rfc3339));
    let circumstances = Circumstances {
        made: made.ok().and_then(Result::ok).unwrap_or_default(),
        by: who(),
        target: looked.target.clone(),
        store: run.session.url.clone(),
        refresh: run.how.refresh,
        allow_unsupported: run.how.read.allow_unsupported,
    };
    let made_from = made_from(plan, seen, looked, assembled)?;
    let saved = SavedPlan::of(plan, made_from, &assembled.stand_ins, circumstances)?;
    saved_plan::write(file, &saved)?;
    let shell = run.session.shell;
    shell.done(&format!("wrote the plan to {}", file.display()));
    if !plan.is_empty() {
        shell.hint(&format!(
            "kctl update --plan {} --yes    makes these changes, or none if others would be made by then",
            file.display()
        ));
    }
    Ok(())
}

fn made_from(
    plan: &Plan<Cloud>,
    seen: &Snapshot<Cloud>,
    looked: &Looked,
    assembled: &Assembled,
) -> Result<MadeFrom, CommandError> {
    let completed = completed_documents(&assembled.expanded)?;
    Ok(MadeFrom::of(&looked.state, &completed, plan, seen))
}

/// Shows a saved plan, or applies it.
pub async fn update(
    name: &str,
    file: &Path,
    saved: &SavedPlan,
    run: Run<'_>,
) -> Result<Outcome, CommandError> {
    let session = run.session;
    // Before anything is asked: in another store there may be no such cluster.
    let here = Target {
        cluster: name.to_owned(),
        account: saved.account.clone(),
        region: saved.region.clone(),
    };
    still(&Stale::elsewhere(saved, &here, &session.url), file, saved)?;
    if !run.how.yes {
        let looked = looked(name, file, saved, run).await?;
        let (assembled, interrupts) = (in_its_terms(saved, &looked)?, Interrupts::default());
        return planning(
            &looked,
            &assembled,
            run,
            &interrupts,
            async |_, plan, seen| {
                let made_from = made_from(plan, seen, &looked, &assembled)?;
                let moved = stale(
                    saved,
                    &Now {
                        plan,
                        made_from: &made_from,
                    },
                );
                told(saved, &moved, &looked, run)?;
                still(&moved, file, saved)?;
                if !plan.is_empty() && !run.how.output.is_for_programs() {
                    let hint = format!(
                        "kctl update --plan {} --yes    makes these changes",
                        file.display()
                    );
                    session.shell.hint(&hint);
                }
                Ok(pending(plan, run.how))
            },
        )
        .await;
    }
    session.existing(name).await?;
    locked(
        session,
        &Keys::of(name),
        "update",
        async |lock, interrupts| {
            // Under the lock everything is read anew.
            let mut looked = looked(name, file, saved, run).await?;
            ready(&looked, session)?;
            let terms = in_its_terms(saved, &looked)?;
            let checked = planning(
                &looked,
                &terms,
                run,
                interrupts,
                async |work, plan, seen| {
                    let made_from = made_from(plan, seen, &looked, &terms)?;
                    let moved = stale(
                        saved,
                        &Now {
                            plan,
                            made_from: &made_from,
                        },
                    );
                    // One JSON document tells of the apply too.
                    if run.how.output != PlanFormat::Json || !moved.applies() || plan.is_empty() {
                        told(saved, &moved, &looked, run)?;
                    }
                    still(&moved, file, saved)?;
                    if saved.stand_ins.is_empty() {
                        looked.clone().mint(session).await?;
                        let saved = Some((saved, &moved));
                        make(&Applied { plan, seen, saved }, work, &looked, run, lock).await?;
                    }
                    Ok(plan.clone())
                },
            )
            .await?;
            if !saved.stand_ins.is_empty() {
                looked.mint(session).await?;
                let assembled = looked.assemble()?;
                planning(
                    &looked,
                    &assembled,
                    run,
                    interrupts,
                    async |work, plan, seen| {
                        same_but_for_keys(&checked, &terms, plan, &assembled)?;
                        let saved = Some((saved, &Stale::default()));
                        make(&Applied { plan, seen, saved }, work, &looked, run, lock).await
                    },
                )
                .await?;
            }
            kubeconfig(&looked, &terms, run).await
        },
    )
    .await
}

/// The cluster as it is now, if it is the one that the plan was made for.
async fn looked(
    name: &str,
    file: &Path,
    saved: &SavedPlan,
    run: Run<'_>,
) -> Result<Looked, CommandError> {
    let looked = look(name, run.how.read, run.session).await?;
    heading(&looked, run)?;
    let elsewhere = Stale::elsewhere(saved, &looked.target, &run.session.url);
    still(&elsewhere, file, saved)?;
    looked.found.complete()?;
    Ok(looked)
}

/// Everything that should be, with stand-ins where the plan has them: like is compared with like.
fn in_its_terms(saved: &SavedPlan, looked: &Looked) -> Result<Assembled, CommandError> {
    if saved.stand_ins.is_empty() {
        looked.assemble()
    } else {
        looked.assemble_unminted()
    }
}

fn told(
    saved: &SavedPlan,
    moved: &Stale,
    looked: &Looked,
    run: Run<'_>,
) -> Result<(), CommandError> {
    let shown = Shown::of(&saved.plan, &saved.stand_ins, &looked.target);
    show(
        &Shown {
            saved: Some((saved, moved)),
            ..shown
        },
        run,
    )
}

/// Fails if the plan is no longer what would be done.
fn still(moved: &Stale, file: &Path, saved: &SavedPlan) -> Result<(), CommandError> {
    if moved.applies() {
        return Ok(());
    }
    let mut sentence = if moved.nothing_left {
        format!(
            "the plan in {} of {} does not apply: nothing is left to do, so it was applied already, or its changes were made in another way",
            file.display(),
            saved.made
        )
    } else {
        format!(
            "the plan in {} of {} no longer applies, and nothing of it was done:",
            file.display(),
            saved.made
        )
    };
    if !moved.nothing_left {
        reasons(moved)
            .iter()
            .for_each(|reason| sentence.push_str(&format!("\n  {reason}")));
    }
    let hint = if moved.nothing_left {
        "`kctl get operations` shows what was done, `kctl update` what is left".to_owned()
    } else if moved.place.is_empty() {
        format!(
            "look at what would be done now: kctl update --plan-out {}",
            file.display()
        )
    } else {
        "name the cluster and the store that the plan is for, or make one for this cluster with --plan-out".to_owned()
    };
    Err(CommandError::said(Kind::Precondition, sentence, hint))
}

/// Fails if two plans differ in more than what follows from the cluster's first certificate. They come from the same
/// spec, so this finds nothing unless AWS changed in this very moment.
fn same_but_for_keys(
    checked: &Plan<Cloud>,
    terms: &Assembled,
    plan: &Plan<Cloud>,
    assembled: &Assembled,
) -> Result<(), CommandError> {
    // NodeConfigs are stored under their hashes, which change with the certificate in them.
    let hash = |of: &Assembled, group: &str| {
        let (_, stored) = of.machines.get(group)?.node_config.as_ref()?;
        Some(stored.sha256.clone())
    };
    let hashes: Vec<(String, String)> = terms
        .machines
        .keys()
        .filter_map(|group| Some((hash(terms, group)?, hash(assembled, group)?)))
        .collect();
    let renamed = |id: &Id| {
        let name = hashes
            .iter()
            .fold(id.name().to_owned(), |name, (from, to)| {
                name.replace(from, to)
            });
        Id::new(id.kind(), name)
    };
    let shape =
        |plan: &Plan<Cloud>, name: &dyn Fn(&Id) -> Id| -> BTreeMap<Id, (Action, BTreeSet<Id>)> {
            let steps = plan.steps.values();
            steps
                .map(|step| {
                    (
                        name(&step.id),
                        (step.action, step.needs.iter().map(name).collect()),
                    )
                })
                .collect()
        };
    if shape(checked, &renamed) == shape(plan, &Id::clone) {
        return Ok(());
    }
    Err(CommandError::said(
        Kind::Precondition,
        "something in AWS changed while the cluster's keys were made, and nothing else was done",
        "look at what would be done now: kctl update",
    ))
}
