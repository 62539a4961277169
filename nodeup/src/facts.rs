//! Extracts facts about the instance from the text of system files.

use anyhow::bail;
use node::config::Distribution;
use rustix::fs::Access;
use std::fs;
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

/// The name of the network interface with this MAC address, by a folder as `/sys/class/net`.
pub(crate) fn find_interface(folder: &Path, mac: &str) -> Option<String> {
    let interfaces = fs::read_dir(folder).ok()?.flatten();
    let has_mac = |one: &fs::DirEntry| {
        let address = fs::read_to_string(one.path().join("address"));
        address.is_ok_and(|address| address.trim().eq_ignore_ascii_case(mac))
    };
    let mut found = interfaces.filter(has_mac);
    found.next()?.file_name().into_string().ok()
}

/// True if a kernel parameter exists but is not writable, as for parameters of the host in another network namespace.
pub(crate) fn is_fixed(parameter: &Path) -> bool {
    parameter.exists() && rustix::fs::access(parameter, Access::WRITE_OK).is_err()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interface_is_found_by_its_address() {
        let folder = tempfile::tempdir().unwrap();
        for (name, mac) in [("lo", "00:00:00:00:00:00"), ("ens5", "0a:FF:00:00:00:01")] {
            let interface = folder.path().join(name);
            fs::create_dir(&interface).unwrap();
            fs::write(interface.join("address"), format!("{mac}\n")).unwrap();
        }
        let find = |mac| find_interface(folder.path(), mac);
        assert_eq!(find("0a:ff:00:00:00:01").as_deref(), Some("ens5"));
        assert_eq!(find("0a:ff:00:00:00:02"), None);
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
}
