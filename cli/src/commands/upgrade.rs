//! `kctl upgrade`: chooses the next Kubernetes version, checks that the cluster is ready for it, and writes it to the spec; ends an upgrade
//! that can be taken back, or takes it back.

mod gate;
mod step;

use super::document::print_document;
use super::existing_cluster::{ExistingCluster, read_completed_spec};
use super::session::Session;
use super::{backups, edit};
use crate::args::{ReportFormat, Upgrade};
use crate::error::{CommandError, ErrorKind, Outcome};
use crate::state::ClusterState;
use gate::Check;
use serde::Serialize;
use spec::catalog::end_of_life;
use spec::read::ReadOptions;
use spec::validate::versions::Version;
use std::fmt::Write;
use step::{StepKind, choose_step, current_version};

/// An upgrade and what stands against it, as JSON or YAML.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct UpgradeDocument<'a> {
    format: u32,
    cluster: &'a str,
    current: String,
    /// The last day of its minor; absent if that is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    current_end_of_life: Option<String>,
    /// Absent if there is nothing newer.
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    target_end_of_life: Option<String>,
    ready: bool,
    checks: &'a [Check],
}

/// Runs the command.
pub async fn run(args: &Upgrade, session: &Session<'_>) -> Result<Outcome, CommandError> {
    if let Some(word) = args.target.unexpected_word() {
        return Err(CommandError::usage_error(
            format!("one word too many: {word:?}"),
            "kctl upgrade [cluster] [NAME]",
        ));
    }
    let name = session.cluster_name(args.target.cluster()).await?;
    let read = ReadOptions::AS_STORED;
    let state = ClusterState::read(&session.store, &name, read).await?;
    let cluster = &state.cluster.object;
    let last = match args.rollback {
        true => read_completed_spec(&state, session).await?,
        false => None,
    };
    let Some(step) = choose_step(cluster, last.as_ref(), args)? else {
        return report_newest(&name, &current_version(cluster)?, args, session);
    };
    // No option stores what the spec is refused for.
    edit::check_cluster_edit(&state, &step.build_setters(), session)?;
    let checks = match step.kind {
        // It is for clusters that are not well.
        StepKind::Rollback => Vec::new(),
        _ => gate::check_upgrade(&name, &step, args, session).await?,
    };
    let (from, to) = (&step.from, &step.to);
    print_checks(&name, from, to, &checks, args, session)?;
    let ready = checks.iter().all(|check| check.problems.is_empty());
    if !args.yes {
        let force = if ready { "" } else { " --force" };
        session.shell.hint(&format!(
            "kctl upgrade {name} {} --yes{force}    {}",
            step.list_options(),
            step.describe_effect()
        ));
        return Ok(Outcome::Fine);
    }
    if !ready && !args.force {
        return Err(CommandError::from_message(
            ErrorKind::Precondition,
            format!("{name} is not ready for {to}: nothing was changed"),
            "mend what the checks show, then repeat the command; --force writes the version anyway",
        ));
    }
    if step.needs_snapshots() && !args.no_backup {
        Box::pin(take_snapshots(&name, session)).await?;
    }
    edit::run(&step.build_edit(&name), session).await?;
    session.shell.hint(&format!(
        "kctl reconcile {name} --yes    {}",
        step.describe_follow_up()
    ));
    Ok(Outcome::Fine)
}

/// Takes a snapshot of each etcd cluster. Fails if one cannot be taken.
async fn take_snapshots(name: &str, session: &Session<'_>) -> Result<(), CommandError> {
    let cluster = ExistingCluster::read(name, session).await?;
    for etcd in cluster.completed.etcd_versions.keys() {
        backups::take_now("upgrade", (name, etcd.as_str()), "--no-backup", session).await?;
    }
    Ok(())
}

fn report_newest(
    name: &str,
    current: &Version,
    args: &Upgrade,
    session: &Session<'_>,
) -> Result<Outcome, CommandError> {
    if args.output != ReportFormat::Table {
        print_as_document(name, current, None, &[], args, session)?;
    }
    let ends = end_of_life(current.minor).map(|end| format!(" (until {end})"));
    session.shell.print_done(&format!(
        "{name} has Kubernetes {current}{}: this kctl knows nothing newer",
        ends.unwrap_or_default()
    ));
    Ok(Outcome::Fine)
}

/// Until when both minors get patches: `1.35 until 2027-02-28, 1.36 until 2027-06-28`. Empty if that is not known.
fn describe_ends(current: &Version, target: &Version) -> String {
    let mut minors = vec![current.minor, target.minor];
    minors.dedup();
    let end = |minor: u32| Some(format!("1.{minor} until {}", end_of_life(minor)?));
    let ends: Vec<String> = minors.into_iter().filter_map(end).collect();
    ends.join(", ")
}

fn print_checks(
    name: &str,
    current: &Version,
    target: &Version,
    checks: &[Check],
    args: &Upgrade,
    session: &Session<'_>,
) -> Result<(), CommandError> {
    if args.output != ReportFormat::Table {
        return print_as_document(name, current, Some(target), checks, args, session);
    }
    let mut text = format!("Cluster {name}  Kubernetes {current} -> {target}\n");
    let ends = describe_ends(current, target);
    if !ends.is_empty() {
        let _ = writeln!(text, "Kubernetes gets patches: {ends}");
    }
    text.push('\n');
    for check in checks {
        let result = match check.problems.len() {
            0 if check.warnings.is_empty() => "ok".to_owned(),
            0 => "ok, with a warning".to_owned(),
            1 => "1 problem".to_owned(),
            several => format!("{several} problems"),
        };
        let _ = writeln!(text, "  {:<17}{result}", check.name);
        for problem in check.problems.iter().chain(&check.warnings) {
            let _ = writeln!(text, "    {problem}");
        }
    }
    session.shell.print_result(&text)
}

fn print_as_document(
    name: &str,
    current: &Version,
    target: Option<&Version>,
    checks: &[Check],
    args: &Upgrade,
    session: &Session<'_>,
) -> Result<(), CommandError> {
    let document = UpgradeDocument {
        format: 1,
        cluster: name,
        current: current.to_string(),
        current_end_of_life: end_of_life(current.minor).map(|end| end.to_string()),
        target: target.map(ToString::to_string),
        target_end_of_life: target
            .and_then(|target| end_of_life(target.minor))
            .map(|end| end.to_string()),
        ready: checks.iter().all(|check| check.problems.is_empty()),
        checks,
    };
    print_document(&document, args.output, session.shell)
}
