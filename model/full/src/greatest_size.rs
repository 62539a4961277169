//! What a cluster takes of its account and its subnets once every instance group is as large as it may be.

use crate::{FullSpec, Group};
use cloud::facts::InstanceType;
use cloud::{LaunchOverride, MixedInstancesPolicy};
use std::collections::BTreeMap;

/// The instances of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstanceCount {
    /// The group's name.
    pub group: String,
    /// The instance types that they may have; empty: AWS chooses among all.
    pub machine_types: Vec<String>,
    pub on_demand: u64,
    pub spot: u64,
}

/// The most instances of each group, with those of its warm pool.
pub fn instance_counts(full: &FullSpec) -> Vec<InstanceCount> {
    let counts = full.groups.iter().map(|group| {
        let (on_demand, spot) = on_demand_and_spot(group);
        InstanceCount {
            group: group.name.clone(),
            machine_types: machine_types(group),
            on_demand,
            spot,
        }
    });
    counts.collect()
}

/// GiB of EBS by volume type: volumes of all instances, and etcd's.
pub fn volume_sizes(full: &FullSpec) -> BTreeMap<String, u64> {
    let mut sizes: BTreeMap<String, u64> = BTreeMap::new();
    let mut add = |kind: &str, size: i32, count: u64| {
        *sizes.entry(kind.to_owned()).or_default() += at_least_zero(size) * count;
    };
    for group in &full.groups {
        for volume in std::iter::once(&group.root_volume).chain(&group.volumes) {
            add(&volume.volume_type, volume.size, most_instances(group));
        }
    }
    for member in full.etcd.iter().flat_map(|etcd| &etcd.members) {
        add(&member.volume_type, member.volume_size, 1);
    }
    sizes
}

/// IPv4 addresses of instances and their pods in each subnet, by the subnet's name in the spec. Auto Scaling spreads a group evenly over
/// its zones. `None`: how many interfaces an instance has there, or addresses each, is not known.
pub fn instance_addresses(
    full: &FullSpec,
    types: &BTreeMap<String, InstanceType>,
) -> BTreeMap<String, Option<u64>> {
    let mut counts: BTreeMap<String, Option<u64>> = BTreeMap::new();
    let has_ipv4 = |name: &&String| {
        let mut subnets = full.network.subnets.iter();
        subnets.any(|subnet| subnet.name == **name && subnet.cidr.is_some())
    };
    for group in &full.groups {
        let subnets: Vec<&String> = group.subnets.iter().filter(has_ipv4).collect();
        let zones = u64::try_from(group.subnets.len()).unwrap_or(u64::MAX);
        let instances = most_instances(group).div_ceil(zones.max(1));
        let of_instance = addresses_of_instance(full, group, types);
        for subnet in subnets {
            let count = counts.entry(subnet.clone()).or_insert(Some(0));
            let both = count.zip(of_instance);
            *count = both.map(|(count, of_instance)| count + instances * of_instance);
        }
    }
    counts
}

/// The instance's own address, and those of its pods if the network plugin takes them from the VPC.
fn addresses_of_instance(
    full: &FullSpec,
    group: &Group,
    types: &BTreeMap<String, InstanceType>,
) -> Option<u64> {
    let node = group.node.as_ref();
    let Some(node) = node.filter(|_| full.pods.networking.attaches_interfaces()) else {
        return Some(1);
    };
    let pods = node.kubelet.config.get("maxPods")?.as_u64()?;
    addresses_with_pods(full, group, pods, types)
}

fn addresses_with_pods(
    full: &FullSpec,
    group: &Group,
    pods: u64,
    types: &BTreeMap<String, InstanceType>,
) -> Option<u64> {
    let plugin = full.addons.amazon_vpc.as_ref();
    let Some(warm) = plugin.and_then(|plugin| warm_interfaces(&plugin.variables)) else {
        return Some(1 + pods);
    };
    let of_types = machine_types(group).into_iter().map(|name| {
        let kind = types.get(&name)?;
        let (interfaces, addresses) = (kind.max_interfaces?, kind.addresses_per_interface?);
        // The first address of an interface is the instance's.
        let for_pods = u64::from(addresses.saturating_sub(1).max(1));
        let attached = (pods.div_ceil(for_pods) + warm).min(u64::from(interfaces));
        Some(attached * u64::from(addresses))
    });
    let of_types: Option<Vec<u64>> = of_types.collect();
    of_types?.into_iter().max()
}

