//! Facts from AWS fill in the spec, and must agree with it.

use super::{new_cluster, offline_facts, try_expand, zone_names};
use cloud::facts::{Facts, HostedZone, Image, InstanceType, SharedSubnet, SharedVpc};
use node::config::Arch;
use spec::api::{DnsType, SubnetType};
use spec::create::CreateOptions;
use spec::expand::{STAND_IN_ADDRESS, wanted_facts};

#[test]
fn the_hosted_zone_is_the_longest_that_holds_the_name() {
    let zone = |id: &str, name: &str, private| HostedZone {
        id: id.into(),
        name: name.into(),
        private,
    };
    let facts = Facts {
        hosted_zones: vec![
            zone("ZCOM", "com", false),
            zone("ZEX", "example.com", false),
            zone("ZAMPLE", "ample.com", false),
            zone("ZPRIVATE", "dev.example.com", true),
        ],
        ..offline_facts()
    };
    let found = |dns, dns_zone: Option<&str>| {
        let (cluster, groups) = new_cluster(CreateOptions {
            zones: zone_names(&["a"]),
            dns: Some(dns),
            dns_zone: dns_zone.map(str::to_owned),
            ..CreateOptions::default()
        });
        let full = try_expand(&cluster, &groups, &facts).unwrap().full;
        full.dns.zone.map(|zone| zone.id)
    };
    assert_eq!(found(DnsType::Public, None).unwrap(), "ZEX");
    assert_eq!(found(DnsType::Private, None).unwrap(), "ZPRIVATE");
    assert_eq!(found(DnsType::Public, Some("com")).unwrap(), "ZCOM");
    assert_eq!(found(DnsType::Public, Some("ZCOM")).unwrap(), "ZCOM");
    assert_eq!(found(DnsType::None, None), None);
}

#[test]
fn what_aws_does_not_have_is_said_at_once_with_a_next_step() {
    let (mut cluster, groups) = new_cluster(CreateOptions {
        zones: zone_names(&["a"]),
        dns: Some(DnsType::Public),
        network_id: Some("vpc-1".into()),
        subnets: vec!["subnet-1".into()],
        ..CreateOptions::default()
    });
    cluster.spec.config_base = None;
    let known = Facts {
        account: "123456789012".into(),
        ..Facts::default()
    };
    let problems = try_expand(&cluster, &groups, &known).unwrap_err();
    let paths: Vec<_> = problems
        .iter()
        .map(|problem| {
            assert!(problem.hint.is_some(), "{problem:?}");
            let object = problem
                .object
                .as_ref()
                .map_or("cluster", |object| &object.name);
            format!("{object} {}", problem.path)
        })
        .collect();
    assert_eq!(
        paths,
        [
            "dev.example.com spec.configBase",
            "dev.example.com spec.networkID",
            "dev.example.com spec.subnets[0].id",
            "dev.example.com spec.dnsZone",
            "control-plane-eu-west-1a spec.machineType",
            "control-plane-eu-west-1a spec.image",
            "nodes-eu-west-1a spec.machineType",
            "nodes-eu-west-1a spec.image",
        ]
    );
}

#[test]
fn only_what_is_needed_is_asked_for() {
    let (cluster, mut groups) = new_cluster(CreateOptions {
        zones: zone_names(&["a"]),
        network_id: Some("vpc-1".into()),
        subnets: vec!["subnet-1".into()],
        ..CreateOptions::default()
    });
    groups[1].spec.image = None;
    groups[1].spec.machine_type = None;
    let asked = wanted_facts(&cluster, &groups);
    assert_eq!(asked.region.as_deref(), Some("eu-west-1"));
    assert_eq!(asked.vpc.as_deref(), Some("vpc-1"));
    assert!(asked.subnets.contains("subnet-1"));
    assert!(!asked.hosted_zones);
    // That of the new control plane, and the default of both architectures for the group without.
    assert_eq!(asked.images.len(), 3, "{:?}", asked.images);
    assert!(asked.machine_types.contains("t4g.medium"));
}

