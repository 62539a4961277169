//! Progress of an apply. On a terminal, finished steps scroll up, and running steps stay at the bottom with their time and what
//! they wait for. Elsewhere, one line per finished step.

use super::hashes::short_hashes;
use super::{Shell, Tone};
use engine::{Action, Class, Event, Failure, Id};
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Running steps are shown after this time.
const DELAY: Duration = Duration::from_millis(250);

/// Without a terminal, shorter waits before a retry are not printed.
const WORTH_SAYING_MS: u64 = 1000;

/// Number of steps by result.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StepTally {
    pub steps: usize,
    /// Steps done that created something.
    pub added: usize,
    /// Steps done that changed something.
    pub changed: usize,
    /// Steps done that deleted something.
    pub deleted: usize,
    pub failed: usize,
    /// Steps that were skipped, because a step they need failed or after an interrupt.
    pub skipped: usize,
}

impl StepTally {
    fn done_count(&self) -> usize {
        self.added + self.changed + self.deleted
    }

    fn ended_count(&self) -> usize {
        self.done_count() + self.failed + self.skipped
    }

    fn count_event(&mut self, event: &Event) {
        match event {
            Event::Planned { steps } => self.steps = *steps,
            Event::Done { action, .. } => match action {
                Action::Create => self.added += 1,
                Action::Update => self.changed += 1,
                Action::Delete => self.deleted += 1,
            },
            Event::Failed { .. } => self.failed += 1,
            Event::Skipped { .. } => self.skipped += 1,
            _ => {}
        }
    }

    /// `72 added, 0 changed, 0 deleted`, and the failed and skipped steps.
    pub fn summary_text(&self) -> String {
        let mut words = format!(
            "{} added, {} changed, {} deleted",
            self.added, self.changed, self.deleted
        );
        if self.failed + self.skipped > 0 {
            words.push_str(&format!(
                "; {} failed, {} not tried",
                self.failed, self.skipped
            ));
        }
        words
    }
}

#[derive(Debug)]
struct RunningStep {
    since: Instant,
    action: Action,
    what: String,
    bar: Option<ProgressBar>,
}

/// Shows the events of one apply.
#[derive(Debug)]
pub struct Progress<'a> {
    shell: &'a Shell,
    live: Option<(MultiProgress, ProgressBar)>,
    running: BTreeMap<Id, RunningStep>,
    retried: BTreeMap<Id, Class>,
    tally: StepTally,
    began: Instant,
}

impl<'a> Progress<'a> {
    /// Starts without output.
    pub fn new(shell: &'a Shell) -> Self {
        let live = shell.can_redraw().then(|| {
            let bars = MultiProgress::with_draw_target(ProgressDrawTarget::stderr_with_hz(15));
            let total = bars.add(new_bar());
            (bars, total)
        });
        Self {
            shell,
            live,
            running: BTreeMap::new(),
            retried: BTreeMap::new(),
            tally: StepTally::default(),
            began: Instant::now(),
        }
    }

    /// Number of steps so far.
    pub fn tally(&self) -> &StepTally {
        &self.tally
    }

    pub fn show_event(&mut self, event: &Event) {
        self.tally.count_event(event);
        match event {
            Event::Planned { .. } => {}
            Event::Settling { ids, for_ms } => {
                self.print_line(&settling_words(ids, *for_ms));
            }
            Event::Started { step, action, .. } => self.start_step(step, *action),
            Event::Waiting { step, waiting_for } => {
                self.set_waiting(step, format!("waiting for {waiting_for}"));
            }
            Event::Retrying {
                step,
                failure,
                in_ms,
            } => {
                let words = retry_words(failure, *in_ms);
                // Without a terminal, one line per step and class of failure, and none for short waits.
                let worth = self.live.is_none() && *in_ms >= WORTH_SAYING_MS;
                if worth && self.retried.insert(step.clone(), failure.class) != Some(failure.class)
                {
                    self.print_line(&format!("  {step}: {words}"));
                }
                self.set_waiting(step, words);
            }
            Event::Done {
                step,
                action,
                took_ms,
                ..
            } => {
                let line = format!("{} {step}  {}", action_sign(*action), millis_text(*took_ms));
                self.end_step(step, &line, done_tone(*action));
            }
            Event::Failed {
                step,
                action,
                failure,
                ..
            } => {
                self.end_step(step, &failed_words(step, *action, failure), Tone::Delete);
            }
            Event::Skipped { step, because } => {
                let why = because
                    .as_ref()
                    .map_or("interrupted".to_owned(), |id| format!("{id} failed"));
                self.end_step(step, &format!("  {step}  not tried: {why}"), Tone::Change);
            }
        }
        self.tick();
    }

