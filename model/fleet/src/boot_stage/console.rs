//! Reads a boot stage from a serial console: from the stage lines of user data, nodeup and protokube, or before the
//! first of them from the console's last line.

use super::{BootSource, BootStage, launched_text};
use crate::Instance;
use crate::wait::API_SERVER_ROLES;
use node::duration::duration_text;
use node::next_step::next_step;
use node::report::{PROTOKUBE, StageLine, Status, stage_lines};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// Seconds after which a running instance whose user data has not begun is at fault: a boot takes less.
const BOOT_SECONDS: i64 = 300;

/// The longest end of a console that is shown, in characters.
const SHOWN_END: usize = 200;

/// Lines of a console after which an instance does not come up by itself.
const FATAL: [&str; 7] = [
    "Kernel panic",
    "Unable to mount root fs",
    "No bootable device",
    "grub rescue>",
    "Entering emergency mode",
    "You are in emergency mode",
    "Failed to start cloud-init",
];

/// The stage that a console tells.
pub(super) fn read_console(instance: &Instance, console: &str, now: OffsetDateTime) -> BootStage {
    let lines = stage_lines(console);
    let Some(last) = lines.last() else {
        return read_kernel_console(instance, console, now);
    };
    let cause = control_plane_cause(&lines);
    if let Some(failure) = lasting_failure(&lines) {
        let cause = cause.filter(|cause| {
            let other_role = cause.stage != failure.stage;
            failure.source == PROTOKUBE && other_role
        });
        let failure = cause.unwrap_or(failure);
        return stage_of_line(failure).with_error(failure.detail.clone());
    }
    if let Some(cause) = cause.filter(|_| last.source == PROTOKUBE) {
        return BootStage {
            note: Some(format!("waits: {}", cause.detail)),
            next: next_step(&format!("{PROTOKUBE}/{}", cause.stage), &cause.detail),
            ..stage_of_line(cause)
        };
    }
    let note = match last.status {
        Status::Finished if last.source == "nodeup" => {
            "done, kubelet has not registered the node".to_owned()
        }
        Status::Finished => "done, nothing reported since".to_owned(),
        _ => format!("under way{}", elapsed_text(&last.time, now)),
    };
    BootStage {
        note: Some(note),
        ..stage_of_line(last)
    }
}

fn stage_of_line(line: &StageLine) -> BootStage {
    let stage = format!("{}/{}", line.source, line.stage);
    BootStage {
        status: Some(line.status),
        at: Some(line.time.clone()),
        ..BootStage::with_note(&stage, String::new(), BootSource::Console)
    }
}

/// What keeps the API server from coming up: of the roles that lead to it, in their order, the first that has not
/// finished and says why. All other roles fail while there is no API, and only report that.
fn control_plane_cause(lines: &[StageLine]) -> Option<&StageLine> {
    let last_of = |role: &&str| {
        let mut lines = lines.iter();
        lines.rfind(|line| line.source == PROTOKUBE && line.stage == *role)
    };
    API_SERVER_ROLES
        .iter()
        .filter_map(last_of)
        .filter(|line| line.status != Status::Finished)
        .find(|line| !line.detail.is_empty())
}

/// The newest failure that no later line has made obsolete. Two kinds of lines do: the same stage of the same program
/// finishes, or a program begins that user data starts after its own last stage.
fn lasting_failure(lines: &[StageLine]) -> Option<&StageLine> {
    let is_over = |failure: &StageLine, later: &StageLine| {
        let same_stage = later.source == failure.source && later.stage == failure.stage;
        let handed_on = failure.source == "user-data" && later.source != "user-data";
        (same_stage && later.status == Status::Finished) || handed_on
    };
    lines.iter().enumerate().rev().find_map(|(at, line)| {
        let mut later = lines.iter().skip(at + 1);
        let lasts = line.status == Status::Failed && !later.any(|later| is_over(line, later));
        lasts.then_some(line)
    })
}

/// A console without stage lines: the instance still boots, or its image never gets to user data.
fn read_kernel_console(instance: &Instance, console: &str, now: OffsetDateTime) -> BootStage {
    let stage = BootStage::with_note("boot", String::new(), BootSource::Console);
    let is_fatal = |line: &&str| FATAL.iter().any(|sign| line.contains(sign));
    if let Some(line) = console.lines().find(is_fatal) {
        return stage.with_error(line.trim().to_owned());
    }
    let end = last_line(console);
    let age = instance
        .launched
        .map(|launched| now.unix_timestamp() - launched);
    if let Some(age) = age.filter(|age| *age > BOOT_SECONDS) {
        return stage.with_error(format!(
            "user data has not started {} after the launch; the console ends with \"{end}\"",
            duration_text(age)
        ));
    }
    BootStage {
        note: Some(format!(
            "it boots{}; its console ends with \"{end}\"",
            launched_text(instance, now)
        )),
        ..stage
    }
}

/// The last line that is not blank, without control characters, cut to what is shown.
fn last_line(console: &str) -> String {
    let line = console.lines().rfind(|line| !line.trim().is_empty());
    let line = line.unwrap_or_default().trim();
    let plain = line.chars().filter(|c| !c.is_control());
    plain.take(SHOWN_END).collect()
}

/// ` for 3m20s`, or nothing if `since` is not RFC 3339.
fn elapsed_text(since: &str, now: OffsetDateTime) -> String {
    OffsetDateTime::parse(since, &Rfc3339).map_or(String::new(), |since| {
        format!(" for {}", duration_text((now - since).whole_seconds()))
    })
}
