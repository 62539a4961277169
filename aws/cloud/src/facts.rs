//! Collects what expansion must know of an account and a region. What AWS does not have is left out: whoever
//! needs it says so with the place in the spec.

mod images;

use crate::CloudClients;
use crate::kinds::s3_object::store_failure;
use aws_client::caller_identity;
use aws_client::failure::{Classify, none_if_absent};
use aws_client::store::Store;
use aws_sdk_ec2::types::{
    ArchitectureType, Filter, InstanceTypeHypervisor, InstanceTypeInfo, LocationType, NetworkInfo,
};
use cloud::facts::{
    Facts, FactsWanted, HostedZone, InstanceType, SharedSubnet, SharedVpc, TakenRange,
};
use engine::Failure;
use futures::future::try_join_all;
use futures::try_join;
use node::config::Arch;
use node::names::CLUSTER_TAG;
use std::collections::{BTreeMap, BTreeSet};

/// Asks AWS, at most once for each kind of thing. The region is the clients'.
pub async fn collect_facts(clients: &CloudClients, wanted: &FactsWanted) -> Result<Facts, Failure> {
    let (
        identity,
        zones,
        images,
        instance_types,
        hosted_zones,
        addresses,
        profile_roles,
        (vpcs, subnets),
        discovery_region,
    ) = try_join!(
        Box::pin(caller_identity(clients.shared_clients())),
        Box::pin(usable_zones(clients, wanted)),
        Box::pin(images::collect_images(clients, &wanted.images)),
        Box::pin(instance_types(clients, wanted)),
        Box::pin(hosted_zones(clients, wanted.hosted_zones)),
        Box::pin(elastic_ips(clients, &wanted.addresses)),
        Box::pin(profile_roles(clients, &wanted.profiles)),
        Box::pin(shared_network(clients, wanted)),
        Box::pin(discovery_region(clients, wanted.discovery_store.as_deref())),
    )?;
    Ok(Facts {
        account: identity.account,
        partition: identity.partition,
        zones,
        images,
        instance_types,
        hosted_zones,
        vpcs,
        subnets,
        addresses,
        profile_roles,
        discovery_region,
        ..Facts::default()
    })
}

/// The region of the store of the issuer's documents.
async fn discovery_region(
    clients: &CloudClients,
    store: Option<&str>,
) -> Result<Option<String>, Failure> {
    let Some(store) = store else {
        return Ok(None);
    };
    let store = Store::open(store, clients.shared_clients()).map_err(store_failure)?;
    store.region().await.map_err(store_failure)
}

/// The zones of the region that the account may use (without `AllAvailabilityZones` the answer has no others).
async fn usable_zones(
    clients: &CloudClients,
    wanted: &FactsWanted,
) -> Result<Vec<String>, Failure> {
    if wanted.offered_in.is_empty() {
        return Ok(Vec::new());
    }
    let call = clients.ec2.describe_availability_zones();
    let found = call
        .send()
        .await
        .classify_call("ec2:DescribeAvailabilityZones")?;
    let found = found.availability_zones.unwrap_or_default().into_iter();
    let mut zones: Vec<String> = found.filter_map(|zone| zone.zone_name).collect();
    zones.sort();
    Ok(zones)
}

/// A filter for any of these values.
fn any_of<'a>(name: &str, values: impl IntoIterator<Item = &'a String>) -> Filter {
    let values = values.into_iter().cloned().collect();
    Filter::builder()
        .name(name)
        .set_values(Some(values))
        .build()
}

