//! The trust bundles that a worker may have. While keys are rotated, the bundle in a worker's user data may be older or newer than
//! the control plane's.

use crate::digest::sha256_hex;
use crate::pki::{Keyset, KeysetItem};
use std::collections::BTreeSet;

/// sha256 (hex) of every accepted bundle: `own`, and every run of consecutive keys that are not distrusted. A rotation appends
/// keys at the end and distrusts them from the front, so all its bundles are included.
pub fn trusted_bundle_digests(own: &str, keyset: &Keyset) -> BTreeSet<String> {
    let digest = |bundle: &str| sha256_hex(bundle);
    let mut all = BTreeSet::from([digest(own)]);
    let trusted: Vec<&KeysetItem> = keyset
        .items
        .iter()
        .filter(|item| item.distrusted.is_none())
        .collect();
    for first in 0..trusted.len() {
        let mut bundle = String::new();
        for item in trusted.iter().skip(first) {
            bundle.push_str(item.certificate.trim_end());
            bundle.push('\n');
            all.insert(digest(&bundle));
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
    fn a_worker_of_any_step_of_a_rotation_is_known_unless_it_trusts_what_is_distrusted() {
        let of = |keyset: &Keyset| sha256_hex(trust_bundle(keyset));
        let before = sample_keyset(&[("1", false)]);
        let during = sample_keyset(&[("1", false), ("2", false)]);
        let after = sample_keyset(&[("1", true), ("2", false)]);
        let known = trusted_bundle_digests(&trust_bundle(&during), &during);
        for step in [&before, &during, &after] {
            assert!(known.contains(&of(step)));
        }
        let known = trusted_bundle_digests(&trust_bundle(&after), &after);
        assert!(known.contains(&of(&after)));
        assert!(!known.contains(&of(&before)) && !known.contains(&of(&during)));
    }
}
