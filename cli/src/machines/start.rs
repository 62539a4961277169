//! How far a machine's start came and what stopped it, from its report or from its console.

use super::Waiting;
use super::next::next_step;
use crate::duration::words;
use aws_cloud::Console;
use aws_cloud::fleet::Instance;
use node::report::{BootReport, StageLine, Status, stage_lines};
use serde::Serialize;
use std::collections::BTreeMap;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// A machine boots and runs its user data in less, in seconds.
const BOOTING: i64 = 300;

/// How protokube's lines are signed.
pub(super) const PROTOKUBE: &str = "protokube";

/// Its roles that lead to an API server.
pub(super) const CAUSES: [&str; 4] = ["etcd-main", "etcd-events", "health", "manifests"];

/// What a console says when a machine will not come up by itself.
const DEAD: [&str; 7] = [
    "Kernel panic",
    "Unable to mount root fs",
    "No bootable device",
    "grub rescue>",
    "Entering emergency mode",
    "You are in emergency mode",
    "Failed to start cloud-init",
];

/// Where it is known from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// The machine's report in the store.
    Report,
    /// What protokube says in the store.
    Protokube,
    /// Its serial console.
    Console,
    /// EC2's description of it.
    Ec2,
    /// Nothing is known yet.
    Nothing,
}

impl Source {
    /// In words.
    pub fn word(self) -> &'static str {
        match self {
            Self::Report => "boot report",
            Self::Protokube => PROTOKUBE,
            Self::Console => "console",
            Self::Ec2 => "EC2",
            Self::Nothing => "nothing yet",
        }
    }
}

/// How far a start came.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Start {
    /// `boot`, `user-data/fetch`, `nodeup/apply`, `protokube/etcd`: who, and which stage.
    pub stage: String,
    /// How far that stage came.
    pub status: Option<Status>,
    /// When that was, RFC 3339, by the machine's clock.
    pub at: Option<String>,
    /// What stopped it, with its causes.
    pub error: Option<String>,
    /// In words what is known where there is no error.
    pub note: Option<String>,
    /// What to do about the error.
    pub next: Option<String>,
    /// How many changes nodeup's last run made, if it reported.
    pub changes: Option<usize>,
    /// The first of them, by name.
    pub changed: Vec<String>,
    /// Where it is known from.
    pub known_from: Source,
}

impl Start {
    /// Stage and cause in one line.
    pub fn line(&self) -> String {
        let what = self.error.as_ref().or(self.note.as_ref());
        match what {
            Some(what) => format!("{}: {what}", self.stage),
            None => self.stage.clone(),
        }
    }

    /// Where it waits for what another machine has: what Auto Scaling does with that machine, which protokube may not know.
    pub(super) fn name_holders(&mut self, machines: &BTreeMap<&str, &Instance>) {
        let waits = [self.error.as_mut(), self.note.as_mut()];
        for text in waits.into_iter().flatten() {
            name_holder(text, machines);
        }
    }

    fn plain(stage: &str, note: String, known_from: Source) -> Self {
        Self {
            stage: stage.to_owned(),
            status: None,
            at: None,
            error: None,
            note: Some(note),
            next: None,
            changes: None,
            changed: Vec::new(),
            known_from,
        }
    }

    pub(super) fn failed(mut self, error: String) -> Self {
        self.next = next_step(&self.stage, &error);
        self.error = Some(error);
        self.note = None;
        self
    }
}

/// Adds to a text that says who has a volume what Auto Scaling does with that machine.
pub(super) fn name_holder(text: &mut String, machines: &BTreeMap<&str, &Instance>) {
    let Some((_, after)) = text.split_once("attached to ") else {
        return;
    };
    let id: String = after
        .chars()
        .take_while(|letter| letter.is_ascii_alphanumeric() || *letter == '-')
        .collect();
    if let Some(said) = machines.get(id.as_str()).and_then(|of| goes(of)) {
        text.push_str(&said);
    }
}

