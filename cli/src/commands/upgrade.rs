//! `kctl upgrade`: chooses the next Kubernetes version, checks that the cluster is ready for it, and writes it to the spec.

mod gate;

use super::edit;
use super::session::Session;
use crate::args::{Edit, EditCluster, EditWhat, ReportFormat, Setters, Upgrade};
use crate::error::{CommandError, ErrorContext, ErrorKind, Outcome};
use crate::state::ClusterState;
use gate::Check;
use node::yaml;
use serde::Serialize;
use spec::api::Cluster;
use spec::read::ReadOptions;
use spec::upgrade::{next_version, step_problem};
use spec::validate::versions::Version;
use std::fmt::Write;

/// An upgrade and what stands against it, as JSON or YAML.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct UpgradeDocument<'a> {
    format: u32,
    cluster: &'a str,
    current: String,
    /// Absent if there is nothing newer.
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<String>,
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
    let current = current_version(&state.cluster.object)?;
    let Some(target) = choose_version(&current, args)? else {
        return report_newest(&name, &current, args, session);
    };
    let checks = gate::check_upgrade(&name, &current, &target, args, session).await?;
    print_checks(&name, &current, &target, &checks, args, session)?;
    let ready = checks.iter().all(|check| check.problems.is_empty());
    if !args.yes {
        let force = if ready { "" } else { " --force" };
        session.shell.hint(&format!(
            "kctl upgrade {name} --kubernetes-version {target} --yes{force}    writes {target} to the spec"
        ));
        return Ok(Outcome::Fine);
    }
    if !ready && !args.force {
        return Err(CommandError::from_message(
            ErrorKind::Precondition,
            format!("{name} is not ready for {target}: nothing was changed"),
            "mend what the checks show, then repeat the command; --force writes the version anyway",
        ));
    }
    edit::run(&set_version(&name, &target), session).await?;
    session.shell.hint(&format!(
        "kctl reconcile {name} --yes    updates AWS, replaces the control planes, then the other instances"
    ));
    Ok(Outcome::Fine)
}

fn current_version(cluster: &Cluster) -> Result<Version, CommandError> {
    let text = cluster.spec.kubernetes_version.as_deref();
    text.and_then(Version::parse).ok_or_else(|| {
        CommandError::usage_error(
            "the spec names no Kubernetes version",
            format!(
                "set it to what the cluster runs: kctl edit cluster {} --set spec.kubernetesVersion=VERSION",
                cluster.name()
            ),
        )
    })
}

/// The version to go to; `None` if there is nothing newer.
fn choose_version(current: &Version, args: &Upgrade) -> Result<Option<Version>, CommandError> {
    let Some(text) = &args.kubernetes_version else {
        return Ok(next_version(current));
    };
    let Some(target) = Version::parse(text) else {
        return Err(CommandError::usage_error(
            format!("--kubernetes-version: {text:?} is not a version"),
            "write it as 1.36.3",
        ));
    };
    match step_problem(current, &target) {
        None => Ok(Some(target)),
        Some(problem) => Err(CommandError::usage_error(
            format!("--kubernetes-version {target}: {problem}"),
            match next_version(current) {
                Some(next) => format!("the next version is {next}"),
                None => "there is nothing newer that this kctl knows".to_owned(),
            },
        )),
    }
}

fn report_newest(
    name: &str,
    current: &Version,
    args: &Upgrade,
    session: &Session<'_>,
) -> Result<Outcome, CommandError> {
    print_document(name, current, None, &[], args, session)?;
    session.shell.print_done(&format!(
        "{name} has Kubernetes {current}: this kctl knows nothing newer"
    ));
    Ok(Outcome::Fine)
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
        return print_document(name, current, Some(target), checks, args, session);
    }
    let mut text = format!("Cluster {name}  Kubernetes {current} -> {target}\n\n");
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

fn print_document(
    name: &str,
    current: &Version,
    target: Option<&Version>,
    checks: &[Check],
    args: &Upgrade,
    session: &Session<'_>,
) -> Result<(), CommandError> {
    const BROKEN: &str = "the upgrade has no form for programs";
    const DEFECT: &str = "report this: it is a defect of kctl";
    let document = UpgradeDocument {
        format: 1,
        cluster: name,
        current: current.to_string(),
        target: target.map(ToString::to_string),
        ready: checks.iter().all(|check| check.problems.is_empty()),
        checks,
    };
    let text = match args.output {
        ReportFormat::Table => return Ok(()),
        ReportFormat::Json => serde_json::to_string_pretty(&document).or_failed(BROKEN, DEFECT)?,
        ReportFormat::Yaml => yaml::to_yaml(&document).or_failed(BROKEN, DEFECT)?,
    };
    session.shell.print_document(&text)
}

/// `kctl edit cluster NAME --set spec.kubernetesVersion=VERSION`.
fn set_version(name: &str, target: &Version) -> Edit {
    Edit {
        what: EditWhat::Cluster(EditCluster {
            cluster: Some(name.to_owned()),
            setters: Setters {
                set: vec![format!("spec.kubernetesVersion={target}")],
                unset: Vec::new(),
            },
            allow_unsupported: false,
        }),
    }
}
