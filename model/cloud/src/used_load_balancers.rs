//! Load balancers that nobody wants any more and that machines still know the API by. Where names are published nowhere, a
//! worker is told the balancer's addresses at its launch and never again: without them it is lost. So such a balancer stays,
//! with all that makes it work, until no machine that runs was told of it. (kOps leaves them to `--prune`, after a rolling
//! update: `DeferDeletion` of its NLB, target group, attachment and rule tasks.) Pure, between settling and planning.

use super::{AutoscalingGroup, Cloud, Kind, LaunchTemplate, RuleSource, Variant};
use engine::{Id, Kept, Observed, PlanError, Ref, Resource, Snapshot, Why};
use std::collections::{BTreeMap, BTreeSet};

/// Attribute of a load balancer: its private addresses, sorted, separated by commas.
pub const ADDRESSES: &str = "private_addresses";

/// A balancer that is there and not wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leaving {
    pub id: Id,
    /// The addresses by which machines may know it.
    pub addresses: Vec<String>,
}

impl Leaving {
    /// True if a machine that was launched with this user data knows the API by the balancer.
    pub fn is_named_in(&self, user_data: &str) -> bool {
        let mut words = user_data.split(|c: char| !c.is_ascii_digit() && c != '.');
        words.any(|word| self.addresses.iter().any(|address| address == word))
    }
}

/// Every balancer that is there and not wanted. Whoever asks next is who runs with user data that names it.
pub fn unwanted_load_balancers(desired: &[Cloud], observed: &Snapshot<Cloud>) -> Vec<Leaving> {
    let wanted: BTreeSet<Id> = desired.iter().map(Resource::id).collect();
    let balancers = observed.items.iter().filter(|item| {
        matches!(item.resource, Cloud::Lb(_)) && !wanted.contains(&item.resource.id())
    });
    let leaving = balancers.filter_map(|item| {
        let addresses = item.attrs.get(ADDRESSES)?.split(',');
        Some(Leaving {
            id: item.resource.id(),
            addresses: addresses.map(ToOwned::to_owned).collect(),
        })
    });
    leaving.collect()
}

/// The desired state with the balancers that machines name, by their ids, and with everything that those need or that makes
/// them work, as it is. Also what that is and why: it stays, though nobody wants it.
pub fn keep_used_load_balancers(
    mut desired: Vec<Cloud>,
    observed: &Snapshot<Cloud>,
    named: &BTreeMap<Id, Vec<String>>,
) -> (Vec<Cloud>, Vec<Kept>) {
    let wanted: BTreeSet<Id> = desired.iter().map(Resource::id).collect();
    let mut there: BTreeMap<Id, &Observed<Cloud>> = BTreeMap::new();
    for item in &observed.items {
        there.entry(item.resource.id()).or_insert(item);
    }
    let mut held: BTreeMap<Id, Why> = BTreeMap::new();
    for (balancer, machines) in named {
        let by = machines.clone();
        let mut open = vec![(balancer.clone(), Why::Named { by })];
        while let Some((id, why)) = open.pop() {
            let Some(item) = there.get(&id).filter(|_| !wanted.contains(&id)) else {
                continue;
            };
            if held.contains_key(&id) {
                continue;
            }
            held.insert(id.clone(), why);
            let parts = there.values();
            let parts = parts.filter(|part| works_for(&part.resource, &item.resource));
            let rest = parts.map(|part| part.resource.id());
            let rest = rest.chain(item.resource.needs());
            let to = balancer.clone();
            open.extend(rest.map(|id| (id, Why::Belongs { to: to.clone() })));
        }
    }
    for want in &mut desired {
        if let Cloud::AutoscalingGroup(group) = want {
            stay_attached(group, &there, &held);
        }
    }
    let mut kept = Vec::new();
    for (id, why) in held {
        if let Some(item) = there.get(&id) {
            desired.push(item.resource.clone());
            let physical = item.physical.clone();
            kept.push(Kept { id, physical, why });
        }
    }
    (desired, kept)
}

/// True if the one is a part of the other, without which that does not work: listeners of a balancer, and rules between its
/// groups and machines' (access lists follow the spec), all rules of and for a group, what routes from a subnet.
fn works_for(part: &Cloud, of: &Cloud) -> bool {
    if let (Cloud::SecurityGroupRule(rule), Cloud::Lb(balancer)) = (part, of) {
        let mut sides = rule.refs().into_iter();
        let between = matches!(rule.source, RuleSource::ReferencedGroupId(_));
        return between && sides.any(|side| balancer.security_groups.contains(&side));
    }
    let is_part = matches!(
        (part, of),
        (Cloud::LbListener(_), Cloud::Lb(_))
            | (Cloud::SecurityGroupRule(_), Cloud::SecurityGroup(_))
            | (Cloud::RouteTableAssociation(_), Cloud::Subnet(_))
            | (Cloud::Route(_), Cloud::RouteTable(_))
    );
    is_part && part.needs().contains(&of.id())
}

/// Its machines stay targets of the target groups that stay.
fn stay_attached(
    group: &mut AutoscalingGroup,
    there: &BTreeMap<Id, &Observed<Cloud>>,
    held: &BTreeMap<Id, Why>,
) {
    let id = group.id();
    let Some(Cloud::AutoscalingGroup(have)) = there.get(&id).map(|item| &item.resource) else {
        return;
    };
    let stays = |target: &&Ref| target.id().is_some_and(|id| held.contains_key(&id));
    let targets = have.target_group_arns.iter().filter(stays).cloned();
    group.target_group_arns.extend(targets);
    group.target_group_arns.sort();
    group.target_group_arns.dedup();
}

/// True if machines are told the addresses of that balancer.
pub(crate) fn is_told_to_machines(balancer: &Id, desired: &[Cloud]) -> bool {
    let templates = desired.iter().filter_map(LaunchTemplate::of);
    let mut user_data = templates.flat_map(|template| &template.user_data);
    user_data.any(|text| text.waits_for(balancer, ADDRESSES))
}

/// Fails if a balancer would lose a zone of which machines know the address, and no successor can stand beside it, because
/// it has addresses of its own that are wanted (`cloud::settle` gives every other one a successor).
pub fn check_zones(desired: &[Cloud], observed: &Snapshot<Cloud>) -> Result<(), PlanError> {
    let refused = desired.iter().filter_map(|one| {
        let Cloud::Lb(want) = one else { return None };
        let id = one.id();
        let Cloud::Lb(have) = &observed.find(&id)?.resource else {
            return None;
        };
        let cut_off = have.has_more_subnets_than(want) && is_told_to_machines(&id, desired);
        cut_off.then(|| {
            let why = "machines that run know the API by the address in the zone that it would lose, and its \
                       successor cannot have allocationId and privateIPv4Address as long as it does: leave those \
                       out of every spec.api.loadBalancer.subnets entry, or keep the zone";
            (id, why.to_owned())
        })
    });
    let refused: Vec<(Id, String)> = refused.collect();
    if refused.is_empty() {
        Ok(())
    } else {
        Err(PlanError::Refused(refused))
    }
}
