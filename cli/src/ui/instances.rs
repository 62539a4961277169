//! Instances as a table.

use super::table;
use fleet::{BootSource, Instance, InstanceStatus, role_name};
use node::duration::duration_text;
use time::OffsetDateTime;

/// A table of instances. The reason why a boot stopped is the last column, never cut.
pub fn render(instances: &[InstanceStatus], wide: bool, now: OffsetDateTime) -> String {
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
    let starts = instances.iter().any(|one| boot_progress(one).is_some());
    if starts {
        headers.extend(["KNOWNFROM", "START"]);
    }
    let row = |status: &InstanceStatus| {
        let instance = &status.instance;
        let text = |value: Option<&String>| value.cloned().unwrap_or_default();
        let mut row = vec![
            instance.id.clone(),
            status.group().to_owned(),
            role_name(status.role).to_owned(),
            instance.zone.clone(),
            instance.state.clone(),
            up_to_date(status).to_owned(),
            status.membership.word().to_owned(),
        ];
        if wide {
            row.extend([
                instance_age(instance, now),
                instance.machine_type.clone(),
                text(instance.template.as_ref().map(|of| &of.version)),
                text(instance.lifecycle.as_ref()),
                text(
                    instance
                        .private_ip
                        .as_ref()
                        .or(instance.ipv6_address.as_ref()),
                ),
                text(instance.public_ip.as_ref()),
                status
                    .node
                    .as_ref()
                    .map(|node| node.version.clone())
                    .unwrap_or_default(),
            ]);
        }
        if starts {
            let (source, line) = boot_progress(status).unwrap_or_default();
            row.extend([source.to_owned(), line]);
        }
        row
    };
    table::render(&headers, &instances.iter().map(row).collect::<Vec<_>>())
}

/// The columns `KNOWNFROM` and `START`: how far the boot came, or for a control plane that has joined what its protokube
/// waits for.
fn boot_progress(status: &InstanceStatus) -> Option<(&'static str, String)> {
    if let Some(boot) = &status.boot {
        return Some((boot.known_from.word(), super::health::boot_line(boot)));
    }
    let cause = status.waits.first()?;
    let line = super::health::one_line(&cause.one_line());
    Some((BootSource::Protokube.word(), line))
}

fn up_to_date(status: &InstanceStatus) -> &'static str {
    match status.up_to_date.is_current() {
        Some(true) => "yes",
        Some(false) => "no",
        None => "",
    }
}

fn instance_age(instance: &Instance, now: OffsetDateTime) -> String {
    instance.launched.map_or(String::new(), |launched| {
        duration_text(now.unix_timestamp() - launched)
    })
}