async fn instance_types(
    clients: &CloudClients,
    wanted: &FactsWanted,
) -> Result<BTreeMap<String, InstanceType>, Failure> {
    if wanted.machine_types.is_empty() {
        return Ok(BTreeMap::new());
    }
    // By a filter: in the list of names, one unknown fails them all.
    let call = clients.ec2.describe_instance_types();
    let call = call.filters(any_of("instance-type", &wanted.machine_types));
    let pages = call.into_paginator().items().send();
    let pages = pages.collect::<Result<Vec<_>, _>>();
    let (found, zones) = futures::join!(pages, zones_by_offered_type(clients, wanted));
    let found = found.classify_call("ec2:DescribeInstanceTypes")?;
    let mut zones = zones?;
    let found = found.iter().filter_map(|info| {
        let name = info.instance_type()?.as_str().to_owned();
        let kind = InstanceType {
            arch: arch_of(info)?,
            instance_store_disks: instance_store_disks(info),
            gpu: info.gpu_info().is_some(),
            nvidia_gpu: has_nvidia_gpu(info),
            xen: info.hypervisor() == Some(&InstanceTypeHypervisor::Xen),
            max_interfaces: interface_limit(info, NetworkInfo::maximum_network_interfaces),
            addresses_per_interface: interface_limit(
                info,
                NetworkInfo::ipv4_addresses_per_interface,
            ),
            zones: zones.remove(&name).unwrap_or_default(),
        };
        Some((name, kind))
    });
    Ok(found.collect())
}

fn arch_of(info: &InstanceTypeInfo) -> Option<Arch> {
    let mut archs = info.processor_info()?.supported_architectures().iter();
    archs.find_map(|arch| match arch {
        ArchitectureType::X8664 => Some(Arch::Amd64),
        ArchitectureType::Arm64 => Some(Arch::Arm64),
        _ => None,
    })
}

fn interface_limit(info: &InstanceTypeInfo, limit: fn(&NetworkInfo) -> Option<i32>) -> Option<u32> {
    u32::try_from(limit(info.network_info()?)?).ok()
}

fn has_nvidia_gpu(info: &InstanceTypeInfo) -> bool {
    let gpus = info.gpu_info().map(aws_sdk_ec2::types::GpuInfo::gpus);
    let mut gpus = gpus.unwrap_or_default().iter();
    gpus.any(|gpu| gpu.manufacturer() == Some("NVIDIA"))
}

fn instance_store_disks(info: &InstanceTypeInfo) -> u32 {
    let disks = info
        .instance_storage_info()
        .map(aws_sdk_ec2::types::InstanceStorageInfo::disks);
    let counts = disks.unwrap_or_default().iter();
    let counts = counts.filter_map(|one| u32::try_from(one.count()?).ok());
    counts.sum()
}

/// The role in each profile that is there and has one.
async fn profile_roles(
    clients: &CloudClients,
    wanted: &BTreeSet<String>,
) -> Result<BTreeMap<String, String>, Failure> {
    let asked = wanted.iter().map(|name| async move {
        let call = clients.iam.get_instance_profile();
        let answer = call.instance_profile_name(name).send().await;
        let answer = none_if_absent(answer.classify_call("iam:GetInstanceProfile"))?;
        let roles = answer.and_then(|answer| answer.instance_profile);
        let roles = roles.map(|profile| profile.roles).unwrap_or_default();
        let role = roles.into_iter().next();
        Ok::<_, Failure>(role.map(|role| (name.clone(), role.role_name)))
    });
    let found = try_join_all(asked).await?;
    Ok(found.into_iter().flatten().collect())
}

/// The zones that offer each type, of those that were asked about.
async fn zones_by_offered_type(
    clients: &CloudClients,
    wanted: &FactsWanted,
) -> Result<BTreeMap<String, Vec<String>>, Failure> {
    let mut offered: BTreeMap<String, Vec<String>> = BTreeMap::new();
    if wanted.offered_in.is_empty() {
        return Ok(offered);
    }
    let call = clients.ec2.describe_instance_type_offerings();
    let call = call
        .location_type(LocationType::AvailabilityZone)
        .filters(any_of("instance-type", &wanted.machine_types))
        .filters(any_of("location", &wanted.offered_in));
    let found: Result<Vec<_>, _> = call.into_paginator().items().send().collect().await;
    for one in found.classify_call("ec2:DescribeInstanceTypeOfferings")? {
        if let (Some(kind), Some(zone)) = (one.instance_type(), one.location()) {
            let zones = offered.entry(kind.as_str().to_owned()).or_default();
            zones.push(zone.to_owned());
        }
    }
    for zones in offered.values_mut() {
        zones.sort();
    }
    Ok(offered)
}

