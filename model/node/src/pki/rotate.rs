//! Rotation of a keyset, as in kOps: a key is added, promoted, distrusted and trusted again. Keys are never removed.

use super::brought::Refused;
use super::{Error, Keyset, KeysetItem};
use crate::config::KeysetIds;
use time::OffsetDateTime;

impl Keyset {
    /// The item with this id.
    pub fn find(&self, id: &str) -> Result<&KeysetItem, Refused> {
        let found = self.items.iter().find(|item| item.id == id);
        found.ok_or_else(|| Refused::NoKey {
            keyset: self.name.clone(),
            id: id.to_owned(),
        })
    }

    /// Adds a key as the newest one, which is trusted and does not sign. Its id is that of its certificate, unless that would say another
    /// age. Returns the id.
    pub fn add(&mut self, item: KeysetItem, now: OffsetDateTime) -> Result<String, Error> {
        let newest = self.items.iter().map(|item| order(&item.id)).max();
        let newest = newest.unwrap_or_default();
        let nanoseconds = u128::try_from(now.unix_timestamp_nanos()).map_err(|_| Error::Time)?;
        // The numbers of kctl's and kOps' certificates begin with the time and end with 32 other bits.
        let now = (nanoseconds << 32 | u128::from(u32::MAX)).to_string();
        let id = if order(&item.id) > newest && order(&item.id) <= order(&now) {
            item.id
        } else if order(&now) > newest {
            now
        } else {
            let highest: u128 = newest.1.parse().map_err(|_| Error::Time)?;
            highest.checked_add(1).ok_or(Error::Time)?.to_string()
        };
        self.items.push(KeysetItem {
            id: id.clone(),
            distrusted: None,
            ..item
        });
        self.sort_items();
        Ok(id)
    }

    /// The key that a promotion without an id takes: the newest one that can sign and is newer than the primary one.
    pub fn successor(&self) -> Option<&KeysetItem> {
        let mut newer = self.items.iter().rev();
        newer.find(|item| {
            let can_sign = item.distrusted.is_none() && item.key.is_some();
            can_sign && order(&item.id) > order(&self.primary)
        })
    }

    /// The keys that a distrust without ids takes: those that are trusted and older than the primary one.
    pub fn predecessors(&self) -> Vec<String> {
        let old = self
            .items
            .iter()
            .filter(|item| item.distrusted.is_none() && order(&item.id) < order(&self.primary));
        old.map(|item| item.id.clone()).collect()
    }

    /// Makes this key the one that signs.
    pub fn promote(&mut self, id: &str) -> Result<(), Refused> {
        let (keyset, item) = (self.name.clone(), self.find(id)?);
        let id = id.to_owned();
        if item.distrusted.is_some() {
            return Err(Refused::Distrusted { keyset, id });
        }
        if item.key.is_none() {
            return Err(Refused::NoPrivateKey { keyset, id });
        }
        self.primary = id;
        Ok(())
    }

    /// Takes this key out of all trust bundles. `now`: RFC 3339. The key that signs stays.
    pub fn distrust(&mut self, id: &str, now: &str) -> Result<(), Refused> {
        self.find(id)?;
        if id == self.primary {
            return Err(Refused::Primary {
                keyset: self.name.clone(),
                id: id.to_owned(),
            });
        }
        let mut items = self.items.iter_mut();
        if let Some(item) = items.find(|item| item.id == id && item.distrusted.is_none()) {
            item.distrusted = Some(now.to_owned());
        }
        Ok(())
    }

    /// Takes this key into all trust bundles again.
    pub fn trust(&mut self, id: &str) -> Result<(), Refused> {
        self.find(id)?;
        let mut items = self.items.iter_mut();
        if let Some(item) = items.find(|item| item.id == id) {
            item.distrusted = None;
        }
        Ok(())
    }

    /// The ids of the keys: which signs, and which are trusted.
    pub fn ids(&self) -> KeysetIds {
        let trusted = self.items.iter().filter(|item| item.distrusted.is_none());
        KeysetIds {
            primary: self.primary.clone(),
            trusted: trusted.map(|item| item.id.clone()).collect(),
        }
    }

    /// The keyset as it was when a NodeConfig said these ids: an instance has the keys of its NodeConfig, whenever it boots. Nothing is signed
    /// with a key that is distrusted by now or missing.
    #[must_use]
    pub fn as_of(mut self, ids: &KeysetIds) -> Self {
        let signs = |item: &&KeysetItem| {
            item.id == ids.primary && item.distrusted.is_none() && item.key.is_some()
        };
        if let Some(item) = self.items.iter().find(signs) {
            self.primary.clone_from(&item.id);
        }
        for item in &mut self.items {
            let trusted = ids.trusted.contains(&item.id) || item.id == self.primary;
            item.distrusted = match (trusted, item.distrusted.take()) {
                (true, _) => None,
                (false, known) => Some(known.unwrap_or_default()),
            };
        }
        self
    }
}

