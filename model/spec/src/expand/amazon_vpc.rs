//! `spec.networking.amazonvpc`: pods with addresses of the VPC.

use super::cilium::{chosen_cilium, own_addresses};
use super::instances::first_machine_type;
use super::pods::are_pods_in_vpc;
use super::{Context, Findings};
use crate::api::InstanceGroup;
use crate::api::amazon_vpc::AmazonVPCNetworkingSpec;
use crate::api::cluster::ClusterSpec;
use full::{AmazonVpc, FullSpec};
use ipnet::IpNet;

/// The releases of kOps 1.37, in the registry that serves most regions.
const IMAGE: &str = "602401143452.dkr.ecr.us-west-2.amazonaws.com/amazon-k8s-cni:v1.23.0";
const INIT_IMAGE: &str = "602401143452.dkr.ecr.us-west-2.amazonaws.com/amazon-k8s-cni-init:v1.23.0";
const POLICY_IMAGE: &str =
    "602401143452.dkr.ecr.us-west-2.amazonaws.com/amazon/aws-network-policy-agent:v1.4.1";

/// The range of Services, which is outside of the VPC here.
pub(super) const SERVICES: &str = "100.64.0.0/13";

/// Most pods of a Node, however many addresses its instance has: the number up to which kubelet is tested.
const MOST_PODS: u32 = 110;

/// Pods on the host network that every node has, which need no address: the plugin's and kube-proxy's.
const ON_HOST_NETWORK: u32 = 2;

/// The Amazon VPC CNI of a spec; `None` where another network plugin is chosen.
pub(super) fn chosen_amazon_vpc(spec: &ClusterSpec) -> Option<&AmazonVPCNetworkingSpec> {
    spec.networking.as_ref()?.amazonvpc.as_ref()
}

/// The settings of a completed spec.
pub(super) fn full_amazon_vpc(spec: &ClusterSpec) -> Option<AmazonVpc> {
    let plugin = chosen_amazon_vpc(spec)?;
    let or = |said: &Option<String>, usual: &str| said.clone().unwrap_or_else(|| usual.to_owned());
    let containerd = spec.containerd.as_ref();
    let variables = plugin.env.iter();
    let variables = variables.map(|one| (one.name.clone(), one.value.clone().unwrap_or_default()));
    Some(AmazonVpc {
        image: or(&plugin.image_name, IMAGE),
        init_image: or(&plugin.init_image_name, INIT_IMAGE),
        policy_image: or(&plugin.network_policy_agent_image, POLICY_IMAGE),
        variables: variables.collect(),
        selinux: containerd.and_then(|containerd| containerd.selinux_enabled) == Some(true),
    })
}

/// Most pods of the group's Nodes: as many as the smallest of its instances has addresses for. The first address of an interface is
/// the instance's. `None` where that is unknown, or not asked.
pub(super) fn max_pods(
    group: &InstanceGroup,
    spec: &ClusterSpec,
    context: &Context,
    findings: &mut Findings,
) -> Option<i32> {
    if !are_pods_in_vpc(spec) {
        return None;
    }
    let taken = chosen_cilium(spec).map_or(0, own_addresses);
    let policy = group.spec.mixed_instances_policy.as_ref();
    if policy.is_some_and(|policy| policy.instance_requirements.is_some()) {
        findings.add_group_error(
            group,
            "spec.mixedInstancesPolicy.instanceRequirements",
            "how many pods have addresses on an instance depends on its type, which AWS chooses",
            "set spec.kubelet.maxPods of the group, or name instance types",
        );
        return None;
    }
    let named = policy.map_or(&[][..], |policy| &policy.instances);
    let own = first_machine_type(&group.spec).filter(|_| named.is_empty());
    let types = named.iter().map(String::as_str).chain(own);
    let facts = &context.facts.instance_types;
    let mut fewest = MOST_PODS;
    for name in types {
        let kind = facts.get(name);
        let limits =
            kind.and_then(|kind| Some((kind.max_interfaces?, kind.addresses_per_interface?)));
        let Some((interfaces, addresses)) = limits else {
            if !context.facts.stand_in {
                findings.add_group_warning(
                    group,
                    "spec.machineType",
                    format!("nobody knows how many addresses a {name} has: pods may find none"),
                    "set spec.kubelet.maxPods of the group",
                );
            }
            return None;
        };
        let pods = interfaces.saturating_mul(addresses.saturating_sub(1));
        let pods = pods.saturating_add(ON_HOST_NETWORK);
        fewest = fewest.min(pods.saturating_sub(taken));
    }
    i32::try_from(fewest).ok()
}

/// Services are outside of the VPC by default, and may be in it: where no instance can be.
pub(super) fn check_services(full: &FullSpec, findings: &mut Findings) {
    if !full.pods.networking.attaches_interfaces() {
        return;
    }
    let services = full.pods.service_cidr;
    for (at, subnet) in full.network.subnets.iter().enumerate() {
        let Some(range) = subnet.cidr.map(IpNet::V4) else {
            continue;
        };
        if range.contains(&services) || services.contains(&range) {
            findings.add_error(
                format!("spec.subnets[{at}].cidr"),
                format!("{range}, where instances and pods are, overlaps spec.serviceClusterIPRange {services}"),
                "instances and Services need different addresses: leave serviceClusterIPRange out to get 100.64.0.0/13",
            );
        }
    }
}