/// How many interfaces the Amazon VPC CNI attaches, each with all its addresses, beside those that pods fill; `None`: it takes addresses
/// or prefixes as pods need them (<https://github.com/aws/amazon-vpc-cni-k8s/blob/master/docs/eni-and-ip-target.md>).
fn warm_interfaces(variables: &BTreeMap<String, String>) -> Option<u64> {
    let number = |name: &str| variables.get(name)?.parse::<u64>().ok();
    let mut targets = ["WARM_IP_TARGET", "MINIMUM_IP_TARGET"].into_iter();
    let by_address = targets.any(|name| number(name).is_some_and(|target| target > 0));
    let prefixes = variables.get("ENABLE_PREFIX_DELEGATION");
    let by_prefix = prefixes.is_some_and(|value| value == "true");
    (!by_address && !by_prefix).then(|| number("WARM_ENI_TARGET").unwrap_or(1))
}

fn most_instances(group: &Group) -> u64 {
    let pool = group.warm_pool.as_ref().and_then(|pool| pool.max_size);
    at_least_zero(group.max_size.max(pool.unwrap_or_default()))
}

fn on_demand_and_spot(group: &Group) -> (u64, u64) {
    let all = most_instances(group);
    match (&group.mixed_instances, &group.max_price) {
        (Some(policy), _) => {
            let on_demand = on_demand_of(policy, all);
            (on_demand, all - on_demand)
        }
        (None, Some(_)) => (0, all),
        (None, None) => (all, 0),
    }
}

fn on_demand_of(policy: &MixedInstancesPolicy, all: u64) -> u64 {
    let distribution = &policy.instances_distribution;
    let base = at_least_zero(distribution.on_demand_base_capacity).min(all);
    let percentage = at_least_zero(distribution.on_demand_percentage_above_base_capacity);
    let above = (all - base) * percentage.min(100);
    base + above.div_ceil(100)
}

fn machine_types(group: &Group) -> Vec<String> {
    let Some(policy) = &group.mixed_instances else {
        return vec![group.machine_type.clone()];
    };
    let types = policy.overrides.iter().filter_map(|one| match one {
        LaunchOverride::InstanceType(name) => Some(name.clone()),
        LaunchOverride::InstanceRequirements(_) => None,
    });
    types.collect()
}