async fn hosted_zones(clients: &CloudClients, wanted: bool) -> Result<Vec<HostedZone>, Failure> {
    if !wanted {
        return Ok(Vec::new());
    }
    let pages = clients.route53.list_hosted_zones().into_paginator();
    let found: Result<Vec<_>, _> = pages.items().send().collect().await;
    let found = found.classify_call("route53:ListHostedZones")?;
    Ok(found
        .iter()
        .map(|zone| HostedZone {
            id: zone.id().trim_start_matches("/hostedzone/").to_owned(),
            name: zone.name().trim_end_matches('.').to_owned(),
            private: zone
                .config()
                .is_some_and(aws_sdk_route53::types::HostedZoneConfig::private_zone),
        })
        .collect())
}

/// Allocation ids by public address.
async fn elastic_ips(
    clients: &CloudClients,
    wanted: &BTreeSet<String>,
) -> Result<BTreeMap<String, String>, Failure> {
    if wanted.is_empty() {
        return Ok(BTreeMap::new());
    }
    // By a filter: in the list of addresses, one unknown fails them all.
    let call = clients.ec2.describe_addresses();
    let call = call.filters(any_of("public-ip", wanted));
    let found = call.send().await.classify_call("ec2:DescribeAddresses")?;
    let found = found.addresses.unwrap_or_default().into_iter();
    Ok(found
        .filter_map(|one| Some((one.public_ip?, one.allocation_id?)))
        .collect())
}

type Network = (BTreeMap<String, SharedVpc>, BTreeMap<String, SharedSubnet>);

async fn shared_network(clients: &CloudClients, wanted: &FactsWanted) -> Result<Network, Failure> {
    let subnets = shared_subnets(clients, &wanted.subnets).await?;
    let mut ids: BTreeSet<String> = wanted.vpc.iter().cloned().collect();
    ids.extend(subnets.values().map(|subnet| subnet.vpc.clone()));
    let mut vpcs = shared_vpcs(clients, &ids).await?;
    if wanted.egress_only_internet_gateway && !vpcs.is_empty() {
        add_egress_only_gateways(clients, &mut vpcs).await?;
    }
    Ok((vpcs, subnets))
}

/// Notes the egress-only internet gateway of each VPC. AWS has no filter for the VPC.
async fn add_egress_only_gateways(
    clients: &CloudClients,
    vpcs: &mut BTreeMap<String, SharedVpc>,
) -> Result<(), Failure> {
    let call = clients.ec2.describe_egress_only_internet_gateways();
    let found: Result<Vec<_>, _> = call.into_paginator().items().send().collect().await;
    for gateway in found.classify_call("ec2:DescribeEgressOnlyInternetGateways")? {
        let attached = gateway.attachments().iter().filter_map(|one| one.vpc_id());
        for vpc in attached {
            if let Some(vpc) = vpcs.get_mut(vpc) {
                vpc.egress_only_internet_gateway
                    .clone_from(&gateway.egress_only_internet_gateway_id);
            }
        }
    }
    Ok(())
}

/// The IPv6 range that a subnet has.
fn subnet_ipv6_range(subnet: &aws_sdk_ec2::types::Subnet) -> Option<String> {
    let mut ranges = subnet.ipv6_cidr_block_association_set().iter();
    let range = ranges.find(|range| crate::kinds::subnet::is_associated(range))?;
    range.ipv6_cidr_block().map(ToOwned::to_owned)
}

async fn shared_subnets(
    clients: &CloudClients,
    ids: &BTreeSet<String>,
) -> Result<BTreeMap<String, SharedSubnet>, Failure> {
    if ids.is_empty() {
        return Ok(BTreeMap::new());
    }
    let call = clients.ec2.describe_subnets();
    let call = call.filters(any_of("subnet-id", ids));
    let found: Result<Vec<_>, _> = call.into_paginator().items().send().collect().await;
    let found = found.classify_call("ec2:DescribeSubnets")?;
    let read = |subnet: aws_sdk_ec2::types::Subnet| {
        let shared = SharedSubnet {
            ipv6_cidr: subnet_ipv6_range(&subnet),
            vpc: subnet.vpc_id?,
            zone: subnet.availability_zone?,
            cidr: subnet.cidr_block,
            dns64: subnet.enable_dns64 == Some(true),
        };
        Some((subnet.subnet_id?, shared))
    };
    Ok(found.into_iter().filter_map(read).collect())
}

