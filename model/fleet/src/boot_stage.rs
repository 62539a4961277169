//! How far the boot of an instance came and what stopped it: from EC2's state, nodeup's boot report, what protokube
//! waits for, or the serial console.

mod console;

use crate::wait::append_holder;
use crate::{Instance, RoleWait};
use node::duration::duration_text;
use node::next_step::next_step;
use node::report::{BootReport, PROTOKUBE, Stage, Status};
use serde::Serialize;
use std::collections::BTreeMap;
use time::OffsetDateTime;

/// Where a boot stage is known from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum BootSource {
    /// nodeup's boot report in the state store.
    Report,
    /// What protokube wrote to the state store.
    Protokube,
    Console,
    /// EC2's state of the instance.
    Ec2,
    /// The instance runs and has not reported anything.
    Nothing,
}

impl BootSource {
    /// The column `KNOWNFROM` of tables.
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

/// The stage that a boot has reached.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BootStage {
    /// `launch`, `boot`, or program and stage: `user-data/fetch`, `nodeup/apply`, `protokube/etcd-main`.
    pub stage: String,
    /// Whether the stage began, finished or failed, if a program reported it.
    pub status: Option<Status>,
    /// When it was reported, RFC 3339, by the instance's clock.
    pub at: Option<String>,
    /// What stopped the boot, with its causes.
    pub error: Option<String>,
    /// What is known if there is no error.
    pub note: Option<String>,
    /// What to do about it.
    pub next: Option<String>,
    /// How many changes nodeup's last run made; only from a boot report.
    pub changes: Option<usize>,
    /// The first of these changes, by name.
    pub changed: Vec<String>,
    /// Where this is known from.
    pub known_from: BootSource,
}

impl BootStage {
    /// The stage that EC2's state tells; `None` for a running instance.
    pub fn from_ec2_state(instance: &Instance, now: OffsetDateTime) -> Option<Self> {
        match instance.state.as_str() {
            "running" => None,
            "pending" => Some(Self::with_note(
                "launch",
                format!("EC2 starts it{}", launched_text(instance, now)),
                BootSource::Ec2,
            )),
            "" => Some(Self::with_note(
                "launch",
                "Auto Scaling lists it, EC2 does not yet".to_owned(),
                BootSource::Ec2,
            )),
            state => {
                let reason = instance.state_reason.as_deref();
                let reason = reason.map_or(String::new(), |reason| format!(": {reason}"));
                let stage = Self::with_note("launch", String::new(), BootSource::Ec2);
                Some(stage.with_error(format!("it is {state}{reason}")))
            }
        }
    }

    /// The stage of an instance that runs and has not reported anything.
    pub fn without_report(instance: &Instance, now: OffsetDateTime) -> Self {
        let note = format!("nothing is known yet{}", launched_text(instance, now));
        Self::with_note("boot", note, BootSource::Nothing)
    }

    /// The stage that a boot report tells: the last one that failed, else the one under way, else the last one.
    pub fn from_report(report: &BootReport) -> Self {
        // A report that is here was sent, though it is being sent as it says itself.
        let status_of = |stage: &Stage| match (stage.name.as_str(), stage.status) {
            ("report", Status::Started) => Status::Finished,
            (_, status) => status,
        };
        let has = |status| move |stage: &&Stage| status_of(stage) == status;
        let stages = &report.stages;
        let last = stages
            .iter()
            .rfind(has(Status::Failed))
            .or_else(|| stages.iter().rfind(has(Status::Started)))
            .or(stages.last());
        let name = last.map_or("start", |stage| stage.name.as_str());
        let status = last.map(status_of);
        let stage = Self {
            status,
            at: Some(report.started.clone()),
            changes: Some(report.changes),
            changed: report.changed.clone(),
            ..Self::with_note(
                &format!("nodeup/{name}"),
                "nodeup is done, kubelet has not registered the node".to_owned(),
                BootSource::Report,
            )
        };
        match &report.error {
            Some(error) => stage.with_error(error.clone()),
            None if status.is_some_and(|status| status != Status::Finished) => Self {
                note: Some("under way".to_owned()),
                ..stage
            },
            None => Self {
                next: next_step("nodeup/report", ""),
                ..stage
            },
        }
    }

    /// The stage that protokube's first cause tells.
    pub fn from_wait(cause: &RoleWait) -> Self {
        let stage = Self {
            status: Some(cause.status),
            at: Some(cause.since.clone()),
            ..Self::with_note(&cause.stage(), String::new(), BootSource::Protokube)
        };
        if cause.status == Status::Failed {
            return stage.with_error(cause.text());
        }
        Self {
            note: Some(format!("waits: {}", cause.text())),
            next: cause.next.clone(),
            ..stage
        }
    }

    /// The stage that the text of a serial console tells.
    pub fn from_console(instance: &Instance, console: &str, now: OffsetDateTime) -> Self {
        console::read_console(instance, console, now)
    }

    /// True if a boot report says that nodeup is done and nothing failed.
    pub fn is_nodeup_done(&self) -> bool {
        self.known_from == BootSource::Report
            && self.status == Some(Status::Finished)
            && self.error.is_none()
    }

    /// True if nodeup is done or protokube runs. A failure of protokube on the console may be of before a restore: what it waits for
    /// now is in the state store.
    pub fn is_control_plane_up(&self) -> bool {
        self.is_of_protokube() || self.is_nodeup_done()
    }

    /// True if a role of protokube is the stage.
    fn is_of_protokube(&self) -> bool {
        self.stage.split('/').next() == Some(PROTOKUBE)
    }

    /// Stage and cause in one line: `nodeup/fetch: connection refused`.
    pub fn line(&self) -> String {
        match self.error.as_ref().or(self.note.as_ref()) {
            Some(text) => format!("{}: {text}", self.stage),
            None => self.stage.clone(),
        }
    }

    /// If it waits for a volume that another of these instances has: adds what Auto Scaling does with that instance,
    /// which protokube need not know.
    pub(crate) fn append_holder(&mut self, instances: &BTreeMap<&str, &Instance>) {
        let texts = [self.error.as_mut(), self.note.as_mut()];
        for text in texts.into_iter().flatten() {
            append_holder(text, instances);
        }
    }

    fn with_note(stage: &str, note: String, known_from: BootSource) -> Self {
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

    fn with_error(mut self, error: String) -> Self {
        self.next = next_step(&self.stage, &error);
        self.error = Some(error);
        self.note = None;
        self
    }
}

/// The later of what a boot report and a console tell: the console, unless all that it has is nodeup's or user data's
/// progress without an error, which the report at the end of nodeup's run tells better.
pub fn latest_boot_stage(
    report: Option<BootStage>,
    console: Option<BootStage>,
) -> Option<BootStage> {
    let precedes_report = |stage: &BootStage| stage.error.is_none() && !stage.is_of_protokube();
    match (report, console) {
        (Some(report), Some(console)) if precedes_report(&console) => Some(report),
        (report, console) => console.or(report),
    }
}

/// `; launched 3m20s ago`, or nothing if that is unknown.
fn launched_text(instance: &Instance, now: OffsetDateTime) -> String {
    instance.launched.map_or(String::new(), |launched| {
        let age = duration_text(now.unix_timestamp() - launched);
        format!("; launched {age} ago")
    })
}

#[cfg(test)]
#[path = "boot_stage/boot_stage_test.rs"]
mod tests;
