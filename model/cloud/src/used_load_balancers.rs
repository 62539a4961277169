//! Load balancers that are no longer desired but whose addresses are in the user data of running instances. In a cluster without
//! DNS a worker gets the load balancer's addresses only at its launch: without them it cannot reach the API. So such a load
//! balancer stays, with everything that makes it work, until no running instance names it. (kOps leaves them to `--prune`, after a rolling
//! update: `DeferDeletion` of its NLB, target group, attachment and rule tasks.) Pure, between settling and planning.

use super::{AutoscalingGroup, Cloud, Kind, LaunchTemplate, RuleSource, Variant};
use engine::{Id, Kept, Observed, PlanError, Ref, Resource, Snapshot, Why};
use std::collections::{BTreeMap, BTreeSet};

/// Attribute of a load balancer: its private addresses, sorted, separated by commas.
pub const ADDRESSES: &str = "private_addresses";

/// A load balancer that exists and is not desired.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnwantedLoadBalancer {
    pub id: Id,
    /// Its addresses, which user data may name.
    pub addresses: Vec<String>,
}

impl UnwantedLoadBalancer {
    /// True if this user data names one of the addresses.
    pub fn is_named_in(&self, user_data: &str) -> bool {
        let is_ours = |word: &str| self.addresses.iter().any(|address| address == word);
        let mut v4 = user_data.split(|c: char| !c.is_ascii_digit() && c != '.');
        let mut v6 = user_data.split(|c: char| !c.is_ascii_hexdigit() && c != ':');
        v4.any(is_ours) || v6.any(is_ours)
    }
}

/// Every load balancer that exists and is not desired. The caller then looks for instances whose user data names it.
pub fn unwanted_load_balancers(
    desired: &[Cloud],
    observed: &Snapshot<Cloud>,
) -> Vec<UnwantedLoadBalancer> {
    let wanted: BTreeSet<Id> = desired.iter().map(Resource::id).collect();
    let balancers = observed.items.iter().filter(|item| {
        matches!(item.resource, Cloud::Lb(_)) && !wanted.contains(&item.resource.id())
    });
    let leaving = balancers.filter_map(|item| {
        let addresses = item.attrs.get(ADDRESSES)?.split(',');
        Some(UnwantedLoadBalancer {
            id: item.resource.id(),
            addresses: addresses.map(ToOwned::to_owned).collect(),
        })
    });
    leaving.collect()
}

/// The desired state, and in it as they are: the load balancers that instances name, and everything that those need or that makes
/// them work. Also a list of these, with the reason.
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
    for (balancer, instances) in named {
        let by = instances.clone();
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
/// groups and instances' (access lists follow the spec), all rules of and for a group, what routes from a subnet.
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

/// Its instances stay targets of the target groups that stay.
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

/// True if a launch template's user data has the addresses of that load balancer.
pub(crate) fn is_known_to_instances(balancer: &Id, desired: &[Cloud]) -> bool {
    let templates = desired.iter().filter_map(LaunchTemplate::of);
    let mut user_data = templates.flat_map(|template| &template.user_data);
    user_data.any(|text| text.waits_for(balancer, ADDRESSES))
}

/// Fails if a load balancer would lose a zone whose address instances use, and no successor can exist beside it, because both
/// would have the same fixed addresses (`cloud::settle` gives every other one a successor).
pub fn check_zones(desired: &[Cloud], observed: &Snapshot<Cloud>) -> Result<(), PlanError> {
    let refused = desired.iter().filter_map(|one| {
        let Cloud::Lb(want) = one else { return None };
        let id = one.id();
        let Cloud::Lb(have) = &observed.find(&id)?.resource else {
            return None;
        };
        let cut_off = have.has_more_subnets_than(want) && is_known_to_instances(&id, desired);
        cut_off.then(|| {
            let why = "running instances use its address in the zone that it would lose, and its \
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
