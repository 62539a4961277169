//! Computes the DNS names that follow the control planes, and the changes that make them lead to ready API servers.

use aws_client::dns::{AddressRecord, DnsRecord};
use aws_client::ec2_query::Instance;
use node::config::NodeConfig;
use node::names::dns;
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

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
    /// Name without trailing dot.
    pub name: String,
    /// Kind of the published addresses.
    pub kind: AddressKind,
}

/// Current records of the zone by name.
pub type PublishedRecords = BTreeMap<String, DnsRecord>;

/// The names of a cluster with a hosted zone: those of the API server, unless a load balancer has them, and the bootstrap endpoint.
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
            all.extend(names.map(|name| FollowedName {
                name: name.to_owned(),
                kind: which,
            }));
        }
    }
    all.push(FollowedName {
        name: dns::bootstrap_name(&config.cluster),
        kind: AddressKind::Private,
    });
    all
}

/// The changes that give the names the addresses of ready API servers. `ready` contains private addresses. An address that EC2 does
/// not confirm as a control plane's is never added to a name, because anyone who can write that list could redirect clients; one
/// that a name has already stays while it is ready, because another protokube may see newer data of EC2. A name is not changed if
/// it is up to date, if no address is left, if EC2 does not show the public address of a ready instance yet, or if it is an alias,
/// for example of a load balancer.
pub fn needed_changes(
    wanted: &[FollowedName],
    ready: &BTreeSet<Ipv4Addr>,
    instances: &[Instance],
    published: &PublishedRecords,
) -> Vec<AddressRecord> {
    let change = |wanted: &FollowedName| {
        let addresses = match wanted.kind {
            AddressKind::Private => {
                private_addresses(ready, instances, published.get(&wanted.name))
            }
            AddressKind::Public => public_addresses(ready, instances)?,
        };
        change_of_name(&wanted.name, addresses, published)
    };
    wanted.iter().filter_map(change).collect()
}

/// The changes that give the names of an instance's etcd members its address. A name that is an alias is left alone.
pub(super) fn needed_member_changes(
    names: &BTreeSet<String>,
    address: Ipv4Addr,
    published: &PublishedRecords,
) -> Vec<AddressRecord> {
    let change = |name: &String| change_of_name(name, BTreeSet::from([address]), published);
    names.iter().filter_map(change).collect()
}

/// The record with these addresses; `None` if there is no address, or the name has them already or is an alias.
fn change_of_name(
    name: &str,
    addresses: BTreeSet<Ipv4Addr>,
    published: &PublishedRecords,
) -> Option<AddressRecord> {
    let settled = match published.get(name) {
        Some(DnsRecord::Alias) => true,
        Some(DnsRecord::Addresses(found)) => found.addresses == addresses && found.ttl == TTL,
        None => false,
    };
    (!addresses.is_empty() && !settled).then(|| AddressRecord {
        name: name.to_owned(),
        addresses,
        ttl: TTL,
    })
}

/// The instance with this private address.
pub(crate) fn instance_at(address: Ipv4Addr, instances: &[Instance]) -> Option<&Instance> {
    let address = address.to_string();
    let mut instances = instances.iter();
    instances.find(|instance| instance.private_ip.as_ref() == Some(&address))
}

/// The ready addresses that EC2 confirms or that the name has already.
fn private_addresses(
    ready: &BTreeSet<Ipv4Addr>,
    instances: &[Instance],
    found: Option<&DnsRecord>,
) -> BTreeSet<Ipv4Addr> {
    let has = |address: &Ipv4Addr| match found {
        Some(DnsRecord::Addresses(found)) => found.addresses.contains(address),
        _ => false,
    };
    let good = |address: &&Ipv4Addr| instance_at(**address, instances).is_some() || has(address);
    ready.iter().filter(good).copied().collect()
}

/// The public addresses of the ready instances that have one; `None` if EC2 does not know one of the instances.
fn public_addresses(
    ready: &BTreeSet<Ipv4Addr>,
    instances: &[Instance],
) -> Option<BTreeSet<Ipv4Addr>> {
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
            private_dns_name: String::new(),
            public_dns_name: String::new(),
            addresses: BTreeSet::new(),
            private_ip: Some(format!("10.0.0.{number}")),
            public_ip: public.then(|| format!("198.51.100.{number}")),
            zone: "z".into(),
            spot: false,
            profile: None,
            tags: BTreeMap::new(),
        }
    }

    fn private_address(number: u8) -> Ipv4Addr {
        Ipv4Addr::new(10, 0, 0, number)
    }

    fn sample_names() -> Vec<FollowedName> {
        [
            ("api", AddressKind::Public),
            ("api.internal", AddressKind::Private),
        ]
        .map(|(name, which)| FollowedName {
            name: name.into(),
            kind: which,
        })
        .to_vec()
    }

    fn any_found() -> impl Strategy<Value = Option<DnsRecord>> {
        let addresses = proptest::collection::btree_set((0_u8..4).prop_map(private_address), 1..3);
        let addresses =
            (addresses, prop_oneof![Just(TTL), Just(10)]).prop_map(|(addresses, ttl)| {
                DnsRecord::Addresses(AddressRecord {
                    name: "api.internal".into(),
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
            let mut published: PublishedRecords = before.into_iter().map(|found| ("api.internal".to_owned(), found)).collect();
            for change in needed_changes(&sample_names(), &ready, &instances, &published) {
                prop_assert!(!change.addresses.is_empty());
                for address in &change.addresses {
                    let [.., number] = address.octets();
                    prop_assert!(ready.contains(&private_address(number)), "{address} is not ready");
                    let had = match published.get(&change.name) {
                        Some(DnsRecord::Addresses(found)) => found.addresses.contains(address),
                        _ => false,
                    };
                    prop_assert!(had || change.name == "api" || known.contains_key(&number), "{address} is no instance's");
                }
                let before = published.insert(change.name.clone(), DnsRecord::Addresses(change));
                prop_assert!(before != Some(DnsRecord::Alias), "a load balancer's name");
            }
            prop_assert_eq!(needed_changes(&sample_names(), &ready, &instances, &published), vec![]);
        }
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
