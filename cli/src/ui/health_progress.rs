//! Progress of `kctl validate --wait`. On a terminal, the current problems are redrawn. Elsewhere, a line is printed when they
//! change.

use super::{Shell, Tone};
use crate::error::CommandError;
use fleet::{Finding, Health};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use node::duration::duration_text;
use std::time::{Duration, Instant};

/// Number of problems that are listed; more are counted.
const SHOWN: usize = 6;

/// How often the time is redrawn.
const TICK: Duration = Duration::from_secs(1);

/// Shows results while a command waits for a healthy cluster.
#[derive(Debug)]
pub struct HealthProgress<'a> {
    shell: &'a Shell,
    cluster: String,
    /// How long to wait; `None`: do not wait and show nothing.
    wait: Option<Duration>,
    live: Option<ProgressBar>,
    last_text: String,
    began: Instant,
}

impl<'a> HealthProgress<'a> {
    /// Shows that the first check runs.
    pub fn new(shell: &'a Shell, cluster: &str, wait: Option<Duration>) -> Self {
        let live = (wait.is_some() && shell.can_redraw()).then(|| {
            let bar = ProgressBar::new_spinner();
            bar.set_draw_target(ProgressDrawTarget::stderr_with_hz(5));
            // The template is a constant; if it were wrong, the default shows.
            let style = ProgressStyle::with_template("{spinner} {elapsed} {msg}")
                .unwrap_or_else(|_| ProgressStyle::default_spinner());
            bar.set_style(style);
            bar.set_message(format!("looking at {cluster}"));
            bar.enable_steady_tick(TICK);
            bar
        });
        Self {
            shell,
            cluster: cluster.to_owned(),
            wait,
            live,
            last_text: String::new(),
            began: Instant::now(),
        }
    }

    /// Shows the result of a check.
    pub fn show_health(&mut self, health: &Health, healthy: u32, wanted: u32) {
        let text = if health.healthy {
            format!("{} is healthy, {healthy} of {wanted} times", self.cluster)
        } else {
            problem_lines(&self.cluster, health, self.shell.width())
        };
        self.show_text(text);
    }

    /// Shows a failed check.
    pub fn show_failure(&mut self, error: &CommandError) {
        let cause = error.cause.as_ref();
        let cause = cause.map_or(String::new(), |cause| format!("{cause:#}"));
        self.show_text(format!("{} could not be looked at: {cause}", self.cluster));
    }

    /// Removes the moving lines from the screen.
    pub fn finish(&mut self) {
        if let Some(bar) = self.live.take() {
            bar.finish_and_clear();
        }
    }

    fn show_text(&mut self, text: String) {
        if self.wait.is_none() {
            return;
        }
        if let Some(bar) = &self.live {
            bar.set_message(self.shell.err_paint().sanitize(&text));
        } else if text != self.last_text {
            let elapsed = i64::try_from(self.began.elapsed().as_secs());
            let since = duration_text(elapsed.unwrap_or(i64::MAX));
            self.shell.note(
                &self
                    .shell
                    .err_paint()
                    .with_tone(Tone::Faint, &format!("{since}  {text}")),
            );
            self.last_text = text;
        }
    }
}

/// The problems, one line each, cut at the width of the terminal.
fn problem_lines(cluster: &str, health: &Health, width: usize) -> String {
    let groups = &health.groups;
    let instances: usize = groups.iter().map(|group| group.instances).sum();
    let ready: usize = groups.iter().filter_map(|group| group.ready).sum();
    let mut text = format!("{cluster}: {ready} of {instances} instances Ready");
    let line = |found: &Finding| {
        let line = format!("  {}: {}", found.name, found.message);
        let line: Vec<&str> = line.split_whitespace().collect();
        cut_line(&format!("  {}", line.join(" ")), width)
    };
    for found in health.findings.iter().take(SHOWN) {
        text.push('\n');
        text.push_str(&line(found));
    }
    if let Some(more) = health
        .findings
        .len()
        .checked_sub(SHOWN)
        .filter(|more| *more > 0)
    {
        text.push_str(&format!("\n  and {more} more"));
    }
    text
}

fn cut_line(line: &str, width: usize) -> String {
    let width = width.max(40);
    if line.chars().count() < width {
        return line.to_owned();
    }
    line.chars().take(width - 4).chain("...".chars()).collect()
}
