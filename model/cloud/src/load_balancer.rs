//! Network load balancers, their target groups and listeners.

use super::listing::{ListingPosition, PartOf, Section, count_words};
use super::used_load_balancers::ADDRESSES;
use super::{Kind, Tags};
use engine::Ref;
use node::names;
use serde::{Deserialize, Serialize};

/// A network load balancer. Name, scheme and subnets' addresses cannot change: `cloud::settle` makes the next of its series.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lb {
    /// Logical name: `api.NAME`, `bastion.NAME`, from the second of the series on with `-REVISION`
    /// (`names::logical_name` of the tags).
    pub logical_name: String,
    /// AWS name, at most 32 characters: prefix, cluster, hash; from the second of the series on another hash.
    pub name: String,
    /// `network`.
    #[serde(rename = "lb_type")]
    pub lb_type: String,
    /// `internet-facing` or `internal`.
    pub scheme: String,
    /// `ipv4`, or `dualstack` with an IPv6 address in each subnet too.
    #[serde(default = "ipv4", skip_serializing_if = "is_ipv4")]
    pub ip_address_type: String,
    /// Security groups, sorted.
    pub security_groups: Vec<Ref>,
    /// One per zone, sorted.
    pub subnet_mappings: Vec<SubnetMapping>,
    /// Attribute `load_balancing.cross_zone.enabled`.
    pub cross_zone_enabled: bool,
    /// Attributes `access_logs.*`.
    pub access_logs: Option<AccessLogs>,
    /// Tags; `Name` is the logical name of the first of the series, `kops.k8s.io/revision` the place in it.
    pub tags: Tags,
}

/// The addresses of load balancers where nothing else is said.
fn ipv4() -> String {
    "ipv4".to_owned()
}

fn is_ipv4(ip_address_type: &str) -> bool {
    ip_address_type == "ipv4"
}

/// A subnet of a load balancer.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct SubnetMapping {
    pub subnet_id: Ref,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allocation_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub private_ipv4_address: Option<String>,
}

/// Where access logs go.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccessLogs {
    pub bucket: String,
    /// Prefix in it.
    pub prefix: Option<String>,
}

impl Lb {
    /// Private addresses that it gets in each subnet.
    pub fn addresses_per_subnet(&self) -> usize {
        if is_ipv4(&self.ip_address_type) { 1 } else { 2 }
    }

    /// True if AWS can turn it into that one in place: scheme and type stay, and so do its addresses in the subnets
    /// that it keeps. It can gain and lose subnets. One that was made without security groups never gets any ("If you
    /// don't associate a security group with a Network Load Balancer when you create it, you can't do so later on", ELB
    /// user guide; kOps makes a new one too), and one with groups keeps at least one.
    pub(super) fn can_change_into(&self, want: &Self) -> bool {
        let kept = |one: &&SubnetMapping| {
            let mut wanted = want.subnet_mappings.iter();
            wanted.any(|other| other.subnet_id == one.subnet_id)
        };
        let mut kept = self.subnet_mappings.iter().filter(kept);
        self.scheme == want.scheme
            && self.lb_type == want.lb_type
            && self.security_groups.is_empty() == want.security_groups.is_empty()
            && kept.all(|one| want.subnet_mappings.contains(one))
    }

    /// True if it has a subnet that the other lacks.
    pub(super) fn has_more_subnets_than(&self, other: &Self) -> bool {
        self.subnet_mappings.iter().any(|one| {
            let mut others = other.subnet_mappings.iter();
            !others.any(|other| other.subnet_id == one.subnet_id)
        })
    }

    /// Given addresses that both have: only one balancer at a time can.
    pub(super) fn shared_addresses<'a>(&'a self, other: &'a Self) -> impl Iterator<Item = &'a str> {
        let pairs = self.subnet_mappings.iter().flat_map(|one| {
            let others = other.subnet_mappings.iter();
            others.map(move |other| (one, other))
        });
        pairs.flat_map(|(one, other)| {
            let same_subnet = one.subnet_id == other.subnet_id;
            let elastic = one.allocation_id.as_deref();
            let private = one.private_ipv4_address.as_deref();
            let elastic = elastic.filter(|_| one.allocation_id == other.allocation_id);
            let private = private
                .filter(|_| same_subnet && one.private_ipv4_address == other.private_ipv4_address);
            elastic.into_iter().chain(private)
        })
    }
}

impl Kind for Lb {
    const TYPE: &'static str = "lb";
    const LISTING_POSITION: ListingPosition = ListingPosition(Section::Api, 0);
    const HAS_SUCCESSORS: bool = true;

    fn name(&self) -> String {
        self.logical_name.clone()
    }

    fn refs_mut(&mut self) -> Vec<&mut Ref> {
        let subnets = self.subnet_mappings.iter_mut();
        let subnets = subnets.map(|mapping| &mut mapping.subnet_id);
        self.security_groups.iter_mut().chain(subnets).collect()
    }

    fn tags_mut(&mut self) -> Option<&mut Tags> {
        Some(&mut self.tags)
    }

