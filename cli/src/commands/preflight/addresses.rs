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
    let of_instances = instance_addresses(full);
    let of_others = planned_addresses(inputs);
    let rows = refs.iter().filter_map(|(subnet, of)| {
        let instances = of_instances.get(&subnet.name).copied().unwrap_or_default();
        let others = of_others.get(of).copied().unwrap_or_default();
        let id = inputs.physical(of);
        let there = id.and_then(|id| found.get(id).copied());
        let subject = match id {
            Some(id) => format!("{} ({id})", subnet.name),
            None => subnet.name.clone(),
        };
        row_of_subnet(&subject, subnet, instances + others, there)
    });
    Ok(rows.collect())
}

/// Addresses of load balancers and NAT gateways that an update would make.
fn planned_addresses(inputs: &Inputs<'_>) -> BTreeMap<Ref, u64> {
    let mut counts: BTreeMap<Ref, u64> = BTreeMap::new();
    let created = inputs.plan.steps.values();
    let created = created.filter(|step| step.action == Action::Create);
    for object in created.filter_map(|step| step.after.as_ref()) {
        for subnet in subnets_of(object) {
            *counts.entry(subnet.clone()).or_default() += 1;
        }
    }
    counts
}

fn subnets_of(object: &Cloud) -> Vec<&Ref> {
    if let Some(balancer) = Lb::of(object) {
        let places = balancer.subnet_mappings.iter();
        return places.map(|place| &place.subnet_id).collect();
    }
    let gateway = NatGateway::of(object).map(|gateway| &gateway.subnet_id);
    gateway.into_iter().collect()
}

/// `there`: its addresses; `None`: it does not exist yet.
fn row_of_subnet(
    subject: &str,
    subnet: &Subnet,
    needed: u64,
    there: Option<SubnetAddresses>,
) -> Option<PreflightRow> {
    if needed == 0 {
        return None;
    }
    let range = subnet.cidr?;
    let (has, words) = match there {
        Some(SubnetAddresses { free, own: 0 }) => (free, format!("{free} are free")),
        Some(SubnetAddresses { free, own }) => (
            free + own,
            format!("{free} are free, instances of the cluster have {own}"),
        ),
        None => {
            let all = 1_u64 << (32 - range.prefix_len());
            let has = all.saturating_sub(KEPT_BY_AWS);
            (has, format!("{range} has {has}"))
        }
    };
    let message = format!("{needed} are needed at the greatest size, {words}");
    if needed <= has {
        return Some(PreflightRow::fine(ADDRESSES, subject, message));
    }
    Some(PreflightRow::problem(
        ADDRESSES,
        subject,
        message,
        "add another subnet to the groups in this one (`spec.subnets`), or lower their maxSize, and where pods have addresses of the \
         VPC their kubelet.maxPods",
    ))
}
