//! Which images nodeup can make a node of, by what EC2 says of them before anything is launched.

/// What nodeup knows: user data needs Python 3.8 and cloud-init, nodeup apt or dnf.
pub const KNOWN: &str =
    "Ubuntu 22.04 and 24.04, Debian 12 and 13, Amazon Linux 2023, and images made from them";

/// Publishers of other systems, by account: kOps' list of owners (docs/operations/images.md of its repository), and the publishers' pages.
const PUBLISHERS: [(&str, &str); 6] = [
    ("013907871322", "SUSE Linux"),
    ("075585003325", "Flatcar"),
    ("125523088429", "CentOS or Fedora"),
    ("309956199498", "Red Hat Enterprise Linux"),
    ("764336703387", "AlmaLinux"),
    ("792107900819", "Rocky Linux"),
];

/// How the names of images begin that hold other systems, whoever owns them: copies keep the name.
const NAMES: [(&str, &str); 18] = [
    ("almalinux", "AlmaLinux"),
    ("amzn-ami-", "Amazon Linux 1"),
    ("amzn2-", "Amazon Linux 2"),
    ("bottlerocket", "Bottlerocket"),
    ("centos", "CentOS"),
    ("debian-9-", "Debian 9"),
    ("debian-10-", "Debian 10"),
    ("fedora", "Fedora"),
    ("flatcar", "Flatcar"),
    ("opensuse", "openSUSE"),
    ("rhel", "Red Hat Enterprise Linux"),
    ("rocky", "Rocky Linux"),
    ("suse", "SUSE Linux"),
    ("talos", "Talos"),
    ("ubuntu/images/hvm-ssd/ubuntu-bionic", "Ubuntu 18.04"),
    ("ubuntu/images/hvm-ssd/ubuntu-trusty", "Ubuntu 14.04"),
    ("ubuntu/images/hvm-ssd/ubuntu-xenial", "Ubuntu 16.04"),
    ("windows", "Windows"),
];

/// `PlatformDetails` of what nodeup can run on (EC2 User Guide, "AMI billing information fields"): all others are billed
/// systems of another kind.
const PLATFORMS: [&str; 2] = ["Linux/UNIX", "Ubuntu Pro"];

/// The system in an image that nodeup makes no node of; `None`: it does, or nobody can tell before it boots.
pub fn unsupported_system(owner: &str, name: &str, platform: &str) -> Option<String> {
    let name = name.to_lowercase();
    let named = NAMES.iter().find(|(begin, _)| name.starts_with(begin));
    let published = PUBLISHERS.iter().find(|(account, _)| *account == owner);
    let other = !platform.is_empty() && !PLATFORMS.iter().any(|known| platform.starts_with(known));
    named
        .or(published)
        .map(|(_, system)| (*system).to_owned())
        .or_else(|| other.then(|| platform.to_owned()))
}

/// Publishers of systems that nodeup makes nodes of, by account: those of kOps' list of owners.
const KNOWN_PUBLISHERS: [(&str, &str); 3] = [
    ("099720109477", "Ubuntu"),
    ("136693071363", "Debian"),
    ("137112412989", "Amazon Linux"),
];

/// How the names of their images begin.
const KNOWN_NAMES: [(&str, &str); 4] = [
    ("al2023-", "Amazon Linux"),
    ("debian-", "Debian"),
    ("ubuntu-", "Ubuntu"),
    ("ubuntu/", "Ubuntu"),
];

/// Which of the systems that nodeup makes nodes of an image holds; `None`: neither name nor owner tells. The name may have the owner
/// in front.
pub fn known_system(owner: &str, name: &str) -> Option<&'static str> {
    let bare = name
        .strip_prefix(owner)
        .and_then(|rest| rest.strip_prefix('/'));
    let bare = bare.unwrap_or(name).to_lowercase();
    let named = KNOWN_NAMES
        .iter()
        .find(|(begin, _)| bare.starts_with(begin));
    let published = KNOWN_PUBLISHERS
        .iter()
        .find(|(account, _)| *account == owner);
    named.or(published).map(|(_, system)| *system)
}

#[cfg(test)]
mod tests {
    use super::{known_system, unsupported_system};

    #[test]
    fn known_systems_are_told_by_name_or_owner() {
        for (owner, name, system) in [
            (
                "099720109477",
                "099720109477/ubuntu/images/hvm-ssd-gp3/ubuntu-noble-24.04-amd64-server-20260714",
                Some("Ubuntu"),
            ),
            ("123456789012", "ubuntu-pro-server/images/x", Some("Ubuntu")),
            (
                "136693071363",
                "debian-13-amd64-20260713-2537",
                Some("Debian"),
            ),
            ("137112412989", "minimal", Some("Amazon Linux")),
            (
                "",
                "al2023-ami-2023.12.20260710.0-kernel-6.1-x86_64",
                Some("Amazon Linux"),
            ),
            ("123456789012", "123456789012/our-golden-image", None),
            ("", "ami-1", None),
        ] {
            assert_eq!(known_system(owner, name), system, "{name}");
        }
    }

    #[test]
    fn other_systems_are_known_by_name_owner_or_platform() {
        for (owner, name, platform, system) in [
            (
                "099720109477",
                "ubuntu/images/hvm-ssd-gp3/ubuntu-noble-24.04-amd64-server-20260714",
                "Linux/UNIX",
                None,
            ),
            (
                "099720109477",
                "ubuntu-pro-server/images/hvm-ssd-gp3/ubuntu-noble-24.04-amd64-pro-server-20260714",
                "Ubuntu Pro Linux",
                None,
            ),
            (
                "136693071363",
                "debian-12-amd64-20260713-2537",
                "Linux/UNIX",
                None,
            ),
            (
                "137112412989",
                "al2023-ami-2023.12.20260710.0-kernel-6.1-x86_64",
                "Linux/UNIX",
                None,
            ),
            ("123456789012", "our-golden-image", "Linux/UNIX", None),
            ("123456789012", "our-golden-image", "", None),
            (
                "137112412989",
                "amzn2-ami-kernel-5.10-hvm-2.0.20260710.0-x86_64-gp2",
                "Linux/UNIX",
                Some("Amazon Linux 2"),
            ),
            (
                "075585003325",
                "Flatcar-stable-4230.2.0-hvm",
                "Linux/UNIX",
                Some("Flatcar"),
            ),
            (
                "123456789012",
                "Rocky-9-EC2-Base-9.6-20260710.0.x86_64",
                "Linux/UNIX",
                Some("Rocky Linux"),
            ),
            (
                "309956199498",
                "hardened-9",
                "Red Hat Enterprise Linux",
                Some("Red Hat Enterprise Linux"),
            ),
            (
                "123456789012",
                "our-hardened-image",
                "Red Hat Enterprise Linux",
                Some("Red Hat Enterprise Linux"),
            ),
            ("123456789012", "our-image", "Windows", Some("Windows")),
        ] {
            assert_eq!(
                unsupported_system(owner, name, platform).as_deref(),
                system,
                "{name}"
            );
        }
    }
}
