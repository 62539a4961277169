//! Values set by the user reach the full spec.

use super::{CUSTOM, expand_text, find_group, offline_facts, read_objects};
use cloud::facts::Facts;
use full::{DnsKind, ExternalLoadBalancer, SshKey};
use node::config::Arch;
use spec::catalog::Catalog;
use spec::expand::{STAND_IN_IMAGE, STAND_IN_ZONE, expand};

#[test]
fn wishes_reach_the_full_spec() {
    let full = expand_text(CUSTOM, &offline_facts()).full;
    assert_eq!(full.kubernetes_version, "1.35.2");
    assert_eq!(full.node_port_range, (31000, 31999));
    assert_eq!(full.ssh_key, Some(SshKey::Existing("ops".into())));
    assert_eq!(full.node_termination, None);
    assert_eq!(full.pods.pod_cidr.unwrap().to_string(), "100.88.0.0/13");
    assert_eq!(full.pods.service_cidr.to_string(), "100.80.0.0/15");
    assert_eq!(full.pods.dns_service_ip.to_string(), "100.80.0.10");
    assert_eq!(full.dns.kind, DnsKind::Private);
    assert_eq!(full.dns.zone.unwrap().id, STAND_IN_ZONE);
    assert!(full.iam.additional_policies["control-plane"].is_array());
    assert_eq!(full.iam.external_policies["node"].len(), 1);

    let balancer = full.api.load_balancer.as_ref().unwrap();
    assert!(
        balancer.internal,
        "in public subnets, for want of private ones"
    );
    assert_eq!(balancer.subnets.len(), 3);

    let main = &full.etcd[0];
    assert_eq!(main.version, "3.6.11");
    let volumes: Vec<_> = main
        .members
        .iter()
        .map(|member| {
            (
                member.volume_type.as_str(),
                member.volume_size,
                member.volume_iops,
                member.volume_throughput,
                member.encrypted,
            )
        })
        .collect();
    assert_eq!(
        volumes,
        [
            ("io2", 50, Some(100), None, true),
            ("gp2", 20, None, None, false),
            ("gp3", 20, Some(3000), Some(125), false),
        ]
    );
}

#[test]
fn wishes_reach_the_groups() {
    let full = expand_text(CUSTOM, &offline_facts()).full;
    let arm = find_group(&full, "control-plane-eu-west-1a");
    assert_eq!((arm.arch, arm.root_volume.iops), (Arch::Arm64, None));
    assert_eq!(arm.taints, ["cluster=wide:NoSchedule", "own=:NoSchedule"]);
    let own_image = find_group(&full, "control-plane-eu-west-1b");
    assert_eq!(own_image.image_id, "ami-0123456789abcdef0");
    assert_eq!(own_image.http_put_response_hop_limit, 3);
    let by_zone = find_group(&full, "control-plane-eu-west-1c");
    assert_eq!(by_zone.subnets, ["eu-west-1c"]);
    assert_eq!(by_zone.image_id, STAND_IN_IMAGE);

    let nodes = find_group(&full, "nodes");
    assert_eq!((nodes.min_size, nodes.max_size), (5, 5));
    assert!(!nodes.associate_public_ip);
    assert_eq!(nodes.iam_profile.as_deref(), Some("web"));
    assert_eq!(nodes.max_instance_lifetime, 2_592_000);
    assert_eq!(nodes.root_volume.encrypted, Some(false));
    assert!(nodes.root_volume.delete_on_termination);
    assert_eq!(nodes.node_labels["disk"], "ssd");
    assert_eq!(nodes.node_labels["node-role.kubernetes.io/node"], "");
    assert!(!nodes.volumes[0].delete_on_termination);
    assert_eq!(nodes.volumes[0].throughput, None);
    assert_eq!(nodes.volumes[1].throughput, Some(125));
    let [ExternalLoadBalancer::TargetGroup(_)] = nodes.external_load_balancers.as_slice() else {
        panic!("{:?}", nodes.external_load_balancers);
    };
}

#[test]
fn downloads_come_from_where_the_spec_says_with_the_hashes_that_are_known() {
    let kubelet =
        |arch: &str| format!("https://dl.k8s.io/release/v1.35.2/bin/linux/{arch}/kubelet");
    let catalog = Catalog::embedded().unwrap();
    let forgetful = Catalog::default()
        .with_overlay("kubernetes:\n  base: https://dl.k8s.io/release/\n")
        .unwrap();
    let (cluster, groups) = read_objects(CUSTOM);
    let facts = Facts {
        published_hashes: [(kubelet("arm64"), "cd".repeat(32))].into(),
        ..offline_facts()
    };
    let of = |catalog: &Catalog, name: &str, arch: Arch| {
        let full = expand(&cluster, &groups, &[], &facts, catalog)
            .unwrap()
            .full;
        let assets = full.assets.into_iter();
        let found = assets
            .into_iter()
            .find(|asset| asset.name == name && asset.arch == arch);
        let asset = found.unwrap();
        (asset.urls[0].clone(), asset.sha256)
    };
    let (url, sha256) = of(&catalog, "kubelet", Arch::Arm64);
    assert_eq!(
        url,
        kubelet("arm64").replace("https://dl.k8s.io", "https://files.example.com/mirror")
    );
    assert!(sha256.is_some_and(|sha256| sha256 != "cd".repeat(32)));
    assert_eq!(
        of(&forgetful, "kubelet", Arch::Arm64).1,
        Some("cd".repeat(32))
    );
    assert_eq!(of(&forgetful, "kubelet", Arch::Amd64).1, None);

    let (url, sha256) = of(&catalog, "containerd", Arch::Amd64);
    assert_eq!(url, "https://files.example.com/containerd.tar.gz");
    assert_eq!(sha256, Some("ab".repeat(32)));
    let (url, _) = of(&catalog, "containerd", Arch::Arm64);
    assert!(url.contains("containerd-2.3.4-linux-arm64"), "{url}");
    assert!(of(&catalog, "runc", Arch::Amd64).0.contains("v1.4.2"));
}
