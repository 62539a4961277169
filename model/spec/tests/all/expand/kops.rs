//! kOps' own expectations, as far as they follow from the full spec.

use super::laws::assert_laws;
use super::{find_group, read_objects};
use cloud::facts::{Facts, HostedZone, Image, InstanceType, SharedSubnet, SharedVpc};
use full::{FullSpec, SshKey};
use node::config::Arch;
use serde_json::Value;
use spec::catalog::Catalog;
use spec::expand::expand;
use std::path::Path;

/// The facts that kOps' tests assume.
fn kops_world() -> Facts {
    let kind = |disks| InstanceType {
        arch: Arch::Amd64,
        instance_store_disks: disks,
        gpu: false,
        nvidia_gpu: false,
        xen: false,
        max_interfaces: None,
        addresses_per_interface: None,
        zones: Vec::new(),
    };
    let types = [
        ("m3.medium", 1),
        ("m5.large", 0),
        ("m5.xlarge", 0),
        ("t2.medium", 0),
        ("t2.micro", 0),
        ("t3.medium", 0),
        ("t3.micro", 0),
    ];
    let subnet = |zone: &str, cidr: &str| SharedSubnet {
        vpc: "vpc-12345678".into(),
        zone: zone.into(),
        cidr: Some(cidr.into()),
        ipv6_cidr: None,
        dns64: false,
    };
    Facts {
        account: "123456789012".into(),
        partition: "aws-test".into(),
        images: [(
            "ubuntu/images/hvm-ssd-gp3/ubuntu-resolute-26.04-amd64-server-20220404".into(),
            Image {
                id: "ami-12345678".into(),
                root_device: "/dev/xvda".into(),
                arch: Arch::Amd64,
                unfit: None,
                system: None,
            },
        )]
        .into(),
        instance_types: types.map(|(name, disks)| (name.into(), kind(disks))).into(),
        hosted_zones: vec![HostedZone {
            id: "Z1AFAKE1ZON3YO".into(),
            name: "example.com".into(),
            private: false,
        }],
        vpcs: [(
            "vpc-12345678".into(),
            SharedVpc {
                cidr: "172.20.0.0/16".into(),
                internet_gateway: Some("igw-1".into()),
                ipv6_cidrs: Vec::new(),
                egress_only_internet_gateway: None,
                subnets: Vec::new(),
            },
        )]
        .into(),
        subnets: [
            (
                "subnet-12345678".into(),
                subnet("us-test-1a", "172.20.32.0/19"),
            ),
            (
                "subnet-abcdef".into(),
                subnet("us-test-1a", "172.20.4.0/22"),
            ),
        ]
        .into(),
        ..Facts::default()
    }
}

/// kOps' own expectations: folders of `in.yaml` and `resources.json` below
/// `$KCTL_KOPS_FIXTURES/update_cluster`, as far as they follow from the full spec.
#[test]
fn kops_expectations_hold() {
    let Some(fixtures) = std::env::var_os("KCTL_KOPS_FIXTURES") else {
        return;
    };
    let mut checked = 0;
    for entry in std::fs::read_dir(Path::new(&fixtures).join("update_cluster")).unwrap() {
        let folder = entry.unwrap().path();
        let read = |name| std::fs::read_to_string(folder.join(name)).unwrap();
        let (cluster, groups) = read_objects(&read("in.yaml"));
        let is_refused = |(name, _): &(&str, &str)| folder.ends_with(name);
        if crate::kops::REFUSED.iter().any(is_refused) {
            continue;
        }
        assert_laws(&cluster, &groups, &kops_world());
        let catalog = Catalog::embedded().unwrap();
        let keys = [read("id_rsa.pub")];
        let expanded = expand(&cluster, &groups, &keys, &kops_world(), &catalog);
        let full = expanded.unwrap().full;
        let resources: Vec<Value> = serde_json::from_str(&read("resources.json")).unwrap();
        for resource in &resources {
            let attrs = &resource["attrs"];
            let place = format!("{} {}", folder.display(), resource["name"]);
            match resource["type"].as_str().unwrap() {
                "aws_ebs_volume" => check_volume(&full, attrs, &place),
                "aws_launch_template" => check_launch_template(&full, attrs, &place),
                "aws_autoscaling_group" => check_autoscaling_group(&full, attrs, &place),
                "aws_lb" => check_load_balancer(&full, attrs, &place),
                "aws_key_pair" => check_key_pair(&full, attrs, &place),
                "aws_subnet" => check_subnet(&full, attrs, &place),
                _ => {}
            }
        }
        checked += 1;
    }
    assert!(checked > 0);
}

