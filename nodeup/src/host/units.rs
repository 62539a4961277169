//! Units of systemd. What each was last started with is on record, so that a machine that died between a change and the
//! restart is seen; the record counts only where it can be true.

use super::failure::{failed, file_failure, invalid};
use engine::{Class, Failure};
use host::Host;
use node::host::{Thing, Unit};
use std::collections::BTreeMap;

const RECORDS: &str = "/var/lib/kctl/units";

/// What stands in the place of a masked unit.
const NOTHING: &str = "/dev/null";

/// What systemd says of a unit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct State(BTreeMap<String, String>);

impl State {
    fn get(&self, property: &str) -> &str {
        self.0.get(property).map_or("", String::as_str)
    }

    /// It runs, or is about to: at boot systemd may not have come to it yet.
    fn is_up(&self) -> bool {
        match self.get("ActiveState") {
            "active" | "activating" | "reloading" => true,
            "inactive" => self.is_queued() && !self.ends(),
            _ => false,
        }
    }

    /// systemd has a job for it.
    fn is_queued(&self) -> bool {
        !matches!(self.get("Job"), "" | "0")
    }

    /// It is of the kind that ends.
    fn ends(&self) -> bool {
        self.get("Type") == "oneshot" && self.get("RemainAfterExit") != "yes"
    }

    /// It is of that kind, and ended well.
    fn ended_well(&self) -> bool {
        self.get("ActiveState") == "inactive"
            && self.get("Type") == "oneshot"
            && self.get("Result") == "success"
    }

    /// A condition in it says that it is not for this machine, such as a clock that may not be set here.
    fn is_not_for_here(&self) -> bool {
        self.get("ActiveState") == "inactive"
            && self.get("ConditionResult") == "no"
            && self.get("ConditionTimestampMonotonic") != "0"
    }

    fn is_enabled(&self) -> bool {
        // What has no [Install] section is started by others: there is nothing to enable.
        matches!(
            self.get("UnitFileState"),
            "enabled" | "static" | "indirect" | "generated" | "alias" | "linked"
        )
    }
}

/// What systemd says of these units, in one question.
pub(super) fn states(host: &Host, names: &[&str]) -> Result<BTreeMap<String, State>, Failure> {
    if names.is_empty() {
        return Ok(BTreeMap::new());
    }
    const PROPERTIES: &str = "--property=Id,Type,RemainAfterExit,ActiveState,SubState,UnitFileState,Result,ExecMainStatus,Job,ConditionResult,ConditionTimestampMonotonic";
    let mut arguments = vec!["show", PROPERTIES];
    arguments.extend(names);
    let answer = systemctl(host, &arguments)?;
    let mut states = BTreeMap::new();
    for (name, block) in names.iter().zip(answer.split("\n\n")) {
        let properties = block.lines().filter_map(|line| line.split_once('='));
        let properties = properties.map(|(name, value)| (name.to_owned(), value.to_owned()));
        states.insert((*name).to_owned(), State(properties.collect()));
    }
    Ok(states)
}

/// The unit as it is.
pub(super) fn observe(host: &Host, want: &Unit, state: &State) -> Result<Option<Unit>, Failure> {
    let path = Thing::unit_path(&want.name);
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
        // Whoever made the image masked it: that is no oversight.
        None if state.get("UnitFileState").starts_with("masked") => return Ok(Some(want.clone())),
        None => None,
        Some(_) if masked => Some(String::new()),
        Some(_) => match host.read(&path).map_err(&failed)? {
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
            recorded(host, &want.name)?.1
        } else {
            String::new()
        },
    }))
}

