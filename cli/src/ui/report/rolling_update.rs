//! A rolling update as it goes: who runs it, how many instances of each group are up to date, and what happens to instances now.

use super::html::{Html, plain, text};
use super::table::list;
use super::timeline::share_bar;
use super::{Report, count_text, folded, next_step, paragraph};
use crate::state::LockKind;
use crate::ui::health::boot_line;
use crate::ui::operations::result_text;
use fleet::InstanceStatus;
use std::collections::BTreeMap;

/// The command that an operation of a rolling update has.
const COMMAND: &str = "rolling-update";

/// How many changes are open from the start: when a cluster begins, all instances start.
const OPEN: usize = 20;

pub(super) fn section(report: &Report) -> Html {
    // Those of warm pools too: they become nodes as they are.
    let all = report.instances.iter();
    let staying = all.filter(|one| !one.instance.is_leaving());
    let mut groups: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for status in staying {
        let (current, all) = groups.entry(status.group()).or_default();
        *all += 1;
        *current += usize::from(status.up_to_date.is_current() == Some(true));
    }
    let is_done = groups.values().all(|(current, all)| current == all);
    let is_done = (!groups.is_empty()).then_some(is_done);
    let mut parts = state(report, is_done);
    if is_done == Some(false) {
        let items = groups.iter().map(|(group, (current, all))| {
            let said = format!("{group}: {current} of {all} up to date");
            plain("li", [text(&said), share_bar(*current, *all)])
        });
        parts.push(plain("ul", items));
    }
    let now: Vec<String> = report.instances.iter().filter_map(change_of).collect();
    if !now.is_empty() {
        let summary = format!("Changes now: {}", count_text(now.len(), "instance"));
        parts.push(folded("changes", now.len() <= OPEN, &summary, [list(now)]));
    }
    super::section("rolling-update", "Rolling update", parts)
}

/// Whether one runs, how the last one ended, and whether one is needed. `is_done`: every instance is up to date; `None`: there is none.
fn state(report: &Report, is_done: Option<bool>) -> Vec<Html> {
    let mut locks = report.locks.iter();
    let running = locks.find(|seen| seen.kind == LockKind::RollingUpdate && seen.is_alive());
    if let Some(running) = running {
        let who = running.lock.describe(report.at);
        return vec![paragraph(&format!("Runs now: {who}."))];
    }
    let mut parts = Vec::new();
    let last = report.operations.iter().find_map(|one| {
        let record = one.record.as_ref().ok()?;
        (record.command == COMMAND).then_some((one, record))
    });
    if let Some((one, record)) = last {
        parts.push(paragraph(&format!(
            "The last one began at {}, by {}: {}.",
            record.started,
            record.who,
            result_text(one)
        )));
    }
    match is_done {
        None => parts.push(paragraph("There are no instances.")),
        Some(true) => parts.push(paragraph("Every instance is up to date.")),
        Some(false) => parts.push(next_step(&format!(
            "kctl rolling-update {} shows which instances it would replace, and why",
            report.cluster
        ))),
    }
    parts
}

/// What happens to an instance now.
fn change_of(status: &InstanceStatus) -> Option<String> {
    let instance = &status.instance;
    let is_cordoned = status.node.as_ref().is_some_and(|node| node.unschedulable);
    let change = if instance.is_leaving() {
        let state = instance.lifecycle.as_ref();
        format!("is ended: {}", state.unwrap_or(&instance.state))
    } else if is_cordoned {
        "is cordoned".to_owned()
    } else if status.membership.is_missing() {
        let boot = status.boot.as_ref()?;
        format!("starts: {}", boot_line(boot))
    } else {
        return None;
    };
    Some(format!("{} ({}) {change}", instance.id, status.group()))
}
