//! Packages of the distribution that instances need.

use super::{Distribution, NodeConfig};

/// Packages that kubelet and the container runtime depend on.
pub(crate) fn needed_packages(distribution: Distribution) -> Vec<String> {
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

/// Packages for time synchronisation, log rotation and security updates.
pub(crate) fn upkeep_packages(config: &NodeConfig, distribution: Distribution) -> Vec<String> {
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
