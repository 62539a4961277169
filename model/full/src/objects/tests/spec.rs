//! Full specs written by hand, for tests of builders.

use crate::*;
use cloud::SubnetIpv6Range;
use node::backup::EtcdBackupSettings;
use node::config::{Arch, Networking, Rebalance, Role};
use std::collections::BTreeMap;

fn pod_network() -> PodNetwork {
    PodNetwork {
        networking: Networking::Cni,
        non_masquerade_cidr: "100.64.0.0/10".parse().expect("a range"),
        pod_cidr: Some("100.96.0.0/11".parse().expect("a range")),
        service_cidr: "100.64.0.0/13".parse().expect("a range"),
        dns_service_ip: "100.64.0.10".parse().expect("an address"),
        dns_domain: "cluster.local".into(),
    }
}

/// A public cluster in one zone with public DNS: one control plane, one group of nodes.
pub fn minimal_spec() -> FullSpec {
    FullSpec {
        name: "minimal.example.com".into(),
        placement: Placement {
            region: "us-test-1".into(),
            partition: "aws-test".into(),
            account: "123456789012".into(),
        },
        kubernetes_version: "1.36.3".into(),
        state: StateLocation {
            config_base: "s3://state/tests/minimal.example.com".into(),
            bucket: Some("state".into()),
            prefix: "tests/minimal.example.com".into(),
            owner: Some("123456789012".into()),
        },
        network: Network {
            shared_vpc: None,
            shared_internet_gateway: None,
            shared_egress_only_internet_gateway: None,
            cidr: "172.20.0.0/16".parse().expect("a range"),
            additional_cidrs: Vec::new(),
            subnets: vec![subnet("us-test-1a", SubnetType::Public, "172.20.32.0/19")],
            disable_subnet_tags: false,
        },
        pods: pod_network(),
        dns: Dns {
            kind: DnsKind::Public,
            zone: Some(Zone {
                id: "Z1AFAKE1ZON3YO".into(),
                name: "example.com".into(),
            }),
            api_public_name: "api.minimal.example.com".into(),
            api_internal_name: "api.internal.minimal.example.com".into(),
            object_names: None,
        },
        api: Api {
            access: vec!["0.0.0.0/0".into(), "::/0".into()],
            load_balancer: None,
            additional_names: Vec::new(),
            node_proxy: false,
        },
        bastion: Bastion::default(),
        ssh_access: vec!["0.0.0.0/0".into(), "::/0".into()],
        ssh_key: Some(SshKey::Ours {
            name: "kubernetes.minimal.example.com-aa:bb".into(),
            public_key: "ssh-rsa AAAA".into(),
        }),
        node_port_access: Vec::new(),
        node_port_range: (30000, 32767),
        cloud_labels: BTreeMap::new(),
        pod_identity: None,
        iam: Iam {
            permissions_boundary: None,
            allow_container_registry: true,
            external_policies: BTreeMap::new(),
            additional_policies: BTreeMap::new(),
        },
        etcd: vec![etcd_cluster("main", &["a"]), etcd_cluster("events", &["a"])],
        control_plane: ControlPlane::default(),
        kube_proxy: None,
        addons: Addons::default(),
        images: ImageSource::default(),
        egress_proxy: None,
        node_termination: Some(node_termination()),
        assets: Vec::new(),
        image_archives: Vec::new(),
        groups: vec![
            instance_group("master-us-test-1a", Role::ControlPlane, "us-test-1a"),
            instance_group("nodes", Role::Node, "us-test-1a"),
        ],
    }
}

fn node_termination() -> NodeTermination {
    NodeTermination {
        managed_tag: "aws-node-termination-handler/managed".into(),
        spot_interruption: true,
        scheduled_events: true,
        rebalance: Rebalance::Ignore,
        exclude_from_load_balancers: true,
        taint: false,
        pod_grace_seconds: None,
    }
}

