//! Whether a saved plan is still what would be done.

use super::keep::made_from;
use super::{Run, planning};
use crate::commands::assemble::Assembled;
use crate::commands::look::Looked;
use crate::error::{CommandError, Kind};
use crate::interrupt::Interrupts;
use crate::saved_plan::{AppliedBy, Now, SavedPlan, Stale, stale};
use crate::state::{Keys, Listed, Operations};
use crate::ui::stale::reasons;
use cloud::Cloud;
use engine::{Action, Id, Plan, Snapshot};
use node::pki::KUBERNETES_CA;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// So many of the newest operations are looked through for one that applied the plan.
const OPERATIONS: usize = 20;

/// What moved between a saved plan and one that was made now `in_terms` of it.
pub async fn compared(
    saved: &SavedPlan,
    plan: &Plan<Cloud>,
    seen: &Snapshot<Cloud>,
    looked: &Looked,
    in_terms: &Assembled,
    run: Run<'_>,
) -> Result<Stale, CommandError> {
    let made_from = made_from(plan, seen, looked, in_terms)?;
    let now = Now {
        plan,
        made_from: &made_from,
    };
    let mut moved = stale(saved, &now);
    if moved.applies() {
        return Ok(moved);
    }
    moved.applied_by = applied_by(saved, &looked.state.keys, run).await?;
    let authority = |set: &node::pki::Keyset| set.name == KUBERNETES_CA;
    if !saved.stand_ins.is_empty() && looked.public.keysets.iter().any(authority) {
        // With stand-ins there always seems to be something to do.
        let (assembled, interrupts) = (looked.assemble()?, Interrupts::default());
        let left = planning(looked, &assembled, run, &interrupts, async |_, plan, _| {
            Ok(!plan.is_empty())
        });
        moved.nothing_left = !left.await?;
    }
    Ok(moved)
}

/// The newest operations that applied this very plan.
async fn applied_by(
    saved: &SavedPlan,
    keys: &Keys,
    run: Run<'_>,
) -> Result<Vec<AppliedBy>, CommandError> {
    let log = Operations::list(&run.session.store, keys).await?;
    let newest: Vec<String> = log.ids().iter().take(OPERATIONS).cloned().collect();
    let by = |one: &Listed| {
        let record = one.record.as_ref().ok()?;
        (record.plan.as_deref() == Some(saved.sha256())).then(|| AppliedBy {
            operation: one.id.clone(),
            result: one.result().to_owned(),
            who: record.who.clone(),
        })
    };
    Ok(log.read(&newest).await?.iter().filter_map(by).collect())
}

/// Fails if the plan is no longer what would be done.
pub fn still(moved: &Stale, file: &Path, saved: &SavedPlan) -> Result<(), CommandError> {
    if moved.applies() {
        return Ok(());
    }
    let why = if moved.nothing_left {
        "does not apply: nothing is left to do, so it was applied already, or its changes were made in another way"
    } else {
        "no longer applies, and nothing of it was done now:"
    };
    let mut sentence = format!("the plan in {} of {} {why}", file.display(), saved.made);
    reasons(moved)
        .iter()
        .for_each(|reason| sentence.push_str(&format!("\n  {reason}")));
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
pub fn same_but_for_keys(
    (checked, terms): (&Plan<Cloud>, &Assembled),
    (plan, assembled): (&Plan<Cloud>, &Assembled),
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
