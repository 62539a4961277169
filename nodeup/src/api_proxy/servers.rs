//! What the proxy knows of API servers: where a new connection goes, and which connections have to go elsewhere. No input or output.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::hash::{BuildHasher, RandomState};
use std::net::SocketAddr;
use tokio::sync::watch;

/// Resolves when a connection has to close, or when the server is forgotten.
pub(super) type Closing = watch::Receiver<()>;

/// What the checks say of a server, the best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Health {
    Ready,
    /// Not checked yet.
    Unknown,
    Down,
}

/// Who names a server, the best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Source {
    /// The list of API servers.
    List,
    /// The name of the API servers. Behind it may be a load balancer.
    Name,
    /// Nobody any more; it is known as long as it has connections.
    Nobody,
}

struct Server {
    health: Health,
    source: Source,
    /// Number of its connections.
    open: usize,
    close: watch::Sender<()>,
}

/// The API servers by address. Once there are some, it never becomes empty.
#[derive(Default)]
pub(super) struct Servers {
    all: BTreeMap<SocketAddr, Server>,
    /// Gives each process an order of its own, so that nodes spread over the servers and each keeps to one.
    order: RandomState,
}

impl Servers {
    /// Takes over who is named now; without anybody, those of before stay. Returns the new servers.
    pub(super) fn set_addresses(
        &mut self,
        listed: &[SocketAddr],
        named: &[SocketAddr],
    ) -> Vec<(SocketAddr, Closing)> {
        if listed.is_empty() && named.is_empty() {
            return Vec::new();
        }
        let source = |address: &SocketAddr| {
            if listed.contains(address) {
                Source::List
            } else if named.contains(address) {
                Source::Name
            } else {
                Source::Nobody
            }
        };
        for (address, server) in &mut self.all {
            server.source = source(address);
        }
        self.all
            .retain(|_, server| server.source != Source::Nobody || server.open > 0);
        let mut new = Vec::new();
        for address in listed.iter().chain(named) {
            if let Entry::Vacant(place) = self.all.entry(*address) {
                let (close, closing) = watch::channel(());
                place.insert(Server {
                    health: Health::Unknown,
                    source: source(address),
                    open: 0,
                    close,
                });
                new.push((*address, closing));
            }
        }
        new
    }

    /// Where a new connection goes, in the order in which it is tried.
    pub(super) fn candidates(&self) -> Vec<SocketAddr> {
        let named = self
            .all
            .iter()
            .filter(|(_, server)| server.source != Source::Nobody);
        let mut ranked: Vec<_> = named
            .map(|(address, server)| {
                let own = self.order.hash_one(address);
                ((server.health, server.source, own), *address)
            })
            .collect();
        ranked.sort_unstable();
        ranked.into_iter().map(|(_, address)| address).collect()
    }

    /// Notes the result of a check, and closes connections that have a better server now. True if the server's health is another than
    /// before.
    pub(super) fn set_health(&mut self, address: SocketAddr, ready: bool) -> bool {
        let health = if ready { Health::Ready } else { Health::Down };
        let Some(server) = self.all.get_mut(&address) else {
            return false;
        };
        let changed = server.health != health;
        server.health = health;
        self.close_for_better();
        changed
    }

    /// Without a server that is ready nothing is closed: an API server that has lost etcd still serves watches.
    fn close_for_better(&self) {
        let ready = self.all.values().filter(|one| one.health == Health::Ready);
        let best = ready.map(|one| one.source).min();
        let Some(best) = best.filter(|best| *best != Source::Nobody) else {
            return;
        };
        for server in self.all.values() {
            // Checks of a load balancer say nothing of the API server at the other end of a connection.
            let by_name = server.source == Source::Name && best == Source::List;
            if by_name || server.health == Health::Down {
                server.close.send_replace(());
            }
        }
    }

    /// True if a new connection would go to a server that is ready.
    pub(super) fn is_any_ready(&self) -> bool {
        let mut all = self.all.values();
        all.any(|server| server.health == Health::Ready && server.source != Source::Nobody)
    }

    /// True if it matters soon whether the server is ready.
    pub(super) fn is_urgent(&self, address: SocketAddr) -> bool {
        let used = self.all.get(&address).is_some_and(|server| server.open > 0);
        used || !self.is_any_ready()
    }

    /// Counts a new connection; `None` if the server is not known any more.
    pub(super) fn open_connection(&mut self, address: SocketAddr) -> Option<Closing> {
        let server = self.all.get_mut(&address)?;
        server.open += 1;
        Some(server.close.subscribe())
    }