    /// Its private addresses, one of each family for each subnet, change with its subnets and families.
    fn attr_changes(&self, have: &Self, attribute: &str) -> bool {
        let same = self.subnet_mappings == have.subnet_mappings
            && self.ip_address_type == have.ip_address_type;
        attribute == ADDRESSES && !same
    }

    fn refuses(&self, have: &Self) -> Option<String> {
        let shared: Vec<&str> = have.shared_addresses(self).collect();
        (!have.can_change_into(self)).then(|| {
            format!(
                "a load balancer's scheme, addresses and lack of security groups cannot change in place, and its successor cannot have {} as \
                 long as it does: leave allocationId and privateIPv4Address out of every spec.api.loadBalancer.subnets \
                 entry and update, then write them back and update again (in between the API has other addresses)",
                shared.join(", ")
            )
        })
    }

    fn refs_changed(&mut self) {
        self.security_groups.sort();
        self.subnet_mappings.sort();
    }

    fn can_become(&self, want: &Self) -> bool {
        self.name == want.name && self.can_change_into(want)
    }

    fn move_in_series(&mut self, base: &str, revision: u32) {
        let first = names::load_balancer(base);
        self.name = names::load_balancer_series_name(&first, revision);
        self.logical_name = names::series_name(base, revision);
    }

    fn describe(&self) -> String {
        let zones = count_words(self.subnet_mappings.len(), "zone");
        format!("{} in {zones}", self.scheme)
    }
}

/// A target group. Protocol, port and VPC cannot change, nor the balancer it serves: `cloud::settle` makes the next of
/// its series.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LbTargetGroup {
    /// AWS and logical name, at most 32 characters.
    pub name: String,
    /// `TCP` or `TLS`.
    pub protocol: String,
    pub port: i32,
    pub vpc_id: Ref,
    /// Attribute `deregistration_delay.connection_termination.enabled`.
    pub connection_termination: bool,
    /// Attribute `deregistration_delay.timeout_seconds`.
    pub deregistration_delay_seconds: i32,
    pub health_check: HealthCheck,
    /// Tags; `Name` is the name of the first of the series, `kops.k8s.io/revision` the place in it.
    pub tags: Tags,
}

/// A target group's health check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HealthCheck {
    /// Successes until healthy.
    pub healthy_threshold_count: i32,
    /// Seconds between checks.
    pub health_check_interval_seconds: i32,
    /// Seconds until a check has failed.
    pub health_check_timeout_seconds: i32,
    /// Port; the target's own if nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub health_check_port: Option<i32>,
    /// Path, HTTP and HTTPS only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub health_check_path: Option<String>,
    /// `TCP`, `HTTP`, `HTTPS`.
    pub health_check_protocol: String,
    /// Failures until unhealthy.
    pub unhealthy_threshold_count: i32,
}

impl Kind for LbTargetGroup {
    const TYPE: &'static str = "lb_target_group";
    const LISTING_POSITION: ListingPosition = ListingPosition(Section::Api, 1);
    const HAS_SUCCESSORS: bool = true;

    fn name(&self) -> String {
        self.name.clone()
    }

    fn refs_mut(&mut self) -> Vec<&mut Ref> {
        vec![&mut self.vpc_id]
    }

    fn tags_mut(&mut self) -> Option<&mut Tags> {
        Some(&mut self.tags)
    }

    fn can_become(&self, want: &Self) -> bool {
        let kept = |one: &Self| (one.name.clone(), one.protocol.clone(), one.port);
        kept(self) == kept(want) && self.vpc_id == want.vpc_id
    }

    fn move_in_series(&mut self, base: &str, revision: u32) {
        self.name = names::load_balancer_series_name(base, revision);
    }

    fn describe(&self) -> String {
        format!("{} {}", self.protocol, self.port)
    }
}

/// A listener. Balancer and port identify it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LbListener {
    /// The balancer's logical name and the port: `api.NAME-443`.
    pub name: String,
    pub load_balancer_arn: Ref,
    pub port: i32,
    /// `TCP` or `TLS`.
    pub protocol: String,
    /// Certificate, TLS only.
    pub certificate_arn: Option<String>,
    /// Security policy, TLS only.
    pub ssl_policy: Option<String>,
    /// Where it forwards to.
    pub target_group_arn: Ref,
}

impl Kind for LbListener {
    const TYPE: &'static str = "lb_listener";
    const LISTING_POSITION: ListingPosition = ListingPosition(Section::Api, 2);

    fn name(&self) -> String {
        self.name.clone()
    }

    fn refs_mut(&mut self) -> Vec<&mut Ref> {
        vec![&mut self.load_balancer_arn, &mut self.target_group_arn]
    }

    fn tags_mut(&mut self) -> Option<&mut Tags> {
        None
    }

    fn refs_changed(&mut self) {
        if let Some(balancer) = self.load_balancer_arn.id() {
            self.name = format!("{}-{}", balancer.name(), self.port);
        }
    }

    fn part_of(&self) -> Option<PartOf> {
        PartOf::of_whole(&self.load_balancer_arn, "listener", "listeners")
    }

    fn describe(&self) -> String {
        format!("{} {}", self.protocol, self.port)
    }
}
