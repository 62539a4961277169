//! Units: the group's, and those of the distribution that keep a machine well.

use crate::config::{Distribution, Host, NodeConfig};
use crate::host::{Thing, Unit};

pub(super) fn things(config: &NodeConfig, host: &Host) -> Vec<Thing> {
    let ours = config.units.iter().map(|unit| Unit {
        name: unit.name.clone(),
        // A masked unit has no text: a link to nothing stands in its place.
        content: unit.enabled.then(|| unit.content.clone()),
        enabled: unit.enabled,
        starts_with: String::new(),
    });
    let distributions = upkeep(config, host.distribution)
        .into_iter()
        .map(|name| Unit {
            name: name.to_owned(),
            content: None,
            enabled: true,
            starts_with: String::new(),
        });
    ours.chain(distributions).map(Thing::Unit).collect()
}

/// Debian's packages start what they bring, but are not told when its configuration changes; Amazon Linux starts nothing.
fn upkeep(config: &NodeConfig, distribution: Distribution) -> Vec<&'static str> {
    let mut units = vec!["logrotate.timer"];
    if config.ntp {
        units.push(match distribution {
            Distribution::Debian => "chrony.service",
            Distribution::AmazonLinux => "chronyd.service",
        });
    }
    if config.automatic_updates && distribution == Distribution::AmazonLinux {
        units.push("dnf-automatic-install.timer");
    }
    units
}