/// Ids are decimal numbers without leading zeros, of any length.
fn order(id: &str) -> (usize, String) {
    (id.len(), id.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pki::{
        KeyAlgorithm, SystemKeys, mint_further, mint_keyset, read_keyset, write_keyset,
    };
    use proptest::prelude::*;
    use time::Duration;

    fn at(second: i64) -> OffsetDateTime {
        OffsetDateTime::UNIX_EPOCH + Duration::days(20_000) + Duration::seconds(second)
    }

    fn one_more(keyset: &mut Keyset, second: i64) -> String {
        let item = mint_further(keyset, None, &mut SystemKeys::issuing_at(at(second))).unwrap();
        keyset.add(item, at(second)).unwrap()
    }

    fn minted() -> Keyset {
        let mut keys = SystemKeys::issuing_at(at(0));
        mint_keyset("kubernetes-ca", KeyAlgorithm::EcdsaP256, &mut keys).unwrap()
    }

    #[test]
    fn a_new_key_is_the_newest_whatever_its_number_and_the_clock_say() {
        let mut keyset = minted();
        let number = |id: &str, second: i64| {
            let mut keyset = keyset.clone();
            let item = KeysetItem {
                id: id.to_owned(),
                ..keyset.items[0].clone()
            };
            let given = keyset.add(item, at(second)).unwrap();
            assert_eq!(keyset.items.last().unwrap().id, given, "{id}");
            assert_eq!(keyset.items.len(), 2);
            given
        };
        for (id, second) in [("1", 9), ("1", -9), (&*"9".repeat(48), 9)] {
            assert_ne!(number(id, second), id);
        }
        let own = one_more(&mut keyset, 5);
        let serial = crate::pki::certificate_id(&keyset.find(&own).unwrap().certificate);
        assert_eq!(serial, Some(own));
    }

    #[test]
    fn without_ids_the_newest_is_promoted_and_the_older_are_distrusted() {
        let mut keyset = minted();
        assert_eq!(keyset.successor(), None);
        assert!(keyset.predecessors().is_empty());
        let first = keyset.primary.clone();
        let second = one_more(&mut keyset, 1);
        let third = one_more(&mut keyset, 2);
        assert_eq!(keyset.successor().unwrap().id, third);
        keyset.items.last_mut().unwrap().key = None;
        assert_eq!(keyset.successor().unwrap().id, second);
        assert!(matches!(
            keyset.promote(&third),
            Err(Refused::NoPrivateKey { .. })
        ));
        keyset.promote(&second).unwrap();
        assert_eq!(keyset.predecessors(), [first.as_str()]);
        assert!(matches!(
            keyset.distrust(&second, "now"),
            Err(Refused::Primary { .. })
        ));
        keyset.distrust(&first, "now").unwrap();
        assert!(matches!(
            keyset.promote(&first),
            Err(Refused::Distrusted { .. })
        ));
        assert!(matches!(keyset.trust("7"), Err(Refused::NoKey { .. })));
    }

    /// A step of a rotation, on the key at a position.
    fn any_step() -> impl Strategy<Value = (u8, usize)> {
        (0..4_u8, 0..5_usize)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn exactly_one_key_signs_and_it_is_trusted(steps in proptest::collection::vec(any_step(), 1..12)) {
            let mut keyset = minted();
            for (second, (verb, position)) in (1..).zip(steps) {
                let id = keyset.items[position % keyset.items.len()].id.clone();
                let before = keyset.clone();
                let done = match verb {
                    0 if keyset.items.len() < 5 => { one_more(&mut keyset, second); true }
                    0 | 1 => keyset.promote(&id).is_ok(),
                    2 => keyset.distrust(&id, "2030-01-01T00:00:00Z").is_ok(),
                    _ => keyset.trust(&id).is_ok(),
                };
                prop_assert!(done || keyset == before);
                let primary = keyset.primary().unwrap();
                prop_assert!(primary.distrusted.is_none() && primary.key.is_some());
                prop_assert_eq!(keyset.items.iter().filter(|item| item.id == keyset.primary).count(), 1);
                prop_assert!(before.items.iter().all(|item| keyset.find(&item.id).is_ok()));
                // What it was at any time is what an instance of that time has.
                let then = keyset.clone().as_of(&before.ids());
                prop_assert!(then.primary().unwrap().distrusted.is_none());
                if before.items.iter().any(|item| item.id == before.primary && keyset.find(&item.id).unwrap().distrusted.is_none()) {
                    prop_assert_eq!(then.ids(), before.ids());
                }
                let stored = write_keyset(&keyset).unwrap();
                prop_assert_eq!(&read_keyset("kubernetes-ca", stored.reveal()).unwrap(), &keyset);
            }
        }
    }
}
