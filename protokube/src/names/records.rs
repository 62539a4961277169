//! Which names follow the control planes' addresses, and what must be written for them to lead to those whose API server is ready.

use aws_client::dns::{Addresses, Found};
use aws_client::machine::Instance;
use node::config::NodeConfig;
use node::names::dns;
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

/// Seconds that an address may be cached.
const TTL: i64 = 60;

/// kOps' annotations of pods whose names follow their machines, and the addresses that those get.
const ANNOTATIONS: [(&str, Which); 2] = [
    ("dns.alpha.kubernetes.io/internal", Which::Private),
    ("dns.alpha.kubernetes.io/external", Which::Public),
];

/// Which of a machine's addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// The private one.
    Private,
    /// The public one.
    Public,
}

/// A name that follows the control planes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// Without the trailing dot.
    pub name: String,
    /// Which addresses it has.
    pub which: Which,
}

/// What the zone says, by name.
pub type Published = BTreeMap<String, Found>;

/// The names of a cluster with a zone: those of the API server, unless a load balancer has them, and the bootstrap endpoint's.
pub fn wanted(config: &NodeConfig) -> Vec<Wanted> {
    let pods = config
        .control_plane
        .iter()
        .flat_map(|of| of.static_pods.values());
    let mut all: Vec<Wanted> = Vec::new();
    for pod in pods {
        for (annotation, which) in ANNOTATIONS {
            let names = pod.metadata.annotations.get(annotation);
            let names = names.map(String::as_str).unwrap_or_default().split(',');
            let names = names.map(str::trim).filter(|name| !name.is_empty());
            all.extend(names.map(|name| Wanted {
                name: name.to_owned(),
                which,
            }));
        }
    }
    all.push(Wanted {
        name: dns::bootstrap(&config.cluster),
        which: Which::Private,
    });
    all
}

/// What to write so that the names have the addresses of those machines whose API server is ready, which are named by their private
/// addresses. An address that EC2 does not say a control plane has is given to no name that lacks it: whoever can write that list could send
/// clients anywhere. One that a name has stays while it is ready, as another protokube may see more of EC2. Nothing where they have them
/// already, where there is no address to give (a name keeps its last one), where EC2 does not show a ready machine's public address yet, and
/// where something else has the name, such as a load balancer.
pub fn changes(
    wanted: &[Wanted],
    ready: &BTreeSet<Ipv4Addr>,
    machines: &[Instance],
    published: &Published,
) -> Vec<Addresses> {
    let change = |wanted: &Wanted| {
        let addresses = match wanted.which {
            Which::Private => private(ready, machines, published.get(&wanted.name)),
            Which::Public => public(ready, machines)?,
        };
        let settled = match published.get(&wanted.name) {
            Some(Found::Alias) => true,
            Some(Found::Addresses(found)) => found.addresses == addresses && found.ttl == TTL,
            None => false,
        };
        (!addresses.is_empty() && !settled).then(|| Addresses {
            name: wanted.name.clone(),
            addresses,
            ttl: TTL,
        })
    };
    wanted.iter().filter_map(change).collect()
}

/// The machine with that private address.
pub fn machine_at(address: Ipv4Addr, machines: &[Instance]) -> Option<&Instance> {
    let address = address.to_string();
    let mut machines = machines.iter();
    machines.find(|machine| machine.private_ip.as_ref() == Some(&address))
}

/// Those that are a machine's, and those that the name has.
fn private(
    ready: &BTreeSet<Ipv4Addr>,
    machines: &[Instance],
    found: Option<&Found>,
) -> BTreeSet<Ipv4Addr> {
    let has = |address: &Ipv4Addr| match found {
        Some(Found::Addresses(found)) => found.addresses.contains(address),
        _ => false,
    };
    let good = |address: &&Ipv4Addr| machine_at(**address, machines).is_some() || has(address);
    ready.iter().filter(good).copied().collect()
}

