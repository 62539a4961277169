//! The health of a cluster as tables: groups, nodes, instances that have not joined, problems.

use super::{Paint, Tone, table};
use fleet::{BootStage, Finding, GroupHealth, Health, InstanceStatus, Node};
use serde::Serialize;

/// What does not make a cluster unhealthy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Warning {
    /// `etcd` for a slow disk, `kubernetes` for a minor that ends and an upgrade that has not ended; otherwise the heading of what kctl does
    /// not implement yet.
    pub topic: &'static str,
    pub message: String,
}

/// All tables of a health report.
pub fn render(health: &Health, paint: Paint) -> String {
    let mut parts = vec![group_table(&health.groups)];
    if !health.nodes.is_empty() {
        parts.push(node_table(&health.nodes));
    }
    if !health.not_joined.is_empty() {
        let heading = if health.api_error.is_some() {
            "Not known to have joined:"
        } else {
            "Not joined:"
        };
        parts.push(format!(
            "{}\n{}",
            paint.with_tone(Tone::Strong, heading),
            not_joined_table(&health.not_joined)
        ));
    }
    for (heading, findings) in [
        ("Problems:", &health.findings),
        ("Ignored:", &health.ignored),
    ] {
        if !findings.is_empty() {
            parts.push(format!(
                "{}\n{}",
                paint.with_tone(Tone::Strong, heading),
                finding_list(findings, paint)
            ));
        }
    }
    parts.join("\n")
}

fn group_table(groups: &[GroupHealth]) -> String {
    let number = |number: Option<i32>| number.map(|one| one.to_string()).unwrap_or_default();
    let row = |group: &GroupHealth| {
        vec![
            group.name.clone(),
            group.role.to_owned(),
            number(group.min),
            number(group.desired),
            number(group.max),
            group.instances.to_string(),
            group
                .ready
                .map(|ready| ready.to_string())
                .unwrap_or_default(),
        ]
    };
    let headers = [
        "GROUP",
        "ROLE",
        "MIN",
        "DESIRED",
        "MAX",
        "INSTANCES",
        "READY",
    ];
    table::render(&headers, &groups.iter().map(row).collect::<Vec<_>>())
}

fn node_table(nodes: &[Node]) -> String {
    let row = |node: &Node| {
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

fn not_joined_table(instances: &[InstanceStatus]) -> String {
    let row = |status: &InstanceStatus| {
        let boot = status.boot.as_ref();
        vec![
            status.instance.id.clone(),
            status.group().to_owned(),
            status.instance.state.clone(),
            boot.map_or(String::new(), |boot| boot.known_from.word().to_owned()),
            boot.map_or(String::new(), boot_line),
        ]
    };
    let headers = ["INSTANCE", "GROUP", "STATE", "KNOWNFROM", "START"];
    table::render(&headers, &instances.iter().map(row).collect::<Vec<_>>())
}

/// How far a boot came, as one line.
pub fn boot_line(boot: &BootStage) -> String {
    one_line(&boot.line())
}

fn finding_list(findings: &[Finding], paint: Paint) -> String {
    let mut text = String::new();
    for found in findings {
        let head = format!("{}/{}", found.kind.word(), found.name);
        text.push_str(&format!(
            "  {}  {}\n",
            paint.with_tone(Tone::Delete, &head),
            one_line(&found.message)
        ));
        if let Some(next) = &found.next {
            let next = one_line(next);
            text.push_str(&format!(
                "    {} {next}\n",
                paint.with_tone(Tone::Hint, "next:")
            ));
        }
    }
    text
}

/// Replaces all white space by single blanks.
pub(super) fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
