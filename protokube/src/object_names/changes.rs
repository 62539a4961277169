//! Computes what has to change in a hosted zone so that it has the wanted records, and no others with the cluster's identifier.

use super::wanted::{NameRules, WantedNames};
use aws_client::record_sets::{ListedRecord, RecordChange, RecordKey};
use std::collections::{BTreeMap, BTreeSet};

/// Types of records that lead a name somewhere.
const LEADING: [&str; 3] = ["A", "AAAA", "CNAME"];

/// The changes of one name. They are made together or not at all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NameChange {
    pub(super) name: String,
    /// Deletions first: another type of record may take their place.
    pub(super) changes: Vec<RecordChange>,
}

/// A name for which the zone has a record that this cluster did not make. The cluster makes none beside it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Conflict {
    pub(super) name: String,
    /// Type of that record.
    pub(super) record_type: String,
}

/// The changes that the zone needs, and the names of others. Only records with the cluster's identifier are changed or deleted, and none of
/// a reserved name.
pub(super) fn needed_changes(
    wanted: &WantedNames,
    present: &[ListedRecord],
    rules: &NameRules,
) -> (Vec<NameChange>, BTreeSet<Conflict>) {
    let is_own = |key: &RecordKey| key.identifier.as_ref() == Some(&rules.identifier);
    let mut own: BTreeMap<&str, Vec<&ListedRecord>> = BTreeMap::new();
    let mut foreign: BTreeMap<&str, Vec<&ListedRecord>> = BTreeMap::new();
    for record in present {
        let side = if is_own(&record.key) {
            &mut own
        } else {
            &mut foreign
        };
        side.entry(record.key.name.as_str())
            .or_default()
            .push(record);
    }
    let names: BTreeSet<&str> = (wanted.names.keys().map(String::as_str))
        .chain(own.keys().copied())
        .collect();
    let (mut all, mut conflicts) = (Vec::new(), BTreeSet::new());
    for name in names {
        let have = own.get(name).map(Vec::as_slice).unwrap_or_default();
        let sets = wanted.names.get(name);
        if rules.reserved.contains(name) || sets.is_some_and(BTreeMap::is_empty) {
            continue;
        }
        let nothing = BTreeMap::new();
        let mut sets = sets.unwrap_or(&nothing);
        let others = foreign.get(name).map(Vec::as_slice).unwrap_or_default();
        if let Some(other) = others.iter().find(|other| excludes(other, sets.keys())) {
            conflicts.insert(Conflict {
                name: name.to_owned(),
                record_type: other.key.record_type.clone(),
            });
            // Two clusters that made their records at the same time keep them: if each gave way, both would, again and again.
            if have.is_empty() {
                sets = &nothing;
            }
        }
        let gone = have.iter().filter(|one| !sets.contains_key(&one.key));
        let deleted = gone.filter_map(|one| {
            let content = one.content.clone()?;
            Some(RecordChange::Delete(one.key.clone(), content))
        });
        let differs = |key: &RecordKey, content| {
            let found = have.iter().find(|one| one.key == *key);
            found.is_none_or(|found| found.content.as_ref() != Some(content))
        };
        let written = sets.iter().filter(|(key, content)| differs(key, content));
        let written =
            written.map(|(key, content)| RecordChange::Upsert(key.clone(), content.clone()));
        let changes: Vec<RecordChange> = deleted.chain(written).collect();
        if !changes.is_empty() {
            all.push(NameChange {
                name: name.to_owned(),
                changes,
            });
        }
    }
    (all, conflicts)
}

/// True if there can be no record of these keys beside a record of somebody else: it leads the name elsewhere already, or one of them is
/// a CNAME record, which stands alone.
fn excludes<'a>(other: &ListedRecord, mut wanted: impl Iterator<Item = &'a RecordKey>) -> bool {
    let leading = LEADING.contains(&other.key.record_type.as_str());
    wanted.any(|key| leading || key.record_type == "CNAME")
}