    /// Counts the end of a connection.
    pub(super) fn end_connection(&mut self, address: SocketAddr) {
        let Some(server) = self.all.get_mut(&address) else {
            return;
        };
        server.open = server.open.saturating_sub(1);
        if server.open == 0 && server.source == Source::Nobody {
            self.all.remove(&address);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    fn address(number: u8) -> SocketAddr {
        SocketAddr::from(([10, 0, 0, number], 443))
    }

    /// Something that happens to the proxy; servers are numbers.
    #[derive(Clone, Debug)]
    enum Happening {
        /// The list and the name lead to these.
        Named(Vec<u8>, Vec<u8>),
        Checked(u8, bool),
        Connected,
        /// The oldest connection ends.
        Ended,
    }

    fn happening() -> impl Strategy<Value = Happening> {
        let server = 0..5_u8;
        prop_oneof![
            (vec(server.clone(), 0..4), vec(server.clone(), 0..3))
                .prop_map(|(listed, named)| Happening::Named(listed, named)),
            (server, any::<bool>()).prop_map(|(server, ready)| Happening::Checked(server, ready)),
            Just(Happening::Connected),
            Just(Happening::Ended),
        ]
    }

    fn addresses(numbers: &[u8]) -> Vec<SocketAddr> {
        numbers.iter().map(|number| address(*number)).collect()
    }

    proptest! {
        /// Whatever is named and checked, a new connection has somewhere to go, to a server that is ready if one is; and a connection is
        /// closed only if another one is ready, and its own server is down or not of the list, as that one is.
        #[test]
        fn nobody_is_left_without_a_server(happenings in vec(happening(), 1..60)) {
            let mut servers = Servers::default();
            servers.set_addresses(&[address(0)], &[]);
            let mut connections: Vec<(SocketAddr, Closing)> = Vec::new();
            for happening in happenings {
                match happening {
                    Happening::Named(listed, named) => {
                        servers.set_addresses(&addresses(&listed), &addresses(&named));
                    }
                    Happening::Checked(server, ready) => {
                        servers.set_health(address(server), ready);
                    }
                    Happening::Connected => {
                        let to = servers.candidates()[0];
                        connections.push((to, servers.open_connection(to).unwrap()));
                    }
                    Happening::Ended if !connections.is_empty() => {
                        servers.end_connection(connections.remove(0).0);
                    }
                    Happening::Ended => {}
                }
                let candidates = servers.candidates();
                prop_assert!(!candidates.is_empty());
                let health = |address: &SocketAddr| servers.all[address].health;
                let source = |address: &SocketAddr| servers.all[address].source;
                prop_assert!(candidates.is_sorted_by_key(health));
                let (better, listed) = (
                    health(&candidates[0]) == Health::Ready,
                    source(&candidates[0]) == Source::List,
                );
                for (server, closing) in &mut connections {
                    // Known as long as it has a connection.
                    let closed = closing.has_changed().unwrap();
                    closing.mark_unchanged();
                    let server = &*server;
                    let worse = health(server) == Health::Down
                        || (source(server) == Source::Name && listed);
                    prop_assert!(!closed || (better && worse));
                }
            }
        }
    }

    #[test]
    fn connections_to_a_dead_server_are_closed_once_there_is_another() {
        let mut servers = Servers::default();
        servers.set_addresses(&[address(1), address(2)], &[]);
        let mut closing = servers.open_connection(address(1)).unwrap();
        servers.set_health(address(1), false);
        assert!(!closing.has_changed().unwrap(), "the other is not known");
        servers.set_health(address(2), true);
        assert!(closing.has_changed().unwrap());
        // One that was opened just before its server was found dead.
        closing = servers.open_connection(address(1)).unwrap();
        servers.set_health(address(1), false);
        assert!(closing.has_changed().unwrap());
    }

    #[test]
    fn the_name_is_for_when_no_listed_server_is_ready() {
        let mut servers = Servers::default();
        servers.set_addresses(&[address(1), address(2)], &[address(2), address(3)]);
        servers.set_health(address(2), true);
        servers.set_health(address(3), true);
        assert_eq!(servers.candidates()[..2], [address(2), address(3)]);
        servers.set_health(address(2), false);
        assert_eq!(servers.candidates()[0], address(3));
    }

    #[test]
    fn connections_by_the_name_move_to_a_listed_server_once_it_is_ready() {
        let mut servers = Servers::default();
        servers.set_addresses(&[], &[address(9)]);
        let closing = servers.open_connection(address(9)).unwrap();
        servers.set_addresses(&[address(1)], &[address(9)]);
        servers.set_health(address(9), true);
        assert!(!closing.has_changed().unwrap(), "the other is not known");
        servers.set_health(address(1), true);
        assert!(closing.has_changed().unwrap());
    }

    #[test]
    fn a_server_that_nobody_names_keeps_its_connections_and_gets_no_others() {
        let mut servers = Servers::default();
        servers.set_addresses(&[address(1)], &[]);
        let closing = servers.open_connection(address(1)).unwrap();
        servers.set_health(address(1), true);
        servers.set_addresses(&[address(2)], &[]);
        assert_eq!(servers.candidates(), [address(2)]);
        assert!(!closing.has_changed().unwrap() && servers.is_urgent(address(1)));
        servers.end_connection(address(1));
        assert!(servers.open_connection(address(1)).is_none());
    }
}
