//! What must be settled between desired and observed state before they can be compared by id: names that AWS does
//! not keep, successors of what cannot change in place, and values that others write. Pure, before every plan.

use super::used_load_balancers::is_known_to_instances;
use super::{
    Cloud, Kind, Lb, LbListener, Route53Record, SecurityGroupRule, Subnet, SubnetIpv6Range, Variant,
};
use engine::{Id, Observed, Ref, Resource, Snapshot};
use node::names;
use std::collections::{BTreeMap, BTreeSet};

/// Desired and observed state, made comparable.
///
/// - An observed security group rule takes the name of the desired rule with the same content: AWS keeps no names.
/// - A desired load balancer, target group or set of DHCP options that an observed one cannot be changed into takes
///   the next name of its series, or that of a successor that is there already; all references follow. A load balancer whose
///   addresses are in user data cannot be changed into one without one of its zones: instances would lose an address.
/// - A record whose values protokube writes is equal once it is there.
/// - A subnet that is to have a part of the VPC's IPv6 range has it under that name, once it has such a range.
///
/// Settling what is settled changes nothing; a desired state equal to the observed one stays so; desired ids stay
/// distinct.
pub fn settle(desired: Vec<Cloud>, observed: Snapshot<Cloud>) -> (Vec<Cloud>, Snapshot<Cloud>) {
    // Target groups come after balancers: which balancer uses one is part of what it is.
    let first = |one: &Cloud| matches!(one, Cloud::Lb(_) | Cloud::VpcDhcpOptions(_));
    let then = |one: &Cloud| matches!(one, Cloud::LbTargetGroup(_));
    let desired = assign_successors(desired, &observed, first);
    let desired = assign_successors(desired, &observed, then);
    let observed = with_rule_names(&desired, observed);
    let observed = with_foreign_values(&desired, observed);
    let observed = with_ipv6_parts(&desired, observed);
    (desired, observed)
}

/// Moves the desired objects of some kinds to their places in their series, and all references with them.
fn assign_successors(
    mut desired: Vec<Cloud>,
    observed: &Snapshot<Cloud>,
    of: impl Fn(&Cloud) -> bool,
) -> Vec<Cloud> {
    let users = Users::from_states(&desired, observed);
    let known =
        |want: &&Cloud| matches!(want, Cloud::Lb(_)) && is_known_to_instances(&want.id(), &desired);
    let known: BTreeSet<Id> = desired.iter().filter(known).map(Resource::id).collect();
    let mut moved: BTreeMap<Id, Id> = BTreeMap::new();
    for want in desired.iter_mut().filter(|want| of(want)) {
        let keeps_zones = known.contains(&want.id());
        let placed = place_in_series(want, observed, &users, keeps_zones);
        if placed.id() != want.id() {
            moved.insert(want.id(), placed.id());
        }
        *want = placed;
    }
    if moved.is_empty() {
        return desired;
    }
    let rename = |reference: &Ref| match reference.id().and_then(|id| moved.get(&id)) {
        Some(id) => Ref::own(id),
        None => reference.clone(),
    };
    desired.iter().map(|one| one.with_refs(&rename)).collect()
}

/// The object at its place in its series: that of an observed member that can become it, one already used as wanted
/// before a newer one; if there is none, behind the newest. It does not move past a member that holds addresses it
/// wants, since the two could not stand side by side: that change is refused ([`Resource::refuses`]).
fn place_in_series(
    want: &Cloud,
    observed: &Snapshot<Cloud>,
    users: &Users,
    keeps_zones: bool,
) -> Cloud {
    let Some((base, _)) = want.series() else {
        return want.clone();
    };
    let mut newest = 0;
    let mut best: Option<(bool, u32)> = None;
    let mut blocking: Option<u32> = None;
    for have in observed.items.iter().map(|item| &item.resource) {
        let Some((_, revision)) = have.series().filter(|(of, _)| *of == base) else {
            continue;
        };
        if have.id().kind() != want.id().kind() {
            continue;
        }
        newest = newest.max(revision);
        let successor = at_revision(want, &base, revision);
        let fits_position =
            can_become(have, &successor) && !(keeps_zones && loses_zones(have, want));
        if fits_position && users.users_fit(&have.id(), &want.id()) {
            best = best.max(Some((users.same_users(&have.id(), &want.id()), revision)));
        } else if holds_what_it_wants(have, want) {
            blocking = blocking.max(Some(revision));
        }
    }
    let stays = best.map(|(_, revision)| revision).or(blocking);
    at_revision(want, &base, stays.unwrap_or(newest + 1))
}

/// An object's series and its place there, if its kind has successors. What the members of a series have in common is the
/// tag `Name`.
pub(super) fn series_of<K: Kind>(one: &K) -> Option<(String, u32)> {
    if !K::HAS_SUCCESSORS {
        return None;
    }
    let mut copy = one.clone();
    let tags = copy.tags_mut()?;
    Some((
        tags.get(names::NAME_TAG)?.clone(),
        names::series_revision(tags),
    ))
}

/// True if both are of a kind, and AWS can change the one into the other in place.
fn can_become(have: &Cloud, want: &Cloud) -> bool {
    fn can_become<K: Kind>(have: &K, want: &Cloud) -> bool {
        K::of(want).is_some_and(|want| have.can_become(want))
    }
    match_kind!(have, have => can_become(have, want))
}

/// True if both are balancers and the one has a zone that the other is to lack.
fn loses_zones(have: &Cloud, want: &Cloud) -> bool {
    let both = Lb::of(have).zip(Lb::of(want));
    both.is_some_and(|(have, want)| have.has_more_subnets_than(want))
}

