//! What follows from the table of kinds (`for_each_kind` in `lib.rs`): the enum [`Cloud`], the conversions between it and each
//! kind, and the dispatch to the kind that an object is of.

use super::kind::{AttrLookup, Kind, Rename};
use super::listing::{ListingPosition, PartOf};
use super::{Cloud, Tags, settle};
use engine::{Id, Ref, Resource};

/// Evaluates the same expression whichever kind an object is of: `match_kind!(cloud, one => one.name())`.
#[macro_export]
macro_rules! match_kind {
    (@kinds [$($kind:ident)*] $object:expr, $one:ident => $value:expr) => {
        match $object {
            $($crate::Cloud::$kind($one) => $value,)*
        }
    };
    ($object:expr, $one:ident => $value:expr) => {
        $crate::for_each_kind! { $crate::match_kind, $object, $one => $value }
    };
}

/// The enum [`Cloud`] of these kinds, and what it has of each.
macro_rules! define_cloud {
    (@kinds [$($kind:ident)*]) => {
        /// Any AWS object of a cluster. Serialized with its kind under `type`.
        #[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
        #[serde(tag = "type", rename_all = "snake_case")]
        pub enum Cloud {
            $($kind($kind),)*
        }

        /// [`Kind::TYPE`] of every kind, in alphabetical order.
        pub const TYPES: &[&str] = &[$($kind::TYPE),*];

        $(
            impl From<$kind> for Cloud {
                fn from(one: $kind) -> Self {
                    Self::$kind(one)
                }
            }

            impl Variant for $kind {
                fn of(cloud: &Cloud) -> Option<&Self> {
                    let Cloud::$kind(one) = cloud else {
                        return None;
                    };
                    Some(one)
                }
            }
        )*
    };
}

impl Cloud {
    /// The references it holds.
    pub fn refs(&self) -> Vec<Ref> {
        match_kind!(self, one => one.refs())
    }

    /// Itself with every reference renamed, late values included.
    #[must_use]
    pub fn with_refs(&self, rename: Rename<'_>) -> Self {
        match_kind!(self, one => one.with_refs(rename).into())
    }

    /// Its tags; `None`: its kind has none, or has them in a list (Auto Scaling groups).
    pub fn tags_mut(&mut self) -> Option<&mut Tags> {
        match_kind!(self, one => one.tags_mut())
    }

    /// True if a value in it is known only once another resource exists.
    pub fn has_late_values(&self) -> bool {
        match_kind!(self, one => !one.late().is_empty())
    }

    /// Where it stands in a listing.
    pub fn listing_position(&self) -> ListingPosition {
        fn listing_position<K: Kind>(_: &K) -> ListingPosition {
            K::LISTING_POSITION
        }
        match_kind!(self, one => listing_position(one))
    }

    /// The object that it is listed as a part of.
    pub fn part_of(&self) -> Option<PartOf> {
        match_kind!(self, one => one.part_of())
    }

    /// What matters about it, in a few words; empty where its name says it.
    pub fn describe(&self) -> String {
        match_kind!(self, one => one.describe())
    }
}

/// Compares with an object of the same kind; `None`: it is of another.
fn with_same_kind<K: Kind, T>(_: &K, other: &Cloud, compare: impl Fn(&K) -> T) -> Option<T> {
    K::of(other).map(compare)
}

impl Resource for Cloud {
    fn id(&self) -> Id {
        match_kind!(self, one => one.id())
    }

    fn needs(&self) -> Vec<Id> {
        let mut needs: Vec<Id> = match_kind!(self, one => one.refs().iter().filter_map(Ref::id).chain(one.late()).collect());
        needs.sort();
        needs.dedup();
        needs
    }

    fn refuses(&self, have: &Self) -> Option<String> {
        match_kind!(self, one => with_same_kind(one, have, |have| one.refuses(have)).flatten())
    }

    fn accepting(&self, have: &Self) -> Self {
        match_kind!(self, one => with_same_kind(one, have, |have| one.accepting(have).into()))
            .unwrap_or_else(|| self.clone())
    }

    fn series(&self) -> Option<(String, u32)> {
        match_kind!(self, one => settle::series_of(one))
    }

    fn attr_changes(&self, have: &Self, attribute: &str) -> bool {
        match_kind!(self, one => with_same_kind(one, have, |have| one.attr_changes(have, attribute)))
            .unwrap_or(true)
    }

    fn can_be_remade(&self) -> bool {
        fn remakes<K: Kind>(_: &K) -> bool {
            K::CAN_BE_REMADE
        }
        match_kind!(self, one => remakes(one))
    }

    fn holds_data(&self) -> bool {
        fn holds<K: Kind>(_: &K) -> bool {
            K::HOLDS_DATA
        }
        match_kind!(self, one => holds(one))
    }

    fn resolved(&self, attr: AttrLookup<'_>) -> Self {
        match_kind!(self, one => one.resolved(attr).into())
    }

    fn needs_journal(&self) -> bool {
        fn journaled<K: Kind>(_: &K) -> bool {
            K::JOURNALED
        }
        match_kind!(self, one => journaled(one))
    }
}

#[cfg(test)]
mod tests {
    use crate::*;

    /// `(serialized type, TYPE)` of every kind.
    macro_rules! names {
        (@kinds [$($kind:ident)*]) => { [$((stringify!($kind), $kind::TYPE)),*] };
    }

    #[test]
    fn kinds_are_in_alphabetical_order_and_named_as_they_are_serialized() {
        let names = for_each_kind!(names);
        assert!(names.is_sorted());
        for (variant, name) in names {
            let mut snake = String::new();
            for letter in variant.chars() {
                if letter.is_uppercase() && !snake.is_empty() {
                    snake.push('_');
                }
                snake.extend(letter.to_lowercase());
            }
            assert_eq!(name, snake);
        }
    }
}
