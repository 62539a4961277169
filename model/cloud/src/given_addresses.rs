//! Addresses of the user's that a plan is about to use. AWS makes a NAT gateway or a load balancer with an address that something else has,
//! and lets it fail minutes later. Pure.

use super::{Cloud, SubnetMapping};
use engine::{Action, Id, Plan, Ref, Snapshot};
use std::collections::BTreeMap;

/// An address that the spec names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum GivenAddress {
    /// An Elastic IP, by its allocation id.
    Elastic(String),
    /// An address of a subnet of the user's.
    Private { subnet: String, address: String },
}

/// The addresses that what is created gets, each with what gets it. Without those that an object of the cluster has: the plan says when that
/// one gives it up.
pub fn addresses_to_take(
    plan: &Plan<Cloud>,
    observed: &Snapshot<Cloud>,
) -> BTreeMap<GivenAddress, Id> {
    let mut taken = BTreeMap::new();
    for step in plan.steps.values() {
        if step.action == Action::Create {
            let of = step.after.iter().flat_map(given_addresses);
            taken.extend(of.map(|address| (address, step.id.clone())));
        }
    }
    let own = observed.items.iter().map(|item| &item.resource);
    for address in own.flat_map(given_addresses) {
        taken.remove(&address);
    }
    taken
}

fn given_addresses(resource: &Cloud) -> Vec<GivenAddress> {
    match resource {
        Cloud::NatGateway(gateway) => match &gateway.allocation_id {
            Ref::Given(address) => vec![GivenAddress::Elastic(address.clone())],
            Ref::Own { .. } => Vec::new(),
        },
        Cloud::Lb(balancer) => {
            let mappings = balancer.subnet_mappings.iter();
            mappings.flat_map(mapped_addresses).collect()
        }
        _ => Vec::new(),
    }
}

/// The addresses of a load balancer in one subnet. In a subnet that does not exist yet nothing has an address.
fn mapped_addresses(mapping: &SubnetMapping) -> impl Iterator<Item = GivenAddress> {
    let elastic = mapping.allocation_id.clone().map(GivenAddress::Elastic);
    let private = match (&mapping.subnet_id, &mapping.private_ipv4_address) {
        (Ref::Given(subnet), Some(address)) => Some(GivenAddress::Private {
            subnet: subnet.clone(),
            address: address.clone(),
        }),
        _ => None,
    };
    elastic.into_iter().chain(private)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::NatGateway;
    use engine::{Attrs, Observed, Resource, plan};
    use std::collections::BTreeSet;

    fn gateway(name: &str, allocation: &str) -> Cloud {
        Cloud::from(NatGateway {
            name: name.to_owned(),
            subnet_id: Ref::Given("subnet-1".into()),
            allocation_id: Ref::Given(allocation.into()),
            tags: crate::Tags::default(),
        })
    }

    #[test]
    fn what_an_object_of_the_cluster_has_is_not_asked_for() {
        let has = Observed {
            resource: gateway("a", "eipalloc-a"),
            physical: "nat-1".to_owned(),
            attrs: Attrs::default(),
            created: None,
            uses: BTreeSet::new(),
            in_use: false,
        };
        let observed = Snapshot { items: vec![has] };
        // b takes the address of a, which goes; c takes one of the account's.
        let wanted = [gateway("b", "eipalloc-a"), gateway("c", "eipalloc-c")];
        let made = plan(&wanted, &observed).expect("a plan");
        let taken = addresses_to_take(&made, &observed);
        let expected = (GivenAddress::Elastic("eipalloc-c".into()), wanted[1].id());
        assert_eq!(taken.into_iter().collect::<Vec<_>>(), [expected]);
    }
}
