//! What the AWS simulator says exists (`GET /_simulator/world`), and what the lab tells it back
//! (`POST /_simulator/report`). Field by field as docs/lab.md describes them; ids are AWS ids.

use ipnet::Ipv6Net;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, Ipv6Addr};

/// The whole of one region, as a value. `serial` grows with every change.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AwsState {
    pub serial: u64,
    pub region: String,
    pub instances: Vec<Instance>,
    pub volumes: Vec<Volume>,
    pub vpcs: Vec<Vpc>,
    pub subnets: Vec<Subnet>,
    pub route_tables: Vec<RouteTable>,
    pub internet_gateways: Vec<InternetGateway>,
    /// Of IPv6: they let nobody in.
    pub egress_only_gateways: Vec<InternetGateway>,
    pub nat_gateways: Vec<NatGateway>,
    pub security_groups: Vec<SecurityGroup>,
    pub load_balancers: Vec<LoadBalancer>,
    pub target_groups: Vec<TargetGroup>,
    pub hosted_zones: Vec<HostedZone>,
}

/// EC2's instance states: `pending`, `running`, `shutting-down`, `terminated`, `stopping`, `stopped`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum InstanceState {
    Pending,
    Running,
    ShuttingDown,
    Terminated,
    Stopping,
    Stopped,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Instance {
    pub id: String,
    pub state: InstanceState,
    /// How often RebootInstances was called for it: a number that has grown asks for a reboot.
    pub reboots: u32,
    pub vpc: String,
    pub subnet: String,
    pub zone: String,
    /// The private IPv4 address. An instance in a subnet with IPv6 alone has a link-local one, which EC2 gives it to reach
    /// its own services, and nothing else.
    pub address: Ipv4Addr,
    pub ipv6_addresses: Vec<Ipv6Addr>,
    /// Ranges that EC2 delegated to the interface, each a /80 of the subnet's range.
    pub ipv6_prefixes: Vec<Ipv6Net>,
    /// MAC address in lower case, for example `02:0a:...`.
    pub mac: String,
    pub public_address: Option<Ipv4Addr>,
    /// Private DNS name, as `ip-10-0-0-1.ec2.internal` or `i-0123.ec2.internal`.
    pub hostname: String,
    pub image: String,
    #[serde(rename = "type")]
    pub instance_type: String,
    /// Base64, as EC2 keeps it.
    pub user_data: Option<String>,
    /// ARN of the instance profile.
    pub profile: Option<String>,
    pub security_groups: Vec<String>,
    pub source_dest_check: bool,
    /// How far answers of the metadata service travel (`http_put_response_hop_limit`).
    pub hop_limit: u8,
    /// Whether IMDSv1 is refused.
    pub tokens_required: bool,
    pub tags: BTreeMap<String, String>,
}

impl Instance {
    /// One that runs, with nothing but what every instance has: to begin a test's world with.
    pub fn new_running(id: &str, address: Ipv4Addr) -> Self {
        let [a, b, c, d] = address.octets();
        Self {
            id: id.to_owned(),
            state: InstanceState::Running,
            reboots: 0,
            vpc: String::new(),
            subnet: String::new(),
            zone: "us-east-1a".to_owned(),
            address,
            ipv6_addresses: Vec::new(),
            ipv6_prefixes: Vec::new(),
            mac: format!("02:0e:{a:02x}:{b:02x}:{c:02x}:{d:02x}"),
            public_address: None,
            hostname: format!("ip-{}.ec2.internal", address.to_string().replace('.', "-")),
            image: "ami-1".to_owned(),
            instance_type: "t3.medium".to_owned(),
            user_data: None,
            profile: None,
            security_groups: Vec::new(),
            source_dest_check: true,
            hop_limit: 1,
            tokens_required: true,
            tags: BTreeMap::new(),
        }
    }

    /// The private IPv4 address; `None` in a subnet with IPv6 alone.
    pub fn private_address(&self) -> Option<Ipv4Addr> {
        Some(self.address).filter(|address| !address.is_link_local())
    }

    /// Whether packets from this address are the instance's own, its pods' included.
    pub fn has_ipv6(&self, address: Ipv6Addr) -> bool {
        let mut prefixes = self.ipv6_prefixes.iter();
        self.ipv6_addresses.contains(&address) || prefixes.any(|range| range.contains(&address))
    }
}

impl Vpc {
    /// One with AWS's own resolver: to begin a test's world with.
    pub fn new_open(id: &str, cidr: &str) -> Self {
        Self {
            id: id.to_owned(),
            cidrs: vec![cidr.to_owned()],
            domain_name: None,
            domain_name_servers: vec!["AmazonProvidedDNS".to_owned()],
        }
    }
}

/// A volume that is not a root volume.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Volume {
    pub id: String,
    /// Size in GiB.
    pub size: u32,
    pub zone: String,
    pub attachment: Option<Attachment>,
}

