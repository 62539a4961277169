//! Extracts facts about the instance from the text of system files.

use anyhow::bail;
use node::config::Distribution;
use rustix::fs::Access;
use std::path::Path;

/// Bit of CAP_SYS_RESOURCE, which runc needs to lower an OOM score.
const CAP_SYS_RESOURCE: u64 = 1 << 24;

/// The distribution in the text of `/etc/os-release`; fails for unsupported ones.
pub(crate) fn parse_distribution(os_release: &str) -> anyhow::Result<Distribution> {
    let value = |name: &str| {
        let lines = os_release.lines().filter_map(|line| line.split_once('='));
        let mut values = lines
            .filter(|(key, _)| *key == name)
            .map(|(_, value)| value.trim_matches(['"', '\'']));
        values.next().unwrap_or_default().to_owned()
    };
    let (id, like) = (value("ID"), value("ID_LIKE"));
    let mut names = std::iter::once(id.as_str()).chain(like.split_whitespace());
    match names.find_map(|name| match name {
        "debian" | "ubuntu" => Some(Distribution::Debian),
        "amzn" => Some(Distribution::AmazonLinux),
        _ => None,
    }) {
        Some(distribution) => Ok(distribution),
        None => bail!(
            "{} is not supported: use an image of Debian, Ubuntu or Amazon Linux",
            value("PRETTY_NAME")
        ),
    }
}

/// True if the bounding set in the text of `/proc/self/status` allows processes to lower their OOM score, or if it is missing.
pub(crate) fn may_lower_oom_score(status: &str) -> bool {
    let bounding = status.lines().find_map(|line| line.strip_prefix("CapBnd:"));
    let bits = bounding.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok());
    bits.is_none_or(|bits| bits & CAP_SYS_RESOURCE != 0)
}

/// True if a kernel parameter exists but is not writable, as for parameters of the host in another network namespace.
pub(crate) fn is_fixed(parameter: &Path) -> bool {
    parameter.exists() && rustix::fs::access(parameter, Access::WRITE_OK).is_err()
}

/// Name of the one network interface with a device that has this hardware address. Interfaces without a device, such as bridges, can
/// have the address of another one.
pub(crate) fn find_interface(interfaces: &Path, hardware_address: &str) -> Option<String> {
    let entries = std::fs::read_dir(interfaces).ok()?;
    let mut found = entries.flatten().filter(|entry| {
        let address = std::fs::read_to_string(entry.path().join("address")).unwrap_or_default();
        entry.path().join("device").exists()
            && address.trim().eq_ignore_ascii_case(hardware_address.trim())
    });
    let first = found.next()?.file_name().into_string().ok()?;
    found.next().is_none().then_some(first)
}

/// Network interfaces with a device for which the kernel takes routes from router advertisements, sorted.
pub(crate) fn advertised_interfaces(root: &Path) -> Vec<String> {
    let interfaces = std::fs::read_dir(root.join("sys/class/net"));
    let entries = interfaces.into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| {
        let name = entry.file_name().into_string().ok()?;
        let accepts = root.join(format!("proc/sys/net/ipv6/conf/{name}/accept_ra"));
        let accepts = std::fs::read_to_string(accepts).ok()?;
        (accepts.trim() != "0" && entry.path().join("device").exists()).then_some(name)
    });
    let mut names: Vec<String> = names.collect();
    names.sort_unstable();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interfaces_whose_routes_come_from_the_kernel_are_found() {
        let root = tempfile::tempdir().unwrap();
        let add = |name: &str, device: bool, accepts: &str| {
            let own = root.path().join("sys/class/net").join(name);
            std::fs::create_dir_all(own).unwrap();
            if device {
                let device = root.path().join(format!("sys/class/net/{name}/device"));
                std::fs::create_dir(device).unwrap();
            }
            let settings = root.path().join("proc/sys/net/ipv6/conf").join(name);
            std::fs::create_dir_all(&settings).unwrap();
            std::fs::write(settings.join("accept_ra"), accepts).unwrap();
        };
        assert_eq!(advertised_interfaces(root.path()), [""; 0]);
        add("ens6", true, "2\n");
        add("ens5", true, "1\n");
        // systemd-networkd takes them itself.
        add("ens7", true, "0\n");
        add("docker0", false, "1\n");
        assert_eq!(advertised_interfaces(root.path()), ["ens5", "ens6"]);
    }

    #[test]
    fn distributions_are_known_by_their_own_name_or_their_parents() {
        let distribution = |text: &str| parse_distribution(text).ok();
        assert_eq!(
            distribution("ID=debian\nVERSION_ID=\"13\""),
            Some(Distribution::Debian)
        );
        assert_eq!(
            distribution("ID=ubuntu\nID_LIKE=debian"),
            Some(Distribution::Debian)
        );
        assert_eq!(
            distribution("ID=\"amzn\"\nID_LIKE=\"fedora\""),
            Some(Distribution::AmazonLinux)
        );
        assert_eq!(
            distribution("ID=pop\nID_LIKE=\"ubuntu debian\""),
            Some(Distribution::Debian)
        );
        let error = parse_distribution("ID=arch\nPRETTY_NAME=\"Arch Linux\"")
            .unwrap_err()
            .to_string();
        assert!(error.contains("Arch Linux"), "{error}");
    }

    #[test]
    fn a_missing_capability_is_seen() {
        assert!(may_lower_oom_score("Name:\tx\nCapBnd:\t000001ffffffffff\n"));
        assert!(!may_lower_oom_score("CapBnd:\t000001fffeffffff\n"));
        assert!(may_lower_oom_score(""));
    }

    #[test]
    fn the_primary_interface_is_the_one_with_a_device() {
        let all = tempfile::tempdir().unwrap();
        let make = |name: &str, address: &str, device: bool| {
            let folder = all.path().join(name);
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(folder.join("address"), format!("{address}\n")).unwrap();
            if device {
                std::fs::create_dir_all(folder.join("device")).unwrap();
            }
        };
        make("br0", "0a:00:00:00:00:01", false);
        make("ens34", "0a:00:00:00:00:01", true);
        make("ens35", "0a:00:00:00:00:02", true);
        let find = |address| find_interface(all.path(), address);
        assert_eq!(find("0A:00:00:00:00:01").as_deref(), Some("ens34"));
        assert_eq!(find("0a:00:00:00:00:03"), None);
        make("ens36", "0a:00:00:00:00:02", true);
        assert_eq!(find("0a:00:00:00:00:02"), None);
    }
}
