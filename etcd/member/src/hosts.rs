//! protokube's block in `/etc/hosts` with the names of etcd members.

use node::host::HostsBlock;
use std::collections::BTreeMap;
use std::net::IpAddr;

/// Path of the file.
pub const FILE: &str = "/etc/hosts";

/// The block for these names.
pub fn hosts_block(names: &BTreeMap<String, IpAddr>) -> HostsBlock {
    let line = |(name, address): (&String, &IpAddr)| format!("{address} {name}");
    HostsBlock {
        path: FILE.to_owned(),
        keeper: "protokube".to_owned(),
        lines: names.iter().map(line).collect(),
    }
}

/// Parses the names in protokube's block of a file.
pub fn parse_entries(text: &str) -> BTreeMap<String, IpAddr> {
    let lines = hosts_block(&BTreeMap::new())
        .lines_in(text)
        .unwrap_or_default();
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
        let text = hosts_block(&names).insert_into("127.0.0.1 localhost\n");
        assert_eq!(parse_entries(&text), names);
        assert_eq!(parse_entries("127.0.0.1 localhost\n"), BTreeMap::new());
    }
}
