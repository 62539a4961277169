//! From the world's own ids back to logical names: what one sweep saw, by kind.

use cloud::{Cloud, Kind, Tags};
use engine::{Id, Observed, Ref, Refs, Resource};
use std::collections::BTreeMap;

/// The logical id behind each physical one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names(BTreeMap<(String, String), Id>);

impl Names {
    /// The names of everything a sweep saw.
    pub(crate) fn from_items(items: &[Observed<Cloud>]) -> Self {
        let mut names = Self::default();
        for item in items {
            names.insert(item.resource.id(), &item.physical);
        }
        names
    }

    /// The names of what one object refers to: enough to read that object back.
    pub(crate) fn for_references(refs_of: &[Ref], refs: &Refs) -> Self {
        let mut names = Self::default();
        for reference in refs_of {
            if let (Some(id), Some(physical)) = (reference.id(), refs.physical(reference)) {
                names.insert(id, &physical);
            }
        }
        names
    }

    pub(crate) fn insert(&mut self, id: Id, physical: &str) {
        self.0
            .insert((id.kind().to_owned(), physical.to_owned()), id);
    }

    /// A reference to the object of that kind: to ours by name, to any other by its physical id.
    pub(crate) fn reference<K: Kind>(&self, physical: &str) -> Ref {
        self.own_id::<K>(physical)
            .map_or_else(|| Ref::Given(physical.to_owned()), |id| Ref::own(&id))
    }

    /// The object of that kind, if it is ours.
    pub(crate) fn own_id<K: Kind>(&self, physical: &str) -> Option<Id> {
        let key = (K::TYPE.to_owned(), physical.to_owned());
        self.0.get(&key).cloned()
    }

    /// The object of that kind whose physical id fits, if it is ours.
    pub(crate) fn find_id<K: Kind>(&self, fits: impl Fn(&str) -> bool) -> Option<Id> {
        let mut all = self.0.iter();
        let found = all.find(|((kind, physical), _)| kind == K::TYPE && fits(physical));
        found.map(|(_, id)| id.clone())
    }

    /// References to several, in the order in which desired state has them.
    pub(crate) fn references<'a, K: Kind>(
        &self,
        physical: impl IntoIterator<Item = &'a str>,
    ) -> Vec<Ref> {
        let mut refs: Vec<Ref> = physical
            .into_iter()
            .map(|one| self.reference::<K>(one))
            .collect();
        refs.sort();
        refs
    }
}

/// Tags without those of AWS itself, which nobody else can write.
pub(crate) fn tags<K: Into<String>, V: Into<String>>(
    pairs: impl IntoIterator<Item = (K, V)>,
) -> Tags {
    pairs
        .into_iter()
        .map(|(key, value)| (key.into(), value.into()))
        .filter(|(key, _): &(String, String)| !key.starts_with("aws:"))
        .collect()
}

/// What must be written and removed to turn one set of tags into another.
pub(crate) struct TagChanges {
    pub(crate) set: Tags,
    pub(crate) unset: Vec<String>,
}

impl TagChanges {
    pub(crate) fn tag_changes_between(have: &Tags, want: &Tags) -> Self {
        let differs = |(key, value): &(&String, &String)| have.get(*key) != Some(*value);
        Self {
            set: want
                .iter()
                .filter(differs)
                .map(|(key, value)| (key.clone(), value.clone()))
                .collect(),
            unset: have
                .keys()
                .filter(|key| !want.contains_key(*key))
                .cloned()
                .collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Names, TagChanges, Tags, tags};
    use cloud::{Subnet, Vpc};
    use engine::{Id, Ref};

    #[test]
    fn a_physical_id_means_an_object_of_ours_only_under_its_own_kind() {
        let mut names = Names::default();
        names.insert(Id::new("vpc", "a.b"), "same");
        assert_eq!(
            names.reference::<Vpc>("same"),
            Ref::own(&Id::new("vpc", "a.b"))
        );
        assert_eq!(
            names.reference::<Subnet>("same"),
            Ref::Given("same".to_owned())
        );
    }

    #[test]
    fn tag_changes_turn_one_set_into_the_other() {
        let have = tags([
            ("keep", "1"),
            ("change", "1"),
            ("drop", "1"),
            ("aws:x", "1"),
        ]);
        let want = tags([("keep", "1"), ("change", "2"), ("add", "1")]);
        let changes = TagChanges::tag_changes_between(&have, &want);
        let mut after: Tags = have;
        after.extend(changes.set.clone());
        after.retain(|key, _| !changes.unset.contains(key));
        assert_eq!(after, want);
        assert!(!changes.set.contains_key("keep"));
    }
}