/// Public addresses of those machines, as far as they have one; `None` while one of them is unknown.
fn public(ready: &BTreeSet<Ipv4Addr>, machines: &[Instance]) -> Option<BTreeSet<Ipv4Addr>> {
    let known: Option<Vec<&Instance>> = ready
        .iter()
        .map(|address| machine_at(*address, machines))
        .collect();
    let public = known?.into_iter();
    Some(
        public
            .filter_map(|machine| machine.public_ip.as_deref()?.parse().ok())
            .collect(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn machine(number: u8, public: bool) -> Instance {
        Instance {
            id: format!("i-{number}"),
            state: "running".into(),
            private_dns_name: String::new(),
            public_dns_name: String::new(),
            addresses: BTreeSet::new(),
            private_ip: Some(format!("10.0.0.{number}")),
            public_ip: public.then(|| format!("198.51.100.{number}")),
            zone: "z".into(),
            profile: None,
            tags: BTreeMap::new(),
        }
    }

    fn private(number: u8) -> Ipv4Addr {
        Ipv4Addr::new(10, 0, 0, number)
    }

    fn names() -> Vec<Wanted> {
        [("api", Which::Public), ("api.internal", Which::Private)]
            .map(|(name, which)| Wanted {
                name: name.into(),
                which,
            })
            .to_vec()
    }

    fn found() -> impl Strategy<Value = Option<Found>> {
        let addresses = proptest::collection::btree_set((0_u8..4).prop_map(private), 1..3);
        let addresses =
            (addresses, prop_oneof![Just(TTL), Just(10)]).prop_map(|(addresses, ttl)| {
                Found::Addresses(Addresses {
                    name: "api.internal".into(),
                    addresses,
                    ttl,
                })
            });
        prop_oneof![
            Just(None),
            Just(Some(Found::Alias)),
            addresses.prop_map(Some)
        ]
    }

    proptest! {
        #[test]
        fn names_lead_to_ready_api_servers_come_to_rest_and_never_lose_their_last_address(
            ready in proptest::collection::btree_set((1_u8..4).prop_map(private), 0..4),
            known in proptest::collection::btree_map(1_u8..4, any::<bool>(), 0..4),
            before in found(),
        ) {
            let machines: Vec<Instance> = known.iter().map(|(number, public)| machine(*number, *public)).collect();
            let mut published: Published = before.into_iter().map(|found| ("api.internal".to_owned(), found)).collect();
            for change in changes(&names(), &ready, &machines, &published) {
                prop_assert!(!change.addresses.is_empty());
                for address in &change.addresses {
                    let [.., number] = address.octets();
                    prop_assert!(ready.contains(&private(number)), "{address} is not ready");
                    let had = match published.get(&change.name) {
                        Some(Found::Addresses(found)) => found.addresses.contains(address),
                        _ => false,
                    };
                    prop_assert!(had || change.name == "api" || known.contains_key(&number), "{address} is no machine's");
                }
                let before = published.insert(change.name.clone(), Found::Addresses(change));
                prop_assert!(before != Some(Found::Alias), "a load balancer's name");
            }
            prop_assert_eq!(changes(&names(), &ready, &machines, &published), vec![]);
        }
    }

    #[test]
    fn only_machines_whose_api_server_is_ready_are_published() {
        let machines = [machine(1, true), machine(2, true), machine(3, false)];
        let said = |ready: &[u8]| -> Vec<String> {
            let ready = ready.iter().map(|number| private(*number)).collect();
            changes(&names(), &ready, &machines, &Published::new())
                .iter()
                .map(|one| format!("{} {:?}", one.name, one.addresses))
                .collect()
        };
        assert_eq!(
            said(&[1, 3]),
            ["api {198.51.100.1}", "api.internal {10.0.0.1, 10.0.0.3}"]
        );
        // One that EC2 does not show: it is waited for, or nobody's.
        assert_eq!(said(&[1, 9]), ["api.internal {10.0.0.1}"]);
        assert_eq!(said(&[9]), [""; 0]);
        assert_eq!(said(&[]), [""; 0]);
    }
}