/// The part of an AWS name before the cluster's.
fn own_name<'a>(full: &FullSpec, name: &'a Value) -> &'a str {
    let name = name.as_str().unwrap();
    name.strip_suffix(&format!(".{}", full.name)).unwrap()
}

fn check_volume(full: &FullSpec, attrs: &Value, place: &str) {
    let name = own_name(full, &attrs["tags"]["Name"]);
    let (member, etcd) = name.split_once(".etcd-").unwrap();
    let etcd = full
        .etcd
        .iter()
        .find(|cluster| cluster.name == etcd)
        .unwrap();
    let member = etcd
        .members
        .iter()
        .find(|other| other.name == member)
        .unwrap();
    assert_eq!(attrs["availability_zone"], *member.zone, "{place}");
    assert_eq!(attrs["encrypted"], member.encrypted, "{place}");
    assert_eq!(attrs["size"], member.volume_size, "{place}");
    assert_eq!(attrs["type"], *member.volume_type, "{place}");
    assert_eq!(
        attrs["iops"].as_i64(),
        member.volume_iops.map(i64::from),
        "{place}"
    );
    assert_eq!(
        attrs["throughput"].as_i64(),
        member.volume_throughput.map(i64::from),
        "{place}"
    );
}

fn check_launch_template(full: &FullSpec, attrs: &Value, place: &str) {
    let name = own_name(full, &attrs["name"]);
    let group = find_group(full, name.trim_end_matches(".masters"));
    assert_eq!(attrs["image_id"], *group.image_id, "{place}");
    assert_eq!(attrs["instance_type"], *group.machine_type, "{place}");
    let metadata = &attrs["metadata_options"][0];
    assert_eq!(metadata["http_tokens"], *group.http_tokens, "{place}");
    assert_eq!(
        metadata["http_put_response_hop_limit"], group.http_put_response_hop_limit,
        "{place}"
    );
    assert_eq!(
        attrs["monitoring"][0]["enabled"], group.detailed_monitoring,
        "{place}"
    );
    let interface = &attrs["network_interfaces"][0];
    assert_eq!(
        interface["associate_public_ip_address"], group.associate_public_ip,
        "{place}"
    );
    assert_eq!(
        attrs["credit_specification"][0]["cpu_credits"].as_str(),
        group.cpu_credits.as_deref(),
        "{place}"
    );
    let devices = attrs["block_device_mappings"].as_array().unwrap();
    let ephemeral = devices
        .iter()
        .filter(|device| device["virtual_name"].is_string());
    assert_eq!(
        ephemeral.count(),
        group.instance_store_disks as usize,
        "{place}"
    );
    let ebs: Vec<_> = devices
        .iter()
        .filter(|device| device["ebs"].is_array())
        .collect();
    let volumes = std::iter::once(&group.root_volume).chain(&group.volumes);
    assert_eq!(ebs.len(), 1 + group.volumes.len(), "{place}");
    for (device, volume) in ebs.iter().zip(volumes) {
        let ebs = &device["ebs"][0];
        assert_eq!(device["device_name"], *volume.device, "{place}");
        assert_eq!(ebs["volume_size"], volume.size, "{place}");
        assert_eq!(ebs["volume_type"], *volume.volume_type, "{place}");
        assert_eq!(ebs["encrypted"].as_bool(), volume.encrypted, "{place}");
        assert_eq!(ebs["iops"].as_i64(), volume.iops.map(i64::from), "{place}");
        assert_eq!(
            ebs["throughput"].as_i64(),
            volume.throughput.map(i64::from),
            "{place}"
        );
        assert_eq!(
            ebs["kms_key_id"].as_str(),
            volume.kms_key_id.as_deref(),
            "{place}"
        );
        // kOps deletes further volumes whatever the spec says; we do as the spec says.
    }
}

