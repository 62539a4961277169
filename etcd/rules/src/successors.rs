//! Which etcd clusters of one name were formed, as objects beside the record show. A cluster that was given up must not run again
//! because its record was lost, or an older version of it restored.

use super::own_member::{Formed, OwnMember};
use super::record::{FormationRecord, formed_key, record_key};
use super::step::FormationStep;
use std::collections::BTreeSet;

/// Why the etcd cluster with this id must not run: another one was formed that it did not replace, as far as the record and the
/// objects say.
pub(super) fn find_successor(
    own: &OwnMember<'_>,
    cluster_id: &str,
    record: Option<&FormationRecord>,
) -> Option<String> {
    let formed = own.formed?;
    let replaced = formed.get(cluster_id);
    let is_replaced = |id: &String| {
        record.is_some_and(|record| record.has_given_up(id))
            || replaced.is_some_and(|replaced| replaced.contains(id))
    };
    let mut others = formed.keys().filter(|id| *id != cluster_id);
    let successor = others.find(|id| !is_replaced(id))?;
    let key = formed_key(own.etcd, successor);
    Some(format!(
        "{key} shows that etcd {} began anew as cluster {successor}: no member of cluster {cluster_id} is started, because two clusters would \
         serve. Restore the newest version of {} (from object versions of the bucket); or, if cluster {successor} has no data that is \
         needed, move {key} out of the cluster's folder",
        own.etcd,
        record_key(own.etcd),
    ))
}

/// The step of a member of the recorded cluster, if another one took its place.
pub(super) fn refuse_replaced(own: &OwnMember<'_>, formed: &Formed<'_>) -> Option<FormationStep> {
    find_successor(own, formed.cluster_id, Some(formed.record)).map(FormationStep::Refuse)
}

/// The clusters that were given up for the one whose object has this text, which is that of its record.
pub fn read_replaced(text: &[u8]) -> BTreeSet<String> {
    let record = FormationRecord::parse("the object of a formed cluster", text);
    // An older release or an operator may have written anything; then it replaced none.
    let retired = record.map(|record| record.retired).unwrap_or_default();
    let given_up = retired.into_iter().filter(|(_, retired)| retired.given_up);
    given_up.map(|(cluster, _)| cluster).collect()
}
