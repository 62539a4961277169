//! `kctl validate`: says whether a cluster is healthy, and waits until it is.

use super::inspect::Inspector;
use super::session::Session;
use crate::api::Question;
use crate::args::{ReportFormat, Validate};
use crate::error::{CommandError, Context, Kind, Outcome};
use crate::interrupt::Interrupts;
use crate::ui::health as shown;
use crate::ui::waiting::Waiting;
use fleet::{FindingKind, Health, check_health};
use serde::Serialize;
use spec::not_yet::NotYet;
use std::time::Duration;
use tokio::time::Instant;

/// Validates the cluster that the options name.
pub async fn run(what: &Validate, session: &Session<'_>) -> Result<Outcome, CommandError> {
    if let Some(word) = what.target.unexpected() {
        return Err(CommandError::usage(
            format!("one word too many: {word:?}"),
            "kctl validate [cluster] [NAME]",
        ));
    }
    let name = session.cluster(what.target.cluster()).await?;
    let interrupts = Interrupts::default();
    let outcome = tokio::select! {
        biased;
        outcome = validate(&name, what, session) => outcome,
        () = interrupts.leave(|| ()) => Err(CommandError::said(
            Kind::Interrupted,
            "interrupted",
            "nothing was changed: repeat the command",
        )),
    };
    tracing::debug!(reads = session.store.reads(), calls = ?session.clients.calls(), "asked");
    outcome
}

async fn validate(
    name: &str,
    what: &Validate,
    session: &Session<'_>,
) -> Result<Outcome, CommandError> {
    let mut inspector = Inspector::of(name, Question::NodesAndPods, &what.reach, session).await?;
    let mut waiting = Waiting::new(session.shell, name, what.wait);
    let last = watch(what, &mut inspector, &mut waiting).await;
    waiting.finish();
    let last = last?;
    show(name, what.output, &last, session)?;
    last.gaps.iter().for_each(|gap| session.shell.warning(gap));
    session.shell.not_yet(&last.warnings);
    if last.health.healthy {
        session.shell.done(&format!("{name} is healthy"));
        return Ok(Outcome::Fine);
    }
    Err(unhealthy(name, &last.health, what))
}

/// What the last look saw.
struct Seen {
    health: Health,
    /// The API's URL, if known.
    api: Option<String>,
    /// What kctl does not implement yet.
    warnings: Vec<NotYet>,
    /// What could not be read.
    gaps: Vec<String>,
}

/// Looks until the cluster is healthy as often in a row as is asked, or the time is over. While there is time a look
/// that fails is one more thing to wait for.
async fn watch(
    what: &Validate,
    inspector: &mut Inspector<'_>,
    waiting: &mut Waiting<'_>,
) -> Result<Seen, CommandError> {
    let ends = Instant::now() + what.wait.unwrap_or_default();
    let mut healthy = 0;
    loop {
        let looked = inspector.look().await;
        let left = ends.saturating_duration_since(Instant::now());
        match looked {
            Ok(fleet) => {
                let health = check_health(inspector.groups(), &fleet);
                healthy = if health.healthy { healthy + 1 } else { 0 };
                let over = healthy >= what.count || (!health.healthy && left.is_zero());
                waiting.saw(&health, healthy, what.count);
                if over {
                    return Ok(Seen {
                        health,
                        api: inspector.url(),
                        warnings: inspector.not_yet(),
                        gaps: fleet.gaps,
                    });
                }
            }
            Err(error) if left.is_zero() || !may_pass(&error) => return Err(error),
            Err(error) => {
                healthy = 0;
                waiting.failed(&error);
            }
        }
        tokio::time::sleep(pause(what.interval, left, healthy)).await;
    }
}

/// The last look happens when the time is over; a cluster that has just become healthy is looked at as often as asked.
fn pause(interval: Duration, left: Duration, healthy: u32) -> Duration {
    if healthy > 0 {
        interval
    } else {
        interval.min(left)
    }
}

/// Whether it may be otherwise the next time: not where the command or the account is wrong.
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
    error.kind == Kind::Failed && !lasting
}

fn show(
    name: &str,
    output: ReportFormat,
    seen: &Seen,
    session: &Session<'_>,
) -> Result<(), CommandError> {
    const DEFECT: &str = "report this: it is a defect of kctl";
    let document = Document {
        format: 1,
        cluster: name,
        api: seen.api.as_deref(),
        health: &seen.health,
        warnings: &seen.warnings,
    };
    let shell = session.shell;
    let text = match output {
        ReportFormat::Table => {
            return shell.result(&shown::render(&seen.health, shell.paint()));
        }
        ReportFormat::Json => {
            serde_json::to_string_pretty(&document).failed("the report has no JSON form", DEFECT)?
        }
        ReportFormat::Yaml => {
            node::yaml::to_yaml(&document).failed("the report has no YAML form", DEFECT)?
        }
    };
    shell.document(&text)
}

/// The report for programs. Additions keep `format`; anything else raises it.
#[derive(Serialize)]
struct Document<'a> {
    format: u32,
    cluster: &'a str,
    /// The API's URL, if known.
    api: Option<&'a str>,
    #[serde(flatten)]
    health: &'a Health,
    /// What kctl does not implement yet.
    warnings: &'a [NotYet],
}

/// How many instances are not known to have joined: they are no problems, but must not be overlooked.
fn unknown_count(health: &Health) -> String {
    match (health.api_error.is_some(), health.not_joined.len()) {
        (false, _) | (_, 0) => String::new(),
        (true, 1) => ", 1 instance not known to have joined".to_owned(),
        (true, count) => format!(", {count} instances not known to have joined"),
    }
}

fn unhealthy(name: &str, health: &Health, what: &Validate) -> CommandError {
    let count = health.findings.len();
    let problems = if count == 1 { "problem" } else { "problems" };
    // The problem of an instance is closer to the cause than an API that does not answer because of it.
    let instances = health.findings.iter();
    let instances = instances.filter(|found| found.kind == FindingKind::Instance);
    let mut ordered = instances.chain(&health.findings);
    let first = ordered.find_map(|found| found.next.clone());
    let hint = first.unwrap_or_else(|| "look again in a minute".to_owned());
    let error = CommandError::said(
        Kind::Unhealthy,
        format!(
            "{name} is not healthy: {count} {problems}{}",
            unknown_count(health)
        ),
        hint,
    );
    if what.wait.is_some() {
        return error;
    }
    error.hint(format!(
        "kctl validate {name} --wait 10m    waits until it is"
    ))
}
