//! The boot of an instance as a bar: the time from EC2's launch to the start of nodeup, then nodeup's stages.

use super::html::{Html, element};
use crate::ui::progress::millis_text;
use fleet::Instance;
use node::report::{BootReport, Status};
use node::waits::bounded_text;
use std::time::Duration;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// Longest time from the launch to a first run of nodeup. A report of a later start is of a later run.
const LONGEST_LAUNCH: Duration = Duration::from_hours(1);

/// Longest time that a bar shows of a stage: an instance may report anything.
const LONGEST_STAGE: Duration = Duration::from_hours(24);

/// Most stages that are shown of a report. nodeup has six.
const MOST_STAGES: usize = 12;

/// Limit of the name of a stage, characters.
const NAME: usize = 40;

/// Width of the longest bar, in units of its drawing.
const WIDTH: u128 = 1000;

/// Classes of the parts of a bar, in turn.
const TONES: [&str; 3] = ["tone-a", "tone-b", "tone-c"];

/// A part of a boot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    /// `launch`, or the stage of nodeup.
    name: String,
    time: Duration,
    status: Status,
}

/// The parts of a boot, in order.
pub fn boot_spans(instance: &Instance, report: &BootReport) -> Vec<Span> {
    let started = OffsetDateTime::parse(&report.started, &Rfc3339).ok();
    let launch = instance.launched.zip(started).and_then(|(launched, at)| {
        let seconds = u64::try_from(at.unix_timestamp().saturating_sub(launched)).ok()?;
        let time = Duration::from_secs(seconds);
        (time <= LONGEST_LAUNCH).then(|| Span {
            name: "launch".to_owned(),
            time,
            status: Status::Finished,
        })
    });
    let stages = report.stages.iter().take(MOST_STAGES).map(|stage| Span {
        name: bounded_text(&stage.name, NAME),
        time: Duration::try_from_secs_f64(stage.seconds)
            .unwrap_or_default()
            .min(LONGEST_STAGE),
        status: stage.status,
    });
    launch.into_iter().chain(stages).collect()
}

/// How long all of it took.
pub fn total_time(spans: &[Span]) -> Duration {
    spans.iter().map(|span| span.time).sum()
}

/// The same as text, which says everything that the bar shows: `launch 38.0s, fetch 1.2s, apply 20.1s failed; 59.3s in all`.
pub fn boot_text(spans: &[Span]) -> String {
    let parts = spans.iter().map(|span| {
        let end = match span.status {
            Status::Started => " so far",
            Status::Finished => "",
            Status::Failed => " failed",
        };
        format!("{} {}{end}", span.name, time_text(span.time))
    });
    let parts: Vec<String> = parts.collect();
    format!(
        "{}; {} in all",
        parts.join(", "),
        time_text(total_time(spans))
    )
}

/// A duration as tables show it.
fn time_text(time: Duration) -> String {
    millis_text(u64::try_from(time.as_millis()).unwrap_or(u64::MAX))
}

/// The bar, as wide as its share of the time `longest`. It is for eyes only.
pub fn boot_bar(spans: &[Span], longest: Duration) -> Html {
    let longest = longest.as_millis().max(1);
    let mut start = 0_u128;
    let parts = spans
        .iter()
        .zip(TONES.into_iter().cycle())
        .map(|(span, tone)| {
            let time = span.time.as_millis();
            let class = match span.status {
                Status::Failed => "failed",
                Status::Started | Status::Finished => tone,
            };
            let part = bar_part(start * WIDTH / longest, time * WIDTH / longest, class);
            start += time;
            part
        });
    bar(parts)
}

/// A bar in which so many of all are done.
pub fn share_bar(done: usize, all: usize) -> Html {
    let share = WIDTH * done as u128 / (all as u128).max(1);
    bar([bar_part(0, WIDTH, "rest"), bar_part(0, share, "tone-a")])
}

fn bar(parts: impl IntoIterator<Item = Html>) -> Html {
    let attributes = [
        ("class", "bar"),
        ("viewBox", "0 0 1000 10"),
        ("preserveAspectRatio", "none"),
        ("aria-hidden", "true"),
    ];
    element("svg", &attributes, parts)
}

fn bar_part(start: u128, width: u128, class: &str) -> Html {
    let (start, width) = (start.to_string(), width.max(1).to_string());
    let attributes = [
        ("x", start.as_str()),
        ("y", "0"),
        ("width", width.as_str()),
        ("height", "10"),
        ("class", class),
    ];
    element("rect", &attributes, [])
}
