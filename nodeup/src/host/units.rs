//! Manages systemd units. The digest with which each unit was last started is recorded, so that a crash between a change and the
//! restart is detected. A record counts only for the current boot or a running unit.

use super::failure::{call_failure, file_failure, permanent_failure};
use engine::{Class, Failure};
use host::Host;
use node::host::{HostObject, Unit};
use std::collections::BTreeMap;

const RECORDS: &str = "/var/lib/kctl/units";

/// Link target of a masked unit.
const NOTHING: &str = "/dev/null";

/// Properties of a unit as shown by systemd.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct UnitState(BTreeMap<String, String>);

impl UnitState {
    fn property(&self, property: &str) -> &str {
        self.0.get(property).map_or("", String::as_str)
    }

    /// True if the unit runs or has a start job; at boot systemd may not have reached it yet.
    fn is_up(&self) -> bool {
        match self.property("ActiveState") {
            "active" | "activating" | "reloading" => true,
            "inactive" => self.is_queued() && !self.is_oneshot(),
            _ => false,
        }
    }

    /// True if systemd has a job for the unit.
    fn is_queued(&self) -> bool {
        !matches!(self.property("Job"), "" | "0")
    }

    /// True for a oneshot unit that becomes inactive when it is done.
    fn is_oneshot(&self) -> bool {
        self.property("Type") == "oneshot" && self.property("RemainAfterExit") != "yes"
    }

    /// True for a oneshot unit that ended successfully.
    fn ended_well(&self) -> bool {
        self.property("ActiveState") == "inactive"
            && self.property("Type") == "oneshot"
            && self.property("Result") == "success"
    }

    /// True if a condition in the unit kept it from starting here, for example because the clock may not be set.
    fn is_not_for_here(&self) -> bool {
        self.property("ActiveState") == "inactive"
            && self.property("ConditionResult") == "no"
            && self.property("ConditionTimestampMonotonic") != "0"
    }

    fn is_enabled(&self) -> bool {
        // A unit without an [Install] section cannot be enabled; other units start it.
        matches!(
            self.property("UnitFileState"),
            "enabled" | "static" | "indirect" | "generated" | "alias" | "linked"
        )
    }
}

/// Properties of several units, with one call of systemctl.
pub(super) fn read_states(
    host: &Host,
    names: &[&str],
) -> Result<BTreeMap<String, UnitState>, Failure> {
    if names.is_empty() {
        return Ok(BTreeMap::new());
    }
    const PROPERTIES: &str = "--property=Id,Type,RemainAfterExit,ActiveState,SubState,UnitFileState,Result,ExecMainStatus,Job,ConditionResult,ConditionTimestampMonotonic";
    let mut arguments = vec!["show", PROPERTIES];
    arguments.extend(names);
    let answer = run_systemctl(host, &arguments)?;
    let mut states = BTreeMap::new();
    for (name, block) in names.iter().zip(answer.split("\n\n")) {
        let properties = block.lines().filter_map(|line| line.split_once('='));
        let properties = properties.map(|(name, value)| (name.to_owned(), value.to_owned()));
        states.insert((*name).to_owned(), UnitState(properties.collect()));
    }
    Ok(states)
}

pub(super) fn observe_unit(
    host: &Host,
    want: &Unit,
    state: &UnitState,
) -> Result<Option<Unit>, Failure> {
    let path = HostObject::unit_path(&want.name);
    let failed = file_failure("reading", &path);
    let masked = host
        .link_target(&path)
        .map_err(&failed)?
        .is_some_and(|target| target.as_os_str() == NOTHING);
    if !want.enabled {
        let have = Unit {
            enabled: !masked || state.is_up(),
            ..want.clone()
        };
        return Ok(Some(have));
    }
    let content = match &want.content {
        // The image has the unit masked on purpose.
        None if state.property("UnitFileState").starts_with("masked") => {
            return Ok(Some(want.clone()));
        }
        None => None,
        Some(_) if masked => Some(String::new()),
        Some(_) => match host.read_bytes(&path).map_err(&failed)? {
            None => return Ok(None),
            Some(bytes) => Some(String::from_utf8_lossy(&bytes).into_owned()),
        },
    };
    let believed = state.is_up()
        || (is_of_this_boot(host, &want.name)? && (state.ended_well() || state.is_not_for_here()));
    Ok(Some(Unit {
        name: want.name.clone(),
        content,
        enabled: state.is_enabled() && !masked,
        starts_with: if believed {
            recorded_start(host, &want.name)?.1
        } else {
            String::new()
        },
    }))
}

