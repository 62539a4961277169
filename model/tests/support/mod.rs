//! A small cluster to make machines of.

use model::full::{Arch, FullSpec, Role};
use model::node::{Agent, Agents};
use serde_json::json;

/// One control plane, one group of workers and a bastion, with a public hosted zone.
pub fn full() -> FullSpec {
    let group = |name: &str, role: Role| {
        json!({
            "name": name, "role": role, "image_id": "ami-1", "root_device": "/dev/xvda", "arch": "amd64",
            "machine_type": "t3.medium", "instance_store_disks": 0, "min_size": 1, "max_size": 1,
            "subnets": ["eu-west-1a"], "associate_public_ip": true,
            "root_volume": {
                "device": "/dev/xvda", "size": 64, "volume_type": "gp3", "iops": 3000, "throughput": 125,
                "encrypted": true, "kms_key_id": null, "delete_on_termination": true,
            },
            "volumes": [], "cloud_labels": {}, "node_labels": {}, "taints": [], "additional_security_groups": [],
            "security_group_override": null, "iam_profile": null, "detailed_monitoring": false,
            "http_tokens": "required", "http_put_response_hop_limit": 1, "max_price": null,
            "instance_interruption_behavior": null, "tenancy": null, "cpu_credits": null,
            "capacity_rebalance": false, "instance_protection": false, "suspend_processes": [],
            "max_instance_lifetime": 0, "external_load_balancers": [], "additional_user_data": [],
        })
    };
    let etcd = |name: &str| {
        json!({
            "name": name, "version": "3.6.12", "cpu_request": "100m", "memory_request": "100Mi",
            "members": [{
                "name": "a", "group": "control-plane-eu-west-1a", "zone": "eu-west-1a", "volume_size": 20,
                "volume_type": "gp3", "volume_iops": 3000, "volume_throughput": 125, "encrypted": true,
                "kms_key_id": null,
            }],
        })
    };
    serde_json::from_value(json!({
        "name": "a.example.com",
        "placement": { "region": "eu-west-1", "partition": "aws", "account": "123456789012" },
        "kubernetes_version": "1.36.3",
        "state": {
            "config_base": "s3://store/state/a.example.com", "bucket": "store", "prefix": "state/a.example.com",
        },
        "network": {
            "shared_vpc": null, "shared_internet_gateway": null, "cidr": "172.20.0.0/16", "additional_cidrs": [],
            "subnets": [], "disable_subnet_tags": false,
        },
        "pods": {
            "networking": { "flannel": "vxlan" }, "non_masquerade_cidr": "100.64.0.0/10",
            "pod_cidr": "100.96.0.0/11", "service_cidr": "100.64.0.0/13", "dns_service_ip": "100.64.0.10",
            "dns_domain": "cluster.local",
        },
        "dns": {
            "kind": "Public", "zone": { "id": "Z1", "name": "example.com" },
            "api_public_name": "api.a.example.com", "api_internal_name": "api.internal.a.example.com",
        },
        "api": { "access": ["0.0.0.0/0"], "load_balancer": null },
        "ssh_access": [], "ssh_key": null, "node_port_access": [], "node_port_range": [30000, 32767],
        "cloud_labels": {},
        "bastion": {"internal": false, "additional_security_groups": [], "public_name": null},
        "iam": {
            "permissions_boundary": null, "allow_container_registry": true, "external_policies": {},
            "additional_policies": {},
        },
        "etcd": [etcd("main"), etcd("events")],
        "node_termination": null,
        "assets": [],
        "groups": [
            group("bastions", Role::Bastion),
            group("control-plane-eu-west-1a", Role::ControlPlane),
            group("nodes-eu-west-1a", Role::Node),
        ],
    }))
    .unwrap()
}

/// nodeup and protokube of both architectures, with made-up hashes.
pub fn agents() -> Agents {
    let both = |digit: &str| {
        let agent = |arch| Agent {
            arch,
            sha256: digit.repeat(64),
            mirrors: Vec::new(),
        };
        vec![agent(Arch::Amd64), agent(Arch::Arm64)]
    };
    Agents {
        nodeup: both("1"),
        protokube: both("2"),
    }
}