    fn start_step(&mut self, step: &Id, action: Action) {
        let running = RunningStep {
            since: Instant::now(),
            action,
            what: String::new(),
            bar: None,
        };
        self.running.insert(step.clone(), running);
    }

    /// Prints a line that stays.
    fn print_line(&self, line: &str) {
        self.shell.note(&short_hashes(line));
    }

    fn set_waiting(&mut self, step: &Id, what: String) {
        if let Some(running) = self.running.get_mut(step) {
            running.what = what;
        }
    }

    fn end_step(&mut self, step: &Id, line: &str, tone: Tone) {
        if let Some(bar) = self.running.remove(step).and_then(|running| running.bar) {
            bar.finish_and_clear();
        }
        let paint = self.shell.err_paint();
        let line = paint.sanitize(&paint.with_tone(tone, &short_hashes(line)));
        match &self.live {
            // An error of the terminal cannot be reported.
            Some((bars, _)) => drop(bars.println(line)),
            None => self.shell.note(&line),
        }
    }

    /// Redraws times. Called several times per second.
    pub fn tick(&mut self) {
        let Some((bars, total)) = &self.live else {
            return;
        };
        for (step, running) in &mut self.running {
            let elapsed = running.since.elapsed();
            if elapsed < DELAY {
                continue;
            }
            let words = running_words(step, running, elapsed);
            let bar = running
                .bar
                .get_or_insert_with(|| bars.insert_before(total, new_bar()));
            bar.set_message(self.shell.err_paint().sanitize(&words));
        }
        if self.tally.steps > 0 && self.began.elapsed() >= DELAY {
            total.set_message(format!("{}/{}", self.tally.ended_count(), self.tally.steps));
        }
    }

    /// Removes the moving lines from the screen.
    pub fn finish(&mut self) {
        if let Some((bars, total)) = &self.live {
            total.finish_and_clear();
            // As above.
            drop(bars.clear());
        }
    }
}

fn settling_words(ids: &[Id], for_ms: u64) -> String {
    format!(
        "an earlier run made {}, or was making it when it ended: waiting {} until AWS shows it",
        id_list(ids),
        millis_text(for_ms)
    )
}

/// Ids as people read them, with short hashes.
pub fn id_list<'a>(ids: impl IntoIterator<Item = &'a Id>) -> String {
    let names: Vec<String> = ids
        .into_iter()
        .map(|id| short_hashes(&id.to_string()))
        .collect();
    names.join(", ")
}

fn new_bar() -> ProgressBar {
    // The template is a constant; if it were wrong, the default shows.
    let style = ProgressStyle::with_template("{wide_msg}")
        .unwrap_or_else(|_| ProgressStyle::default_spinner());
    ProgressBar::new_spinner().with_style(style)
}

fn running_words(step: &Id, running: &RunningStep, elapsed: Duration) -> String {
    let what = if running.what.is_empty() {
        String::new()
    } else {
        format!("  {}", running.what)
    };
    let time = if elapsed.as_secs() == 0 {
        String::new()
    } else {
        format!("  {}s", elapsed.as_secs())
    };
    short_hashes(&format!(
        "  {} {step}{time}{what}",
        action_sign(running.action)
    ))
}

fn action_sign(action: Action) -> &'static str {
    match action {
        Action::Create => "+",
        Action::Update => "~",
        Action::Delete => "-",
    }
}