/// All subnets in these VPCs.
async fn subnets_by_vpc(
    clients: &CloudClients,
    ids: &BTreeSet<String>,
) -> Result<BTreeMap<String, Vec<TakenRange>>, Failure> {
    let call = clients.ec2.describe_subnets();
    let call = call.filters(any_of("vpc-id", ids));
    let found: Result<Vec<_>, _> = call.into_paginator().items().send().collect().await;
    let mut by_vpc: BTreeMap<String, Vec<TakenRange>> = BTreeMap::new();
    for subnet in found.classify_call("ec2:DescribeSubnets")? {
        let mut tags = subnet.tags().iter();
        let cluster = tags.find(|tag| tag.key() == Some(CLUSTER_TAG));
        let cluster = cluster.and_then(|tag| tag.value().map(ToOwned::to_owned));
        let ipv6_cidr = subnet_ipv6_range(&subnet);
        let (Some(id), Some(vpc)) = (subnet.subnet_id, subnet.vpc_id) else {
            continue;
        };
        let range = TakenRange {
            id,
            cidr: subnet.cidr_block,
            ipv6_cidr,
            cluster,
        };
        by_vpc.entry(vpc).or_default().push(range);
    }
    Ok(by_vpc)
}

/// The IPv6 ranges of a VPC.
fn vpc_ipv6_ranges(vpc: &aws_sdk_ec2::types::Vpc) -> Vec<String> {
    let ranges = vpc.ipv6_cidr_block_association_set().iter();
    let ranges = ranges.filter(|range| crate::kinds::vpc::has_range(range));
    let ranges = ranges.filter_map(|range| range.ipv6_cidr_block());
    ranges.map(ToOwned::to_owned).collect()
}

async fn shared_vpcs(
    clients: &CloudClients,
    ids: &BTreeSet<String>,
) -> Result<BTreeMap<String, SharedVpc>, Failure> {
    if ids.is_empty() {
        return Ok(BTreeMap::new());
    }
    let vpcs = clients.ec2.describe_vpcs().filters(any_of("vpc-id", ids));
    let vpcs = vpcs.into_paginator().items().send();
    let vpcs = vpcs.collect::<Result<Vec<_>, _>>();
    let gateways = clients.ec2.describe_internet_gateways();
    let gateways = gateways.filters(any_of("attachment.vpc-id", ids));
    let gateways = gateways.into_paginator().items().send();
    let gateways = gateways.collect::<Result<Vec<_>, _>>();
    let (vpcs, gateways, subnets) = futures::join!(vpcs, gateways, subnets_by_vpc(clients, ids));
    let mut subnets = subnets?;
    let vpcs = vpcs.classify_call("ec2:DescribeVpcs")?;
    let gateways = gateways.classify_call("ec2:DescribeInternetGateways")?;
    let gateway_of = |vpc: &str| {
        let attached = |one: &&aws_sdk_ec2::types::InternetGateway| {
            one.attachments()
                .iter()
                .any(|one| one.vpc_id() == Some(vpc))
        };
        let found = gateways.iter().find(attached)?;
        found.internet_gateway_id().map(ToOwned::to_owned)
    };
    let read = |vpc: aws_sdk_ec2::types::Vpc| {
        let ipv6_cidrs = vpc_ipv6_ranges(&vpc);
        let id = vpc.vpc_id?;
        let shared = SharedVpc {
            ipv6_cidrs,
            cidr: vpc.cidr_block?,
            internet_gateway: gateway_of(&id),
            egress_only_internet_gateway: None,
            subnets: subnets.remove(&id).unwrap_or_default(),
        };
        Some((id, shared))
    };
    Ok(vpcs.into_iter().filter_map(read).collect())
}
