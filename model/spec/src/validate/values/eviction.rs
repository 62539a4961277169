//! kubelet's lists of eviction signals.

use super::{is_amount, is_zero, must};
use node::duration::parse_seconds;
use node::values::Refusal;

/// Signals by which kubelet evicts pods (kubelet's `evictionapi`).
const SIGNALS: [&str; 9] = [
    "allocatableMemory.available",
    "containerfs.available",
    "containerfs.inodesFree",
    "imagefs.available",
    "imagefs.inodesFree",
    "memory.available",
    "nodefs.available",
    "nodefs.inodesFree",
    "pid.available",
];

/// `memory.available<100Mi,nodefs.available<10%`.
pub(super) fn parse_thresholds(text: &str) -> Result<(), Refusal> {
    parse_list(
        text,
        '<',
        is_threshold,
        "a threshold",
        "write it as memory.available<100Mi or nodefs.available<10%",
    )
}

/// `memory.available=0Mi,nodefs.available=5%`.
pub(super) fn parse_reclaims(text: &str) -> Result<(), Refusal> {
    parse_list(
        text,
        '=',
        is_reclaim,
        "an amount to reclaim",
        "write it as memory.available=500Mi",
    )
}

/// `memory.available=1m30s`.
pub(super) fn parse_grace_periods(text: &str) -> Result<(), Refusal> {
    let period = |value: &str| parse_seconds(value).is_some_and(|seconds| seconds >= 0.0);
    parse_list(
        text,
        '=',
        period,
        "a grace period",
        "write it as memory.available=1m30s",
    )
}

/// kubelet takes 0% and 100% for no threshold, and does not start with a quantity that is not positive.
fn is_threshold(value: &str) -> bool {
    match value.strip_suffix('%') {
        Some(percent) => parse_percent(percent).is_some(),
        None => is_amount(value) && !is_zero(value),
    }
}

/// Of a share something is reclaimed, of a quantity perhaps nothing.
fn is_reclaim(value: &str) -> bool {
    match value.strip_suffix('%') {
        Some(percent) => parse_percent(percent).is_some_and(|percent| percent > 0.0),
        None => is_amount(value),
    }
}

fn parse_percent(text: &str) -> Option<f64> {
    let percent = text.parse::<f64>().ok()?;
    (0.0..=100.0).contains(&percent).then_some(percent)
}

/// The first signal with a soft threshold and without a grace period, with which kubelet does not start.
pub fn signal_without_grace<'a>(thresholds: &'a str, periods: &str) -> Option<&'a str> {
    let named = |part: &str, signal: &str| {
        part.split_once('=')
            .is_some_and(|(name, _)| name.trim() == signal)
    };
    thresholds
        .split(',')
        .filter_map(|part| part.split_once('<'))
        .filter(|(_, value)| !["0%", "100%"].contains(&value.trim()))
        .map(|(signal, _)| signal.trim())
        .find(|signal| !periods.split(',').any(|part| named(part, signal)))
}

/// Nothing is a list too: it turns evictions off.
fn parse_list(
    text: &str,
    separator: char,
    is_value: impl Fn(&str) -> bool,
    what: &str,
    hint: &str,
) -> Result<(), Refusal> {
    let mut parts = text
        .split(',')
        .map(str::trim)
        .filter(|part| !part.is_empty());
    parts.try_for_each(|part| {
        let pair = part.split_once(separator);
        let fits = pair.is_some_and(|(signal, value)| {
            SIGNALS.contains(&signal.trim()) && is_value(value.trim())
        });
        must(fits, part, what, hint)
    })
}

#[cfg(test)]
mod tests {
    use super::{parse_reclaims, parse_thresholds, signal_without_grace};

    /// What kubelet says in `ParseThresholdConfig` (`pkg/kubelet/eviction/helpers.go`).
    #[test]
    fn amounts_are_those_with_which_kubelet_starts() {
        for (value, threshold, reclaim) in [
            ("100Mi", true, true),
            ("0", false, true),
            ("0Mi", false, true),
            ("0.0", false, true),
            ("0e5", false, true),
            ("-100Mi", false, false),
            ("10%", true, true),
            ("0%", true, false),
            ("100%", true, true),
            ("-5%", false, false),
            ("101%", false, false),
            ("NaN%", false, false),
            ("", false, false),
        ] {
            let fits = parse_thresholds(&format!("memory.available<{value}")).is_ok();
            assert_eq!(fits, threshold, "{value}");
            let fits = parse_reclaims(&format!("memory.available={value}")).is_ok();
            assert_eq!(fits, reclaim, "{value}");
        }
    }

    #[test]
    fn every_soft_threshold_has_its_grace_period() {
        for (thresholds, periods, missing) in [
            ("", "", None),
            ("memory.available<1Gi", "memory.available=1m", None),
            (
                "memory.available<1Gi, nodefs.available<10%",
                "nodefs.available = 1m,memory.available=30s",
                None,
            ),
            ("memory.available<0%", "", None),
            ("memory.available<1Gi", "", Some("memory.available")),
            (
                "memory.available<1Gi,nodefs.available<10%",
                "memory.available=1m",
                Some("nodefs.available"),
            ),
        ] {
            assert_eq!(signal_without_grace(thresholds, periods), missing);
        }
    }
}
