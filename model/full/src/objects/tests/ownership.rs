//! Laws of `cloud::ownership` on what the builders make.

use super::settle::{desired_of, snapshot_of};
use super::spec;
use cloud::Cloud;
use cloud::ownership::{OwnershipClaim, TAG_VALUE, set_ownership_tags, volumes_by_place};

/// Of every claim: what it marked is its own, whatever else it has; what another marked never is; what nobody marked is
/// its own if it has acted.
#[test]
fn a_volume_is_of_the_incarnation_that_marked_it() {
    let bare = desired_of(&spec::private_spec());
    let volumes = bare.iter().filter(|one| matches!(one, Cloud::EbsVolume(_)));
    let volumes = volumes.count();
    assert!(volumes > 0);
    for has_acted in [false, true] {
        for (incarnations, by, strange) in [
            (&["1"][..], Some("1"), false),
            (&["1", "2"], Some("1"), false),
            (&["1", "2"], Some("2"), false),
            (&["2"], Some("1"), true),
            (&[], Some("1"), true),
            (&["1"], None, !has_acted),
            (&[], None, !has_acted),
        ] {
            let mut all = bare.clone();
            if let Some(by) = by {
                set_ownership_tags(&mut all, "s3://a/NAME", by);
            }
            let claim = OwnershipClaim {
                incarnations: incarnations.iter().map(|&id| id.to_owned()).collect(),
                has_acted,
            };
            let strangers = claim.foreign_volumes(&snapshot_of(&all));
            assert_eq!(
                strangers.len(),
                if strange { volumes } else { 0 },
                "{claim:?}: {by:?}"
            );
            for one in strangers {
                assert_eq!(one.incarnation.as_deref(), by);
                assert_eq!(one.base.as_deref(), by.map(|_| "s3://a/NAME"));
            }
        }
    }
}

#[test]
fn a_place_that_is_longer_than_a_tag_is_left_out() {
    let mut all = desired_of(&spec::private_spec());
    set_ownership_tags(&mut all, &"x".repeat(TAG_VALUE + 1), "1");
    let strangers = OwnershipClaim::default().foreign_volumes(&snapshot_of(&all));
    assert!(!strangers.is_empty());
    assert!(strangers.iter().all(|one| one.base.is_none()));
}

/// A copy of a state store has the same incarnation, and is another place.
#[test]
fn a_volume_is_of_the_place_that_marked_it() {
    let bare = desired_of(&spec::private_spec());
    let is_here = |base: &str| base == "s3://a/NAME";
    assert_eq!(
        volumes_by_place(&snapshot_of(&bare), is_here),
        (Vec::new(), Vec::new())
    );
    for (base, own) in [("s3://a/NAME", true), ("s3://b/NAME", false)] {
        let mut all = bare.clone();
        set_ownership_tags(&mut all, base, "1");
        let (here, elsewhere) = volumes_by_place(&snapshot_of(&all), is_here);
        assert_eq!((here.is_empty(), elsewhere.is_empty()), (!own, own));
    }
}
