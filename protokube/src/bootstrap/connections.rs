//! Who is connected: so many in all, and so many of one address. Where there is no room, the one goes that has been there the
//! longest without saying who it is: idle connections keep no worker away.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::oneshot;

/// Connections at once.
const MOST: usize = 512;
/// Connections of one address at once. A worker needs one. Behind AWS' load balancers these are the workers' own addresses:
/// targets that are instances see them
/// (<https://docs.aws.amazon.com/elasticloadbalancing/latest/network/edit-target-group-attributes.html#client-ip-preservation>).
const OF_ADDRESS: usize = 16;

/// All of them. Cloning is cheap.
#[derive(Clone, Default)]
pub(super) struct Connections(Arc<Mutex<Table>>);

#[derive(Default)]
struct Table {
    next: u64,
    /// By age.
    open: BTreeMap<u64, Open>,
}

struct Open {
    peer: IpAddr,
    /// Who it is, AWS has confirmed.
    known: bool,
    /// Dropped, it ends the connection.
    _end: oneshot::Sender<()>,
}

/// A connection's place among them; dropped, it is free.
pub(super) struct Place {
    all: Connections,
    id: u64,
}

/// Resolves once the connection has to make room.
pub(super) type Ended = oneshot::Receiver<()>;

impl Connections {
    /// A place for a connection of that address; `None` where nobody can make room.
    pub(super) fn admit(&self, peer: IpAddr) -> Option<(Place, Ended)> {
        let mut table = self.table();
        if !table.make_room(OF_ADDRESS, |open| open.peer == peer)
            || !table.make_room(MOST, |_| true)
        {
            return None;
        }
        let (end, ended) = oneshot::channel();
        let id = table.next;
        table.next = id.wrapping_add(1);
        table.open.insert(
            id,
            Open {
                peer,
                known: false,
                _end: end,
            },
        );
        drop(table);
        let all = self.clone();
        Some((Place { all, id }, ended))
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    /// Whether there is room for one more of those, after the oldest unknown of them is ended if it must be.
    fn make_room(&mut self, most: usize, counts: impl Fn(&Open) -> bool) -> bool {
        let those = || self.open.iter().filter(|(_, open)| counts(open));
        if those().count() < most {
            return true;
        }
        let oldest = those().find(|(_, open)| !open.known).map(|(id, _)| *id);
        oldest.and_then(|id| self.open.remove(&id)).is_some()
    }
}

impl Place {
    /// It has said who it is: it makes room for nobody any more.
    pub(super) fn is_known(&self) {
        if let Some(open) = self.all.table().open.get_mut(&self.id) {
            open.known = true;
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.all.table().open.remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    fn address(number: usize) -> IpAddr {
        Ipv4Addr::from_bits(0x0a00_0000 + u32::try_from(number).unwrap()).into()
    }

    fn ended(ended: &mut Ended) -> bool {
        !matches!(ended.try_recv(), Err(oneshot::error::TryRecvError::Empty))
    }

    #[test]
    fn the_oldest_of_an_address_makes_room_and_nobody_elses_does() {
        let all = Connections::default();
        let (_other, mut others) = all.admit(address(1)).unwrap();
        let mut flood: Vec<_> = (0..600).map(|_| all.admit(address(2)).unwrap()).collect();
        let open = flood
            .iter_mut()
            .filter_map(|(_, end)| (!ended(end)).then_some(()));
        assert_eq!(open.count(), OF_ADDRESS);
        assert!(!ended(&mut others));
    }

    #[test]
    fn when_all_places_are_taken_the_oldest_without_a_name_makes_room() {
        let all = Connections::default();
        let (known, mut stays) = all.admit(address(0)).unwrap();
        known.is_known();
        let (_idle, mut goes) = all.admit(address(0)).unwrap();
        let mut flood: Vec<_> = (1..MOST)
            .map(|number| all.admit(address(number)).unwrap())
            .collect();
        assert!(!ended(&mut stays) && ended(&mut goes));
        assert_eq!(all.table().open.len(), MOST);
        // Those with a name are not ended, so that there is room for nobody.
        flood.iter().for_each(|(place, _)| place.is_known());
        assert!(all.admit(address(MOST)).is_none());
        flood.pop();
        assert!(all.admit(address(MOST)).is_some());
        drop((known, flood));
    }
}
