//! Files that keep the distribution's network services away from what a network plugin makes.

use super::{Distribution, Error, File, InstanceFacts, Networking};

/// The files on an instance with this plugin.
pub(super) fn network_files(
    networking: &Networking,
    host: &InstanceFacts,
) -> Result<Vec<File>, Error> {
    let mut files = Vec::new();
    if matches!(
        networking,
        Networking::AmazonVpc | Networking::Calico | Networking::KubeRouter | Networking::Kindnet
    ) {
        // Otherwise it removes routes and rules that are not its own when it starts and when an interface changes.
        files.push(File::new(
            "/etc/systemd/networkd.conf.d/40-kctl-foreign-routes.conf",
            "[Network]\nManageForeignRoutes=no\nManageForeignRoutingPolicyRules=no\n",
        ));
    }
    if networking.attaches_interfaces() {
        let primary = host.primary_interface.as_ref();
        files.extend(attached_files(primary.ok_or(Error::PrimaryInterface)?));
        if host.distribution == Distribution::AmazonLinux {
            // In the place of the distribution's file of that name, which configures further interfaces and makes rules for them.
            let path = "/etc/udev/rules.d/99-vpc-policy-routes.rules";
            files.push(File::new(path, ""));
        }
    }
    Ok(files)
}

/// These plugins name and address the host's ends of pods' interfaces, and attach network interfaces of their own.
fn attached_files(primary: &str) -> Vec<File> {
    // As systemd's own, except for addresses: with its policy, which Ubuntu since 22.04 has for all, pods are not reached.
    let link = "[Match]\nOriginalName=*\n\n[Link]\nNamePolicy=keep kernel database onboard slot path\nAlternativeNamesPolicy=database onboard slot path\nMACAddressPolicy=none\n";
    // Otherwise cloud-init configures interfaces that the plugin attaches.
    let hotplug = "updates:\n  network:\n    when: [boot-new-instance]\n";
    // Otherwise it gives them addresses and a second default route. Names cannot tell: the primary is ens5, ens34 or enp39s0, by family.
    // Not by `Name=!`, which also looks at alternative names (<https://github.com/kubernetes/kops/pull/18642>).
    let unmanaged =
        format!("[Match]\nDriver=ena\nProperty=!INTERFACE={primary}\n\n[Link]\nUnmanaged=yes\n");
    vec![
        File::new("/etc/systemd/network/10-eni-secondary.network", unmanaged),
        File::new("/etc/systemd/network/99-default.link", link),
        File::new(
            "/etc/cloud/cloud.cfg.d/99-disable-network-hotplug.cfg",
            hotplug,
        ),
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
            network_files(&networking, &host).unwrap().len()
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

    #[test]
    fn the_vpc_cni_needs_to_know_the_primary_interface() {
        let unknown = InstanceFacts {
            primary_interface: None,
            ..InstanceFacts::placeholder()
        };
        assert!(network_files(&Networking::AmazonVpc, &unknown).is_err());
        assert!(network_files(&Networking::Kindnet, &unknown).is_ok());
    }
}
