//! Computes the DNS names that follow the control planes, and the changes that make them lead to ready API servers.

use aws_client::dns::{AddressFamily, AddressRecord, DnsRecord, RecordName};
use aws_client::ec2_query::Instance;
use node::config::NodeConfig;
use node::names::dns;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

/// TTL of records, seconds.
const TTL: i64 = 60;

/// kOps' pod annotations with names to publish, and the kind of address for each.
const ANNOTATIONS: [(&str, AddressKind); 2] = [
    ("dns.alpha.kubernetes.io/internal", AddressKind::Private),
    ("dns.alpha.kubernetes.io/external", AddressKind::Public),
];

/// Kind of an instance's address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddressKind {
    Private,
    Public,
}

/// A DNS name that follows the control planes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FollowedName {
    /// The record set with its addresses.
    pub record: RecordName,
    /// Kind of the published addresses.
    pub kind: AddressKind,
}

/// Current records of the zone by name.
pub type PublishedRecords = BTreeMap<RecordName, DnsRecord>;

/// The names of a cluster with a hosted zone: those of the API server, unless a load balancer has them, and the bootstrap endpoint.
/// On IPv6, internal names have IPv6 addresses only. An instance's IPv6 address is its public one too.
pub fn followed_names(config: &NodeConfig) -> Vec<FollowedName> {
    let pods = config
        .control_plane
        .iter()
        .flat_map(|control_plane| control_plane.static_pods.values());
    let mut all: Vec<FollowedName> = Vec::new();
    for pod in pods {
        for (annotation, which) in ANNOTATIONS {
            let names = pod.metadata.annotations.get(annotation);
            let names = names.map(String::as_str).unwrap_or_default().split(',');
            let names = names.map(str::trim).filter(|name| !name.is_empty());
            all.extend(names.flat_map(|name| record_sets(config, name, which)));
        }
    }
    let bootstrap = dns::bootstrap_name(&config.cluster);
    all.extend(record_sets(config, &bootstrap, AddressKind::Private));
    all
}

/// The family of the addresses that instances of the cluster call each other at.
pub(crate) fn address_family(config: &NodeConfig) -> AddressFamily {
    if config.ipv6 {
        AddressFamily::V6
    } else {
        AddressFamily::V4
    }
}

fn record_sets(config: &NodeConfig, name: &str, kind: AddressKind) -> Vec<FollowedName> {
    let followed = |family, kind| FollowedName {
        record: RecordName::new(name, family),
        kind,
    };
    let own = followed(address_family(config), AddressKind::Private);
    match (kind, config.ipv6) {
        (AddressKind::Private, _) => vec![own],
        (AddressKind::Public, false) => vec![followed(AddressFamily::V4, kind)],
        (AddressKind::Public, true) => vec![followed(AddressFamily::V4, kind), own],
    }
}

/// The changes that give the names the addresses of ready API servers. `ready` contains private addresses. An address that EC2 does
/// not confirm as a control plane's is never added to a name, because anyone who can write that list could redirect clients; one
/// that a name has already stays while it is ready, because another protokube may see newer data of EC2. A name is not changed if
/// it is up to date, if no address is left, if EC2 does not show the public address of a ready instance yet, or if it is an alias,
/// for example of a load balancer.
pub fn needed_changes(
    wanted: &[FollowedName],
    ready: &BTreeSet<IpAddr>,
    instances: &[Instance],
    published: &PublishedRecords,
) -> Vec<AddressRecord> {
    let change = |wanted: &FollowedName| {
        let addresses = match wanted.kind {
            AddressKind::Private => {
                private_addresses(ready, instances, published.get(&wanted.record))
            }
            AddressKind::Public => public_addresses(ready, instances)?,
        };
        change_of_name(&wanted.record, addresses, published)
    };
    wanted.iter().filter_map(change).collect()
}