fn done_tone(action: Action) -> Tone {
    match action {
        Action::Create => Tone::Add,
        Action::Update => Tone::Change,
        Action::Delete => Tone::Delete,
    }
}

/// `850ms`, `1.2s`, `3m04s`.
pub fn millis_text(ms: u64) -> String {
    match ms {
        0..1000 => format!("{ms}ms"),
        1000..60_000 => format!("{}.{}s", ms / 1000, ms % 1000 / 100),
        _ => format!("{}m{:02}s", ms / 60_000, ms % 60_000 / 1000),
    }
}

/// Text about a retry: the cause and the time of the next attempt.
fn retry_words(failure: &Failure, in_ms: u64) -> String {
    let service = failure
        .call
        .split(':')
        .next()
        .unwrap_or_default()
        .to_uppercase();
    let why = match failure.class {
        Class::Throttled => format!("throttled by {service}"),
        Class::NotYet => format!("{service} does not see a new resource yet"),
        Class::Blocked => format!("still in use ({})", failure.message.trim_end_matches('.')),
        Class::Exists => "the name is still taken".to_owned(),
        _ => format!("no clear answer from {service} ({})", failure.code),
    };
    format!("{why}, again in {}", millis_text(in_ms))
}

/// Text about a failed step: action, call, code, message, request id and next step.
fn failed_words(step: &Id, action: Action, failure: &Failure) -> String {
    let verb = match action {
        Action::Create => "created",
        Action::Update => "changed",
        Action::Delete => "deleted",
    };
    let request = failure
        .request_id
        .as_ref()
        .map(|id| format!("\n    request id {id}"));
    let hint = failure
        .hint
        .as_ref()
        .map(|hint| format!("\n    hint: {hint}"));
    format!(
        "! {step} could not be {verb}\n    {failure}{}{}",
        request.unwrap_or_default(),
        hint.unwrap_or_default()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn test_failure(class: Class) -> Failure {
        Failure {
            class,
            call: "ec2:CreateSubnet".to_owned(),
            code: "InvalidSubnet.Conflict".to_owned(),
            message: "The CIDR '10.0.0.0/16' conflicts with another subnet".to_owned(),
            hint: Some("choose another range".to_owned()),
            request_id: Some("r-1".to_owned()),
        }
    }

    #[test]
    fn a_failure_names_the_call_the_code_the_request_and_the_next_step() {
        let words = failed_words(
            &Id::new("subnet", "a"),
            Action::Create,
            &test_failure(Class::Invalid),
        );
        assert_eq!(
            words,
            "! subnet/a could not be created\n    ec2:CreateSubnet failed with InvalidSubnet.Conflict: The CIDR \
             '10.0.0.0/16' conflicts with another subnet\n    request id r-1\n    hint: choose another range"
        );
    }

    #[test]
    fn no_line_shows_a_whole_hash() {
        let hash = "0123456789abcdef".repeat(4);
        let key = format!("prod.example.com/igconfig/node/nodes/nodeupconfig-{hash}.yaml");
        let id = Id::new("s3_object", key);
        let running = RunningStep {
            since: Instant::now(),
            action: Action::Create,
            what: format!("waiting for {id}"),
            bar: None,
        };
        let lines = [
            settling_words(std::slice::from_ref(&id), 1),
            running_words(&id, &running, Duration::from_secs(1)),
            id_list([&id, &id]),
        ];
        for line in lines {
            assert!(
                !line.contains(&hash) && line.contains("nodeupconfig-0123456789ab.yaml"),
                "{line}"
            );
        }
    }

    #[test]
    fn a_retry_says_why_and_when() {
        assert_eq!(
            retry_words(&test_failure(Class::Throttled), 3000),
            "throttled by EC2, again in 3.0s"
        );
    }

    #[test]
    fn times_are_as_long_as_they_need_to_be() {
        assert_eq!(
            [millis_text(850), millis_text(1290), millis_text(184_000)],
            ["850ms", "1.2s", "3m04s"]
        );
    }
}
