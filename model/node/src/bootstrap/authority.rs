//! The trust bundles that a worker may have. While keys are rotated, the bundle in a worker's user data may be older or newer than
//! the control plane's.

use crate::digest::sha256_hex;
use crate::pki::{Keyset, KeysetItem};
use std::collections::BTreeSet;

/// sha256 (hex) of every accepted bundle: `own`, and every run of consecutive keys among those that were trusted at any time. A rotation
/// appends keys at the end and distrusts them from the front, so all its bundles are included, also those of workers that still trust a key
/// which is distrusted by now. Nobody is let in by that: the digest only ties a request to this cluster, STS and EC2 say who makes it, and
/// whoever has a distrusted key can deceive a worker that trusts it whatever is answered here.
pub fn trusted_bundle_digests(own: &str, keyset: &Keyset) -> BTreeSet<String> {
    let digest = |bundle: &str| sha256_hex(bundle);
    let mut all = BTreeSet::from([digest(own)]);
    let mut trusted: Vec<&KeysetItem> = keyset.items.iter().collect();
    let times = keyset
        .items
        .iter()
        .filter_map(|item| item.distrusted.as_ref());
    let times: BTreeSet<&String> = times.collect();
    // Before the first key was distrusted, and after each time at which some were.
    for time in std::iter::once(None).chain(times.into_iter().map(Some)) {
        trusted.retain(|item| time.is_none() || item.distrusted.as_ref() != time);
        for first in 0..trusted.len() {
            let mut bundle = String::new();
            for item in trusted.iter().skip(first) {
                bundle.push_str(item.certificate.trim_end());
                bundle.push('\n');
                all.insert(digest(&bundle));
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pki::trust_bundle;

    fn sample_keyset(items: &[(&str, bool)]) -> Keyset {
        let item = |(id, distrusted): &(&str, bool)| KeysetItem {
            id: (*id).to_owned(),
            certificate: format!("certificate {id}\n"),
            key: None,
            distrusted: distrusted.then(|| "2030-01-01T00:00:00Z".to_owned()),
        };
        Keyset {
            name: "kubernetes-ca".to_owned(),
            primary: "1".to_owned(),
            items: items.iter().map(item).collect(),
        }
    }

    #[test]
    fn a_worker_of_any_step_of_a_rotation_is_known_at_any_other_step() {
        let of = |keyset: &Keyset| sha256_hex(trust_bundle(keyset));
        let before = sample_keyset(&[("1", false)]);
        let during = sample_keyset(&[("1", false), ("2", false)]);
        let after = sample_keyset(&[("1", true), ("2", false)]);
        for own in [&during, &after] {
            let known = trusted_bundle_digests(&trust_bundle(own), own);
            for step in [&before, &during, &after] {
                assert!(known.contains(&of(step)));
            }
        }
        // A key between two others was distrusted before.
        let (early, late) = ("2030-01-01T00:00:00Z", "2030-02-01T00:00:00Z");
        let mut long = sample_keyset(&[("1", true), ("2", true), ("3", false)]);
        long.items[1].distrusted = Some(early.to_owned());
        let during = long.clone();
        long.items[0].distrusted = Some(late.to_owned());
        let mut second = during;
        second.items[0].distrusted = None;
        let known = trusted_bundle_digests(&trust_bundle(&long), &long);
        assert!(known.contains(&of(&second)), "1 and 3");
        // Another cluster's bundle is not.
        let other = sample_keyset(&[("4", false)]);
        assert!(!known.contains(&of(&other)));
    }
}
