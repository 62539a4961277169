//! Limits connections, in total, per address and per network of addresses. If a limit is reached, the oldest connection without a
//! confirmed identity is closed, in the network that has most of them: idle connections cannot lock workers out, and a flood closes
//! its own connections.

use protokube_role::lock::lock_ignoring_poison;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard};
use tokio::sync::oneshot;

/// Limit of connections in total.
const MAX_CONNECTIONS: usize = 512;
/// Limit of connections per network of addresses.
const MAX_PER_NETWORK: usize = 128;
/// Limit of connections per address. A worker needs one. Network load balancers keep the workers' addresses for targets that are
/// instances, so workers do not share a limit; for an IPv6 client of a target with IPv4, a balancer takes its own IPv4 address.
const MAX_PER_ADDRESS: usize = 16;

/// The open connections. Cloning is cheap.
#[derive(Clone, Default)]
pub(super) struct Connections(Arc<Mutex<ConnectionTable>>);

#[derive(Default)]
struct ConnectionTable {
    next: u64,
    /// True in IPv6 clusters: an IPv4 address is that of a load balancer, with all of its workers and its health checks.
    shared_ipv4: bool,
    /// Open connections by number, oldest first.
    open: BTreeMap<u64, OpenConnection>,
}

struct OpenConnection {
    peer: IpAddr,
    caller: Caller,
    /// Dropping it closes the connection.
    _end: oneshot::Sender<()>,
}

/// What is known of the caller.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Caller {
    /// Nothing: the connection may be closed for others.
    Unknown,
    /// STS is asked about it.
    Asked,
    /// AWS has confirmed its identity.
    Known,
}

/// The slot of a connection; dropping it frees the slot.
pub(super) struct ConnectionSlot {
    all: Connections,
    id: u64,
}

/// Resolves when the connection must close.
pub(super) type EndSignal = oneshot::Receiver<()>;

impl Connections {
    /// `shared_ipv4`: workers have IPv6 addresses, and those that come through a load balancer share its IPv4 address.
    pub(super) fn new(shared_ipv4: bool) -> Self {
        let table = ConnectionTable {
            shared_ipv4,
            ..ConnectionTable::default()
        };
        Self(Arc::new(Mutex::new(table)))
    }

    /// Admits a connection of an address; `None` if none of the connections in the way may be closed.
    pub(super) fn admit_peer(&self, peer: IpAddr) -> Option<(ConnectionSlot, EndSignal)> {
        let mut table = self.lock_table();
        let network = network_of(peer);
        let most = if table.shared_ipv4 && peer.is_ipv4() {
            MAX_PER_NETWORK
        } else {
            MAX_PER_ADDRESS
        };
        if !table.make_room(most, |open| open.peer == peer)
            || !table.make_room(MAX_PER_NETWORK, |open| network_of(open.peer) == network)
            || !table.make_room_for_all()
        {
            return None;
        }
        let (end, ended) = oneshot::channel();
        let id = table.next;
        table.next = id.wrapping_add(1);
        table.open.insert(
            id,
            OpenConnection {
                peer,
                caller: Caller::Unknown,
                _end: end,
            },
        );
        drop(table);
        let all = self.clone();
        Some((ConnectionSlot { all, id }, ended))
    }

    fn lock_table(&self) -> MutexGuard<'_, ConnectionTable> {
        lock_ignoring_poison(&self.0)
    }
}

/// The networks that an address belongs to, from wide to narrow: /16 and /24 of IPv4, /64 and /80 of IPv6, and the address itself. In
/// AWS a subnet has a /64, and the pods of an instance have a /80 of it.
fn networks_of(address: IpAddr) -> [u128; 3] {
    match address.to_canonical() {
        IpAddr::V4(address) => [16, 8, 0].map(|host| u128::from(address.to_bits() >> host)),
        IpAddr::V6(address) => [64, 48, 0].map(|host| address.to_bits() >> host),
    }
}