fn at_least_zero(number: i32) -> u64 {
    u64::try_from(number).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::AmazonVpc;
    use crate::WarmPool;
    use crate::objects::tests::spec;
    use cloud::InstancesDistribution;
    use node::config::Role;

    fn spot_policy(base: i32, percentage: i32) -> MixedInstancesPolicy {
        MixedInstancesPolicy {
            instances_distribution: InstancesDistribution {
                on_demand_allocation_strategy: "prioritized".into(),
                on_demand_base_capacity: base,
                on_demand_percentage_above_base_capacity: percentage,
                spot_instance_pools: Some(2),
                spot_allocation_strategy: "lowest-price".into(),
                spot_max_price: None,
            },
            overrides: vec![
                LaunchOverride::InstanceType("m5.large".into()),
                LaunchOverride::InstanceType("m5.xlarge".into()),
            ],
        }
    }

    #[test]
    fn instances_are_on_demand_or_spot_as_auto_scaling_divides_them() {
        let mut full = spec::ha_spec();
        let mut counts = |change: &dyn Fn(&mut Group)| {
            let nodes = full.groups.last_mut().unwrap();
            *nodes = Group {
                max_size: 10,
                ..spec::instance_group("nodes", Role::Node, "us-test-1a")
            };
            change(nodes);
            let count = instance_counts(&full).pop().unwrap();
            (count.on_demand, count.spot, count.machine_types.len())
        };
        assert_eq!(counts(&|_| ()), (10, 0, 1));
        assert_eq!(
            counts(&|nodes| nodes.max_price = Some("0.1".into())),
            (0, 10, 1)
        );
        let mixed = |base, percentage| {
            move |nodes: &mut Group| nodes.mixed_instances = Some(spot_policy(base, percentage))
        };
        assert_eq!(counts(&mixed(0, 100)), (10, 0, 2));
        assert_eq!(counts(&mixed(2, 50)), (6, 4, 2));
        assert_eq!(counts(&mixed(3, 50)), (7, 3, 2));
        assert_eq!(counts(&mixed(20, 0)), (10, 0, 2));
        let with_pool = |nodes: &mut Group| {
            nodes.warm_pool = Some(WarmPool {
                min_size: 1,
                max_size: Some(14),
                hook_seconds: None,
                images: Vec::new(),
            });
        };
        assert_eq!(counts(&with_pool), (14, 0, 1));
    }

    #[test]
    fn a_group_takes_its_share_of_each_subnet_and_pods_of_the_vpc_count() {
        let mut full = spec::ha_spec();
        for group in &mut full.groups {
            group.max_size = 1;
        }
        full.groups.last_mut().unwrap().max_size = 10;
        let addresses = instance_addresses(&full, &BTreeMap::new());
        // A control plane, and a third of ten nodes.
        assert_eq!(
            addresses.values().copied().collect::<Vec<_>>(),
            [Some(5), Some(5), Some(5)],
            "{addresses:?}"
        );
    }

    /// Of the Amazon VPC CNI: whole interfaces of ten addresses each, three at most, and one more than pods need.
    #[test]
    fn pods_of_the_vpc_take_whole_interfaces_unless_addresses_are_counted() {
        let mut full = spec::minimal_spec();
        let group = full.groups.last().unwrap().clone();
        let kind = InstanceType {
            arch: group.arch,
            instance_store_disks: 0,
            gpu: false,
            nvidia_gpu: false,
            xen: false,
            max_interfaces: Some(3),
            addresses_per_interface: Some(10),
            zones: Vec::new(),
        };
        let types = BTreeMap::from([(group.machine_type.clone(), kind)]);
        let mut taken = |pods: u64, variables: &[(&str, &str)]| {
            let variables = variables.iter();
            let variables =
                variables.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
            full.addons.amazon_vpc = Some(AmazonVpc {
                image: String::new(),
                init_image: String::new(),
                policy_image: String::new(),
                variables: variables.collect(),
                selinux: false,
            });
            let of_instance = |types: &BTreeMap<String, InstanceType>| {
                addresses_with_pods(&full, &group, pods, types)
            };
            (of_instance(&types), of_instance(&BTreeMap::new()))
        };
        assert_eq!(taken(9, &[]), (Some(20), None));
        assert_eq!(taken(10, &[]), (Some(30), None));
        assert_eq!(taken(29, &[]), (Some(30), None));
        assert_eq!(taken(9, &[("WARM_ENI_TARGET", "2")]), (Some(30), None));
        for counted in [
            ("WARM_IP_TARGET", "2"),
            ("ENABLE_PREFIX_DELEGATION", "true"),
        ] {
            assert_eq!(taken(9, &[counted]), (Some(10), Some(10)), "{counted:?}");
        }
    }

    #[test]
    fn volumes_of_instances_and_of_etcd_are_added_up_by_type() {
        let mut full = spec::minimal_spec();
        for group in &mut full.groups {
            group.max_size = 3;
            group.volumes = Vec::new();
            group.root_volume = spec::root_volume("/dev/xvda", 64);
        }
        let member = full.etcd[0].members[0].clone();
        let etcd = u64::try_from(member.volume_size).unwrap() * 2;
        let kind = full.groups[0].root_volume.volume_type.clone();
        let sizes = volume_sizes(&full);
        let all: u64 = sizes.values().sum();
        assert_eq!(all, 2 * 3 * 64 + etcd, "{sizes:?}");
        assert!(sizes[&kind] >= 2 * 3 * 64);
    }
}
