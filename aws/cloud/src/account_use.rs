//! What others than a cluster use of an account's quotas in a region: instances, volumes, addresses, VPCs, load balancers.

use crate::CloudClients;
use crate::kinds::ec2::read_tags;
use aws_client::failure::Classify;
use aws_sdk_ec2::types::{
    self as ec2, CapacityReservationType, Filter, InstanceLifecycleType, Tenancy,
};
use aws_sdk_elasticloadbalancingv2::types::{LoadBalancer, LoadBalancerTypeEnum};
use engine::Failure;
use futures::try_join;
use node::names::ownership_tag;
use std::collections::{BTreeMap, BTreeSet};

/// The most that AWS gives at once.
const INSTANCES: i32 = 1000;
const VOLUMES: i32 = 500;
/// The most values that a filter of EC2 takes.
const VALUES: usize = 200;

/// On volumes of PersistentVolumeClaims, which no instance group has (kubernetes-sigs/aws-ebs-csi-driver, docs/tagging.md).
const CLAIM_TAG: &str = "CSIVolumeName";

/// What tells instances apart that count for different quotas.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct InstanceKind {
    pub machine_type: String,
    pub spot: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccountUse {
    /// How many instances of each kind others run, or keep room for.
    pub instances: BTreeMap<InstanceKind, u64>,
    /// vCPUs of these instance types, and of those that were asked for.
    pub vcpus: BTreeMap<String, u64>,
    /// GiB of volumes of others by type.
    pub volumes: BTreeMap<String, u64>,
    /// Elastic IPs, everybody's.
    pub addresses: u64,
    /// VPCs, everybody's.
    pub vpcs: u64,
    /// Network load balancers, everybody's.
    pub network_load_balancers: u64,
}

/// Asks about everything that is counted; `machine_types`: the cluster's, whose vCPUs are wanted too.
pub async fn account_use(
    clients: &CloudClients,
    account: &str,
    cluster: &str,
    machine_types: &BTreeSet<String>,
) -> Result<AccountUse, Failure> {
    let owned = ownership_tag(cluster);
    let (mut instances, reserved, volumes, addresses, vpcs, network_load_balancers) = try_join!(
        Box::pin(instances_of_others(clients, &owned)),
        Box::pin(reserved_instances(clients, account, machine_types)),
        Box::pin(volumes_of_others(clients, &owned)),
        Box::pin(count_addresses(clients)),
        Box::pin(count_vpcs(clients)),
        Box::pin(count_network_load_balancers(clients)),
    )?;
    for (kind, count) in reserved {
        *instances.entry(kind).or_default() += count;
    }
    let running = instances.keys().map(|kind| kind.machine_type.clone());
    let types: BTreeSet<String> = machine_types.iter().cloned().chain(running).collect();
    Ok(AccountUse {
        vcpus: vcpus_of_types(clients, types).await?,
        instances,
        volumes,
        addresses,
        vpcs,
        network_load_balancers,
    })
}

/// Instances that count: on no dedicated host (EC2 User Guide, "On-Demand Instance quotas").
async fn instances_of_others(
    clients: &CloudClients,
    owned: &str,
) -> Result<BTreeMap<InstanceKind, u64>, Failure> {
    let running = Filter::builder().name("instance-state-name");
    let running = running.values("pending").values("running").build();
    let call = clients.ec2.describe_instances().filters(running);
    let pages = call.into_paginator().page_size(INSTANCES).items().send();
    let found: Result<Vec<ec2::Reservation>, _> = pages.collect().await;
    let found = found.classify_call("ec2:DescribeInstances")?;
    let mut counts: BTreeMap<InstanceKind, u64> = BTreeMap::new();
    for instance in found.iter().flat_map(ec2::Reservation::instances) {
        let tenancy = instance.placement().and_then(|place| place.tenancy());
        let Some(machine_type) = instance.instance_type() else {
            continue;
        };
        if tenancy == Some(&Tenancy::Host) || read_tags(instance.tags()).contains_key(owned) {
            continue;
        }
        let kind = InstanceKind {
            machine_type: machine_type.as_str().to_owned(),
            spot: instance.instance_lifecycle() == Some(&InstanceLifecycleType::Spot),
        };
        *counts.entry(kind).or_default() += 1;
    }
    Ok(counts)
}

