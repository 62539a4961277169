//! The instances by group: those with a problem first and open, the others folded; each with its boot as a bar and as text.

use super::html::{Html, element, plain, text, words};
use super::timeline::{Span, boot_bar, boot_spans, boot_text, total_time};
use super::{Report, count_text, folded, next_step, paragraph};
use crate::moment;
use crate::ui::health::boot_line;
use fleet::{BootSource, GroupHealth, InstanceStatus, Membership, RoleWait, unhealthy_waits};
use std::time::Duration;

/// Instances of a cluster up to which all of them are open from the start.
const FEW: usize = 12;

/// Instances of a group with a problem that are open from the start.
const OPEN: usize = 20;

/// An instance with the parts of its boot; none without a boot report.
struct Row<'a> {
    status: &'a InstanceStatus,
    spans: Vec<Span>,
    /// What is wrong with it; empty: nothing.
    problems: Vec<String>,
}

pub(super) fn section(report: &Report) -> Html {
    let groups = &report.health.groups;
    let known = groups
        .iter()
        .map(|group| (group.name.as_str(), Some(group)));
    let is_known = |name: &str| groups.iter().any(|group| group.name == name);
    let others = report.instances.iter().map(InstanceStatus::group);
    let mut others: Vec<&str> = others.filter(|name| !is_known(name)).collect();
    // Instances are sorted by group.
    others.dedup();
    let others = others.into_iter().map(|name| (name, None));
    let parts: Vec<Html> = known
        .chain(others)
        .flat_map(|(name, health)| group(name, health, report))
        .collect();
    if parts.is_empty() {
        let none = paragraph("The spec has no instance group.");
        return super::section("instances", "Instances", [none]);
    }
    super::section("instances", "Instances", parts)
}

/// A group: its numbers, its instances with problems, and the others.
fn group(name: &str, health: Option<&GroupHealth>, report: &Report) -> Vec<Html> {
    let all = report.instances.iter().filter(|one| one.group() == name);
    let rows: Vec<Row<'_>> = all.map(|status| row(status, report)).collect();
    let longest = rows.iter().map(|row| total_time(&row.spans)).max();
    let longest = longest.unwrap_or_default();
    let (mut troubled, well): (Vec<Row<'_>>, Vec<Row<'_>>) =
        rows.into_iter().partition(|row| !row.problems.is_empty());
    // Within each, in the order of their ids: a stable sort.
    troubled.sort_by_key(|row| severity(row.status));
    let heading = if name.is_empty() { "of no group" } else { name };
    let mut parts = vec![
        plain("h3", [text(heading)]),
        paragraph(&group_text(health, troubled.len() + well.len())),
    ];
    let (first, rest) = troubled.split_at(troubled.len().min(OPEN));
    if !first.is_empty() {
        parts.push(row_list(first, longest));
    }
    if !rest.is_empty() {
        let summary = format!("{} more with a problem", count_text(rest.len(), "instance"));
        let id = format!("troubled-{name}");
        parts.push(folded(&id, false, &summary, [row_list(rest, longest)]));
    }
    if !well.is_empty() {
        let summary = format!(
            "{} without a known problem",
            count_text(well.len(), "instance")
        );
        let id = format!("group-{name}");
        let is_open = report.instances.len() <= FEW;
        parts.push(folded(&id, is_open, &summary, [row_list(&well, longest)]));
    }
    parts
}

fn group_text(health: Option<&GroupHealth>, count: usize) -> String {
    let mut said = vec![count_text(count, "instance")];
    if let Some(health) = health {
        let number = |number: Option<i32>| number.map_or("?".to_owned(), |one| one.to_string());
        said.extend(health.ready.map(|ready| format!("{ready} Ready")));
        said.push(format!(
            "{} wanted (from {} to {})",
            number(health.desired),
            number(health.min),
            number(health.max)
        ));
        said.push(health.role.to_owned());
    } else {
        said.push("the spec has no such group".to_owned());
    }
    said.join(", ")
}

