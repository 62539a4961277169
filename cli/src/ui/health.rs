//! The health of a cluster as tables: groups, nodes, machines that have not joined, what is wrong.

use super::{Paint, Tone, table};
use crate::health::{Finding, GroupHealth, Health};
use crate::machines::{Machine, NodeFacts, Start};

/// All of it.
pub fn render(health: &Health, paint: Paint) -> String {
    let mut parts = vec![groups(&health.groups)];
    if !health.nodes.is_empty() {
        parts.push(nodes(&health.nodes));
    }
    if !health.not_joined.is_empty() {
        let heading = if health.trouble.is_some() {
            "Not known to have joined:"
        } else {
            "Not joined:"
        };
        parts.push(format!(
            "{}\n{}",
            paint.tone(Tone::Strong, heading),
            machines(&health.not_joined)
        ));
    }
    if !health.findings.is_empty() {
        parts.push(format!(
            "{}\n{}",
            paint.tone(Tone::Strong, "Problems:"),
            findings(&health.findings, paint)
        ));
    }
    parts.join("\n")
}

fn groups(groups: &[GroupHealth]) -> String {
    let number = |number: Option<i32>| number.map(|one| one.to_string()).unwrap_or_default();
    let row = |group: &GroupHealth| {
        vec![
            group.name.clone(),
            group.role.to_owned(),
            number(group.min),
            number(group.desired),
            number(group.max),
            group.machines.to_string(),
            group
                .ready
                .map(|ready| ready.to_string())
                .unwrap_or_default(),
        ]
    };
    let headers = [
        "GROUP", "ROLE", "MIN", "DESIRED", "MAX", "MACHINES", "READY",
    ];
    table::render(&headers, &groups.iter().map(row).collect::<Vec<_>>())
}

fn nodes(nodes: &[NodeFacts]) -> String {
    let row = |node: &NodeFacts| {
        let mut state = vec![if node.ready { "Ready" } else { "NotReady" }];
        if node.uninitialized {
            state.push("Uninitialized");
        }
        if node.unschedulable {
            state.push("SchedulingDisabled");
        }
        vec![
            node.name.clone(),
            state.join(","),
            node.roles.join(","),
            node.version.clone(),
        ]
    };
    let headers = ["NODE", "STATUS", "ROLES", "VERSION"];
    table::render(&headers, &nodes.iter().map(row).collect::<Vec<_>>())
}

fn machines(machines: &[Machine]) -> String {
    let row = |machine: &Machine| {
        let start = machine.start.as_ref();
        vec![
            machine.id.clone(),
            machine.group.clone(),
            machine.state.clone(),
            start.map_or(String::new(), |start| start.known_from.word().to_owned()),
            start.map_or(String::new(), start_line),
        ]
    };
    let headers = ["INSTANCE", "GROUP", "STATE", "KNOWNFROM", "START"];
    table::render(&headers, &machines.iter().map(row).collect::<Vec<_>>())
}

/// How far a start came, in one line: errors have more than one now and then.
pub fn start_line(start: &Start) -> String {
    one_line(&start.line())
}

fn findings(findings: &[Finding], paint: Paint) -> String {
    let mut text = String::new();
    for found in findings {
        let head = format!("{}/{}", found.kind.word(), found.name);
        text.push_str(&format!(
            "  {}  {}\n",
            paint.tone(Tone::Delete, &head),
            one_line(&found.message)
        ));
        if let Some(next) = &found.next {
            let next = one_line(next);
            text.push_str(&format!("    {} {next}\n", paint.tone(Tone::Hint, "next:")));
        }
    }
    text
}

/// Without ends of lines.
pub(super) fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
