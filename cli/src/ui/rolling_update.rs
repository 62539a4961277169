//! The preview of a rolling update: its groups, the instances that would be replaced, and why.

use super::diff::change_lines;
use super::{Paint, Tone, table};
use engine::FieldChange;
use fleet::{Fleet, role_name};
use rolling_update::{Condition, Observed, Obstacle};
use serde::Serialize;
use std::collections::BTreeMap;

/// What would be replaced.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Preview {
    pub groups: Vec<GroupRow>,
    pub instances: Vec<InstanceRow>,
    pub obstacles: Vec<ObstacleRow>,
}

/// An instance group, with the columns of `kops rolling-update`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct GroupRow {
    pub name: String,
    pub role: &'static str,
    /// Instances to be replaced.
    pub need_update: usize,
    /// Instances that are Ready.
    pub ready: usize,
    pub desired: usize,
    pub max_surge: usize,
    pub max_unavailable: usize,
}

/// An instance to be replaced.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct InstanceRow {
    pub id: String,
    pub group: String,
    pub zone: String,
    pub reason: String,
    /// What its replacement is launched with instead; missing if that is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub changes: Option<Vec<FieldChange>>,
}

/// What would stop the rolling update, or what it would lose.
#[derive(Debug, Serialize)]
pub struct ObstacleRow {
    pub stops: bool,
    pub message: String,
}

impl Preview {
    /// The preview of a rolling update of what is observed.
    pub fn new(
        observed: &Observed,
        fleet: &Fleet,
        obstacles: &[Obstacle],
        changes: &BTreeMap<String, Vec<FieldChange>>,
    ) -> Self {
        let warm = observed.warm.iter().filter(|one| one.is_outdated());
        let warm = warm.map(|one| (&one.id, &one.group, &one.outdated));
        let outdated = observed.instances.iter().filter(|one| one.is_outdated());
        let outdated = outdated.map(|one| (&one.id, &one.group, &one.outdated));
        let zone = |id: &str| {
            let mut all = fleet.instances.iter();
            all.find(|status| status.instance.id == id)
                .map(|status| status.instance.zone.clone())
                .unwrap_or_default()
        };
        // In the order in which they go.
        let instances = warm.chain(outdated).map(|(id, group, reason)| InstanceRow {
            id: id.clone(),
            group: group.clone(),
            zone: zone(id),
            reason: reason.clone().unwrap_or_default(),
            changes: changes.get(id).cloned(),
        });
        Self {
            groups: groups(observed),
            instances: instances.collect(),
            obstacles: obstacles
                .iter()
                .map(|one| ObstacleRow {
                    stops: one.stops,
                    message: one.text.clone(),
                })
                .collect(),
        }
    }
}

fn groups(observed: &Observed) -> Vec<GroupRow> {
    let groups = observed.groups.iter();
    groups
        .map(|group| {
            let own = || {
                observed
                    .instances
                    .iter()
                    .filter(|one| one.group == group.name)
            };
            let warm = observed.warm.iter();
            let warm = warm.filter(|one| one.group == group.name && one.is_outdated());
            GroupRow {
                name: group.name.clone(),
                role: role_name(Some(group.role)),
                need_update: own().filter(|one| one.is_outdated()).count() + warm.count(),
                ready: own()
                    .filter(|one| one.condition == Condition::Ready)
                    .count(),
                desired: group.desired,
                max_surge: group.max_surge,
                max_unavailable: group.max_unavailable,
            }
        })
        .collect()
}

/// The preview as tables.
pub fn render(preview: &Preview, paint: Paint) -> String {
    let groups = preview.groups.iter().map(|group| {
        let numbers = [
            group.need_update,
            group.ready,
            group.desired,
            group.max_surge,
            group.max_unavailable,
        ];
        let mut row = vec![group.name.clone(), group.role.to_owned()];
        row.extend(numbers.map(|number| number.to_string()));
        row
    });
    let headers = [
        "GROUP",
        "ROLE",
        "NEEDUPDATE",
        "READY",
        "DESIRED",
        "MAXSURGE",
        "MAXUNAVAILABLE",
    ];
    let mut text = table::render(&headers, &groups.collect::<Vec<_>>());
    if preview.instances.is_empty() {
        return text;
    }
    let instances = preview.instances.iter().map(|one| {
        vec![
            one.id.clone(),
            one.group.clone(),
            one.zone.clone(),
            one.reason.clone(),
        ]
    });
    text.push('\n');
    text.push_str(&table::render(
        &["INSTANCE", "GROUP", "ZONE", "REASON"],
        &instances.collect::<Vec<_>>(),
    ));
    text + &render_changes(&preview.instances, paint)
}

/// The changes, once for all instances of a group that have the same.
fn render_changes(instances: &[InstanceRow], paint: Paint) -> String {
    let mut kinds: Vec<(&str, &[FieldChange], usize)> = Vec::new();
    for one in instances {
        let Some(changes) = one.changes.as_deref().filter(|all| !all.is_empty()) else {
            continue;
        };
        let same = kinds.iter_mut();
        match same
            .into_iter()
            .find(|(group, known, _)| *group == one.group && *known == changes)
        {
            Some((_, _, count)) => *count += 1,
            None => kinds.push((&one.group, changes, 1)),
        }
    }
    let mut text = String::new();
    for (group, changes, count) in kinds {
        let instances = if count == 1 { "instance" } else { "instances" };
        let heading = format!("Changes on {count} {instances} of {group}:");
        text.push_str(&format!("\n{}\n", paint.with_tone(Tone::Strong, &heading)));
        for line in changes
            .iter()
            .flat_map(|change| change_lines(change, false, paint))
        {
            text.push_str(&format!("  {line}\n"));
        }
    }
    text
}
