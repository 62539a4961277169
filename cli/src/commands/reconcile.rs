//! `kctl reconcile`: updates the cluster and replaces its instances in the order that Kubernetes' version skew policy allows. The
//! first update withholds a new version from workers; once the control planes run it, the second gives it to them.

use super::session::Session;
use super::{rolling_update, update};
use crate::args::{Reconcile, RoleName, RollingUpdate, Update};
use crate::error::{CommandError, Outcome};

/// Runs the command. Each step has nothing to do if an earlier run did it.
pub async fn run(args: &Reconcile, session: &Session<'_>) -> Result<Outcome, CommandError> {
    if let Some(word) = args.target.unexpected_word() {
        return Err(CommandError::usage_error(
            format!("one word too many: {word:?}"),
            "kctl reconcile [cluster] [NAME]",
        ));
    }
    let name = session.cluster_name(args.target.cluster()).await?;
    if !args.yes {
        if run_update(args, session).await? == Outcome::ChangesPending {
            session.shell.note(
                "Then the instances of groups whose launch template changes are replaced, control planes first.",
            );
        } else {
            run_rolling_update(args, Vec::new(), session).await?;
        }
        session.shell.hint(&format!(
            "kctl reconcile {name} --yes    does all of it: control planes first, then the other instances"
        ));
        return Ok(Outcome::Fine);
    }
    let note = |step: u8, text: &str| session.shell.note(&format!("Step {step} of 4: {text}"));
    note(1, "update");
    run_update(args, session).await?;
    note(2, "replace control planes");
    run_rolling_update(args, vec![RoleName::ControlPlane], session).await?;
    note(3, "update, now that control planes have their version");
    run_update(args, session).await?;
    note(4, "replace the other instances");
    run_rolling_update(args, Vec::new(), session).await
}

async fn run_update(args: &Reconcile, session: &Session<'_>) -> Result<Outcome, CommandError> {
    let update = Update {
        target: args.target.clone(),
        yes: args.yes,
        allow_unsupported: args.allow_unsupported,
        // Without --yes the outcome then says whether something would change.
        exit_code: !args.yes,
        lock_wait: args.replacement.lock_wait,
        ..Update::default()
    };
    update::run(&update, session).await
}

async fn run_rolling_update(
    args: &Reconcile,
    roles: Vec<RoleName>,
    session: &Session<'_>,
) -> Result<Outcome, CommandError> {
    let rolling_update = RollingUpdate {
        instance_group_roles: roles,
        ..RollingUpdate::new(args.target.clone(), args.yes, args.replacement.clone())
    };
    rolling_update::run(&rolling_update, session).await
}
