//! Limits connections, in total and per address. If a limit is reached, the oldest connection without a confirmed identity is
//! closed, so that idle connections cannot lock workers out.

use crate::lock::lock_ignoring_poison;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard};
use tokio::sync::oneshot;

/// Limit of connections in total.
const MAX_CONNECTIONS: usize = 512;
/// Limit of connections per address. A worker needs one. Network load balancers keep the workers' addresses for targets that are
/// instances, so workers do not share a limit.
const MAX_PER_ADDRESS: usize = 16;

/// The open connections. Cloning is cheap.
#[derive(Clone, Default)]
pub(super) struct Connections(Arc<Mutex<ConnectionTable>>);

#[derive(Default)]
struct ConnectionTable {
    next: u64,
    /// Open connections by number, oldest first.
    open: BTreeMap<u64, OpenConnection>,
}

struct OpenConnection {
    peer: IpAddr,
    /// True once AWS has confirmed the caller's identity.
    known: bool,
    /// Dropping it closes the connection.
    _end: oneshot::Sender<()>,
}

/// The slot of a connection; dropping it frees the slot.
pub(super) struct ConnectionSlot {
    all: Connections,
    id: u64,
}

/// Resolves when the connection must close.
pub(super) type EndSignal = oneshot::Receiver<()>;

impl Connections {
    /// Admits a connection of an address; `None` if all connections in the way have a confirmed identity.
    pub(super) fn admit_peer(&self, peer: IpAddr) -> Option<(ConnectionSlot, EndSignal)> {
        let mut table = self.lock_table();
        if !table.make_room(MAX_PER_ADDRESS, |open| open.peer == peer)
            || !table.make_room(MAX_CONNECTIONS, |_| true)
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
                known: false,
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

impl ConnectionTable {
    /// Makes room for one more of the connections that `counts` selects, by closing the oldest unconfirmed one if necessary. False
    /// if there is none.
    fn make_room(&mut self, most: usize, counts: impl Fn(&OpenConnection) -> bool) -> bool {
        let those = || self.open.iter().filter(|(_, open)| counts(open));
        if those().count() < most {
            return true;
        }
        let oldest = those().find(|(_, open)| !open.known).map(|(id, _)| *id);
        oldest.and_then(|id| self.open.remove(&id)).is_some()
    }
}

impl ConnectionSlot {
    /// Marks the caller's identity as confirmed, so that the connection is not closed for others.
    pub(super) fn mark_known(&self) {
        if let Some(open) = self.all.lock_table().open.get_mut(&self.id) {
            open.known = true;
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
    use std::net::Ipv4Addr;

    fn numbered_address(number: usize) -> IpAddr {
        Ipv4Addr::from_bits(0x0a00_0000 + u32::try_from(number).unwrap()).into()
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
    fn when_all_places_are_taken_the_oldest_without_a_name_makes_room() {
        let all = Connections::default();
        let (known, mut stays) = all.admit_peer(numbered_address(0)).unwrap();
        known.mark_known();
        let (_idle, mut goes) = all.admit_peer(numbered_address(0)).unwrap();
        let mut flood: Vec<_> = (1..MAX_CONNECTIONS)
            .map(|number| all.admit_peer(numbered_address(number)).unwrap())
            .collect();
        assert!(!is_ended(&mut stays) && is_ended(&mut goes));
        assert_eq!(all.lock_table().open.len(), MAX_CONNECTIONS);
        // Confirmed connections are not closed, so nobody is admitted.
        flood.iter().for_each(|(place, _)| place.mark_known());
        assert!(all.admit_peer(numbered_address(MAX_CONNECTIONS)).is_none());
        flood.pop();
        assert!(all.admit_peer(numbered_address(MAX_CONNECTIONS)).is_some());
        drop((known, flood));
    }
}
