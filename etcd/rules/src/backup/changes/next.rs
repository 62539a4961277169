//! Decides which chain of changes a member's instance goes on with: that of the newest snapshot, or first the one before, so that no moment
//! between two snapshots is lost.

use super::ChainEnd;
use crate::backup::state::{BackupState, LastSnapshot};

/// The snapshots whose chains matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChainNames<'a> {
    /// The newest scheduled snapshot of the etcd cluster.
    pub newest: &'a LastSnapshot,
    /// Name of the one whose changes were stored last, if it is another one.
    pub before: Option<&'a str>,
}

/// What is done with the chains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChainStep {
    /// The chain of the newest snapshot goes on.
    FollowNewest,
    /// The chain before goes on, because it does not reach the newest snapshot yet.
    FollowBefore,
    /// The chain of the newest snapshot gets what the one before has behind its end. etcd may have compacted it since: an upload takes longer
    /// than clients keep old revisions.
    CarryOver,
}

/// The snapshots whose chains matter to the etcd cluster with this id (hex) and the backup store at this address. `None`: it has no verified
/// snapshot there, so there is nothing that changes could follow.
pub fn choose_chains<'a>(
    state: &'a BackupState,
    store: &str,
    cluster_id: &str,
) -> Option<ChainNames<'a>> {
    let newest = state.last.as_ref()?;
    if newest.store != store || newest.cluster_id.as_deref() != Some(cluster_id) {
        return None;
    }
    let changes = state.changes.as_ref();
    let before = changes.map(|changes| changes.snapshot.as_str());
    Some(ChainNames {
        newest,
        before: before.filter(|before| *before != newest.name),
    })
}

/// What is done next. `newest`: how far the chain of the newest snapshot is stored; `before`: that of the one before, if it can be continued.
pub fn next_chain_step(newest: &ChainEnd, before: Option<&ChainEnd>) -> ChainStep {
    match before {
        // A snapshot without parts has nothing that could be carried over, however new it is: etcd itself has it, or nobody.
        Some(before) if before.sequence == 0 && before.revision >= newest.revision => {
            ChainStep::FollowNewest
        }
        Some(before) if before.revision > newest.revision => ChainStep::CarryOver,
        Some(before) if newest.sequence == 0 && before.revision < newest.revision => {
            ChainStep::FollowBefore
        }
        _ => ChainStep::FollowNewest,
    }
}

#[cfg(test)]
mod tests {
    use super::super::ChangesState;
    use super::super::samples::snapshot;
    use super::*;
    use time::macros::datetime;

    const OWN: &str = "cdf818194e3a8c32";
    const STORE: &str = "s3://b";

    #[test]
    fn the_chain_before_goes_on_until_it_reaches_the_newest_snapshot() {
        use ChainStep::{CarryOver, FollowBefore, FollowNewest};
        // Revision of the last part, and how many there are; without any, of the snapshot: of the newest one, and of the one before.
        for (newest, before, expected) in [
            ((20, 0), None, FollowNewest),
            ((20, 3), None, FollowNewest),
            ((20, 0), Some((19, 7)), FollowBefore),
            ((20, 0), Some((19, 0)), FollowBefore),
            ((20, 0), Some((20, 7)), FollowNewest),
            ((20, 0), Some((21, 7)), CarryOver),
            // It was begun, so the one before has reached it.
            ((20, 1), Some((19, 7)), FollowNewest),
            ((20, 1), Some((20, 7)), FollowNewest),
            // Whoever began it has died.
            ((20, 1), Some((21, 7)), CarryOver),
            // Of a member that was ahead.
            ((20, 0), Some((21, 0)), FollowNewest),
        ] {
            let end = |(revision, parts): (u64, u32)| ChainEnd {
                sequence: parts,
                ..snapshot(OWN, revision)
            };
            let (newest, before) = (end(newest), before.map(end));
            let step = next_chain_step(&newest, before.as_ref());
            assert_eq!(step, expected, "{newest:?}, {before:?}");
        }
    }

    #[test]
    fn only_snapshots_of_the_etcd_cluster_in_its_store_have_chains() {
        let last = LastSnapshot {
            name: "s2".into(),
            store: STORE.into(),
            instance: "i-1".into(),
            cluster_id: Some(OWN.into()),
            revision: 20,
            compressed_bytes: 1,
            taken_at: "2026-11-26T15:00:00Z".into(),
            cluster_state_problem: None,
        };
        let now = datetime!(2026-11-26 15:04:05 UTC);
        let changes = |name: &str| {
            let end = ChainEnd {
                snapshot: name.into(),
                ..snapshot(OWN, 10)
            };
            Some(ChangesState::new(&end, "i-1", now))
        };
        let state = |last: Option<LastSnapshot>, changes: Option<ChangesState>| BackupState {
            last,
            changes,
            ..BackupState::default()
        };
        for (state, store, id, expected) in [
            (state(None, changes("s1")), STORE, OWN, None),
            (state(Some(last.clone()), None), "s3://other", OWN, None),
            (state(Some(last.clone()), None), STORE, "0123", None),
            (state(Some(last.clone()), None), STORE, OWN, Some(None)),
            (
                state(Some(last.clone()), changes("s2")),
                STORE,
                OWN,
                Some(None),
            ),
            (
                state(Some(last.clone()), changes("s1")),
                STORE,
                OWN,
                Some(Some("s1")),
            ),
        ] {
            let chosen = choose_chains(&state, store, id);
            assert_eq!(chosen.map(|chosen| chosen.before), expected, "{state:?}");
            assert!(chosen.is_none_or(|chosen| *chosen.newest == last));
        }
        let nobodys = LastSnapshot {
            cluster_id: None,
            ..last
        };
        assert_eq!(choose_chains(&state(Some(nobodys), None), STORE, OWN), None);
    }
}