/// Writes and enables the unit, and restarts it if its digest differs. Returns what is being waited for, if it is not up yet.
pub(super) fn put_unit(
    host: &Host,
    want: &Unit,
    have: Option<&Unit>,
) -> Result<Option<String>, Failure> {
    let path = HostObject::unit_path(&want.name);
    let failed = file_failure("writing", &path);
    if !want.enabled {
        host.make_link(&path, NOTHING).map_err(&failed)?;
        run_systemctl(host, &["daemon-reload"])?;
        run_systemctl(host, &["stop", &want.name])?;
        return Ok(None);
    }
    let changed = have.is_none_or(|have| have.content != want.content);
    if let Some(content) = want.content.as_ref().filter(|_| changed) {
        host.write_file(&path, content.as_bytes(), 0o600, Some("root:root"))
            .map_err(&failed)?;
    }
    host.may_change().map_err(&failed)?;
    // Always reload: drop-ins and interrupted runs also leave systemd with old text.
    run_systemctl(host, &["daemon-reload"])?;
    host.may_change().map_err(&failed)?;
    run_systemctl(host, &["enable", &want.name])?;
    if have.is_some_and(|have| have.starts_with == want.starts_with && !changed) {
        return Ok(None);
    }
    host.may_change().map_err(&failed)?;
    // systemd does not start a unit that failed too often before a reset; an error means that there was nothing to reset.
    let _ = host.run_program("systemctl", &["reset-failed", &want.name]);
    run_systemctl(host, &["restart", "--no-block", &want.name])?;
    check_started(host, want)
}

/// Records the start and returns `None` once the unit is up, otherwise what is being waited for.
pub(super) fn check_started(host: &Host, want: &Unit) -> Result<Option<String>, Failure> {
    if !want.enabled {
        return Ok(None);
    }
    let states = read_states(host, &[&want.name])?;
    let state = states.get(&want.name).cloned().unwrap_or_default();
    match state.property("ActiveState") {
        _ if state.is_queued() => {}
        "active" => {
            record_start(host, want)?;
            return Ok(None);
        }
        "inactive" if state.ended_well() || state.is_not_for_here() => {
            record_start(host, want)?;
            return Ok(None);
        }
        "failed" | "inactive" => return Err(start_failure(want, &state)),
        _ => {}
    }
    Ok(Some(format!(
        "{} to come up ({}, {})",
        want.name,
        state.property("ActiveState"),
        state.property("SubState")
    )))
}

fn start_failure(want: &Unit, state: &UnitState) -> Failure {
    let message = format!(
        "the unit is {}: {}, exit status {}",
        state.property("ActiveState"),
        state.property("Result"),
        state.property("ExecMainStatus")
    );
    Failure {
        hint: Some(format!("see journalctl --unit {}", want.name)),
        ..permanent_failure(&format!("starting {}", want.name), &message)
    }
}

/// Deletes the start record of a unit, before anything that it depends on is changed.
pub(super) fn forget_start(host: &Host, name: &str) -> Result<(), Failure> {
    host.remove_file(&record_path(name))
        .map_err(file_failure("forgetting the start of", name))
}

fn record_start(host: &Host, want: &Unit) -> Result<(), Failure> {
    let text = format!("{}\n{}\n", boot_id(host)?, want.starts_with);
    let written = host.write_file(
        &record_path(&want.name),
        text.as_bytes(),
        0o644,
        Some("root:root"),
    );
    written.map_err(file_failure("recording the start of", &want.name))
}

/// The start record of a unit: boot id and digest; empty if there is none.
fn recorded_start(host: &Host, name: &str) -> Result<(String, String), Failure> {
    let text = host
        .read_lossy(&record_path(name))
        .map_err(file_failure("reading the start of", name))?;
    let mut lines = text.lines().map(str::to_owned);
    Ok((
        lines.next().unwrap_or_default(),
        lines.next().unwrap_or_default(),
    ))
}

fn is_of_this_boot(host: &Host, name: &str) -> Result<bool, Failure> {
    Ok(recorded_start(host, name)?.0 == boot_id(host)?)
}

fn boot_id(host: &Host) -> Result<String, Failure> {
    let path = "/proc/sys/kernel/random/boot_id";
    let id = host
        .read_lossy(path)
        .map_err(file_failure("reading", path))?;
    Ok(id.trim().to_owned())
}

fn record_path(name: &str) -> String {
    format!("{RECORDS}/{name}")
}

fn run_systemctl(host: &Host, arguments: &[&str]) -> Result<String, Failure> {
    let call = format!("systemctl {}", arguments.join(" "));
    let answer = host
        .run_program("systemctl", arguments)
        .map_err(call_failure(&call))?;
    if answer.is_success() {
        return Ok(answer.stdout);
    }
    let mut failure = permanent_failure(&call, answer.stderr.trim());
    // systemd restarts itself during its own updates.
    if answer.stderr.contains("Failed to connect to bus")
        || answer.stderr.contains("Connection timed out")
    {
        failure.class = Class::Blocked;
    }
    Err(failure)
}