/// What Capacity Reservations keep unused. It counts as if it ran, but for Capacity Blocks (EC2 User Guide, "On-Demand Capacity Reservations":
/// "Active and unused Capacity Reservations count toward your On-Demand Instance limits"). Those for the cluster's instance types are left
/// out, because its own instances may run in them.
async fn reserved_instances(
    clients: &CloudClients,
    account: &str,
    machine_types: &BTreeSet<String>,
) -> Result<BTreeMap<InstanceKind, u64>, Failure> {
    let open = Filter::builder().name("state");
    let open = open.values("active").values("pending").build();
    // Other accounts share theirs, and pay with their own quotas.
    let own = Filter::builder().name("owner-id").values(account).build();
    let call = clients.ec2.describe_capacity_reservations();
    let pages = call.filters(open).filters(own).into_paginator();
    let found: Result<Vec<ec2::CapacityReservation>, _> = pages.items().send().collect().await;
    let mut counts: BTreeMap<InstanceKind, u64> = BTreeMap::new();
    for reservation in found.classify_call("ec2:DescribeCapacityReservations")? {
        let is_block =
            reservation.reservation_type() == Some(&CapacityReservationType::CapacityBlock);
        let unused = reservation.available_instance_count();
        let (Some(machine_type), Some(unused)) = (reservation.instance_type(), unused) else {
            continue;
        };
        if is_block || machine_types.contains(machine_type) {
            continue;
        }
        let kind = InstanceKind {
            machine_type: machine_type.to_owned(),
            spot: false,
        };
        *counts.entry(kind).or_default() += u64::try_from(unused).unwrap_or_default();
    }
    Ok(counts)
}

async fn volumes_of_others(
    clients: &CloudClients,
    owned: &str,
) -> Result<BTreeMap<String, u64>, Failure> {
    let call = clients.ec2.describe_volumes();
    let pages = call.into_paginator().page_size(VOLUMES).items().send();
    let found: Result<Vec<ec2::Volume>, _> = pages.collect().await;
    let mut sizes: BTreeMap<String, u64> = BTreeMap::new();
    for volume in found.classify_call("ec2:DescribeVolumes")? {
        let tags = read_tags(volume.tags());
        let (Some(kind), Some(size)) = (volume.volume_type(), volume.size()) else {
            continue;
        };
        if !tags.contains_key(owned) || tags.contains_key(CLAIM_TAG) {
            let size = u64::try_from(size).unwrap_or_default();
            *sizes.entry(kind.as_str().to_owned()).or_default() += size;
        }
    }
    Ok(sizes)
}

async fn count_addresses(clients: &CloudClients) -> Result<u64, Failure> {
    let found = clients.ec2.describe_addresses().send().await;
    let found = found.classify_call("ec2:DescribeAddresses")?;
    Ok(count_of(found.addresses()))
}

async fn count_vpcs(clients: &CloudClients) -> Result<u64, Failure> {
    let pages = clients.ec2.describe_vpcs().into_paginator();
    let found: Result<Vec<ec2::Vpc>, _> = pages.items().send().collect().await;
    Ok(count_of(&found.classify_call("ec2:DescribeVpcs")?))
}

async fn count_network_load_balancers(clients: &CloudClients) -> Result<u64, Failure> {
    let pages = clients.elb.describe_load_balancers().into_paginator();
    let found: Result<Vec<LoadBalancer>, _> = pages.items().send().collect().await;
    let mut found = found.classify_call("elasticloadbalancing:DescribeLoadBalancers")?;
    found.retain(|one| one.r#type() == Some(&LoadBalancerTypeEnum::Network));
    Ok(count_of(&found))
}

async fn vcpus_of_types(
    clients: &CloudClients,
    types: BTreeSet<String>,
) -> Result<BTreeMap<String, u64>, Failure> {
    let types: Vec<String> = types.into_iter().collect();
    let mut vcpus = BTreeMap::new();
    for some in types.chunks(VALUES) {
        // By a filter: in the list of names, one unknown fails them all.
        let by_name = Filter::builder().name("instance-type");
        let by_name = by_name.set_values(Some(some.to_vec())).build();
        let call = clients.ec2.describe_instance_types().filters(by_name);
        let pages = call.into_paginator().items().send();
        let found: Result<Vec<ec2::InstanceTypeInfo>, _> = pages.collect().await;
        for info in found.classify_call("ec2:DescribeInstanceTypes")? {
            let count = info.v_cpu_info().and_then(ec2::VCpuInfo::default_v_cpus);
            let count = count.and_then(|count| u64::try_from(count).ok());
            if let (Some(name), Some(count)) = (info.instance_type(), count) {
                vcpus.insert(name.as_str().to_owned(), count);
            }
        }
    }
    Ok(vcpus)
}

fn count_of<T>(found: &[T]) -> u64 {
    u64::try_from(found.len()).unwrap_or(u64::MAX)
}
