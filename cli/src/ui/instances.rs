//! Machines as a table.

use super::table;
use crate::duration::words;
use crate::machines::{Machine, Source};
use time::OffsetDateTime;

/// The table. What stopped a machine stands at the end of its row, uncut.
pub fn render(machines: &[Machine], wide: bool, now: OffsetDateTime) -> String {
    let mut headers = vec![
        "INSTANCE", "GROUP", "ROLE", "ZONE", "STATE", "UPTODATE", "NODE",
    ];
    if wide {
        headers.extend([
            "AGE",
            "TYPE",
            "TEMPLATE",
            "LIFECYCLE",
            "PRIVATEIP",
            "PUBLICIP",
            "VERSION",
        ]);
    }
    let starts = machines.iter().any(|machine| started(machine).is_some());
    if starts {
        headers.extend(["KNOWNFROM", "START"]);
    }
    let row = |machine: &Machine| {
        let text = |value: &Option<String>| value.clone().unwrap_or_default();
        let mut row = vec![
            machine.id.clone(),
            machine.group.clone(),
            machine.role.to_owned(),
            machine.zone.clone(),
            machine.state.clone(),
            up_to_date(machine).to_owned(),
            machine.membership.word().to_owned(),
        ];
        if wide {
            row.extend([
                age(machine, now),
                machine.machine_type.clone(),
                text(&machine.template_version),
                text(&machine.lifecycle),
                text(&machine.private_ip),
                text(&machine.public_ip),
                machine
                    .node
                    .as_ref()
                    .map(|node| node.version.clone())
                    .unwrap_or_default(),
            ]);
        }
        if starts {
            let (source, line) = started(machine).unwrap_or_default();
            row.extend([source.to_owned(), line]);
        }
        row
    };
    table::render(&headers, &machines.iter().map(row).collect::<Vec<_>>())
}

/// How far its start came, and from where that is known; of a control plane that has joined what its protokube waits for.
fn started(machine: &Machine) -> Option<(&'static str, String)> {
    if let Some(start) = &machine.start {
        return Some((start.known_from.word(), super::health::start_line(start)));
    }
    let cause = machine.waits.first()?;
    let line = super::health::one_line(&cause.line());
    Some((Source::Protokube.word(), line))
}

fn up_to_date(machine: &Machine) -> &'static str {
    match machine.up_to_date {
        Some(true) => "yes",
        Some(false) => "no",
        None => "",
    }
}

fn age(machine: &Machine, now: OffsetDateTime) -> String {
    machine.launched.map_or(String::new(), |launched| {
        words(now.unix_timestamp() - launched)
    })
}
