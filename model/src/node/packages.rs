//! Packages of the distribution.

use super::{Distribution, NodeConfig};

/// Packages a machine needs, by their names in its distribution, and the user's.
pub fn packages(config: &NodeConfig, distribution: Distribution) -> Vec<String> {
    let mut names: Vec<&str> = match distribution {
        Distribution::Debian => {
            vec![
                "conntrack",
                "iptables",
                "libseccomp2",
                "logrotate",
                "nftables",
                "socat",
                "util-linux",
            ]
        }
        Distribution::AmazonLinux => {
            vec![
                "conntrack-tools",
                "container-selinux",
                "iptables-nft",
                "libseccomp",
                "logrotate",
                "socat",
                "util-linux",
            ]
        }
    };
    if config.ntp {
        names.push("chrony");
    }
    if config.automatic_updates {
        names.push(match distribution {
            Distribution::Debian => "unattended-upgrades",
            Distribution::AmazonLinux => "dnf-automatic",
        });
    }
    let mut names: Vec<String> = names.into_iter().map(str::to_owned).collect();
    names.extend(config.packages.iter().cloned());
    names.sort();
    names.dedup();
    names
}