/// The changes that give the names of an instance's etcd members its address. A name that is an alias is left alone.
pub(super) fn needed_member_changes(
    names: &BTreeSet<String>,
    address: IpAddr,
    published: &PublishedRecords,
) -> Vec<AddressRecord> {
    let change = |name: &String| {
        let record = RecordName::new(name, AddressFamily::of(address));
        change_of_name(&record, BTreeSet::from([address]), published)
    };
    names.iter().filter_map(change).collect()
}

/// The record with these addresses; `None` if there is no address, or the name has them already or is an alias.
fn change_of_name(
    name: &RecordName,
    addresses: BTreeSet<IpAddr>,
    published: &PublishedRecords,
) -> Option<AddressRecord> {
    let settled = match published.get(name) {
        Some(DnsRecord::Alias) => true,
        Some(DnsRecord::Addresses(found)) => found.addresses == addresses && found.ttl == TTL,
        None => false,
    };
    (!addresses.is_empty() && !settled).then(|| AddressRecord {
        name: name.clone(),
        addresses,
        ttl: TTL,
    })
}

/// The instance with this private address or IPv6 address. Not any of its addresses: with some network plugins pods have those.
pub(crate) fn instance_at(address: IpAddr, instances: &[Instance]) -> Option<&Instance> {
    let mut instances = instances.iter();
    instances.find(|instance| {
        let mut own = instance.private_ip.iter().chain(&instance.ipv6_address);
        own.any(|one| one.parse() == Ok(address))
    })
}

/// The ready addresses that EC2 confirms or that the name has already.
fn private_addresses(
    ready: &BTreeSet<IpAddr>,
    instances: &[Instance],
    found: Option<&DnsRecord>,
) -> BTreeSet<IpAddr> {
    let has = |address: &IpAddr| match found {
        Some(DnsRecord::Addresses(found)) => found.addresses.contains(address),
        _ => false,
    };
    let good = |address: &&IpAddr| instance_at(**address, instances).is_some() || has(address);
    ready.iter().filter(good).copied().collect()
}