fn row<'a>(status: &'a InstanceStatus, report: &Report) -> Row<'a> {
    let boot = report.boots.get(&status.instance.id);
    Row {
        spans: boot.map_or_else(Vec::new, |boot| boot_spans(&status.instance, boot)),
        problems: problems(status, boot.and_then(|boot| boot.error.as_deref())),
        status,
    }
}

/// What is wrong with an instance, in the words of `kctl get instances`; `error`: of nodeup's last run.
fn problems(status: &InstanceStatus, error: Option<&str>) -> Vec<String> {
    let mut found: Vec<String> = unhealthy_waits(&status.waits)
        .map(RoleWait::one_line)
        .collect();
    match &status.boot {
        // Said already.
        Some(boot) if boot.known_from == BootSource::Protokube && !found.is_empty() => {}
        // While the API cannot be asked, most instances have joined.
        Some(boot) if status.membership == Membership::Unknown && boot.error.is_none() => {}
        Some(boot) => found.push(boot_line(boot)),
        None => found.extend(error.map(|error| format!("nodeup: {error}"))),
    }
    let node = status.node.as_ref();
    if let Some(node) = node.filter(|node| !node.ready) {
        found.push(node.reason.clone().unwrap_or_default());
    }
    if node.is_some_and(|node| node.uninitialized) {
        found.push("the cloud controller manager has not initialized its Node".to_owned());
    }
    found
}

/// Smaller for what has failed than for what is under way.
fn severity(status: &InstanceStatus) -> u8 {
    let has_failed = status
        .boot
        .as_ref()
        .is_some_and(|boot| boot.error.is_some());
    match status.membership {
        _ if has_failed || unhealthy_waits(&status.waits).next().is_some() => 0,
        Membership::NotReady => 1,
        _ => 2,
    }
}

fn row_list(rows: &[Row<'_>], longest: Duration) -> Html {
    let items = rows.iter().map(|row| instance_item(row, longest));
    element("ul", &[("class", "instances")], items)
}

fn instance_item(row: &Row<'_>, longest: Duration) -> Html {
    let status = row.status;
    let class = match status.membership {
        _ if !row.problems.is_empty() => "bad",
        Membership::Ready => "good",
        _ => "faint",
    };
    let name = plain("strong", [text(&status.instance.id)]);
    let word = match status.membership.word() {
        "" => "no node",
        word => word,
    };
    let first = [
        name,
        text(" "),
        words("span", class, word),
        text(", "),
        text(&instance_text(status)),
    ];
    let mut parts = vec![plain("p", first)];
    parts.extend(row.problems.iter().map(|said| paragraph(said)));
    parts.extend(status.next_step().as_deref().map(next_step));
    if row.spans.is_empty() {
        parts.push(words("p", "faint", "No boot report."));
    } else {
        parts.push(boot_bar(&row.spans, longest));
        let said = format!("Boot: {}.", boot_text(&row.spans));
        parts.push(words("p", "faint", &said));
    }
    plain("li", parts)
}

/// Zone, type, state, launch, and whether it is up to date.
fn instance_text(status: &InstanceStatus) -> String {
    let instance = &status.instance;
    let mut said = vec![
        instance.zone.clone(),
        instance.machine_type.clone(),
        instance.state.clone(),
    ];
    said.extend(instance.lifecycle.clone());
    said.extend(
        instance
            .launched
            .map(|at| format!("launched {}", moment::text(at))),
    );
    let up_to_date = &status.up_to_date;
    said.push(match (up_to_date.is_current(), up_to_date.reason()) {
        (Some(false), Some(reason)) => format!("not up to date: {reason}"),
        (_, Some(reason)) => format!("not known to be up to date: {reason}"),
        (_, None) => "up to date".to_owned(),
    });
    said.retain(|word| !word.is_empty());
    said.join(", ")
}
