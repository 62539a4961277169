//! Laws of `cloud::own_tags` on what the builders make.

use super::settle::desired_of;
use super::spec;
use cloud::own_tags::Error;
use cloud::{Cloud, GroupTag, OwnTags};
use engine::Resource;
use node::names::REVISION_TAG;
use std::collections::BTreeSet;

/// The object with one more tag; `None` for kinds without.
fn with_tag(one: &Cloud, key: &str) -> Option<Cloud> {
    let mut one = one.clone();
    if let Cloud::AutoscalingGroup(group) = &mut one {
        group.tags.push(GroupTag {
            key: key.to_owned(),
            value: "x".to_owned(),
            propagate_at_launch: false,
        });
        return Some(one);
    }
    one.tags_mut()?.insert(key.to_owned(), "x".to_owned());
    Some(one)
}

#[test]
fn tags_of_others_are_not_seen_and_those_that_were_ever_set_are() {
    let all = desired_of(&spec::private_spec());
    let mut own = OwnTags::default();
    own.add_tags_of(&all);
    let mut before = OwnTags::parse_stored(own.to_json().as_bytes()).expect("the stored form");
    assert_eq!(before, own);
    before.add_everywhere(["Team".to_owned()].iter());
    let mut kinds = BTreeSet::new();
    for one in &all {
        assert_eq!(own.without_others(one.clone()), *one);
        let Some(more) = with_tag(one, "Team") else {
            continue;
        };
        kinds.insert(one.id().kind().to_owned());
        assert_eq!(own.without_others(more.clone()), *one);
        assert_eq!(before.without_others(more.clone()), more);
        let later = with_tag(one, REVISION_TAG).expect("tags");
        assert_eq!(
            own.without_others(later.clone()),
            later,
            "its place in a series"
        );
    }
    assert!(kinds.len() > 12, "{kinds:?}");
}

#[test]
fn what_a_later_release_wrote_is_refused() {
    let later = OwnTags::default().to_json().replace(": 1", ": 2");
    assert!(matches!(
        OwnTags::parse_stored(later.as_bytes()),
        Err(Error::Format(2))
    ));
    assert!(matches!(
        OwnTags::parse_stored(b"[]"),
        Err(Error::Unreadable(_))
    ));
}
