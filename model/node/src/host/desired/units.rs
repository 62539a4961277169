//! Desired units: those of NodeConfig, and those of the distribution for time, logs and updates.

use crate::config::{Distribution, InstanceFacts, NodeConfig};
use crate::host::{HostObject, Unit};

pub(super) fn unit_objects(config: &NodeConfig, host: &InstanceFacts) -> Vec<HostObject> {
    let ours = config.units.iter().map(|unit| Unit {
        name: unit.name.clone(),
        // A masked unit has no text; its file is a link to /dev/null.
        content: unit.enabled.then(|| unit.content.clone()),
        enabled: unit.enabled,
        starts_with: String::new(),
    });
    let masked = |name: &&str| {
        let hook = config.units.iter().find(|unit| unit.name == *name);
        hook.is_some_and(|hook| !hook.enabled)
    };
    let distributions = upkeep_units(config, host.distribution)
        .into_iter()
        .filter(|name| !masked(name))
        .map(|name| Unit {
            name: name.to_owned(),
            content: None,
            enabled: true,
            starts_with: String::new(),
        });
    ours.chain(distributions).map(HostObject::Unit).collect()
}

/// Units of the distribution. Debian's packages start their units but do not restart them on changes; Amazon Linux starts none.
fn upkeep_units(config: &NodeConfig, distribution: Distribution) -> Vec<&'static str> {
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
