//! The facts that kOps' tests assume.

use cloud::facts::{Facts, HostedZone, Image, InstanceType, SharedSubnet, SharedVpc};
use node::config::Arch;
use std::collections::BTreeMap;

pub fn kops_facts() -> Facts {
    let image = Image {
        id: "ami-12345678".into(),
        root_device: "/dev/xvda".into(),
        arch: Arch::Amd64,
        unfit: None,
        system: None,
    };
    let machine = |disks| InstanceType {
        arch: Arch::Amd64,
        instance_store_disks: disks,
        gpu: false,
        nvidia_gpu: false,
        xen: false,
        max_interfaces: None,
        addresses_per_interface: None,
        zones: Vec::new(),
    };
    let zone = |id: &str, private| HostedZone {
        id: id.into(),
        name: "example.com".into(),
        private,
    };
    let subnet = |cidr: &str| SharedSubnet {
        vpc: "vpc-12345678".into(),
        zone: "us-test-1a".into(),
        cidr: Some(cidr.into()),
        ipv6_cidr: None,
        dns64: false,
    };
    Facts {
        account: "123456789012".into(),
        partition: "aws-test".into(),
        images: BTreeMap::from([(
            "ubuntu/images/hvm-ssd-gp3/ubuntu-resolute-26.04-amd64-server-20220404".into(),
            image,
        )]),
        instance_types: [
            "t2.micro",
            "t2.medium",
            "t3.micro",
            "t3.medium",
            "m5.large",
            "m5.xlarge",
        ]
        .map(|name| (name.to_owned(), machine(0)))
        .into_iter()
        .chain([("m3.medium".to_owned(), machine(1))])
        .collect(),
        hosted_zones: vec![zone("Z1AFAKE1ZON3YO", false), zone("Z2AFAKE1ZON3NO", true)],
        vpcs: BTreeMap::from([(
            "vpc-12345678".into(),
            SharedVpc {
                cidr: "172.20.0.0/16".into(),
                internet_gateway: Some("igw-1".into()),
                ipv6_cidrs: Vec::new(),
                egress_only_internet_gateway: None,
                subnets: Vec::new(),
            },
        )]),
        subnets: BTreeMap::from([
            ("subnet-12345678".into(), subnet("172.20.32.0/19")),
            ("subnet-abcdef".into(), subnet("172.20.4.0/22")),
            ("subnet-b2345678".into(), subnet("172.20.8.0/22")),
        ]),
        ..Facts::default()
    }
}