/// True if both are balancers and the one has addresses that the other is to have.
fn holds_what_it_wants(have: &Cloud, want: &Cloud) -> bool {
    let both = Lb::of(have).zip(Lb::of(want));
    both.is_some_and(|(have, want)| have.shared_addresses(want).next().is_some())
}

/// The object at a position of its series.
fn at_revision(want: &Cloud, base: &str, revision: u32) -> Cloud {
    fn moved<K: Kind>(want: &K, base: &str, revision: u32) -> Cloud {
        let mut moved = want.clone();
        moved.move_in_series(base, revision);
        if let Some(tags) = moved.tags_mut() {
            if revision > 1 {
                tags.insert(names::REVISION_TAG.into(), revision.to_string());
            } else {
                tags.remove(names::REVISION_TAG);
            }
        }
        moved.into()
    }
    match_kind!(want, want => moved(want, base, revision))
}

/// Which balancers forward to which target group: AWS lets a target group serve one balancer only.
struct Users {
    desired: BTreeMap<Id, BTreeSet<Ref>>,
    observed: BTreeMap<Id, BTreeSet<Ref>>,
}

impl Users {
    fn from_states(desired: &[Cloud], observed: &Snapshot<Cloud>) -> Self {
        let seen = observed.items.iter().map(|item| &item.resource);
        Self {
            desired: users_by_object(desired.iter()),
            observed: users_by_object(seen),
        }
    }

    /// True if no balancer uses the one that will not use the other.
    fn users_fit(&self, have: &Id, want: &Id) -> bool {
        let none = BTreeSet::new();
        let have = self.observed.get(have).unwrap_or(&none);
        have.is_subset(self.desired.get(want).unwrap_or(&none))
    }

    /// True if the same balancers use the one as will use the other.
    fn same_users(&self, have: &Id, want: &Id) -> bool {
        self.observed.get(have) == self.desired.get(want)
    }
}

fn users_by_object<'a>(all: impl Iterator<Item = &'a Cloud>) -> BTreeMap<Id, BTreeSet<Ref>> {
    let mut users: BTreeMap<Id, BTreeSet<Ref>> = BTreeMap::new();
    for listener in all.filter_map(LbListener::of) {
        if let Some(group) = listener.target_group_arn.id() {
            let balancer = listener.load_balancer_arn.clone();
            users.entry(group).or_default().insert(balancer);
        }
    }
    users
}

/// Observed rules under the names of desired rules of the same content. A rule that is not desired keeps the name it
/// came with, with its AWS id added where a desired rule has that name.
fn with_rule_names(desired: &[Cloud], observed: Snapshot<Cloud>) -> Snapshot<Cloud> {
    let rules = desired.iter().filter_map(SecurityGroupRule::of);
    let by_content: BTreeMap<_, &SecurityGroupRule> =
        rules.map(|rule| (rule.rule_key(), rule)).collect();
    let taken: BTreeSet<&str> = by_content.values().map(|rule| rule.name.as_str()).collect();
    let named = |mut item: Observed<Cloud>| {
        if let Cloud::SecurityGroupRule(rule) = &mut item.resource {
            match by_content.get(&rule.rule_key()) {
                Some(same) => rule.name.clone_from(&same.name),
                None if taken.contains(rule.name.as_str()) => {
                    rule.name = format!("{}#{}", rule.name, item.physical);
                }
                None => {}
            }
        }
        item
    };
    Snapshot {
        items: observed.items.into_iter().map(named).collect(),
    }
}

/// Observed records as desired, where the values are not ours and the record is no alias.
fn with_foreign_values(desired: &[Cloud], observed: Snapshot<Cloud>) -> Snapshot<Cloud> {
    let records = desired.iter().filter_map(Route53Record::of);
    let records = records.filter(|record| of_others(record));
    let of_others: BTreeMap<Id, &Route53Record> =
        records.map(|record| (record.id(), record)).collect();
    let accepted = |mut item: Observed<Cloud>| {
        if let Cloud::Route53Record(have) = &mut item.resource
            && let Some(want) = of_others.get(&have.id())
            && have.alias_target.is_none()
            && have.hosted_zone_id == want.hosted_zone_id
        {
            *have = (*want).clone();
        }
        item
    };
    Snapshot {
        items: observed.items.into_iter().map(accepted).collect(),
    }
}

/// Observed subnets with the desired part of the VPC's IPv6 range, where they have it: AWS says which range that is.
fn with_ipv6_parts(desired: &[Cloud], observed: Snapshot<Cloud>) -> Snapshot<Cloud> {
    let subnets = desired.iter().filter_map(Subnet::of);
    let wanted: BTreeMap<&str, SubnetIpv6Range> = subnets
        .filter_map(|subnet| Some((subnet.name.as_str(), subnet.ipv6_cidr_block?)))
        .collect();
    let named = |mut item: Observed<Cloud>| {
        if let Cloud::Subnet(have) = &mut item.resource
            && let Some(want) = wanted.get(have.name.as_str())
            && let Some(SubnetIpv6Range::Net(range)) = have.ipv6_cidr_block
            && want.fits(range)
        {
            have.ipv6_cidr_block = Some(*want);
        }
        item
    };
    Snapshot {
        items: observed.items.into_iter().map(named).collect(),
    }
}

fn of_others(record: &Route53Record) -> bool {
    record.alias_target.is_none() && record.resource_records.is_none()
}
