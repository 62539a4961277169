//! How far a restore raises the revisions: above all that clients can know, and never near the end of what etcd can count.

/// By how much the revision of the restored data is raised: more than can have been written since. All older revisions are marked
/// as compacted, so every client that knows one gets an error and lists anew (etcd documentation, "Disaster recovery").
pub const REVISION_BUMP: u64 = 1_000_000_000;

/// Nothing is so far ahead of the member that leads: ten thousand writes a second would take three years.
const MOST_AHEAD: u64 = 1_000_000_000_000;

/// etcd counts revisions with 63 bits. Much has to be left for what is written after.
const HIGHEST: u64 = i64::MAX.unsigned_abs() / 4;

/// A revision, and who says that it was used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SaidRevision {
    /// `member b`, `the manifest of the snapshot before-upgrade`.
    pub who: String,
    /// The revision.
    pub revision: u64,
}

/// How far the revisions of a snapshot are raised.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RevisionBump {
    /// What is added.
    pub bump: u64,
    /// What was not believed.
    pub ignored: Vec<SaidRevision>,
}

/// How much the revision of a snapshot is raised, so that it is above all that clients can know. `newest`: the highest revision that
/// anybody has reported or stored.
pub fn revision_bump(snapshot: u64, newest: u64) -> u64 {
    newest
        .saturating_sub(snapshot)
        .saturating_add(REVISION_BUMP)
}

/// Chooses how far the revisions of a snapshot are raised, by all revisions that somebody says. `snapshot` is that of the snapshot,
/// `leading` that of the member that leads, if they are known. What is impossibly far ahead of both is ignored: whoever may write one object
/// could else spoil every restore. The error is what would bring revisions near their end.
pub fn choose_bump(
    snapshot: Option<u64>,
    leading: Option<u64>,
    said: Vec<SaidRevision>,
) -> Result<RevisionBump, SaidRevision> {
    let known = snapshot.max(leading);
    let is_possible = |one: &SaidRevision| {
        known.is_none_or(|known| one.revision <= known.saturating_add(MOST_AHEAD))
    };
    let (possible, ignored) = said.into_iter().partition::<Vec<_>, _>(is_possible);
    let newest = possible.into_iter().max_by_key(|one| one.revision);
    let of_snapshot = snapshot.unwrap_or_default();
    let bump = revision_bump(
        of_snapshot,
        newest.as_ref().map_or(0, |newest| newest.revision),
    );
    if of_snapshot.saturating_add(bump) > HIGHEST {
        let own = SaidRevision {
            who: "the manifest of the snapshot itself".to_owned(),
            revision: of_snapshot,
        };
        let newest = newest.filter(|newest| newest.revision > of_snapshot);
        return Err(newest.unwrap_or(own));
    }
    Ok(RevisionBump { bump, ignored })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn said(revisions: &[u64]) -> Vec<SaidRevision> {
        let all = revisions.iter().enumerate();
        all.map(|(place, revision)| SaidRevision {
            who: format!("who {place}"),
            revision: *revision,
        })
        .collect()
    }

    #[test]
    fn one_forged_revision_spoils_no_restore() {
        let (huge, end) = (9_223_372_036_854_775_000, u64::MAX);
        for (snapshot, leading, others, bump, ignored) in [
            (
                Some(4000),
                Some(5000),
                vec![5000, 4000],
                Ok(REVISION_BUMP + 1000),
                0,
            ),
            (
                Some(4000),
                Some(5000),
                vec![5000, huge, end],
                Ok(REVISION_BUMP + 1000),
                2,
            ),
            (Some(4000), None, vec![huge], Ok(REVISION_BUMP), 1),
            (
                None,
                Some(5000),
                vec![5000, end],
                Ok(REVISION_BUMP + 5000),
                1,
            ),
            // Nobody says anything to compare with.
            (None, None, vec![5000, huge], Err(huge), 0),
            // The leader's own report, or the manifest itself.
            (Some(4000), Some(huge), vec![huge, 5000], Err(huge), 0),
            (Some(huge), Some(5000), vec![5000], Err(huge), 0),
            (Some(end), None, vec![], Err(end), 0),
            // A restore before this one has raised them.
            (
                Some(4000),
                None,
                vec![3_000_000_000],
                Ok(4_000_000_000 - 4000),
                0,
            ),
        ] {
            let chosen = choose_bump(snapshot, leading, said(&others));
            let found = chosen.as_ref().map(|chosen| chosen.bump);
            let found = found.map_err(|forged| forged.revision);
            assert_eq!(found, bump, "{snapshot:?} {leading:?} {others:?}");
            let named = chosen.map_or(0, |chosen| chosen.ignored.len());
            assert_eq!(named, ignored, "{snapshot:?} {leading:?} {others:?}");
        }
    }

    proptest! {
        #[test]
        fn revisions_are_raised_above_all_that_are_believed_and_never_near_their_end(
            snapshot in any::<Option<u64>>(), leading in any::<Option<u64>>(), others in proptest::collection::vec(any::<u64>(), 0..6),
            shift in 0..63_u32,
        ) {
            let smaller = |one: u64| one >> shift;
            let others: Vec<u64> = others.into_iter().map(smaller).collect();
            let snapshot = snapshot.map(smaller);
            if let Ok(RevisionBump { bump, ignored }) = choose_bump(snapshot, leading.map(smaller), said(&others)) {
                let raised = snapshot.unwrap_or_default() + bump;
                prop_assert!(raised <= HIGHEST);
                let believed = others.iter().filter(|one| ignored.iter().all(|forged| forged.revision != **one));
                prop_assert!(believed.max().is_none_or(|newest| raised >= newest + REVISION_BUMP));
            }
        }
    }
}