/// The network that counts as one source: a machine may have many addresses of it.
fn network_of(address: IpAddr) -> u128 {
    let [_, network, _] = networks_of(address);
    network
}

impl ConnectionTable {
    /// Makes room for one more of the connections that `counts` selects, by closing the oldest unknown one if necessary. False
    /// if there is none.
    fn make_room(&mut self, most: usize, counts: impl Fn(&OpenConnection) -> bool) -> bool {
        let those = || self.open.iter().filter(|(_, open)| counts(open));
        if those().count() < most {
            return true;
        }
        let oldest = those().find(|(_, open)| open.caller == Caller::Unknown);
        let oldest = oldest.map(|(id, _)| *id);
        oldest.and_then(|id| self.open.remove(&id)).is_some()
    }

    /// Makes room for one more in total: where most unknown connections are, first among wide networks, then within that one among
    /// narrower ones. A flood has more than others in some of them, however it is spread.
    fn make_room_for_all(&mut self) -> bool {
        if self.open.len() < MAX_CONNECTIONS {
            return true;
        }
        let unknown = self.open.iter();
        let unknown = unknown.filter(|(_, open)| open.caller == Caller::Unknown);
        let mut closable: Vec<(u64, [u128; 3])> = unknown
            .map(|(id, open)| (*id, networks_of(open.peer)))
            .collect();
        for level in 0..3 {
            let network = |networks: &[u128; 3]| networks.get(level).copied();
            let mut sizes: BTreeMap<Option<u128>, usize> = BTreeMap::new();
            for (_, networks) in &closable {
                *sizes.entry(network(networks)).or_default() += 1;
            }
            let crowded = sizes.iter().max_by_key(|(_, size)| **size);
            let crowded = crowded.and_then(|(network, _)| *network);
            closable.retain(|(_, networks)| network(networks) == crowded);
        }
        let oldest = closable.first().map(|(id, _)| *id);
        oldest.and_then(|id| self.open.remove(&id)).is_some()
    }
}

impl ConnectionSlot {
    /// Marks the caller's identity as confirmed, so that the connection is not closed for others.
    pub(super) fn mark_known(&self) {
        self.set_caller(Caller::Known);
    }

    /// Keeps the connection from being closed for others while STS is asked about its caller.
    pub(super) fn mark_asked(&self, asked: bool) {
        self.set_caller(if asked {
            Caller::Asked
        } else {
            Caller::Unknown
        });
    }