#[test]
fn what_aws_has_must_agree_with_the_spec() {
    let (cluster, mut groups) = new_cluster(CreateOptions {
        zones: zone_names(&["a", "b"]),
        network_id: Some("vpc-1".into()),
        subnets: vec!["subnet-1".into()],
        ..CreateOptions::default()
    });
    let subnet = SharedSubnet {
        vpc: "vpc-1".into(),
        zone: "eu-west-1b".into(),
        cidr: Some("172.20.64.0/20".into()),
        ipv6_cidr: None,
        dns64: false,
    };
    let vpc = SharedVpc {
        cidr: "172.20.0.0/16".into(),
        internet_gateway: Some("igw-1".into()),
        ipv6_cidrs: Vec::new(),
        egress_only_internet_gateway: None,
        subnets: Vec::new(),
    };
    let kind = InstanceType {
        arch: Arch::Amd64,
        instance_store_disks: 2,
        gpu: false,
        nvidia_gpu: false,
        xen: false,
        max_interfaces: None,
        addresses_per_interface: None,
        zones: zone_names(&["a"]),
    };
    let image = Image {
        id: "ami-1".into(),
        root_device: "/dev/sda1".into(),
        arch: Arch::Arm64,
        unfit: None,
        system: None,
    };
    groups[0].spec.image = Some("own/image".into());
    let facts = Facts {
        vpcs: [("vpc-1".into(), vpc)].into(),
        subnets: [("subnet-1".into(), subnet)].into(),
        instance_types: [("t3.medium".into(), kind)].into(),
        images: [("own/image".into(), image)].into(),
        ..offline_facts()
    };
    let problems = try_expand(&cluster, &groups, &facts).unwrap_err();
    let said: Vec<_> = problems
        .iter()
        .filter(|problem| problem.is_error())
        .map(|problem| problem.message.as_str())
        .collect();
    assert_eq!(
        said,
        [
            "subnet-1 has the range 172.20.64.0/20, not 172.20.0.0/17",
            "subnet-1 is in eu-west-1b, not in eu-west-1a",
            "the image is for arm64, and t3.medium is amd64",
            "eu-west-1b does not offer t3.medium",
        ]
    );
}

#[test]
fn the_users_address_of_a_nat_gateway_becomes_its_allocation_id() {
    let private = || {
        let (mut cluster, groups) = new_cluster(CreateOptions {
            zones: zone_names(&["a", "b"]),
            topology: spec::create::Topology::Private,
            ..CreateOptions::default()
        });
        let subnets = cluster.spec.subnets.iter_mut();
        let mut subnets = subnets.filter(|subnet| subnet.type_ == Some(SubnetType::Private));
        let (of_a, of_b) = (subnets.next().unwrap(), subnets.next().unwrap());
        of_a.public_ip = Some("203.0.113.7".into());
        // A way out of the user's wins: nothing has to be looked up.
        of_b.egress = Some("nat-0123456789abcdef0".into());
        of_b.public_ip = Some("203.0.113.8".into());
        (cluster, groups)
    };
    let (cluster, groups) = private();
    let asked = wanted_facts(&cluster, &groups).addresses;
    assert_eq!(asked.into_iter().collect::<Vec<_>>(), ["203.0.113.7"]);
    let facts = |stand_in, addresses: &[(&str, &str)]| Facts {
        addresses: addresses
            .iter()
            .map(|(public, id)| ((*public).to_owned(), (*id).to_owned()))
            .collect(),
        stand_in,
        ..offline_facts()
    };
    let ways_out = |facts: &Facts| {
        let full = try_expand(&cluster, &groups, facts).unwrap().full;
        let subnets = full.network.subnets.into_iter();
        subnets
            .filter_map(|subnet| subnet.egress)
            .collect::<Vec<_>>()
    };
    let known = facts(true, &[("203.0.113.7", "eipalloc-7")]);
    assert_eq!(ways_out(&known), ["eipalloc-7", "nat-0123456789abcdef0"]);
    let made_up = facts(true, &[]);
    assert_eq!(ways_out(&made_up)[0], STAND_IN_ADDRESS);
    let printed = try_expand(&cluster, &groups, &made_up).unwrap().cluster;
    assert_eq!(
        printed
            .spec
            .subnets
            .iter()
            .filter_map(|one| one.public_ip.as_deref())
            .collect::<Vec<_>>(),
        ["203.0.113.7", "203.0.113.8"]
    );
}

#[test]
fn an_address_that_the_account_does_not_have_is_named_with_its_place() {
    let (mut cluster, groups) = new_cluster(CreateOptions {
        zones: zone_names(&["a"]),
        topology: spec::create::Topology::Private,
        ..CreateOptions::default()
    });
    let index = cluster
        .spec
        .subnets
        .iter()
        .position(|subnet| subnet.type_ == Some(SubnetType::Private))
        .unwrap();
    cluster.spec.subnets[index].public_ip = Some("203.0.113.7".into());
    let problems = try_expand(&cluster, &groups, &Facts::default()).unwrap_err();
    let path = format!("spec.subnets[{index}].publicIP");
    let problem = problems
        .iter()
        .find(|problem| problem.path == path)
        .unwrap();
    assert!(problem.message.contains("203.0.113.7 is not an Elastic IP"));
    assert!(
        problem
            .hint
            .as_ref()
            .unwrap()
            .contains("describe-addresses")
    );
}