/// What becomes of a machine that Auto Scaling ends. `Terminating:Wait` lasts until the group's lifecycle hook is completed or its time
/// is over (<https://docs.aws.amazon.com/autoscaling/ec2/userguide/lifecycle-hooks.html>); kctl's hooks have 300 seconds.
fn goes(machine: &Instance) -> Option<String> {
    let lifecycle = machine.lifecycle.as_deref()?;
    if lifecycle == "InService" {
        return None;
    }
    let group = machine.scaling_group.as_deref().unwrap_or_default();
    let until = if lifecycle == "Terminating:Wait" {
        "; it goes on once the group's lifecycle hook is completed or its time is over, 300 seconds in groups of kctl's"
    } else {
        ""
    };
    Some(format!(
        " ({} is {lifecycle} in the Auto Scaling group {group}{until})",
        machine.id
    ))
}

/// What EC2 says of a machine that is not running: nobody else can say more.
pub(super) fn of_state(instance: &Instance, now: OffsetDateTime) -> Option<Start> {
    let since = age(instance, now);
    match instance.state.as_str() {
        "running" => None,
        "pending" => Some(Start::plain(
            "launch",
            format!("EC2 starts it{since}"),
            Source::Ec2,
        )),
        "" => Some(Start::plain(
            "launch",
            "Auto Scaling names it, EC2 does not show it yet".to_owned(),
            Source::Ec2,
        )),
        state => {
            let reason = instance.state_reason.as_deref();
            let reason = reason.map_or(String::new(), |reason| format!(": {reason}"));
            let start = Start::plain("launch", String::new(), Source::Ec2);
            Some(start.failed(format!("it is {state}{reason}")))
        }
    }
}

/// Nothing is known of it.
pub(super) fn unknown(instance: &Instance, now: OffsetDateTime) -> Start {
    let note = format!("nothing is known yet{}", age(instance, now));
    Start::plain("boot", note, Source::Nothing)
}

/// What a report says. One without an error says that everything was put in its place.
pub(super) fn of_report(report: &BootReport) -> Start {
    let failed = |status| move |stage: &&node::report::Stage| stage.status == status;
    let stages = &report.stages;
    let stage = stages
        .iter()
        .rfind(failed(Status::Failed))
        .or_else(|| stages.iter().rfind(failed(Status::Started)))
        .or(stages.last());
    let name = stage.map_or("start", |stage| stage.name.as_str());
    let start = Start {
        status: stage.map(|stage| stage.status),
        at: Some(report.started.clone()),
        changes: Some(report.changes),
        changed: report.changed.clone(),
        ..Start::plain(
            &format!("nodeup/{name}"),
            "nodeup is done, kubelet has not registered the node".to_owned(),
            Source::Report,
        )
    };
    match &report.error {
        Some(error) => start.failed(error.clone()),
        None if stage.is_some_and(|stage| stage.status != Status::Finished) => Start {
            note: Some("under way".to_owned()),
            ..start
        },
        None => Start {
            next: next_step("nodeup/report", ""),
            ..start
        },
    }
}

/// What protokube says of the cause. One without an error says what it waits for.
pub(super) fn of_waiting(cause: &Waiting) -> Start {
    let said = cause.said();
    let start = Start {
        status: Some(cause.status),
        at: Some(cause.since.clone()),
        ..Start::plain(&cause.stage(), String::new(), Source::Protokube)
    };
    if cause.status == Status::Failed {
        return start.failed(said);
    }
    Start {
        note: Some(format!("waits: {said}")),
        next: cause.next.clone(),
        ..start
    }
}

