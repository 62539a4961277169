//! The recommended patch release of each Kubernetes minor, and the minor of new clusters.

/// The minor of new clusters, and of specs that name no version: that of kOps' stable channel of August 2026.
pub const DEFAULT_MINOR: u32 = 36;

/// The patch release of a minor that clusters get, as kOps' stable channel of August 2026; of 1.37 the newest one whose hashes are in the
/// catalog.
pub fn recommended_patch(minor: u32) -> Option<&'static str> {
    match minor {
        32 => Some("1.32.13"),
        33 => Some("1.33.13"),
        34 => Some("1.34.10"),
        35 => Some("1.35.7"),
        36 => Some("1.36.3"),
        37 => Some("1.37.1"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::{DEFAULT_MINOR, recommended_patch};
    use crate::validate::versions::{NEWEST_MINOR, OLDEST_MINOR, Version};

    #[test]
    fn every_known_minor_has_a_recommended_patch() {
        for minor in OLDEST_MINOR..=NEWEST_MINOR {
            let version = Version::parse(recommended_patch(minor).unwrap()).unwrap();
            assert_eq!((version.major, version.minor), (1, minor));
        }
        assert_eq!(recommended_patch(NEWEST_MINOR + 1), None);
        assert!((OLDEST_MINOR..=NEWEST_MINOR).contains(&DEFAULT_MINOR));
    }
}
