//! A cluster while somebody waits for it. On a terminal: what is still wrong stands below, and changes. Elsewhere: one
//! line each time that it is another.

use super::{Shell, Tone};
use crate::error::CommandError;
use fleet::{Finding, Health};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use node::duration::duration_text;
use std::time::{Duration, Instant};

/// Problems that are shown one by one.
const SHOWN: usize = 6;

/// Times on the screen move this often.
const TICK: Duration = Duration::from_secs(1);

/// Shows what is waited for.
#[derive(Debug)]
pub struct Waiting<'a> {
    shell: &'a Shell,
    cluster: String,
    /// How long; without it nobody waits and nothing is shown.
    wait: Option<Duration>,
    live: Option<ProgressBar>,
    said: String,
    began: Instant,
}

impl<'a> Waiting<'a> {
    /// Shows that it looks.
    pub fn new(shell: &'a Shell, cluster: &str, wait: Option<Duration>) -> Self {
        let live = (wait.is_some() && shell.live()).then(|| {
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
            said: String::new(),
            began: Instant::now(),
        }
    }

    /// A look saw this.
    pub fn saw(&mut self, health: &Health, healthy: u32, wanted: u32) {
        let text = if health.healthy {
            format!("{} is healthy, {healthy} of {wanted} times", self.cluster)
        } else {
            problems(&self.cluster, health, self.shell.width())
        };
        self.show(text);
    }

    /// A look failed.
    pub fn failed(&mut self, error: &CommandError) {
        let cause = error.cause.as_ref();
        let cause = cause.map_or(String::new(), |cause| format!("{cause:#}"));
        self.show(format!("{} could not be looked at: {cause}", self.cluster));
    }

    /// Takes what moves off the screen.
    pub fn finish(&mut self) {
        if let Some(bar) = self.live.take() {
            bar.finish_and_clear();
        }
    }

    fn show(&mut self, text: String) {
        if self.wait.is_none() {
            return;
        }
        if let Some(bar) = &self.live {
            bar.set_message(self.shell.err_paint().safe(&text));
        } else if text != self.said {
            let elapsed = i64::try_from(self.began.elapsed().as_secs());
            let since = duration_text(elapsed.unwrap_or(i64::MAX));
            self.shell.note(
                &self
                    .shell
                    .err_paint()
                    .tone(Tone::Faint, &format!("{since}  {text}")),
            );
            self.said = text;
        }
    }
}

/// What is wrong, a line each, none wider than the terminal.
fn problems(cluster: &str, health: &Health, width: usize) -> String {
    let groups = &health.groups;
    let instances: usize = groups.iter().map(|group| group.instances).sum();
    let ready: usize = groups.iter().filter_map(|group| group.ready).sum();
    let mut text = format!("{cluster}: {ready} of {instances} instances Ready");
    let line = |found: &Finding| {
        let line = format!("  {}: {}", found.name, found.message);
        let line: Vec<&str> = line.split_whitespace().collect();
        cut(&format!("  {}", line.join(" ")), width)
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

fn cut(line: &str, width: usize) -> String {
    let width = width.max(40);
    if line.chars().count() < width {
        return line.to_owned();
    }
    line.chars().take(width - 4).chain("...".chars()).collect()
}
