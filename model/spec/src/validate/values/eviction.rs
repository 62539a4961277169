//! kubelet's lists of eviction signals.

use super::{is_quantity, must};
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
        is_amount,
        "a threshold",
        "write it as memory.available<100Mi or nodefs.available<10%",
    )
}

/// `memory.available=0Mi,nodefs.available=5%`.
pub(super) fn parse_reclaims(text: &str) -> Result<(), Refusal> {
    parse_list(
        text,
        '=',
        is_amount,
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

fn is_amount(value: &str) -> bool {
    match value.strip_suffix('%') {
        Some(percent) => percent
            .parse::<f64>()
            .is_ok_and(|percent| (0.0..=100.0).contains(&percent)),
        None => is_quantity(value),
    }
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
