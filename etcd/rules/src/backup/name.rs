//! Names of snapshots and keys of their objects. The layout is etcd-manager's (`pkg/backup/vfs.go`), so each can restore the other's; the
//! manifest is an addition.

use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// The compressed file, below the snapshot's name.
pub const DATA_FILE: &str = "etcd.backup.gz";

/// What etcd-manager needs to know of it.
pub const META_FILE: &str = "_etcd_backup.meta";

/// What is known of it. A snapshot without manifest is unfinished, or etcd-manager's.
pub const MANIFEST_FILE: &str = "manifest.json";

/// The cluster's spec and private keys, sealed for those whom the spec names.
pub const CLUSTER_STATE_FILE: &str = "cluster-state.zip.age";

/// Folder of the changes after a snapshot, below its name.
const CHANGES_FOLDER: &str = "changes";

/// Digits of the sequence number in the key of a part, so that keys are listed in the order of the parts.
const PART_DIGITS: usize = 8;

/// The highest sequence number of a part. The first one has 1.
pub const MOST_PARTS: u32 = 99_999_999;

/// Longest name, characters.
const LONGEST: usize = 128;

/// The name of a scheduled snapshot, as etcd-manager forms them: `2026-11-25T05:40:00Z-000123`.
pub fn scheduled_name(now: OffsetDateTime, sequence: u32) -> String {
    let now = now.to_offset(time::UtcOffset::UTC);
    let now = now.replace_nanosecond(0).unwrap_or(now);
    let time = now.format(&Rfc3339).unwrap_or_default();
    format!("{time}-{:06}", sequence % 1_000_000)
}

/// True for the name of a scheduled snapshot. Every other one was asked for by somebody, and is never deleted by itself.
pub fn is_scheduled(name: &str) -> bool {
    named_time(name).is_some()
}

/// The time in the name of a scheduled snapshot, by the clock of the instance that took it, Unix seconds.
pub(super) fn named_time(name: &str) -> Option<i64> {
    let (time, sequence) = name.rsplit_once('-')?;
    let has_form = sequence.len() == 6
        && sequence.bytes().all(|byte| byte.is_ascii_digit())
        && time.ends_with('Z')
        && time.len() == "2026-11-25T05:40:00Z".len();
    let time = OffsetDateTime::parse(time, &Rfc3339).ok();
    time.filter(|_| has_form)
        .map(OffsetDateTime::unix_timestamp)
}

/// Checks the name of a snapshot. The error says what is wrong.
pub fn check_snapshot_name(name: &str) -> Result<(), String> {
    let mut characters = name.chars();
    let begins = characters
        .next()
        .is_some_and(|first| first.is_ascii_alphanumeric());
    let is_valid = |one: char| one.is_ascii_alphanumeric() || ['.', '_', ':', '-'].contains(&one);
    if begins && characters.all(is_valid) && name.len() <= LONGEST {
        return Ok(());
    }
    Err(format!(
        "{name:?} is no name of a snapshot: a letter or digit, then letters, digits, `.`, `_`, `:` and `-`, {LONGEST} at most"
    ))
}

/// Checks the name of a snapshot that somebody asks for. The error says what is wrong.
pub fn check_asked_name(name: &str) -> Result<(), String> {
    check_snapshot_name(name)?;
    if is_scheduled(name) {
        return Err(format!(
            "{name} has the form of scheduled snapshots, which are deleted by themselves: choose another name"
        ));
    }
    Ok(())
}

/// Key of the compressed file, relative to the backup store.
pub fn data_key(name: &str) -> String {
    format!("{name}/{DATA_FILE}")
}

/// What of the state store is sealed beside a snapshot: the spec, the instance groups, objects of users, keysets and SSH keys, and what the
/// operator stored as secrets. All else follows from it. Prefixes end with `/`, others are whole keys.
pub const CLUSTER_STATE_KEYS: [&str; 6] = [
    "cluster-completed.spec",
    "clusteraddons/",
    "config",
    "instancegroup/",
    "pki/",
    "secrets/",
];

/// Key of the sealed spec and private keys.
pub fn cluster_state_key(name: &str) -> String {
    format!("{name}/{CLUSTER_STATE_FILE}")
}

/// Key of etcd-manager's description.
pub fn meta_key(name: &str) -> String {
    format!("{name}/{META_FILE}")
}

/// Key of the manifest.
pub fn manifest_key(name: &str) -> String {
    format!("{name}/{MANIFEST_FILE}")
}

/// Prefix of the keys of the parts of the changes after a snapshot.
pub fn changes_prefix(name: &str) -> String {
    format!("{name}/{CHANGES_FOLDER}/")
}

/// Key of a part of the changes after a snapshot. `sequence`: 1 to [`MOST_PARTS`].
pub fn changes_key(name: &str, sequence: u32) -> String {
    format!("{}{sequence:0PART_DIGITS$}", changes_prefix(name))
}

/// The sequence number of a part, from what its key has below the snapshot's name: `changes/00000001`.
pub(super) fn named_part(file: &str) -> Option<u32> {
    let (folder, digits) = file.split_once('/')?;
    let has_form = folder == CHANGES_FOLDER
        && digits.len() == PART_DIGITS
        && digits.bytes().all(|byte| byte.is_ascii_digit());
    let sequence = digits.parse::<u32>().ok();
    sequence.filter(|sequence| has_form && *sequence > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use time::macros::datetime;

    #[test]
    fn a_scheduled_name_is_known_by_its_form() {
        let name = scheduled_name(datetime!(2026-11-25 06:40:00.7 +1), 1_000_123);
        assert_eq!(name, "2026-11-25T05:40:00Z-000123");
        assert!(is_scheduled(&name) && check_snapshot_name(&name).is_ok());
        for asked in [
            "manual",
            "manual-2026-11-25T05-40-00Z",
            "2026-11-25T05:40:00Z-00012",
            "2026-11-25T05:40:00Z-0001234",
            "2026-13-25T05:40:00Z-000123",
            "before-2026-11-25T05:40:00Z-000123",
        ] {
            assert!(!is_scheduled(asked), "{asked}");
            assert!(check_snapshot_name(asked).is_ok(), "{asked}");
        }
    }

    #[test]
    fn a_part_is_known_by_its_eight_digits() {
        for sequence in [1, 42, MOST_PARTS] {
            let key = changes_key("before-upgrade", sequence);
            let file = key.strip_prefix("before-upgrade/").unwrap();
            assert_eq!(named_part(file), Some(sequence), "{key}");
        }
        for other in [
            "changes/00000000",
            "changes/0000001",
            "changes/000000001",
            "changes/+0000001",
            "changes/0000001a",
            "changes/",
            "changes",
            "other/00000001",
            "changes/00000001/00000001",
        ] {
            assert_eq!(named_part(other), None, "{other}");
        }
    }

    #[test]
    fn no_name_leads_out_of_its_folder() {
        for bad in [
            "",
            ".",
            "..",
            "a/b",
            "../a",
            "-a",
            "a b",
            "a%3Ab",
            "a\n",
            "ü",
            &"a".repeat(129),
        ] {
            assert!(check_snapshot_name(bad).is_err(), "{bad:?}");
        }
    }
}
