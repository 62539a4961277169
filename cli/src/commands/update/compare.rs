//! Compares a saved plan with a plan made now.

use super::save_plan::plan_inputs;
use super::{UpdateRun, with_plan};
use crate::commands::assemble::AssembledCluster;
use crate::commands::observe::ObservedCluster;
use crate::error::{CommandError, ErrorKind};
use crate::interrupt::Interrupts;
use crate::saved_plan::{AppliedBy, CurrentPlan, PlanDrift, SavedPlan, compare_plans};
use crate::state::{ListedOperation, OperationLog, StoreKeys};
use crate::ui::plan_drift::drift_reasons;
use cloud::Cloud;
use engine::{Action, Id, Plan, Snapshot};
use node::pki::KUBERNETES_CA;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Number of the newest operations searched for one that applied the plan.
const OPERATIONS: usize = 20;

/// The differences between a saved plan and one made now. `in_terms` is the desired state with the saved plan's
/// placeholders.
pub async fn compare_with_saved(
    saved: &SavedPlan,
    plan: &Plan<Cloud>,
    snapshot: &Snapshot<Cloud>,
    observed: &ObservedCluster,
    in_terms: &AssembledCluster,
    run: UpdateRun<'_>,
) -> Result<PlanDrift, CommandError> {
    let made_from = plan_inputs(plan, snapshot, observed, in_terms)?;
    let now = CurrentPlan {
        plan,
        made_from: &made_from,
    };
    let mut drift = compare_plans(saved, &now);
    if drift.still_applies() {
        return Ok(drift);
    }
    drift.applied_by = applied_by(saved, &observed.state.keys, run).await?;
    let authority = |set: &node::pki::Keyset| set.name == KUBERNETES_CA;
    if !saved.stand_ins.is_empty() && observed.public.keysets.iter().any(authority) {
        // A plan with placeholders is never empty: plan again without them.
        let (assembled, interrupts) = (observed.assemble()?, Interrupts::default());
        let left = with_plan(
            observed,
            &assembled,
            run,
            &interrupts,
            async |_, plan, _| Ok(!plan.is_empty()),
        );
        drift.nothing_left = !left.await?;
    }
    Ok(drift)
}

/// The operations that applied this saved plan.
async fn applied_by(
    saved: &SavedPlan,
    keys: &StoreKeys,
    run: UpdateRun<'_>,
) -> Result<Vec<AppliedBy>, CommandError> {
    let log = OperationLog::list(&run.session.store, keys).await?;
    let newest: Vec<String> = log.ids().iter().take(OPERATIONS).cloned().collect();
    let by = |one: &ListedOperation| {
        let record = one.record.as_ref().ok()?;
        (record.plan.as_deref() == Some(saved.sha256())).then(|| AppliedBy {
            operation: one.id.clone(),
            result: one.result().to_owned(),
            who: record.who.clone(),
        })
    };
    Ok(log.read(&newest).await?.iter().filter_map(by).collect())
}

/// Fails if the saved plan no longer applies.
pub fn check_applies(
    drift: &PlanDrift,
    file: &Path,
    saved: &SavedPlan,
) -> Result<(), CommandError> {
    if drift.still_applies() {
        return Ok(());
    }
    let why = if drift.nothing_left {
        "does not apply: nothing is left to do, so it was applied already, or its changes were made in another way"
    } else {
        "no longer applies, and nothing of it was done now:"
    };
    let mut sentence = format!("the plan in {} of {} {why}", file.display(), saved.made);
    drift_reasons(drift)
        .iter()
        .for_each(|reason| sentence.push_str(&format!("\n  {reason}")));
    let hint = if drift.nothing_left {
        "`kctl get operations` shows what was done, `kctl update` what is left".to_owned()
    } else if drift.place.is_empty() {
        format!(
            "look at what would be done now: kctl update --plan-out {}",
            file.display()
        )
    } else {
        "name the cluster and the store that the plan is for, or make one for this cluster with --plan-out".to_owned()
    };
    Err(CommandError::from_message(
        ErrorKind::Precondition,
        sentence,
        hint,
    ))
}

/// Fails if two plans differ in more than the consequences of the cluster's first certificate. Both come from the same spec,
/// so they differ only if AWS changed between them.
pub fn check_same_but_for_keys(
    (checked, terms): (&Plan<Cloud>, &AssembledCluster),
    (plan, assembled): (&Plan<Cloud>, &AssembledCluster),
) -> Result<(), CommandError> {
    // NodeConfigs are stored under their hashes, which change with the certificate in them.
    let hash = |of: &AssembledCluster, group: &str| {
        let stored = of.group_configs.get(group)?.node_config.as_ref()?;
        Some(stored.sha256.clone())
    };
    let hashes: Vec<(String, String)> = terms
        .group_configs
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
    Err(CommandError::from_message(
        ErrorKind::Precondition,
        "something in AWS changed while the cluster's keys were created; nothing else was done",
        "look at what would be done now: kctl update",
    ))
}