/// Three zones, three control planes, no DNS: the API is behind a load balancer.
pub fn ha_spec() -> FullSpec {
    let zones = ["a", "b", "c"].map(|letter| format!("us-test-1{letter}"));
    let mut full = minimal_spec();
    full.network.subnets = zones
        .iter()
        .zip(["172.20.0.0/18", "172.20.64.0/18", "172.20.128.0/18"])
        .map(|(zone, cidr)| subnet(zone, SubnetType::Public, cidr))
        .collect();
    full.dns.kind = DnsKind::None;
    full.dns.zone = None;
    full.api.load_balancer = Some(load_balancer(&["us-test-1a", "us-test-1b", "us-test-1c"]));
    full.etcd = ["main", "events"]
        .map(|name| etcd_cluster(name, &["a", "b", "c"]))
        .into();
    full.groups = zones
        .iter()
        .map(|zone| instance_group(&format!("control-plane-{zone}"), Role::ControlPlane, zone))
        .collect();
    let mut nodes = instance_group("nodes", Role::Node, "us-test-1a");
    nodes.subnets = zones.to_vec();
    full.groups.push(nodes);
    full
}

/// Private subnets behind NAT gateways, bastions in front.
pub fn private_spec() -> FullSpec {
    let mut full = minimal_spec();
    full.network.subnets = vec![
        subnet("us-test-1a", SubnetType::Private, "172.20.32.0/19"),
        subnet("utility-us-test-1a", SubnetType::Utility, "172.20.4.0/22"),
    ];
    full.api.load_balancer = Some(load_balancer(&["utility-us-test-1a"]));
    for group in &mut full.groups {
        group.associate_public_ip = false;
    }
    full.groups.insert(
        0,
        instance_group("bastions", Role::Bastion, "utility-us-test-1a"),
    );
    full
}

/// An IPv6 cluster: nodes in a subnet with IPv6 alone, the control plane in one with both, one public subnet in another zone.
pub fn ipv6_spec() -> FullSpec {
    let mut full = private_spec();
    full.network.subnets = vec![
        subnet("us-test-1a", SubnetType::Private, "172.20.32.0/19"),
        subnet("dual-us-test-1a", SubnetType::DualStack, "172.20.64.0/19"),
        subnet("utility-us-test-1a", SubnetType::Utility, "172.20.4.0/22"),
        subnet("us-test-1b", SubnetType::Public, "172.20.96.0/19"),
    ];
    for (number, subnet) in (0..).zip(&mut full.network.subnets) {
        let prefix_len = 64;
        subnet.ipv6_cidr = Some(SubnetIpv6Range::Part { prefix_len, number });
        subnet.zone = subnet.name[subnet.name.len() - 10..].into();
    }
    full.network.subnets[0].cidr = None;
    full.pods.non_masquerade_cidr = "::/0".parse().expect("a range");
    full.pods.pod_cidr = None;
    full.pods.service_cidr = "fd00:5e4f:ce::/108".parse().expect("a range");
    full.pods.dns_service_ip = "fd00:5e4f:ce::a".parse().expect("an address");
    for group in &mut full.groups {
        if group.role == Role::ControlPlane {
            group.subnets = vec!["dual-us-test-1a".into()];
        }
    }
    full
}

/// A cluster in an existing VPC, with one existing subnet.
pub fn shared_vpc_spec() -> FullSpec {
    let mut full = minimal_spec();
    full.network.shared_vpc = Some("vpc-12345678".into());
    full.network.shared_internet_gateway = Some("igw-1".into());
    let mut given = subnet("given", SubnetType::Public, "172.20.64.0/19");
    given.shared = Some("subnet-12345678".into());
    full.network.subnets.push(given);
    full.groups[1].subnets = vec!["given".into()];
    full
}

