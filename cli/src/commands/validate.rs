//! `kctl validate`: checks whether a cluster is healthy, and waits until it is.

use super::document::print_document;
use super::inspect::Inspector;
use super::look::{Look, Warnings};
use super::session::Session;
use crate::api::ApiQuery;
use crate::args::{ReportFormat, Validate};
use crate::error::{CommandError, ErrorKind, Outcome};
use crate::interrupt::Interrupts;
use crate::ui::etcd::{RestorableRow, restorable_table};
use crate::ui::health::{self as shown, Warning};
use crate::ui::health_progress::HealthProgress;
use fleet::{FindingKind, Health};
use serde::Serialize;
use spec::upgrade::OpenUpgrade;
use std::time::Duration;
use tokio::time::Instant;

/// Validates the cluster that the options name.
pub async fn run(args: &Validate, session: &Session<'_>) -> Result<Outcome, CommandError> {
    if let Some(word) = args.target.unexpected_word() {
        return Err(CommandError::usage_error(
            format!("one word too many: {word:?}"),
            "kctl validate [cluster] [NAME]",
        ));
    }
    let name = session.cluster_name(args.target.cluster()).await?;
    let interrupts = Interrupts::default();
    let outcome = tokio::select! {
        biased;
        outcome = validate_cluster(&name, args, session) => outcome,
        () = interrupts.wait_to_leave(|| ()) => Err(CommandError::from_message(
            ErrorKind::Interrupted,
            "interrupted",
            "nothing was changed: repeat the command",
        )),
    };
    tracing::debug!(reads = session.store.reads(), calls = ?session.clients.calls(), "asked");
    outcome
}

async fn validate_cluster(
    name: &str,
    args: &Validate,
    session: &Session<'_>,
) -> Result<Outcome, CommandError> {
    let mut inspector = Inspector::open(name, ApiQuery::NodesAndPods, &args.reach, session).await?;
    let mut waiting = HealthProgress::new(session.shell, name, args.wait);
    let last = watch_health(name, args, session, &mut inspector, &mut waiting).await;
    waiting.finish();
    let last = last?;
    print_report(name, args.output, &last, session)?;
    let warned = last.gaps.iter().chain(&last.warnings.slow_disks);
    let open = last.warnings.upgrade.as_ref().map(OpenUpgrade::describe);
    let warned = warned.chain(&last.warnings.end_of_life).chain(&open);
    warned.for_each(|text| session.shell.warning(text));
    session.shell.not_yet(&last.warnings.not_yet);
    if last.health.healthy {
        session.shell.print_done(&format!("{name} is healthy"));
        return Ok(Outcome::Fine);
    }
    Err(unhealthy_error(name, &last.health, args))
}

struct Validation {
    health: Health,
    /// The API's URL, if known.
    api: Option<String>,
    warnings: Warnings,
    /// Up to when etcd can be restored.
    restorable: Vec<RestorableRow>,
    /// What could not be read.
    gaps: Vec<String>,
}

/// Checks until the cluster is healthy `--count` times in a row, or the time is over. Until then, failed checks are
/// repeated.
async fn watch_health(
    name: &str,
    args: &Validate,
    session: &Session<'_>,
    inspector: &mut Inspector<'_>,
    waiting: &mut HealthProgress<'_>,
) -> Result<Validation, CommandError> {
    let ends = Instant::now() + args.wait.unwrap_or_default();
    let mut healthy = 0;
    loop {
        let looked = Look::take(name, session, inspector).await;
        let left = ends.saturating_duration_since(Instant::now());
        match looked {
            Ok(looked) => {
                let health = looked.health(inspector.groups(), &args.ignore);
                healthy = if health.healthy { healthy + 1 } else { 0 };
                let over = healthy >= args.count || (!health.healthy && left.is_zero());
                waiting.show_health(&health, healthy, args.count);
                if over {
                    return Ok(Validation {
                        health,
                        api: inspector.api_url(),
                        warnings: Warnings::find(&looked, inspector),
                        restorable: looked.etcd.seen_restorable(),
                        gaps: looked.gaps(),
                    });
                }
            }
            Err(error) if left.is_zero() || !may_pass(&error) => return Err(error),
            Err(error) => {
                healthy = 0;
                waiting.show_failure(&error);
            }
        }
        tokio::time::sleep(next_pause(args.interval, left, healthy)).await;
    }
}

