//! Random numbers that a seed repeats.

use anyhow::{Context, Result};

/// The number in an environment variable; `None` if it is not set, or empty.
pub fn number_from_environment(name: &str) -> Result<Option<u64>> {
    let text = std::env::var(name).ok().filter(|text| !text.is_empty());
    let number = text.map(|text| text.parse()).transpose();
    number.with_context(|| format!("{name} is no number"))
}

/// A number from 0 to 1 for each seed and position (splitmix64).
pub fn random_fraction(seed: u64, position: u64) -> f64 {
    let step = 0x9e37_79b9_7f4a_7c15;
    let mut bits = seed.wrapping_add(position.wrapping_add(1).wrapping_mul(step));
    for (shift, factor) in [(30, 0xbf58_476d_1ce4_e5b9), (27, 0x94d0_49bb_1331_11eb)] {
        bits = (bits ^ (bits >> shift)).wrapping_mul(factor);
    }
    f64::from(u32::try_from(bits >> 32).unwrap_or(u32::MAX)) / f64::from(u32::MAX)
}
