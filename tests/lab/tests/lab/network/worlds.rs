//! Worlds to test with, as values: the smallest that show each thing.

use lab::aws_state::{
    AwsState, Instance, InternetGateway, NatGateway, Route, RouteTable, Rule, SecurityGroup,
    Subnet, Vpc,
};
use std::net::Ipv4Addr;

pub fn parse_address(text: &str) -> Ipv4Addr {
    text.parse().unwrap()
}

pub fn new_subnet(id: &str, vpc: &str, zone: &str, cidr: &str, table: &str) -> Subnet {
    Subnet {
        id: id.into(),
        vpc: vpc.into(),
        zone: zone.into(),
        cidr: Some(cidr.into()),
        dns64: false,
        route_table: table.into(),
    }
}

pub fn new_table(id: &str, vpc: &str, routes: &[(&str, &str)]) -> RouteTable {
    let route = |(destination, target): &(&str, &str)| Route {
        destination: (*destination).into(),
        target: (*target).into(),
        instance: target.starts_with("i-").then(|| (*target).into()),
        blackhole: false,
    };
    RouteTable {
        id: id.into(),
        vpc: vpc.into(),
        routes: routes.iter().map(route).collect(),
    }
}

pub fn new_instance(id: &str, subnet: &Subnet, at: &str, groups: &[&str]) -> Instance {
    Instance {
        vpc: subnet.vpc.clone(),
        subnet: subnet.id.clone(),
        zone: subnet.zone.clone(),
        hostname: format!("{id}.ec2.internal"),
        security_groups: groups.iter().map(|group| (*group).into()).collect(),
        hop_limit: 2,
        ..Instance::new_running(id, parse_address(at))
    }
}

/// `peer` is a range, or `sg-...`.
pub fn new_rule(protocol: &str, ports: Option<(i32, i32)>, peer: &str) -> Rule {
    let group = peer.starts_with("sg-");
    Rule {
        protocol: protocol.into(),
        from: ports.map(|ports| ports.0),
        to: ports.map(|ports| ports.1),
        cidr: (!group).then(|| peer.into()),
        group: group.then(|| peer.into()),
    }
}

pub fn new_group(id: &str, vpc: &str, ingress: Vec<Rule>, egress: Vec<Rule>) -> SecurityGroup {
    SecurityGroup {
        id: id.into(),
        vpc: vpc.into(),
        ingress,
        egress,
    }
}

fn two_vpcs() -> Vec<Vpc> {
    vec![
        Vpc::new_open("vpc-1", "10.1.0.0/16"),
        Vpc::new_open("vpc-2", "10.2.0.0/16"),
    ]
}

pub fn allow_all_egress() -> Vec<Rule> {
    vec![new_rule("-1", None, "0.0.0.0/0")]
}

pub const WEB: (i32, i32) = (8080, 8080);
/// Hosts of the first VPC's two zones and of the second VPC.
pub const A: &str = "i-00000000000000a01";
pub const B: &str = "i-00000000000000b02";
pub const C: &str = "i-00000000000000c03";
pub const D: &str = "i-00000000000000d04";

/// Two VPCs, three subnets, four hosts. `a` (public, zone a) and `c` (private, zone b) serve; `b` (zone a) asks; `d` lives in
/// the other VPC.
pub fn two_vpc_world() -> AwsState {
    let subnets = vec![
        new_subnet(
            "subnet-1a",
            "vpc-1",
            "us-test-1a",
            "10.1.1.0/24",
            "rtb-public1",
        ),
        new_subnet(
            "subnet-1b",
            "vpc-1",
            "us-test-1b",
            "10.1.2.0/24",
            "rtb-private1",
        ),
        new_subnet(
            "subnet-2a",
            "vpc-2",
            "us-test-1a",
            "10.2.1.0/24",
            "rtb-public2",
        ),
    ];
    let mut instances = vec![
        new_instance(A, &subnets[0], "10.1.1.11", &["sg-server"]),
        new_instance(B, &subnets[0], "10.1.1.12", &["sg-client"]),
        new_instance(C, &subnets[1], "10.1.2.13", &["sg-server"]),
        new_instance(D, &subnets[2], "10.2.1.14", &["sg-other"]),
    ];
    instances[0].public_address = Some(parse_address("54.10.0.11"));
    instances[3].public_address = Some(parse_address("54.10.0.14"));
    let gateway = |id: &str, vpc: &str| InternetGateway {
        id: id.into(),
        vpc: Some(vpc.into()),
    };
    AwsState {
        serial: 1,
        region: "us-test-1".into(),
        vpcs: two_vpcs(),
        route_tables: vec![
            new_table(
                "rtb-public1",
                "vpc-1",
                &[("10.1.0.0/16", "local"), ("0.0.0.0/0", "igw-1")],
            ),
            new_table(
                "rtb-private1",
                "vpc-1",
                &[("10.1.0.0/16", "local"), ("0.0.0.0/0", "nat-1")],
            ),
            new_table(
                "rtb-public2",
                "vpc-2",
                &[("10.2.0.0/16", "local"), ("0.0.0.0/0", "igw-2")],
            ),
        ],
        internet_gateways: vec![gateway("igw-1", "vpc-1"), gateway("igw-2", "vpc-2")],
        nat_gateways: vec![NatGateway {
            id: "nat-1".into(),
            subnet: "subnet-1a".into(),
            state: "available".into(),
            address: parse_address("10.1.1.200"),
            public_address: Some(parse_address("54.10.0.200")),
        }],
        security_groups: security_groups(),
        subnets,
        instances,
        ..AwsState::default()
    }
}

fn security_groups() -> Vec<SecurityGroup> {
    let server = vec![
        new_rule("tcp", Some(WEB), "sg-client"),
        new_rule("tcp", Some((9090, 9099)), "10.1.0.0/16"),
        new_rule("-1", None, "sg-server"),
    ];
    vec![
        new_group("sg-server", "vpc-1", server, allow_all_egress()),
        new_group("sg-client", "vpc-1", vec![], allow_all_egress()),
        new_group(
            "sg-other",
            "vpc-2",
            vec![new_rule("tcp", Some(WEB), "0.0.0.0/0")],
            allow_all_egress(),
        ),
    ]
}
