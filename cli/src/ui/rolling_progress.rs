//! Progress of a rolling update. On a terminal the groups and what is waited for are redrawn. Elsewhere a line is printed when
//! something was done, and when what is waited for changes.

use super::Shell;
use crate::error::CommandError;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use node::duration::duration_text;
use rolling_update::{Action, Observed, RollingInstance};
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

/// How often the time is redrawn.
const TICK: Duration = Duration::from_secs(1);

/// Columns of a group's bar.
const BAR: usize = 20;

/// Waits that are shown; more are counted.
const SHOWN: usize = 8;

/// Shows a rolling update while it runs.
#[derive(Debug)]
pub struct RollingProgress<'a> {
    shell: &'a Shell,
    live: Option<ProgressBar>,
    began: Instant,
    /// Every instance that had to be replaced at some time, with its group.
    outdated: BTreeMap<String, String>,
    /// Those of them that are left.
    left: BTreeSet<String>,
    /// What was shown last for each instance or group.
    last: BTreeMap<String, String>,
}

impl<'a> RollingProgress<'a> {
    /// `redraws`: whether lines may be redrawn, if this is a terminal. Not while questions are asked.
    pub fn new(shell: &'a Shell, redraws: bool) -> Self {
        let live = (redraws && shell.can_redraw()).then(|| {
            let bar = ProgressBar::new_spinner();
            bar.set_draw_target(ProgressDrawTarget::stderr_with_hz(5));
            // The template is a constant; if it were wrong, the default shows.
            let style = ProgressStyle::with_template("{spinner} {elapsed} {msg}")
                .unwrap_or_else(|_| ProgressStyle::default_spinner());
            bar.set_style(style);
            bar.enable_steady_tick(TICK);
            bar
        });
        Self {
            shell,
            live,
            began: Instant::now(),
            outdated: BTreeMap::new(),
            left: BTreeSet::new(),
            last: BTreeMap::new(),
        }
    }

    /// How many instances were replaced so far.
    pub fn replaced(&self) -> usize {
        self.outdated.len() - self.left.len()
    }

    /// Shows a completed action.
    pub fn show_action(&mut self, action: &Action, observed: &Observed) {
        let Some((instance, text)) = action_text(action) else {
            return;
        };
        let of_groups = observed.instances.iter().map(|one| (&one.id, &one.group));
        let of_pools = observed.warm.iter().map(|one| (&one.id, &one.group));
        let mut all = of_groups.chain(of_pools);
        let group = all.find(|(id, _)| *id == instance).map(|(_, group)| group);
        let group = group.map_or(String::new(), |group| format!(" ({group})"));
        self.print_line(&format!("{instance}{group}: {text}"));
    }

    /// Shows what is waited for.
    pub fn show_waits(&mut self, observed: &Observed, waits: &BTreeMap<String, String>) {
        self.count(observed);
        if let Some(bar) = &self.live {
            let text = self.live_text(observed, waits);
            bar.set_message(self.shell.err_paint().sanitize(&text));
        } else {
            for (what, text) in waits {
                if self.last.get(what) != Some(text) {
                    self.print_line(&format!("{what}: waiting for {text}"));
                }
            }
        }
        self.last.clone_from(waits);
    }

    /// Shows that the cluster could not be observed.
    pub fn show_failure(&mut self, error: &CommandError) {
        let cause = error.cause.as_ref();
        let cause = cause.map_or(String::new(), |cause| format!("{cause:#}"));
        let text = format!("the cluster cannot be observed: {cause}");
        if self.last.get("") != Some(&text) {
            self.print_line(&text);
        }
        self.last.insert(String::new(), text);
    }

    /// Removes the moving lines from the screen.
    pub fn finish(&mut self) {
        if let Some(bar) = self.live.take() {
            bar.finish_and_clear();
        }
    }

    /// An instance is replaced once it is listed no more, or needs no update any more.
    fn count(&mut self, observed: &Observed) {
        let is_left = |one: &&RollingInstance| one.outdated.is_some();
        let left = observed.instances.iter().filter(is_left);
        let warm = observed.warm.iter().filter(|one| one.is_outdated());
        let warm = warm.map(|one| (one.id.clone(), one.group.clone()));
        let left: BTreeMap<String, String> = left
            .map(|one| (one.id.clone(), one.group.clone()))
            .chain(warm)
            .collect();
        self.left = left.keys().cloned().collect();
        self.outdated.extend(left);
    }

    /// A bar for each group, what is waited for, and the time that is left at the pace so far.
    fn live_text(&self, observed: &Observed, waits: &BTreeMap<String, String>) -> String {
        let (replaced, all) = (self.replaced(), self.outdated.len());
        let mut text = format!("{replaced} of {all} instances replaced");
        if let (Some(each), false) = (self.seconds_each(), self.left.is_empty()) {
            let left = each.saturating_mul(i64::try_from(self.left.len()).unwrap_or(i64::MAX));
            text.push_str(&format!(", about {} left", duration_text(left)));
        }
        for group in &observed.groups {
            let of_group = self.outdated.iter().filter(|(_, of)| **of == group.name);
            let total = of_group.clone().count();
            if total == 0 {
                continue;
            }
            let done = of_group.filter(|(id, _)| !self.left.contains(*id)).count();
            let filled = BAR * done / total;
            text.push_str(&format!(
                "\n  {}{} {done}/{total} {}",
                "#".repeat(filled),
                ".".repeat(BAR - filled),
                group.name
            ));
        }
        for (what, wait) in waits.iter().take(SHOWN) {
            text.push_str(&format!("\n  {what}: waiting for {wait}"));
        }
        let more = waits.len().saturating_sub(SHOWN);
        if more > 0 {
            text.push_str(&format!("\n  and {more} more"));
        }
        text
    }

    /// Seconds for each instance so far.
    fn seconds_each(&self) -> Option<i64> {
        let elapsed = i64::try_from(self.began.elapsed().as_secs()).ok()?;
        let replaced = i64::try_from(self.replaced()).ok()?;
        elapsed.checked_div(replaced)
    }

    fn print_line(&self, text: &str) {
        let elapsed = i64::try_from(self.began.elapsed().as_secs());
        let since = duration_text(elapsed.unwrap_or(i64::MAX));
        let line = format!("{since}  {text}");
        match &self.live {
            Some(bar) => bar.suspend(|| self.shell.note(&line)),
            None => self.shell.note(&line),
        }
    }
}

/// The instance or Node of an action and what was done; `None` for what is repeated at every observation.
fn action_text(action: &Action) -> Option<(&String, String)> {
    Some(match action {
        Action::Taint { .. } | Action::Evict { .. } => return None,
        Action::Detach { instance } => (
            instance,
            "detached from its Auto Scaling group, which launches a replacement".to_owned(),
        ),
        Action::Cordon { instance, .. } => (instance, "cordoned; its pods are evicted".to_owned()),
        Action::WithdrawTraffic { instance } => {
            (instance, "taken out of its target groups".to_owned())
        }
        Action::RestoreTraffic { instance } => (
            instance,
            "back in its target groups until its replacement is Ready".to_owned(),
        ),
        Action::DeletePods { instance, pods } => (
            instance,
            format!(
                "deleted pods that could not be evicted: {}",
                pods.join(", ")
            ),
        ),
        Action::NoteDrained { instance, .. } => (instance, "drained".to_owned()),
        Action::Terminate { instance } => (instance, "is being terminated".to_owned()),
        Action::CompleteHook { instance } => (instance, "completed its lifecycle hook".to_owned()),
        Action::Release { node, .. } => (node, "released: pods may be scheduled on it".to_owned()),
    })
}
