//! `kctl delete instance`: a rolling update of one instance.

use super::rolling_update;
use super::session::Session;
use crate::args::{ClusterWords, DeleteInstance, RollingUpdate};
use crate::error::{CommandError, Outcome};

/// Runs the command.
pub async fn run(args: &DeleteInstance, session: &Session<'_>) -> Result<Outcome, CommandError> {
    let target = ClusterWords::default();
    let rolling_update = RollingUpdate {
        cloudonly: args.cloudonly,
        instance: Some(args.instance.clone()),
        output: args.output,
        ..RollingUpdate::new(target, args.yes, args.replacement.clone())
    };
    rolling_update::run(&rolling_update, session).await
}
