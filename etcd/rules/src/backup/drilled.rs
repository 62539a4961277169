//! Which snapshot a drill reads: what a restore to the newest moment would need most is a snapshot with many changes after it.

use super::listing::StoredSnapshot;
use super::name::is_scheduled;

/// The name of the snapshot that a drill reads, from a complete listing: the newest one, or the last before it with changes, if there are more
/// parts of these. A drill comes right after a snapshot, which has hardly any yet. Parts behind a gap count too: a drill finds the gap.
pub fn choose_drilled<'a>(all: &'a [StoredSnapshot], newest: &'a str) -> &'a str {
    let Some(last) = all.iter().find(|one| one.name == newest) else {
        return newest;
    };
    let place = |one: &StoredSnapshot| (one.written, one.name.clone());
    let before = all.iter().filter(|one| {
        is_scheduled(&one.name)
            && one.has_manifest
            && one.has_data
            && !one.parts.is_empty()
            && place(one) < place(last)
    });
    let before = before.max_by_key(|one| place(one));
    let longer = before.filter(|before| before.parts.len() > last.parts.len());
    longer.map_or(newest, |before| before.name.as_str())
}

#[cfg(test)]
mod tests {
    use super::super::listing::group_snapshots;
    use super::super::name::{changes_key, data_key, manifest_key};
    use super::*;
    use std::time::Duration;

    const NAMES: [&str; 3] = [
        "2026-11-26T15:00:00Z-000001",
        "2026-11-26T15:15:00Z-000002",
        "2026-11-26T15:30:00Z-000003",
    ];

    /// Snapshots with these parts, the newest last.
    fn stored(parts: [&[u32]; 3]) -> Vec<StoredSnapshot> {
        let objects = (1_i64..).zip(NAMES).zip(parts);
        let keys = objects.flat_map(|((written, name), parts)| {
            let parts = parts.iter().map(move |part| changes_key(name, *part));
            let own = [data_key(name), manifest_key(name)].into_iter();
            own.chain(parts).map(move |key| (key, written))
        });
        let keys: Vec<(String, i64)> = keys.collect();
        let age = |written: i64| Duration::from_secs(60 - written.unsigned_abs());
        let listed = keys
            .iter()
            .map(|(key, written)| (key.as_str(), 1, Some(*written), Some(age(*written))));
        group_snapshots(listed)
    }

    #[test]
    fn the_last_snapshot_with_changes_is_drilled_unless_the_newest_has_more() {
        let none: &[u32] = &[];
        let cases: [([&[u32]; 3], usize); 7] = [
            ([none, none, none], 2),
            ([none, &[1, 2], none], 1),
            ([&[1, 2], none, none], 0),
            ([&[1, 2], &[1], none], 1),
            ([none, &[1, 2], &[1]], 1),
            ([none, &[1, 2], &[1, 2]], 2),
            // Nobody can reach these, and a drill says so.
            ([none, &[2, 3], &[1]], 1),
        ];
        for (parts, chosen) in cases {
            let all = stored(parts);
            assert_eq!(choose_drilled(&all, NAMES[2]), NAMES[chosen], "{parts:?}");
        }
    }

    #[test]
    fn only_a_snapshot_that_is_whole_takes_the_place_of_the_newest() {
        let mut all = stored([&[], &[1, 2], &[]]);
        assert_eq!(choose_drilled(&all, "not-listed"), "not-listed");
        all[1].has_manifest = false;
        assert_eq!(choose_drilled(&all, NAMES[2]), NAMES[2]);
        let mut all = stored([&[], &[1, 2], &[]]);
        // Somebody has asked for it: nobody follows it.
        all[1].name = "before-upgrade".into();
        assert_eq!(choose_drilled(&all, NAMES[2]), NAMES[2]);
    }
}
