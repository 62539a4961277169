//! The list of API servers: what the Endpoints `kubernetes` say, which the API servers keep themselves, and what is kept of it on the
//! instance.

use anyhow::Context as _;
use host::Host;
use serde::Deserialize;
use std::net::{IpAddr, SocketAddr};

/// Where the API has the list. kubelet's user may read Endpoints, and no EndpointSlices. From the API server's memory, not from etcd.
pub(super) const ENDPOINTS: &str =
    "/api/v1/namespaces/default/endpoints/kubernetes?resourceVersion=0";

/// Where the instance keeps it, for the next boot: one address with its port per line.
const FILE: &str = "/var/lib/kctl/api-servers";

#[derive(Deserialize)]
struct Endpoints {
    #[serde(default)]
    subsets: Vec<Subset>,
}

#[derive(Deserialize)]
struct Subset {
    #[serde(default)]
    addresses: Vec<Address>,
    #[serde(default)]
    ports: Vec<Port>,
}

#[derive(Deserialize)]
struct Address {
    ip: IpAddr,
}

#[derive(Deserialize)]
struct Port {
    port: u16,
}

/// The list after this answer: that of the answer, unless it names nobody.
pub(super) fn next_list(known: &[SocketAddr], answer: &str) -> anyhow::Result<Vec<SocketAddr>> {
    let read: Endpoints =
        serde_json::from_str(answer).context("the Endpoints kubernetes cannot be parsed")?;
    let all = read.subsets.iter().flat_map(|subset| {
        let addresses = subset.addresses.iter();
        addresses.flat_map(|address| {
            let ports = subset.ports.iter();
            ports.map(|port| SocketAddr::new(address.ip, port.port))
        })
    });
    let mut list: Vec<SocketAddr> = all.collect();
    list.sort_unstable();
    list.dedup();
    Ok(if list.is_empty() {
        known.to_vec()
    } else {
        list
    })
}

/// The list that the instance has; empty if it has none. Lines that are no addresses are left out.
pub(super) fn read_list(host: &Host) -> anyhow::Result<Vec<SocketAddr>> {
    let text = host.read_lossy(FILE)?;
    let lines = text.lines();
    Ok(lines.filter_map(|line| line.trim().parse().ok()).collect())
}

/// Keeps the list, unless it is empty or what the instance has.
pub(super) fn write_list(host: &Host, list: &[SocketAddr]) -> anyhow::Result<()> {
    if list.is_empty() || read_list(host)? == list {
        return Ok(());
    }
    let lines: String = list.iter().map(|address| format!("{address}\n")).collect();
    host.write_file(FILE, lines.as_bytes(), 0o644, None)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use host::LocalSystem;
    use proptest::collection::vec;
    use proptest::prelude::*;
    use serde_json::json;
    use std::sync::Arc;

    /// Answers of an API server: Endpoints, also without anybody, and what is none.
    fn answer() -> impl Strategy<Value = String> {
        let addresses = vec(0..9_u8, 0..4).prop_map(|all| {
            let all: Vec<_> = all
                .into_iter()
                .map(|last| json!({"ip": format!("10.0.0.{last}")}))
                .collect();
            json!({"subsets": [{"addresses": all, "ports": [{"name": "https", "port": 443}]}]})
        });
        prop_oneof![
            addresses.prop_map(|answer| answer.to_string()),
            Just(json!({"metadata": {"name": "kubernetes"}}).to_string()),
            Just(json!({"subsets": [{"addresses": [{"ip": "10.0.0.1"}]}]}).to_string()),
            Just(json!({"kind": "Status", "code": 403}).to_string()),
            ".{0,20}",
        ]
    }

    proptest! {
        // Each of them writes files.
        #![proptest_config(ProptestConfig { cases: 32, failure_persistence: None, ..ProptestConfig::default() })]

        /// Over any sequence of answers, with a reboot after each, an instance that knew an API server knows one, and the same as the last
        /// answer that named some.
        #[test]
        fn the_list_never_becomes_empty(answers in vec(answer(), 1..12)) {
            let folder = tempfile::tempdir().unwrap();
            let host = Host::new(folder.path(), Arc::new(LocalSystem::default()));
            let mut expected = vec![SocketAddr::from(([10, 0, 0, 100], 443))];
            write_list(&host, &expected).unwrap();
            for answer in answers {
                let known = read_list(&host).unwrap();
                prop_assert_eq!(&known, &expected);
                if let Ok(list) = next_list(&known, &answer) {
                    prop_assert!(!list.is_empty());
                    write_list(&host, &list).unwrap();
                    expected = list;
                }
            }
        }
    }

    #[test]
    fn the_list_is_that_of_the_endpoints() {
        let answer = json!({
            "kind": "Endpoints",
            "subsets": [{
                "addresses": [{"ip": "172.20.2.7"}, {"ip": "172.20.1.9"}, {"ip": "2001:db8::1"}],
                "notReadyAddresses": [{"ip": "172.20.3.3"}],
                "ports": [{"name": "https", "port": 443, "protocol": "TCP"}],
            }],
        });
        let list = next_list(&[], &answer.to_string()).unwrap();
        let list: Vec<String> = list.iter().map(ToString::to_string).collect();
        assert_eq!(
            list,
            ["172.20.1.9:443", "172.20.2.7:443", "[2001:db8::1]:443"]
        );
    }

    #[test]
    fn what_is_left_of_a_damaged_file_is_used() {
        let folder = tempfile::tempdir().unwrap();
        let host = Host::new(folder.path(), Arc::new(LocalSystem::default()));
        assert!(read_list(&host).unwrap().is_empty());
        let text = b"10.0.0.1:443\nnonsense\xff\n[2001:db8::1]:443\n10.0";
        host.write_file(FILE, text, 0o644, None).unwrap();
        let list = read_list(&host).unwrap();
        let list: Vec<String> = list.iter().map(ToString::to_string).collect();
        assert_eq!(list, ["10.0.0.1:443", "[2001:db8::1]:443"]);
        let next = [SocketAddr::from(([10, 0, 0, 2], 443))];
        write_list(&host, &next).unwrap();
        assert_eq!(read_list(&host).unwrap(), next);
    }
}