/// The pause before the next check. The last check happens when the time is over, but a healthy cluster is checked as often
/// as required.
fn next_pause(interval: Duration, left: Duration, healthy: u32) -> Duration {
    if healthy > 0 {
        interval
    } else {
        interval.min(left)
    }
}

/// True if a later check may succeed: not if the command or the account's permissions are wrong.
fn may_pass(error: &CommandError) -> bool {
    use engine::{Class, Failure};
    let failure = error.cause.as_ref().and_then(|cause| {
        cause
            .chain()
            .find_map(|cause| cause.downcast_ref::<Failure>())
    });
    let lasting = failure.is_some_and(|failure| {
        matches!(failure.class, Class::Denied | Class::Invalid | Class::Quota)
    });
    error.kind == ErrorKind::Failed && !lasting
}

fn print_report(
    name: &str,
    output: ReportFormat,
    validation: &Validation,
    session: &Session<'_>,
) -> Result<(), CommandError> {
    let document = ValidationDocument {
        format: 1,
        cluster: name,
        api: validation.api.as_deref(),
        health: &validation.health,
        restorable: &validation.restorable,
        upgrade: validation.warnings.upgrade.as_ref(),
        warnings: validation.warnings.list(),
    };
    let shell = session.shell;
    if output != ReportFormat::Table {
        return print_document(&document, output, shell);
    }
    let mut text = shown::render(&validation.health, shell.paint());
    if !validation.restorable.is_empty() {
        text.push('\n');
        text.push_str(&restorable_table(&validation.restorable));
    }
    shell.print_result(&text)
}

/// The report for programs. Additions keep `format`; anything else raises it.
#[derive(Serialize)]
struct ValidationDocument<'a> {
    format: u32,
    cluster: &'a str,
    /// The API's URL, if known.
    api: Option<&'a str>,
    #[serde(flatten)]
    health: &'a Health,
    /// Up to when each etcd cluster can be restored.
    #[serde(skip_serializing_if = "<[RestorableRow]>::is_empty")]
    restorable: &'a [RestorableRow],
    /// An upgrade of Kubernetes that has not ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    upgrade: Option<&'a OpenUpgrade>,
    warnings: Vec<Warning>,
}

/// Text about instances that are not known to have joined. They are not problems, but must be visible.
fn unknown_count(health: &Health) -> String {
    match (health.api_error.is_some(), health.not_joined.len()) {
        (false, _) | (_, 0) => String::new(),
        (true, 1) => ", 1 instance not known to have joined".to_owned(),
        (true, count) => format!(", {count} instances not known to have joined"),
    }
}

fn unhealthy_error(name: &str, health: &Health, args: &Validate) -> CommandError {
    let count = health.findings.len();
    let problems = if count == 1 { "problem" } else { "problems" };
    // A problem of an instance is closer to the cause than an API that is unreachable because of it.
    let instances = health.findings.iter();
    let instances = instances.filter(|found| found.kind == FindingKind::Instance);
    let mut ordered = instances.chain(&health.findings);
    let first = ordered.find_map(|found| found.next.clone());
    let hint = first.unwrap_or_else(|| "look again in a minute".to_owned());
    let error = CommandError::from_message(
        ErrorKind::Unhealthy,
        format!(
            "{name} is not healthy: {count} {problems}{}",
            unknown_count(health)
        ),
        hint,
    );
    if args.wait.is_some() {
        return error;
    }
    error.with_hint(format!(
        "kctl validate {name} --wait 10m    waits until it is"
    ))
}
