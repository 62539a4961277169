//! Names that AWS itself gives: of load balancers, of instances (private and public), and of addresses (reverse).

use super::zone::{is_within, plain_name};
use crate::aws_state::{AwsState, InstanceState, LoadBalancer, TargetGroup};
use crate::network::family::Family;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::{IpAddr, Ipv4Addr};

/// Names and addresses of one moment of the world.
#[derive(Debug, Default)]
pub struct AwsNames {
    region: String,
    balancers: HashMap<String, Vec<IpAddr>>,
    /// By VPC, then by name: private names are known inside their VPC only.
    private: HashMap<String, HashMap<String, Vec<IpAddr>>>,
    reverse: HashMap<String, HashMap<Ipv4Addr, String>>,
    /// Public name -> (VPC, private address, public address).
    public: HashMap<String, (String, Ipv4Addr, Ipv4Addr)>,
}

impl AwsNames {
    pub fn from_world(world: &AwsState) -> Self {
        let mut names = Self {
            region: world.region.clone(),
            ..Self::default()
        };
        let gone = |state| matches!(state, InstanceState::Terminated);
        for instance in world.instances.iter().filter(|i| !gone(i.state)) {
            let suffix = internal_suffix(&world.region);
            let private = names.private.entry(instance.vpc.clone()).or_default();
            let hostname = plain_name(&instance.hostname);
            let mut addresses = Vec::new();
            if let Some(address) = instance.private_address() {
                let by_address = format!("ip-{}.{suffix}", dashed_address(address));
                private.insert(by_address, vec![address.into()]);
                let reverse = names.reverse.entry(instance.vpc.clone()).or_default();
                reverse.insert(address, hostname.clone());
                addresses.push(address.into());
            }
            // Names of an address have no other; kctl has subnets give AAAA records to names of instances.
            if hostname.starts_with(&instance.id) {
                addresses.extend(instance.ipv6_addresses.iter().copied().map(IpAddr::V6));
            }
            let private = names.private.entry(instance.vpc.clone()).or_default();
            private.insert(hostname, addresses);
            if let Some(public) = instance.public_address {
                let name = public_name(&world.region, public);
                let is = (instance.vpc.clone(), instance.address, public);
                names.public.insert(name, is);
            }
        }
        let active = |balancer: &&LoadBalancer| balancer.state == "active";
        for balancer in world.load_balancers.iter().filter(active) {
            let name = plain_name(&balancer.dns_name);
            let zones = zone_addresses(balancer);
            for (zone, addresses) in &zones {
                names
                    .balancers
                    .insert(format!("{zone}.{name}"), addresses.clone());
            }
            let serving = serving_zones(world, balancer);
            let addresses = zones.into_iter().filter(|(zone, _)| serving.contains(zone));
            let addresses = addresses.flat_map(|(_, addresses)| addresses).collect();
            names.balancers.insert(name, addresses);
        }
        names
    }

    /// Addresses of a load balancer: its name, `ZONE.` or `dualstack.` before it. `None`: no such balancer.
    pub fn balancer_addresses(&self, name: &str) -> Option<&[IpAddr]> {
        let name = name.strip_prefix("dualstack.").unwrap_or(name);
        self.balancers.get(name).map(Vec::as_slice)
    }

    /// Whether the name is one that only load balancers have.
    pub fn is_of_balancers(&self, name: &str) -> bool {
        is_within(name, &self.balancer_zone())
    }

    /// `elb.REGION.amazonaws.com`.
    pub fn balancer_zone(&self) -> String {
        format!("elb.{}.amazonaws.com", self.region)
    }

    /// An instance by its private name, asked for inside its VPC.
    pub fn private_addresses(&self, vpc: &str, name: &str) -> Vec<IpAddr> {
        if name == format!("instance-data.{}", internal_suffix(&self.region)) {
            return vec![Family::V4.metadata()];
        }
        let names = self.private.get(vpc);
        let found = names.and_then(|names| names.get(name));
        found.cloned().unwrap_or_default()
    }

    /// `ec2.internal` in us-east-1, `REGION.compute.internal` elsewhere.
    pub fn private_zone(&self) -> String {
        internal_suffix(&self.region)
    }

    /// The private name of an address, asked for inside the VPC.
    pub fn private_name(&self, vpc: &str, address: Ipv4Addr) -> Option<&str> {
        self.reverse.get(vpc)?.get(&address).map(String::as_str)
    }

    /// An instance by its public name: its private address inside its VPC, its public one from elsewhere.
    pub fn public_address(&self, vpc: Option<&str>, name: &str) -> Option<Ipv4Addr> {
        let (own, private, public) = self.public.get(name)?;
        Some(if vpc == Some(own) { *private } else { *public })
    }
}

fn internal_suffix(region: &str) -> String {
    match region {
        "us-east-1" => "ec2.internal".to_owned(),
        region => format!("{region}.compute.internal"),
    }
}

fn public_name(region: &str, address: Ipv4Addr) -> String {
    match region {
        "us-east-1" => format!("ec2-{}.compute-1.amazonaws.com", dashed_address(address)),
        region => format!(
            "ec2-{}.{region}.compute.amazonaws.com",
            dashed_address(address)
        ),
    }
}

fn dashed_address(address: Ipv4Addr) -> String {
    address.to_string().replace('.', "-")
}

/// An internet-facing balancer answers with public addresses inside its VPC too.
fn zone_addresses(balancer: &LoadBalancer) -> BTreeMap<String, Vec<IpAddr>> {
    let internal = balancer.scheme == "internal";
    let of = |at: &crate::aws_state::BalancerAddress| {
        let addresses = Family::BOTH.iter().filter_map(|family| {
            if internal {
                family.balancer_address(at)
            } else {
                family.public_balancer_address(at)
            }
        });
        (at.zone.clone(), addresses.collect())
    };
    balancer.addresses.iter().map(of).collect()
}

/// The zones that DNS gives: those where each target group has a healthy target; when there is none, all of them.
fn serving_zones(world: &AwsState, balancer: &LoadBalancer) -> BTreeSet<String> {
    let zones: BTreeSet<String> = balancer.addresses.iter().map(|a| a.zone.clone()).collect();
    let uses = |group: &&TargetGroup| {
        let mut listeners = balancer.listeners.iter();
        listeners.any(|listener| listener.target_group == group.arn)
    };
    let groups: Vec<&TargetGroup> = world.target_groups.iter().filter(uses).collect();
    let zone_of: HashMap<&str, &str> = world
        .instances
        .iter()
        .map(|instance| (instance.id.as_str(), instance.zone.as_str()))
        .collect();
    let healthy_in = |group: &TargetGroup, zone: &str| {
        let mut healthy = group.targets.iter().filter(|t| t.state == "healthy");
        healthy.any(|target| {
            let own = zone_of.get(target.instance.as_str());
            own.is_some_and(|own| balancer.cross_zone || *own == zone)
        })
    };
    let serves = |zone: &&String| groups.iter().all(|group| healthy_in(group, zone));
    let serving: BTreeSet<String> = zones.iter().filter(serves).cloned().collect();
    if serving.is_empty() || groups.is_empty() {
        return zones;
    }
    serving
}