/// States: `attaching`, `attached`, `detaching`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Attachment {
    pub instance: String,
    /// As asked for, `/dev/xvdu`.
    pub device: String,
    pub state: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Vpc {
    pub id: String,
    /// Of both families.
    pub cidrs: Vec<String>,
    /// `domain-name` of its DHCP options.
    pub domain_name: Option<String>,
    /// `domain-name-servers`; `AmazonProvidedDNS` or addresses.
    pub domain_name_servers: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Subnet {
    pub id: String,
    pub vpc: String,
    pub zone: String,
    /// The IPv4 range; `None`: it has IPv6 alone.
    pub cidr: Option<String>,
    /// Whether the resolver makes IPv6 addresses of IPv4 ones for its instances.
    pub dns64: bool,
    /// Its own, or the VPC's main one.
    pub route_table: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RouteTable {
    pub id: String,
    pub vpc: String,
    pub routes: Vec<Route>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Route {
    pub destination: String,
    /// `local`, or the id of a gateway (`igw-`, `eigw-`), NAT gateway (`nat-`), instance (`i-`) or interface (`eni-`; then
    /// `instance` says whose).
    pub target: String,
    pub instance: Option<String>,
    /// A target that is gone.
    pub blackhole: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InternetGateway {
    pub id: String,
    pub vpc: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NatGateway {
    pub id: String,
    pub subnet: String,
    /// `pending`, `available`, `deleting`, `failed`.
    pub state: String,
    pub address: Ipv4Addr,
    pub public_address: Option<Ipv4Addr>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SecurityGroup {
    pub id: String,
    pub vpc: String,
    pub ingress: Vec<Rule>,
    pub egress: Vec<Rule>,
}

/// One permission with one peer; exactly one of `cidr` (IPv4 or IPv6) and `group` is set.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// `-1` (all), `tcp`, `udp`, `icmp`, `icmpv6`, or a number.
    pub protocol: String,
    /// Ports; for icmp type and code, -1 is any. `None`: all.
    pub from: Option<i32>,
    pub to: Option<i32>,
    pub cidr: Option<String>,
    pub group: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LoadBalancer {
    pub arn: String,
    pub dns_name: String,
    /// `internal` or `internet-facing`.
    pub scheme: String,
    /// `provisioning` or `active`.
    pub state: String,
    pub vpc: String,
    pub cross_zone: bool,
    pub security_groups: Vec<String>,
    /// One network interface per zone.
    pub addresses: Vec<BalancerAddress>,
    pub listeners: Vec<Listener>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BalancerAddress {
    pub zone: String,
    pub subnet: String,
    pub address: Ipv4Addr,
    /// Public address, of internet-facing load balancers only.
    pub public_address: Option<Ipv4Addr>,
    /// Of dual-stack load balancers.
    pub ipv6_address: Option<Ipv6Addr>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Listener {
    /// `TCP`, `TLS`, `UDP`, `TCP_UDP`.
    pub protocol: String,
    pub port: u16,
    /// ARN of the target group.
    pub target_group: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TargetGroup {
    pub arn: String,
    pub protocol: String,
    pub port: u16,
    pub health_check: HealthCheck,
    pub preserve_client_ip: bool,
    pub targets: Vec<Target>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HealthCheck {
    /// `TCP`, `HTTP`, `HTTPS`.
    pub protocol: String,
    /// Port of the check; AWS's `traffic-port` is already resolved.
    pub port: u16,
    pub path: Option<String>,
    /// Seconds between two checks.
    pub interval: u32,
    pub timeout: u32,
    pub healthy_threshold: u32,
    pub unhealthy_threshold: u32,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Target {
    pub instance: String,
    pub port: u16,
    /// `initial`, `healthy`, `unhealthy`, `draining`, or `unused` (no listener leads there: not checked).
    pub state: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostedZone {
    pub id: String,
    /// No trailing dot.
    pub name: String,
    pub private: bool,
    /// VPCs that see a private zone.
    pub vpcs: Vec<String>,
    pub records: Vec<Record>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// No trailing dot.
    pub name: String,
    #[serde(rename = "type")]
    pub record_type: String,
    pub ttl: u32,
    pub values: Vec<String>,
    /// Domain name of an alias target, no trailing dot.
    pub alias: Option<String>,
}

/// What the lab has seen, told to the simulator; what is left out stays as it was.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct HostReport {
    /// By instance id: `running` once the host boots, `terminated` and `stopped` once it is gone.
    pub instances: BTreeMap<String, InstanceState>,
    /// By volume id: `attached`, `detached`.
    pub volumes: BTreeMap<String, String>,
    /// By instance id: the console's text so far, base64.
    pub consoles: BTreeMap<String, String>,
    /// By ARN of the target group, then by `INSTANCE:PORT`: `healthy` or `unhealthy`.
    pub targets: BTreeMap<String, BTreeMap<String, String>>,
}