/// What a console says.
pub(super) fn of_console(instance: &Instance, console: &Console, now: OffsetDateTime) -> Start {
    let lines = stage_lines(&console.text);
    let Some(last) = lines.last() else {
        return before_stages(instance, console, now);
    };
    let cause = cause_on_control_plane(&lines);
    if let Some(fault) = standing_fault(&lines) {
        let follows = cause.filter(|cause| fault.source == PROTOKUBE && cause.stage != fault.stage);
        let fault = follows.unwrap_or(fault);
        return of_line(fault).failed(fault.detail.clone());
    }
    if let Some(cause) = cause.filter(|_| last.source == PROTOKUBE) {
        return Start {
            note: Some(format!("waits: {}", cause.detail)),
            next: next_step(&format!("{PROTOKUBE}/{}", cause.stage), &cause.detail),
            ..of_line(cause)
        };
    }
    let note = match last.status {
        Status::Finished if last.source == "nodeup" => {
            "done, kubelet has not registered the node".to_owned()
        }
        Status::Finished => "done, nothing further heard".to_owned(),
        _ => format!("under way{}", elapsed(&last.time, now)),
    };
    Start {
        note: Some(note),
        ..of_line(last)
    }
}

fn of_line(line: &StageLine) -> Start {
    Start {
        status: Some(line.status),
        at: Some(line.time.clone()),
        ..Start::plain(
            &format!("{}/{}", line.source, line.stage),
            String::new(),
            Source::Console,
        )
    }
}

/// What keeps a control plane's API server from coming up: of those roles, in the order in which they need each other, the first that has
/// not ended well and says why. All other roles fail while there is no API, and would only say that.
fn cause_on_control_plane(lines: &[StageLine]) -> Option<&StageLine> {
    let last_of = |stage: &&str| {
        let mut lines = lines.iter();
        lines.rfind(|line| line.source == PROTOKUBE && line.stage == *stage)
    };
    let said = CAUSES.iter().filter_map(last_of);
    let mut unwell = said.filter(|line| line.status != Status::Finished);
    unwell.find(|line| !line.detail.is_empty())
}

/// The newest failure that its stage has not got over. A later stage of the same program means that it did, in another
/// run; what runs after a program has ended well says that the program got over all of its own.
fn standing_fault(lines: &[StageLine]) -> Option<&StageLine> {
    let over = |fault: &StageLine, later: &StageLine| {
        let same = later.source == fault.source && later.stage == fault.stage;
        let handed_on = fault.source == "user-data" && later.source != "user-data";
        (same && later.status == Status::Finished) || handed_on
    };
    lines.iter().enumerate().rev().find_map(|(at, fault)| {
        let mut later = lines.iter().skip(at + 1);
        (fault.status == Status::Failed && !later.any(|later| over(fault, later))).then_some(fault)
    })
}

/// A console without stages: the machine still boots, or it never gets to user data.
fn before_stages(instance: &Instance, console: &Console, now: OffsetDateTime) -> Start {
    let start = Start::plain("boot", String::new(), Source::Console);
    let end = end_of(&console.text);
    if let Some(line) = console.text.lines().find(|line| is_dead(line)) {
        return start.failed(line.trim().to_owned());
    }
    let running = instance
        .launched
        .map(|launched| now.unix_timestamp() - launched);
    if let Some(seconds) = running.filter(|seconds| *seconds > BOOTING) {
        return start.failed(format!(
            "it runs for {} and its user data has not begun; its console ends with \"{end}\"",
            words(seconds)
        ));
    }
    Start {
        note: Some(format!(
            "it boots{}; its console ends with \"{end}\"",
            age(instance, now)
        )),
        ..start
    }
}

fn is_dead(line: &str) -> bool {
    DEAD.iter().any(|sign| line.contains(sign))
}

/// The last line that says something, without control characters.
fn end_of(console: &str) -> String {
    let line = console.lines().rfind(|line| !line.trim().is_empty());
    let line = line.unwrap_or_default().trim();
    let plain = line.chars().filter(|c| !c.is_control());
    plain.take(200).collect()
}

fn age(instance: &Instance, now: OffsetDateTime) -> String {
    instance.launched.map_or(String::new(), |launched| {
        format!("; launched {} ago", words(now.unix_timestamp() - launched))
    })
}

fn elapsed(time: &str, now: OffsetDateTime) -> String {
    OffsetDateTime::parse(time, &Rfc3339).map_or(String::new(), |time| {
        format!(" for {}", words((now - time).whole_seconds()))
    })
}

#[cfg(test)]
#[path = "start_test.rs"]
mod tests;
