//! Kubernetes versions: how they are written, which are supported, which patch of each minor is
//! recommended.

use std::fmt;
use std::str::FromStr;

/// The newest minor of Kubernetes 1 that kctl knows.
pub const NEWEST_MINOR: u32 = 36;
/// The oldest minor that is supported: four of them are.
pub const OLDEST_SUPPORTED_MINOR: u32 = NEWEST_MINOR - 3;
/// The oldest minor that is still read and rendered, with a warning.
pub const OLDEST_MINOR: u32 = 32;

/// The patch release of a minor that new clusters get, as kOps' stable channel of August 2026.
pub fn recommended(minor: u32) -> Option<&'static str> {
    match minor {
        32 => Some("1.32.13"),
        33 => Some("1.33.13"),
        34 => Some("1.34.10"),
        35 => Some("1.35.7"),
        36 => Some("1.36.3"),
        _ => None,
    }
}

/// A version of Kubernetes 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KubernetesVersion {
    minor: u32,
    text: String,
}

/// Text that is no version of Kubernetes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a Kubernetes version such as 1.36.3")]
pub struct NotAVersion(String);

impl KubernetesVersion {
    /// The minor: 36 of `1.36.3`.
    pub fn minor(&self) -> u32 {
        self.minor
    }
}

impl FromStr for KubernetesVersion {
    type Err = NotAVersion;

    /// Takes `1.36.3` and `v1.36.3`, with a suffix such as `-rc.1` or `+build`.
    fn from_str(text: &str) -> Result<Self, NotAVersion> {
        let bare = text.strip_prefix('v').unwrap_or(text);
        let refused = || NotAVersion(text.to_owned());
        let core = bare.split(['-', '+']).next().unwrap_or(bare);
        let numbers: Option<Vec<u32>> = core.split('.').map(number).collect();
        match numbers.as_deref() {
            Some([1, minor, _patch]) => Ok(Self {
                minor: *minor,
                text: bare.to_owned(),
            }),
            _ => Err(refused()),
        }
    }
}

/// Digits only: `parse` alone would take a sign.
fn number(text: &str) -> Option<u32> {
    text.bytes()
        .all(|byte| byte.is_ascii_digit())
        .then(|| text.parse().ok())
        .flatten()
}

impl fmt::Display for KubernetesVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::{KubernetesVersion, NEWEST_MINOR, OLDEST_MINOR, recommended};

    #[test]
    fn a_version_is_written_with_or_without_v_and_suffix() {
        for (text, minor, bare) in [
            ("1.36.3", 36, "1.36.3"),
            ("v1.35.0", 35, "1.35.0"),
            ("v1.36.0-rc.1", 36, "1.36.0-rc.1"),
            ("1.34.1+own", 34, "1.34.1+own"),
        ] {
            let version: KubernetesVersion = text.parse().unwrap();
            assert_eq!(
                (version.minor(), version.to_string().as_str()),
                (minor, bare)
            );
        }
        for text in [
            "", "1.36", "2.0.0", "1.36.x", "1.+36.3", "latest", "1.36.3.4",
        ] {
            assert!(text.parse::<KubernetesVersion>().is_err(), "{text}");
        }
    }

    #[test]
    fn every_known_minor_has_a_recommended_patch() {
        for minor in OLDEST_MINOR..=NEWEST_MINOR {
            let version: KubernetesVersion = recommended(minor).unwrap().parse().unwrap();
            assert_eq!(version.minor(), minor);
        }
        assert_eq!(recommended(NEWEST_MINOR + 1), None);
    }
}