/// Writes the unit, enables it, and starts it if it is to run with something else than it does.
/// What it waits for, if it has not come up at once.
pub(super) fn put(
    host: &Host,
    want: &Unit,
    have: Option<&Unit>,
) -> Result<Option<String>, Failure> {
    let path = Thing::unit_path(&want.name);
    let failed = file_failure("writing", &path);
    if !want.enabled {
        host.make_link(&path, NOTHING).map_err(&failed)?;
        systemctl(host, &["daemon-reload"])?;
        systemctl(host, &["stop", &want.name])?;
        return Ok(None);
    }
    let changed = have.is_none_or(|have| have.content != want.content);
    if let Some(content) = want.content.as_ref().filter(|_| changed) {
        host.write(&path, content.as_bytes(), 0o644, Some("root:root"))
            .map_err(&failed)?;
    }
    host.may_change().map_err(&failed)?;
    // Always: drop-ins and a run that was killed before this leave systemd with old text too.
    systemctl(host, &["daemon-reload"])?;
    host.may_change().map_err(&failed)?;
    systemctl(host, &["enable", &want.name])?;
    if have.is_some_and(|have| have.starts_with == want.starts_with && !changed) {
        return Ok(None);
    }
    host.may_change().map_err(&failed)?;
    // A unit that failed too often is not started again before this; there may be nothing to reset.
    let _ = host.run("systemctl", &["reset-failed", &want.name]);
    systemctl(host, &["restart", "--no-block", &want.name])?;
    came_up(host, want)
}

/// `None` once the unit has come up, which is then put on record; else what is being waited for.
pub(super) fn came_up(host: &Host, want: &Unit) -> Result<Option<String>, Failure> {
    if !want.enabled {
        return Ok(None);
    }
    let states = states(host, &[&want.name])?;
    let state = states.get(&want.name).cloned().unwrap_or_default();
    match state.get("ActiveState") {
        _ if state.is_queued() => {}
        "active" => {
            record(host, want)?;
            return Ok(None);
        }
        "inactive" if state.ended_well() || state.is_not_for_here() => {
            record(host, want)?;
            return Ok(None);
        }
        "failed" | "inactive" => return Err(did_not_start(want, &state)),
        _ => {}
    }
    Ok(Some(format!(
        "{} to come up ({}, {})",
        want.name,
        state.get("ActiveState"),
        state.get("SubState")
    )))
}

fn did_not_start(want: &Unit, state: &State) -> Failure {
    let message = format!(
        "it is {}: {}, exit status {}",
        state.get("ActiveState"),
        state.get("Result"),
        state.get("ExecMainStatus")
    );
    Failure {
        hint: Some(format!("journalctl --unit {} says why", want.name)),
        ..invalid(&format!("starting {}", want.name), &message)
    }
}

/// Forgets what a unit was started with, before anything that it needs is changed.
pub(super) fn forget(host: &Host, name: &str) -> Result<(), Failure> {
    host.remove(&record_path(name))
        .map_err(file_failure("forgetting the start of", name))
}

fn record(host: &Host, want: &Unit) -> Result<(), Failure> {
    let text = format!("{}\n{}\n", boot(host)?, want.starts_with);
    let written = host.write(
        &record_path(&want.name),
        text.as_bytes(),
        0o644,
        Some("root:root"),
    );
    written.map_err(file_failure("recording the start of", &want.name))
}

/// The boot in which a unit was started by us last, and what it was started with.
fn recorded(host: &Host, name: &str) -> Result<(String, String), Failure> {
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
    Ok(recorded(host, name)?.0 == boot(host)?)
}

fn boot(host: &Host) -> Result<String, Failure> {
    let path = "/proc/sys/kernel/random/boot_id";
    let id = host
        .read_lossy(path)
        .map_err(file_failure("reading", path))?;
    Ok(id.trim().to_owned())
}

fn record_path(name: &str) -> String {
    format!("{RECORDS}/{name}")
}

fn systemctl(host: &Host, arguments: &[&str]) -> Result<String, Failure> {
    let call = format!("systemctl {}", arguments.join(" "));
    let answer = host.run("systemctl", arguments).map_err(failed(&call))?;
    if answer.is_success() {
        return Ok(answer.stdout);
    }
    let mut failure = invalid(&call, answer.stderr.trim());
    // systemd may be restarting itself, as updates of it do.
    if answer.stderr.contains("Failed to connect to bus")
        || answer.stderr.contains("Connection timed out")
    {
        failure.class = Class::Blocked;
    }
    Err(failure)
}
