//! Whether the caller may do what an update would do now, by IAM's own word.

use super::{Inputs, PERMISSIONS};
use crate::ui::preflight::PreflightRow;
use aws_cloud::{Denial, DeniedAction, PlanPlace, planned_actions, simulate_actions};

pub(super) async fn check(inputs: &Inputs<'_>) -> Vec<PreflightRow> {
    let full = inputs.full();
    if inputs.plan.is_empty() {
        let message = "an update changes nothing";
        return vec![PreflightRow::fine(PERMISSIONS, "the caller", message)];
    }
    let state = &full.state;
    let bucket = state.bucket.as_ref();
    let groups = full.groups.iter();
    let profile_roles =
        groups.filter_map(|group| Some((group.iam_profile.clone()?, group.iam_role.clone()?)));
    let place = PlanPlace {
        partition: full.placement.partition.clone(),
        account: full.placement.account.clone(),
        state_object: bucket.map(|bucket| format!("{bucket}/{}/config", state.prefix)),
        profile_roles: profile_roles.collect(),
    };
    let needed = planned_actions(inputs.plan, inputs.snapshot, &place);
    let count = needed.values().flatten().count();
    match simulate_actions(&inputs.observed.clients, &needed).await {
        Err(failure) => {
            let why = failure.to_string();
            vec![PreflightRow::not_known(PERMISSIONS, "the caller", why)]
        }
        Ok(answer) if answer.denied.is_empty() => {
            let message = format!("IAM allows the {count} actions of an update");
            vec![PreflightRow::fine(PERMISSIONS, answer.principal, message)]
        }
        Ok(answer) => answer
            .denied
            .iter()
            .map(|denied| row_of_denial(denied, &answer.principal))
            .collect(),
    }
}

fn row_of_denial(denied: &DeniedAction, principal: &str) -> PreflightRow {
    let DeniedAction {
        action,
        resource,
        denial,
        missing_keys,
    } = denied;
    if !missing_keys.is_empty() {
        let why = format!(
            "on {resource}: policies of {principal} ask for {}, which only the call itself has",
            missing_keys.join(", ")
        );
        return PreflightRow::not_known(PERMISSIONS, action, why);
    }
    if action == "iam:CreateServiceLinkedRole" {
        let why = format!("on {resource}: {denial} to {principal}, but the role may be there");
        return PreflightRow::not_known(PERMISSIONS, action, why);
    }
    if action.starts_with("s3:") && *denial == Denial::Silent {
        let why = format!("on {resource}: {denial} to {principal}, but the bucket's own may");
        return PreflightRow::not_known(PERMISSIONS, action, why);
    }
    PreflightRow::problem(
        PERMISSIONS,
        action,
        format!("on {resource}: {denial} to {principal}"),
        format!("allow {action} to {principal}, or use other credentials"),
    )
}