pub fn subnet(name: &str, kind: SubnetType, cidr: &str) -> Subnet {
    Subnet {
        name: name.into(),
        zone: name.trim_start_matches("utility-").into(),
        cidr: Some(cidr.parse().expect("a range")),
        ipv6_cidr: None,
        kind,
        shared: None,
        egress: None,
        additional_routes: Vec::new(),
    }
}

pub fn load_balancer(subnets: &[&str]) -> ApiLoadBalancer {
    ApiLoadBalancer {
        internal: false,
        subnets: subnets
            .iter()
            .map(|name| ApiLoadBalancerSubnet {
                name: (*name).into(),
                allocation_id: None,
                private_ipv4_address: None,
            })
            .collect(),
        cross_zone: false,
        additional_security_groups: Vec::new(),
        security_group_override: None,
        ssl_certificate: None,
        ssl_policy: None,
        access_log: None,
        use_for_internal_api: false,
    }
}

pub fn etcd_cluster(name: &str, members: &[&str]) -> EtcdCluster {
    EtcdCluster {
        name: name.into(),
        version: "3.6.12".into(),
        members: members
            .iter()
            .map(|member| EtcdMember {
                name: (*member).into(),
                group: format!("control-plane-us-test-1{member}"),
                zone: format!("us-test-1{member}"),
                volume_size: 20,
                volume_type: "gp3".into(),
                volume_iops: Some(3000),
                volume_throughput: Some(125),
                encrypted: true,
                kms_key_id: None,
            })
            .collect(),
        cpu_request: "200m".into(),
        memory_request: "100Mi".into(),
        image: String::new(),
        environment: BTreeMap::new(),
        backups: EtcdBackupSettings {
            store: format!("s3://state/tests/minimal.example.com/backups/etcd/{name}"),
            interval_seconds: 900,
            hourly_retention_seconds: 7 * 86_400,
            daily_retention_seconds: 90 * 86_400,
            recipients: Vec::new(),
            changes_seconds: None,
            unknown: serde_json::Map::default(),
        },
    }
}

pub fn instance_group(name: &str, role: Role, subnet: &str) -> Group {
    let (size, labels): (i32, &[&str]) = match role {
        Role::ControlPlane => (64, &["node-role.kubernetes.io/control-plane"]),
        Role::Node => (128, &["node-role.kubernetes.io/node"]),
        Role::Bastion => (32, &[]),
    };
    Group {
        name: name.into(),
        role,
        image_id: "ami-12345678".into(),
        root_device: "/dev/xvda".into(),
        arch: Arch::Amd64,
        machine_type: "t3.medium".into(),
        instance_store_disks: 0,
        min_size: 1,
        max_size: 1,
        subnets: vec![subnet.into()],
        associate_public_ip: true,
        root_volume: root_volume("/dev/xvda", size),
        volumes: Vec::new(),
        cloud_labels: BTreeMap::new(),
        node_labels: labels
            .iter()
            .map(|label| ((*label).into(), String::new()))
            .collect(),
        taints: Vec::new(),
        additional_security_groups: Vec::new(),
        security_group_override: None,
        iam_profile: None,
        iam_role: None,
        detailed_monitoring: false,
        ebs_optimized: None,
        http_tokens: "required".into(),
        http_put_response_hop_limit: 1,
        max_price: None,
        mixed_instances: None,
        instance_interruption_behavior: None,
        tenancy: None,
        cpu_credits: None,
        capacity_rebalance: false,
        instance_protection: false,
        suspend_processes: Vec::new(),
        warm_pool: None,
        max_instance_lifetime: 0,
        external_load_balancers: Vec::new(),
        additional_user_data: Vec::new(),
        compress_user_data: false,
        node: None,
    }
}

pub fn root_volume(device: &str, size: i32) -> Volume {
    Volume {
        device: device.into(),
        size,
        volume_type: "gp3".into(),
        iops: Some(3000),
        throughput: Some(125),
        encrypted: Some(true),
        kms_key_id: None,
        delete_on_termination: true,
    }
}
