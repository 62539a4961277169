//! Free addresses of subnets against what groups take of them at their greatest size.

use super::{ADDRESSES, Inputs};
use crate::ui::preflight::PreflightRow;
use aws_cloud::{SubnetAddresses, subnet_addresses};
use cloud::{Cloud, Lb, NatGateway, Variant};
use engine::{Action, Failure, Ref};
use full::Subnet;
use full::greatest_size::instance_addresses;
use full::objects::subnet_ref;
use std::collections::{BTreeMap, BTreeSet};

/// Addresses that AWS keeps of every subnet (<https://docs.aws.amazon.com/vpc/latest/userguide/subnet-sizing.html>).
const KEPT_BY_AWS: u64 = 5;

/// Addresses that have to be free in a subnet for a new network load balancer, of which it takes one, unless an internal one is given its
/// address (<https://docs.aws.amazon.com/elasticloadbalancing/latest/network/availability-zones.html>).
const FREE_FOR_BALANCER: u64 = 8;

pub(super) async fn check(inputs: &Inputs<'_>) -> Vec<PreflightRow> {
    match rows(inputs).await {
        Ok(rows) => rows,
        Err(failure) => vec![PreflightRow::not_known(
            ADDRESSES,
            "all subnets",
            failure.to_string(),
        )],
    }
}

async fn rows(inputs: &Inputs<'_>) -> Result<Vec<PreflightRow>, Failure> {
    let full = inputs.full();
    let refs: Vec<(&Subnet, Ref)> = full
        .network
        .subnets
        .iter()
        .map(|subnet| (subnet, subnet_ref(full, subnet)))
        .collect();
    let ids = refs.iter().filter_map(|(_, of)| inputs.physical(of));
    let ids: BTreeSet<String> = ids.map(str::to_owned).collect();
    let observed = inputs.observed;
    let found = subnet_addresses(&observed.clients, &observed.target.cluster, &ids).await?;
    let of_instances = instance_addresses(full, &observed.machine_types);
    let of_others = planned_addresses(inputs);
    let rows = refs.iter().filter_map(|(subnet, of)| {
        let instances = of_instances.get(&subnet.name).copied();
        let others = of_others.get(of).copied().unwrap_or_default();
        let id = inputs.physical(of);
        let there = id.and_then(|id| found.get(id).copied());
        let subject = match id {
            Some(id) => format!("{} ({id})", subnet.name),
            None => subnet.name.clone(),
        };
        let Some(instances) = instances.unwrap_or(Some(0)) else {
            let why = "the network plugin takes whole network interfaces, and how many its instances have there is not known";
            return Some(PreflightRow::not_known(ADDRESSES, subject, why));
        };
        row_of_subnet(&subject, subnet, instances, others, there)
    });
    Ok(rows.collect())
}

/// What load balancers and NAT gateways want of a subnet that an update would make.
#[derive(Clone, Copy, Default)]
struct Planned {
    /// Addresses that they take.
    taken: u64,
    /// Addresses that have to be free before.
    free: u64,
}

fn planned_addresses(inputs: &Inputs<'_>) -> BTreeMap<Ref, Planned> {
    let mut counts: BTreeMap<Ref, Planned> = BTreeMap::new();
    let created = inputs.plan.steps.values();
    let created = created.filter(|step| step.action == Action::Create);
    for object in created.filter_map(|step| step.after.as_ref()) {
        for (subnet, free) in subnets_of(object) {
            let planned = counts.entry(subnet.clone()).or_default();
            planned.taken += 1;
            planned.free = planned.free.max(free);
        }
    }
    counts
}

/// The subnets that it has an address in, with how many have to be free there.
fn subnets_of(object: &Cloud) -> Vec<(&Ref, u64)> {
    if let Some(balancer) = Lb::of(object) {
        let places = balancer.subnet_mappings.iter();
        let places = places.map(|place| {
            let is_given = place.private_ipv4_address.is_some();
            let free = match balancer.scheme == "internal" && is_given {
                true => 1,
                false => FREE_FOR_BALANCER,
            };
            (&place.subnet_id, free)
        });
        return places.collect();
    }
    let gateway = NatGateway::of(object).map(|gateway| (&gateway.subnet_id, 1));
    gateway.into_iter().collect()
}

/// `there`: its addresses; `None`: it does not exist yet.
fn row_of_subnet(
    subject: &str,
    subnet: &Subnet,
    instances: u64,
    others: Planned,
    there: Option<SubnetAddresses>,
) -> Option<PreflightRow> {
    let needed = instances + others.taken;
    if needed == 0 {
        return None;
    }
    let range = subnet.cidr?;
    let (free, has, words) = match there {
        Some(SubnetAddresses { free, own: 0 }) => (free, free, format!("{free} are free")),
        Some(SubnetAddresses { free, own }) => (
            free,
            free + own,
            format!("{free} are free, instances of the cluster have {own}"),
        ),
        None => {
            let all = 1_u64 << (32 - range.prefix_len());
            let has = all.saturating_sub(KEPT_BY_AWS);
            (has, has, format!("{range} has {has}"))
        }
    };
    if free < others.free {
        let wanted = others.free;
        return Some(PreflightRow::problem(
            ADDRESSES,
            subject,
            format!("{wanted} have to be free for a new load balancer or NAT gateway, {words}"),
            "free addresses in this subnet, or name another one for it",
        ));
    }
    let message = format!("{needed} are needed at the greatest size, {words}");
    if needed <= has {
        return Some(PreflightRow::fine(ADDRESSES, subject, message));
    }
    Some(PreflightRow::problem(
        ADDRESSES,
        subject,
        message,
        "add another subnet to the groups in this one (`spec.subnets`), or lower their maxSize",
    ))
}