fn check_autoscaling_group(full: &FullSpec, attrs: &Value, place: &str) {
    const LABEL: &str = "k8s.io/cluster-autoscaler/node-template/label/";
    let name = own_name(full, &attrs["name"]);
    let group = find_group(full, name.trim_end_matches(".masters"));
    assert_eq!(attrs["min_size"], group.min_size, "{place}");
    assert_eq!(attrs["max_size"], group.max_size, "{place}");
    assert_eq!(
        attrs["protect_from_scale_in"], group.instance_protection,
        "{place}"
    );
    let subnets = attrs["vpc_zone_identifier"].as_array().unwrap();
    assert_eq!(subnets.len(), group.subnets.len(), "{place}");
    let tags = attrs["tag"].as_array().unwrap().iter();
    let labels: Vec<_> = tags
        .filter_map(|tag| {
            let key = tag["key"].as_str()?.strip_prefix(LABEL)?;
            Some((key, tag["value"].as_str()?))
        })
        .collect();
    let expected: Vec<_> = group
        .node_labels
        .iter()
        .map(|(k, v)| (k.as_str(), v.as_str()))
        .collect();
    assert_eq!(labels, expected, "{place}");
}

fn check_load_balancer(full: &FullSpec, attrs: &Value, place: &str) {
    if !attrs["tags"]["Name"].as_str().unwrap().starts_with("api.") {
        return;
    }
    let balancer = full.api.load_balancer.as_ref().unwrap();
    assert_eq!(attrs["internal"], balancer.internal, "{place}");
    assert_eq!(
        attrs["enable_cross_zone_load_balancing"], balancer.cross_zone,
        "{place}"
    );
    let mappings = attrs["subnet_mapping"].as_array().unwrap();
    assert_eq!(mappings.len(), balancer.subnets.len(), "{place}");
    for (mapping, subnet) in mappings.iter().zip(&balancer.subnets) {
        let id = mapping["subnet_id"].as_str().unwrap();
        let all = &full.network.subnets;
        let known = all.iter().find(|other| other.name == subnet.name).unwrap();
        let shared = known.shared.as_deref() == Some(id);
        assert!(
            shared || id.starts_with(&format!("${{aws_subnet.{}-", subnet.name)),
            "{place}"
        );
        assert_eq!(
            mapping["allocation_id"].as_str(),
            subnet.allocation_id.as_deref(),
            "{place}"
        );
    }
}

fn check_key_pair(full: &FullSpec, attrs: &Value, place: &str) {
    let Some(SshKey::Ours { name, .. }) = &full.ssh_key else {
        panic!("{place}: {:?}", full.ssh_key);
    };
    assert_eq!(attrs["key_name"], **name, "{place}");
}

fn check_subnet(full: &FullSpec, attrs: &Value, place: &str) {
    let name = own_name(full, &attrs["tags"]["Name"]);
    let subnet = full
        .network
        .subnets
        .iter()
        .find(|subnet| subnet.name == name)
        .unwrap();
    let range = subnet.cidr.map(|range| range.to_string());
    assert_eq!(attrs["cidr_block"].as_str(), range.as_deref(), "{place}");
    assert_eq!(attrs["availability_zone"], *subnet.zone, "{place}");
}