    fn set_caller(&self, caller: Caller) {
        if let Some(open) = self.all.lock_table().open.get_mut(&self.id) {
            open.caller = caller;
        }
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        self.all.lock_table().open.remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{Ipv4Addr, Ipv6Addr};

    /// Addresses of many networks.
    fn numbered_address(number: usize) -> IpAddr {
        Ipv4Addr::from_bits(0x0a00_0000 + 256 * u32::try_from(number).unwrap()).into()
    }

    fn is_ended(ended: &mut EndSignal) -> bool {
        !matches!(ended.try_recv(), Err(oneshot::error::TryRecvError::Empty))
    }

    #[test]
    fn the_oldest_of_an_address_makes_room_and_nobody_elses_does() {
        let all = Connections::default();
        let (_other, mut others) = all.admit_peer(numbered_address(1)).unwrap();
        let mut flood: Vec<_> = (0..600)
            .map(|_| all.admit_peer(numbered_address(2)).unwrap())
            .collect();
        let open = flood
            .iter_mut()
            .filter_map(|(_, end)| (!is_ended(end)).then_some(()));
        assert_eq!(open.count(), MAX_PER_ADDRESS);
        assert!(!is_ended(&mut others));
    }

    #[test]
    fn workers_behind_a_balancer_s_address_have_the_limit_of_a_network() {
        let all = Connections::new(true);
        let open_of = |peer: &str| {
            let peer = peer.parse().unwrap();
            let mut flood: Vec<_> = (0..600).map(|_| all.admit_peer(peer).unwrap()).collect();
            count_open(&mut flood)
        };
        assert_eq!(open_of("10.0.0.1"), MAX_PER_NETWORK);
        assert_eq!(open_of("2001:db8::1"), MAX_PER_ADDRESS);
    }

    #[test]
    fn when_all_places_are_taken_the_oldest_without_a_name_makes_room() {
        let all = Connections::default();
        let (known, mut stays) = all.admit_peer(numbered_address(0)).unwrap();
        known.mark_known();
        let (_idle, mut goes) = all.admit_peer(numbered_address(0)).unwrap();
        let (second, _) = all.admit_peer(numbered_address(0)).unwrap();
        let mut flood: Vec<_> = (1..MAX_CONNECTIONS - 1)
            .map(|number| all.admit_peer(numbered_address(number)).unwrap())
            .collect();
        assert!(!is_ended(&mut stays) && is_ended(&mut goes));
        assert_eq!(all.lock_table().open.len(), MAX_CONNECTIONS);
        // Confirmed connections are not closed, so nobody is admitted.
        second.mark_known();
        flood.iter().for_each(|(place, _)| place.mark_known());
        assert!(all.admit_peer(numbered_address(MAX_CONNECTIONS)).is_none());
        flood.pop();
        assert!(all.admit_peer(numbered_address(MAX_CONNECTIONS)).is_some());
        drop((known, flood));
    }

    /// Places that are still open.
    fn count_open(places: &mut [(ConnectionSlot, EndSignal)]) -> usize {
        let open = places
            .iter_mut()
            .filter_map(|(_, end)| (!is_ended(end)).then_some(()));
        open.count()
    }

    #[test]
    fn a_flood_from_many_addresses_closes_its_own_connections_and_nobody_elses() {
        let all = Connections::default();
        let workers = [1, 2, 3, 4, 5, 200].map(|last| IpAddr::from(Ipv4Addr::new(10, 0, 0, last)));
        let mut workers = workers.map(|worker| all.admit_peer(worker).unwrap());
        let mut flood = Vec::new();
        for number in 0..6000_u32 {
            let peer = Ipv4Addr::from_bits(0x6460_0000 + number * 11);
            flood.extend(all.admit_peer(peer.into()));
        }
        assert_eq!(count_open(&mut workers), 6);
        assert_eq!(all.lock_table().open.len(), MAX_CONNECTIONS);
    }

    #[test]
    fn one_network_takes_no_more_than_its_part() {
        let all = Connections::default();
        let mut flood = Vec::new();
        for number in 0..2000_u32 {
            let peer = Ipv4Addr::from_bits(0x6460_0000 + number % 256);
            flood.extend(all.admit_peer(peer.into()));
        }
        assert_eq!(count_open(&mut flood), MAX_PER_NETWORK);
        // The pods of one instance.
        let mut flood = Vec::new();
        let neighbour = all.admit_peer("2001:db8:0:1:2::1".parse().unwrap());
        for number in 0..2000_u128 {
            let peer = Ipv6Addr::from_bits((0x2001_0db8_0000_0001_0001 << 48) + number);
            flood.extend(all.admit_peer(peer.into()));
        }
        assert_eq!(count_open(&mut flood), MAX_PER_NETWORK);
        assert_eq!(count_open(&mut [neighbour.unwrap()]), 1);
    }

    #[test]
    fn a_connection_that_sts_is_asked_about_is_not_closed() {
        let all = Connections::default();
        let (asked, mut stays) = all.admit_peer(numbered_address(1)).unwrap();
        asked.mark_asked(true);
        let flood: Vec<_> = (0..100)
            .map(|_| all.admit_peer(numbered_address(1)))
            .collect();
        assert!(!is_ended(&mut stays));
        asked.mark_asked(false);
        drop(flood);
        let _flood: Vec<_> = (0..100)
            .map(|_| all.admit_peer(numbered_address(1)))
            .collect();
        assert!(is_ended(&mut stays), "STS has not confirmed it");
    }
}