/// The public addresses of the ready instances that have one; `None` if EC2 does not know one of the instances.
fn public_addresses(ready: &BTreeSet<IpAddr>, instances: &[Instance]) -> Option<BTreeSet<IpAddr>> {
    let known: Option<Vec<&Instance>> = ready
        .iter()
        .map(|address| instance_at(*address, instances))
        .collect();
    let public = known?.into_iter();
    Some(
        public
            .filter_map(|instance| instance.public_ip.as_deref()?.parse().ok())
            .collect(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn instance_number(number: u8, public: bool) -> Instance {
        Instance {
            id: format!("i-{number}"),
            state: "running".into(),
            private_ip: Some(format!("10.0.0.{number}")),
            public_ip: public.then(|| format!("198.51.100.{number}")),
            zone: "z".into(),
            ..Instance::default()
        }
    }

    fn private_address(number: u8) -> IpAddr {
        IpAddr::from([10, 0, 0, number])
    }

    fn record(name: &str) -> RecordName {
        RecordName::new(name, AddressFamily::V4)
    }

    fn sample_names() -> Vec<FollowedName> {
        [
            ("api", AddressKind::Public),
            ("api.internal", AddressKind::Private),
        ]
        .map(|(name, which)| FollowedName {
            record: record(name),
            kind: which,
        })
        .to_vec()
    }

    fn any_found() -> impl Strategy<Value = Option<DnsRecord>> {
        let addresses = proptest::collection::btree_set((0_u8..4).prop_map(private_address), 1..3);
        let addresses =
            (addresses, prop_oneof![Just(TTL), Just(10)]).prop_map(|(addresses, ttl)| {
                DnsRecord::Addresses(AddressRecord {
                    name: record("api.internal"),
                    addresses,
                    ttl,
                })
            });
        prop_oneof![
            Just(None),
            Just(Some(DnsRecord::Alias)),
            addresses.prop_map(Some)
        ]
    }

    proptest! {
        #[test]
        fn names_lead_to_ready_api_servers_come_to_rest_and_never_lose_their_last_address(
            ready in proptest::collection::btree_set((1_u8..4).prop_map(private_address), 0..4),
            known in proptest::collection::btree_map(1_u8..4, any::<bool>(), 0..4),
            before in any_found(),
        ) {
            let instances: Vec<Instance> = known.iter().map(|(number, public)| instance_number(*number, *public)).collect();
            let mut published: PublishedRecords = before.into_iter().map(|found| (record("api.internal"), found)).collect();
            for change in needed_changes(&sample_names(), &ready, &instances, &published) {
                prop_assert!(!change.addresses.is_empty());
                for address in &change.addresses {
                    let IpAddr::V4(v4) = address else { panic!("{address}") };
                    let [.., number] = v4.octets();
                    prop_assert!(ready.contains(&private_address(number)), "{address} is not ready");
                    let had = match published.get(&change.name) {
                        Some(DnsRecord::Addresses(found)) => found.addresses.contains(address),
                        _ => false,
                    };
                    prop_assert!(had || change.name.name == "api" || known.contains_key(&number), "{address} is no instance's");
                }
                let before = published.insert(change.name.clone(), DnsRecord::Addresses(change));
                prop_assert!(before != Some(DnsRecord::Alias), "a load balancer's name");
            }
            prop_assert_eq!(needed_changes(&sample_names(), &ready, &instances, &published), vec![]);
        }
    }

    #[test]
    fn a_name_of_both_families_has_the_addresses_of_each() {
        let both = |number: u8| Instance {
            ipv6_address: Some(format!("2001:db8:0:0::{number}")),
            ..instance_number(number, true)
        };
        let v6 = |name: &str| FollowedName {
            record: RecordName::new(name, AddressFamily::V6),
            kind: AddressKind::Private,
        };
        let [public, _] = <[FollowedName; 2]>::try_from(sample_names()).unwrap();
        let wanted = [public, v6("api"), v6("api.internal")];
        let ready = BTreeSet::from(["2001:db8::1".parse().unwrap()]);
        let mut published = PublishedRecords::new();
        let changes = needed_changes(&wanted, &ready, &[both(1), both(2)], &published);
        let line = |one: &AddressRecord| format!("{} {:?}", one.name, one.addresses);
        assert_eq!(
            changes.iter().map(line).collect::<Vec<_>>(),
            [
                "api {198.51.100.1}",
                "api {2001:db8::1}",
                "api.internal {2001:db8::1}"
            ]
        );
        for change in changes {
            published.insert(change.name.clone(), DnsRecord::Addresses(change));
        }
        assert_eq!(
            needed_changes(&wanted, &ready, &[both(1), both(2)], &published),
            vec![]
        );
    }

    #[test]
    fn only_machines_whose_api_server_is_ready_are_published() {
        let instances = [
            instance_number(1, true),
            instance_number(2, true),
            instance_number(3, false),
        ];
        let planned_names = |ready: &[u8]| -> Vec<String> {
            let ready = ready
                .iter()
                .map(|number| private_address(*number))
                .collect();
            needed_changes(
                &sample_names(),
                &ready,
                &instances,
                &PublishedRecords::new(),
            )
            .iter()
            .map(|one| format!("{} {:?}", one.name, one.addresses))
            .collect()
        };
        assert_eq!(
            planned_names(&[1, 3]),
            ["api {198.51.100.1}", "api.internal {10.0.0.1, 10.0.0.3}"]
        );
        // An address that EC2 does not show is not published.
        assert_eq!(planned_names(&[1, 9]), ["api.internal {10.0.0.1}"]);
        assert_eq!(planned_names(&[9]), [""; 0]);
        assert_eq!(planned_names(&[]), [""; 0]);
    }
}
