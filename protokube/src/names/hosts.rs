//! protokube's block in `/etc/hosts`: names of etcd's members.

use node::host::HostsBlock;
use std::collections::BTreeMap;
use std::net::IpAddr;

/// The file.
pub(super) const FILE: &str = "/etc/hosts";

/// The block with these names.
pub(super) fn block(names: &BTreeMap<String, IpAddr>) -> HostsBlock {
    let line = |(name, address): (&String, &IpAddr)| format!("{address} {name}");
    HostsBlock {
        path: FILE.to_owned(),
        keeper: "protokube".to_owned(),
        lines: names.iter().map(line).collect(),
    }
}

/// The names in the block of the file's text.
pub fn entries(text: &str) -> BTreeMap<String, IpAddr> {
    let lines = block(&BTreeMap::new()).lines_in(text).unwrap_or_default();
    let entry = |line: &String| {
        let (address, name) = line.split_once(' ')?;
        Some((name.trim().to_owned(), address.parse().ok()?))
    };
    lines.iter().filter_map(entry).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_were_written() {
        let pair = |(name, octets): (&str, [u8; 4])| (name.to_owned(), IpAddr::from(octets));
        let names = [("etcd-a", [10, 0, 0, 1]), ("etcd-b", [10, 0, 0, 2])].map(pair);
        let names = BTreeMap::from(names);
        let text = block(&names).written_into("127.0.0.1 localhost\n");
        assert_eq!(entries(&text), names);
        assert_eq!(entries("127.0.0.1 localhost\n"), BTreeMap::new());
    }
}
