//! Files that keep the distribution's network services away from what a network plugin makes.

use super::{Distribution, File, InstanceFacts, Networking};

/// The files on an instance with this plugin.
pub(super) fn network_files(networking: &Networking, host: &InstanceFacts) -> Vec<File> {
    let mut files = Vec::new();
    if matches!(
        networking,
        Networking::AmazonVpc | Networking::KubeRouter | Networking::Kindnet
    ) {
        // Otherwise it removes routes and rules that are not its own when it starts and when an interface changes.
        files.push(File::new(
            "/etc/systemd/networkd.conf.d/40-kctl-foreign-routes.conf",
            "[Network]\nManageForeignRoutes=no\nManageForeignRoutingPolicyRules=no\n",
        ));
    }
    if networking.attaches_interfaces() {
        files.extend(vpc_files());
        match host.distribution {
            Distribution::AmazonLinux => files.extend(amazon_linux_files()),
            Distribution::Debian => files.extend(host.interface.as_deref().map(debian_file)),
        }
    }
    files
}

/// These plugins name and address the host's ends of pods' interfaces, and attach network interfaces of their own.
fn vpc_files() -> Vec<File> {
    // As systemd's own, except for addresses: with its policy, which Ubuntu since 22.04 has for all, pods are not reached.
    let link = "[Match]\nOriginalName=*\n\n[Link]\nNamePolicy=keep kernel database onboard slot path\nAlternativeNamesPolicy=database onboard slot path\nMACAddressPolicy=none\n";
    // Otherwise cloud-init configures interfaces that the plugin attaches.
    let hotplug = "updates:\n  network:\n    when: [boot-new-instance]\n";
    vec![
        File::new("/etc/systemd/network/99-default.link", link),
        File::new(
            "/etc/cloud/cloud.cfg.d/99-disable-network-hotplug.cfg",
            hotplug,
        ),
    ]
}

/// Debian asks DHCP for addresses of every interface (`all-en` of its netplan), which brings a second default route. All but the first
/// interface stay as they are; what is no device has a kind.
fn debian_file(first: &str) -> File {
    let others = format!("[Match]\nType=ether\nKind=!*\nName=!{first}\n\n[Link]\nUnmanaged=yes\n");
    File::new("/etc/systemd/network/05-kctl-attached.network", others)
}

/// Amazon Linux configures further interfaces and makes rules for them by itself.
fn amazon_linux_files() -> Vec<File> {
    let unmanaged = "[Match]\nName=ens[6-9]* ens[1-9][0-9]*\n\n[Link]\nUnmanaged=yes\n";
    vec![
        // In the place of the distribution's file of that name.
        File::new("/etc/udev/rules.d/99-vpc-policy-routes.rules", ""),
        File::new("/etc/systemd/network/10-eni-secondary.network", unmanaged),
    ]
}

#[cfg(test)]
mod tests {
    use super::network_files;
    use crate::config::{Distribution, InstanceFacts, Networking};

    #[test]
    fn each_plugin_has_its_files() {
        let count = |networking: Networking, distribution| {
            let host = InstanceFacts {
                distribution,
                ..InstanceFacts::placeholder()
            };
            network_files(&networking, &host).len()
        };
        assert_eq!(count(Networking::Cni, Distribution::AmazonLinux), 0);
        assert_eq!(count(Networking::Kindnet, Distribution::AmazonLinux), 1);
        assert_eq!(count(Networking::KubeRouter, Distribution::Debian), 1);
        assert_eq!(count(Networking::AmazonVpc, Distribution::Debian), 4);
        let cilium = |in_vpc| Networking::Cilium {
            digest: String::new(),
            in_vpc,
        };
        assert_eq!(count(cilium(false), Distribution::AmazonLinux), 0);
        assert_eq!(count(cilium(true), Distribution::Debian), 3);
        assert_eq!(count(cilium(true), Distribution::AmazonLinux), 4);
        assert_eq!(count(Networking::AmazonVpc, Distribution::AmazonLinux), 5);
    }
}
