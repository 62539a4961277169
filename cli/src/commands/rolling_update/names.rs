//! Whether names of the cluster lead to a control plane that is being replaced. protokube withdraws its addresses once its Node is
//! marked; clients may use them for the record's TTL more.

use aws_client::Clients;
use aws_client::dns::{AddressFamily, DnsRecord, RecordName, read_addresses};
use engine::Failure;
use fleet::{Instance, InstanceStatus};
use rolling_update::Traffic;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

/// Seconds in which a protokube withdraws an address. One of a release before that never does.
const PATIENCE: i64 = 120;

/// Seconds to wait if the TTL is not known because the record was never seen with the address.
const TTL: i64 = 60;

/// The names in its hosted zone by which clients reach a cluster.
#[derive(Debug)]
pub struct ClusterNames {
    /// Id of the hosted zone.
    zone: String,
    names: Vec<RecordName>,
    seen: BTreeMap<String, SeenAddress>,
}

/// What was seen of the addresses of one instance, in seconds since 1970.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct SeenAddress {
    /// Since when they are looked at.
    first: i64,
    /// Since when no name has them.
    gone: Option<i64>,
    ttl: Option<i64>,
}

impl ClusterNames {
    /// `ipv6`: instances call each other at IPv6 addresses.
    pub fn new(zone: &str, names: &BTreeSet<String>, ipv6: bool) -> Self {
        let families = [AddressFamily::V4, AddressFamily::V6].into_iter();
        let families = families.filter(|family| ipv6 || *family == AddressFamily::V4);
        let records =
            families.flat_map(|family| names.iter().map(move |name| RecordName::new(name, family)));
        Self {
            zone: zone.to_owned(),
            names: records.collect(),
            seen: BTreeMap::new(),
        }
    }

    /// Whether names lead to these control planes, which are being replaced. One call for each record set.
    pub async fn observe(
        &mut self,
        clients: &Clients,
        replaced: &[&InstanceStatus],
        now: i64,
    ) -> Result<BTreeMap<String, Traffic>, Failure> {
        if replaced.is_empty() {
            self.seen.clear();
            return Ok(BTreeMap::new());
        }
        let records = read_addresses(clients, &self.zone, &self.names).await?;
        let mut traffic = BTreeMap::new();
        for status in replaced {
            let id = &status.instance.id;
            let ttl = published_ttl(&records, &status.instance);
            let seen = self.seen.entry(id.clone()).or_insert(SeenAddress {
                first: now,
                ..SeenAddress::default()
            });
            traffic.insert(id.clone(), seen.update(ttl, now));
        }
        Ok(traffic)
    }
}

impl SeenAddress {
    /// The traffic after another look: `published` is the TTL of a record with an address of the instance.
    fn update(&mut self, published: Option<i64>, now: i64) -> Traffic {
        if published.is_some() {
            (self.ttl, self.gone) = (published, None);
            return if now - self.first < PATIENCE {
                Traffic::Served
            } else {
                Traffic::Withdrawn
            };
        }
        let gone = *self.gone.get_or_insert(now);
        if now - gone < self.ttl.unwrap_or(TTL) {
            Traffic::Draining
        } else {
            Traffic::Withdrawn
        }
    }
}

/// The longest TTL of the records that have an address of the instance.
fn published_ttl(records: &BTreeMap<RecordName, DnsRecord>, instance: &Instance) -> Option<i64> {
    let own = [
        &instance.private_ip,
        &instance.public_ip,
        &instance.ipv6_address,
    ];
    let own: Vec<IpAddr> = own
        .into_iter()
        .flatten()
        .filter_map(|address| address.parse().ok())
        .collect();
    let records = records.values().filter_map(|record| match record {
        DnsRecord::Addresses(record) => Some(record),
        DnsRecord::Alias => None,
    });
    let with_own = records.filter(|record| own.iter().any(|one| record.addresses.contains(one)));
    with_own.map(|record| record.ttl).max()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_serves_until_it_is_withdrawn_and_its_ttl_is_over() {
        let mut seen = SeenAddress {
            first: 1000,
            ..SeenAddress::default()
        };
        assert_eq!(seen.update(Some(30), 1000), Traffic::Served);
        assert_eq!(seen.update(None, 1010), Traffic::Draining);
        assert_eq!(seen.update(None, 1039), Traffic::Draining);
        assert_eq!(seen.update(None, 1040), Traffic::Withdrawn);
        // Published again, by a protokube that had not seen the mark.
        assert_eq!(seen.update(Some(30), 1050), Traffic::Served);
        // A release that never withdraws it keeps nobody waiting.
        assert_eq!(seen.update(Some(30), 1120), Traffic::Withdrawn);
    }
}
