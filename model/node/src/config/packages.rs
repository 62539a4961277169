//! Packages of the distribution.

use super::{Distribution, NodeConfig};

/// Packages a machine needs, by their names in its distribution, and the user's.
pub fn packages(config: &NodeConfig, distribution: Distribution) -> Vec<String> {
    let mut names = needed(distribution);
    names.extend(upkeep(config, distribution));
    names.extend(config.packages.iter().cloned());
    names.sort();
    names.dedup();
    names
}

/// What kubelet and the container runtime work with.
pub(crate) fn needed(distribution: Distribution) -> Vec<String> {
    let names: &[&str] = match distribution {
        Distribution::Debian => &[
            "conntrack",
            "iptables",
            "libseccomp2",
            "nftables",
            "socat",
            "util-linux",
        ],
        Distribution::AmazonLinux => &[
            "conntrack-tools",
            "container-selinux",
            "iptables-nft",
            "libseccomp",
            "socat",
            "util-linux",
        ],
    };
    names.iter().map(|name| (*name).to_owned()).collect()
}

/// What keeps a machine well: time, logs, security updates.
pub(crate) fn upkeep(config: &NodeConfig, distribution: Distribution) -> Vec<String> {
    let mut names = vec!["logrotate".to_owned()];
    if config.ntp {
        names.push("chrony".to_owned());
    }
    if config.automatic_updates {
        names.push(match distribution {
            Distribution::Debian => "unattended-upgrades".to_owned(),
            Distribution::AmazonLinux => "dnf-automatic".to_owned(),
        });
    }
    names.sort();
    names
}
