//! Which names follow the control planes' addresses, and what must be written for them to do so.

use aws::dns::{Addresses, Found};
use aws::machine::Instance;
use model::names::dns;
use model::node::NodeConfig;
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

/// What to write so that the names have the running machines' addresses. Nothing where they have them already, where there is no address
/// to give (a name keeps its last one), and where something else has the name, such as a load balancer.
pub fn changes(wanted: &[Wanted], machines: &[Instance], published: &Published) -> Vec<Addresses> {
    let change = |wanted: &Wanted| {
        let addresses = addresses(machines, wanted.which);
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

fn addresses(machines: &[Instance], which: Which) -> BTreeSet<Ipv4Addr> {
    let running = machines.iter().filter(|machine| machine.state == "running");
    let of = |machine: &Instance| {
        let address = match which {
            Which::Private => &machine.private_ip,
            Which::Public => &machine.public_ip,
        };
        address.as_deref()?.parse().ok()
    };
    running.filter_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn machine(number: u8, state: &str, public: bool) -> Instance {
        Instance {
            id: format!("i-{number}"),
            state: state.into(),
            private_dns_name: String::new(),
            public_dns_name: String::new(),
            addresses: BTreeSet::new(),
            private_ip: Some(format!("10.0.0.{number}")),
            public_ip: public.then(|| format!("198.51.100.{number}")),
            zone: "z".into(),
            tags: BTreeMap::new(),
        }
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
        let addresses = proptest::collection::btree_set(
            (0_u8..4).prop_map(|last| Ipv4Addr::new(10, 0, 0, last)),
            1..3,
        );
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
        fn names_come_to_rest_and_never_lose_their_last_address(
            machines in proptest::collection::vec((1_u8..4, any::<bool>(), any::<bool>()), 0..4),
            before in found(),
        ) {
            let machines: Vec<Instance> = machines
                .into_iter()
                .map(|(number, running, public)| machine(number, if running { "running" } else { "pending" }, public))
                .collect();
            let mut published: Published = before.into_iter().map(|found| ("api.internal".to_owned(), found)).collect();
            for change in changes(&names(), &machines, &published) {
                prop_assert!(!change.addresses.is_empty());
                let before = published.insert(change.name.clone(), Found::Addresses(change));
                prop_assert!(before != Some(Found::Alias), "a load balancer's name");
            }
            prop_assert_eq!(changes(&names(), &machines, &published), vec![]);
        }
    }

    #[test]
    fn only_machines_that_run_are_published() {
        let machines = [
            machine(1, "running", true),
            machine(2, "pending", true),
            machine(3, "running", false),
        ];
        let changes = changes(&names(), &machines, &Published::new());
        let said: Vec<String> = changes
            .iter()
            .map(|one| format!("{} {:?}", one.name, one.addresses))
            .collect();
        assert_eq!(
            said,
            ["api {198.51.100.1}", "api.internal {10.0.0.1, 10.0.0.3}"]
        );
    }
}
