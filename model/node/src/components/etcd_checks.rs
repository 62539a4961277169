//! Settings of etcd that kctl sets unless the spec does: checks for members whose data differ. Also the quota of the database.

use std::collections::BTreeMap;

/// Quota of the database without a setting, bytes (etcd: `storage.DefaultQuotaBytes`).
const DEFAULT_QUOTA: u64 = 2 << 30;

/// Setting of the quota, bytes. Zero means the default, and a negative number no quota (etcd: `NewBackendQuota`).
const QUOTA: &str = "ETCD_QUOTA_BACKEND_BYTES";

/// Setting of etcd 3.6 and newer for features: `Name=true,Other=false`.
const FEATURE_GATES: &str = "ETCD_FEATURE_GATES";

/// Checks as features of etcd 3.6 and newer, each with the setting of etcd 3.5, which 3.6 still knows and refuses beside its feature. With
/// 3.7, a spec that has it is refused.
///
/// At its start, a member compares its data with those of the members that answer, and exits if they differ; without an answer, which
/// takes seven seconds for each of them at most, it starts (etcd: `corruptionChecker.InitialCheck`). A new member is not checked
/// (`memberInitialized` in `embed.StartEtcd`). The leader compares the hashes of compactions every minute, and raises the alarm
/// `CORRUPT` for members that differ from a majority (`corruptionChecker.CompactHashCheck`). kube-apiserver compacts every five
/// minutes, each etcd cluster by itself (k8s.io/apiserver: `startCompactorOnce`).
const CHECKS: &[(&str, &str)] = &[
    (
        "InitialCorruptCheck",
        "ETCD_EXPERIMENTAL_INITIAL_CORRUPT_CHECK",
    ),
    (
        "CompactHashCheck",
        "ETCD_EXPERIMENTAL_COMPACT_HASH_CHECK_ENABLED",
    ),
];

/// Time between two comparisons of all keys by the leader, which read the whole database. etcd's authors recommend both periodic
/// checks, this one every few hours (<https://etcd.io/docs/v3.5/op-guide/data_corruption/>).
const CHECK_TIME: &str = "12h";

/// The setting of [`CHECK_TIME`] in etcd 3.6, and in 3.5.
const CHECK_TIMES: (&str, &str) = (
    "ETCD_CORRUPT_CHECK_TIME",
    "ETCD_EXPERIMENTAL_CORRUPT_CHECK_TIME",
);

/// The settings that find members whose data differ, for this version of etcd. Those of the spec have precedence.
pub fn corruption_checks(
    version: &str,
    spec: &BTreeMap<String, String>,
) -> BTreeMap<String, String> {
    let has_features = minor(version).is_none_or(|minor| minor >= 6);
    let mut settings = BTreeMap::new();
    let (time, old_time) = CHECK_TIMES;
    let time = if has_features { time } else { old_time };
    if !spec.contains_key(old_time) {
        settings.insert(time.to_owned(), CHECK_TIME.to_owned());
    }
    let own = spec.get(FEATURE_GATES).map_or("", String::as_str);
    let mut features: Vec<String> = own.split(',').map(str::to_owned).collect();
    features.retain(|feature| !feature.is_empty());
    for (feature, old) in CHECKS {
        let is_set = |one: &String| one.split('=').next() == Some(*feature);
        if !has_features {
            settings.insert((*old).to_owned(), "true".to_owned());
        } else if !spec.contains_key(*old) && !features.iter().any(is_set) {
            features.push(format!("{feature}=true"));
        }
    }
    settings.extend(spec.clone());
    if has_features && !features.is_empty() {
        settings.insert(FEATURE_GATES.to_owned(), features.join(","));
    }
    settings
}

/// The quota of the database with these settings, bytes; `None` if there is none.
pub fn etcd_quota(settings: &BTreeMap<String, String>) -> Option<u64> {
    match settings.get(QUOTA).map(|quota| quota.parse::<i64>()) {
        Some(Ok(quota)) if quota < 0 => None,
        Some(Ok(quota)) if quota > 0 => u64::try_from(quota).ok(),
        _ => Some(DEFAULT_QUOTA),
    }
}

/// The minor version in `3.6.12`.
fn minor(version: &str) -> Option<u32> {
    version.split('.').nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checks(version: &str, spec: &[(&str, &str)]) -> Vec<String> {
        let spec = spec
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let all = corruption_checks(version, &spec.collect());
        let line = |(name, value)| format!("{name}={value}");
        all.into_iter().map(line).collect()
    }

    #[test]
    fn each_version_gets_the_settings_that_it_knows() {
        assert_eq!(
            checks("3.5.31", &[]),
            [
                "ETCD_EXPERIMENTAL_COMPACT_HASH_CHECK_ENABLED=true",
                "ETCD_EXPERIMENTAL_CORRUPT_CHECK_TIME=12h",
                "ETCD_EXPERIMENTAL_INITIAL_CORRUPT_CHECK=true",
            ]
        );
        for version in ["3.6.12", "3.7.2"] {
            assert_eq!(
                checks(version, &[]),
                [
                    "ETCD_CORRUPT_CHECK_TIME=12h",
                    "ETCD_FEATURE_GATES=InitialCorruptCheck=true,CompactHashCheck=true",
                ]
            );
        }
    }

    #[test]
    fn what_the_spec_says_wins_under_either_name() {
        let spec = [
            ("ETCD_EXPERIMENTAL_INITIAL_CORRUPT_CHECK", "false"),
            ("ETCD_EXPERIMENTAL_CORRUPT_CHECK_TIME", "1h"),
        ];
        assert_eq!(
            checks("3.5.31", &spec),
            [
                "ETCD_EXPERIMENTAL_COMPACT_HASH_CHECK_ENABLED=true",
                "ETCD_EXPERIMENTAL_CORRUPT_CHECK_TIME=1h",
                "ETCD_EXPERIMENTAL_INITIAL_CORRUPT_CHECK=false",
            ]
        );
        assert_eq!(
            checks("3.6.12", &spec),
            [
                "ETCD_EXPERIMENTAL_CORRUPT_CHECK_TIME=1h",
                "ETCD_EXPERIMENTAL_INITIAL_CORRUPT_CHECK=false",
                "ETCD_FEATURE_GATES=CompactHashCheck=true",
            ]
        );
        let spec = [
            (
                "ETCD_FEATURE_GATES",
                "CompactHashCheck=false,LeaseCheckpoint=true",
            ),
            ("ETCD_CORRUPT_CHECK_TIME", "0s"),
        ];
        assert_eq!(
            checks("3.6.12", &spec),
            [
                "ETCD_CORRUPT_CHECK_TIME=0s",
                "ETCD_FEATURE_GATES=CompactHashCheck=false,LeaseCheckpoint=true,InitialCorruptCheck=true",
            ]
        );
    }

    #[test]
    fn a_quota_is_what_etcd_makes_of_the_setting() {
        let quota = |value: &str| etcd_quota(&[(QUOTA.to_owned(), value.to_owned())].into());
        assert_eq!(quota("8589934592"), Some(8 << 30));
        assert_eq!(quota("-1"), None);
        for value in ["0", "much"] {
            assert_eq!(quota(value), Some(2 << 30));
        }
        assert_eq!(etcd_quota(&BTreeMap::new()), Some(2 << 30));
    }
}
