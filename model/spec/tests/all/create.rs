//! What `create` writes, by kOps' rules. kOps' own cases are in `kops`.

use cloud::Cloud;
use cloud::facts::{Facts, InstanceType, SharedSubnet, SharedVpc, TakenRange};
use full::objects;
use node::config::Arch;
use node::yaml::to_yaml_documents;
use serde_json::{Value, json};
use spec::api::{DnsType, InstanceGroup, LoadBalancerType, SubnetType, set};
use spec::catalog::Catalog;
use spec::create::{
    Authorization, CreateOptions, NewCluster, Topology, create_cluster, create_cluster_with,
};
use spec::expand::expand;
use std::collections::BTreeMap;

/// A region that offers old instance types only, with a VPC of the user's.
pub fn old_region() -> Facts {
    let types = [
        ("m3.medium", Arch::Amd64),
        ("t2.medium", Arch::Amd64),
        ("t2.micro", Arch::Amd64),
        ("m6g.xlarge", Arch::Arm64),
    ];
    let kind = |arch| InstanceType {
        arch,
        instance_store_disks: 0,
        gpu: false,
        nvidia_gpu: false,
        xen: false,
        max_interfaces: None,
        addresses_per_interface: None,
        zones: Vec::new(),
    };
    let subnet = |zone: &str, cidr: &str| SharedSubnet {
        vpc: "vpc-12345678".into(),
        zone: zone.into(),
        cidr: Some(cidr.into()),
        ipv6_cidr: None,
        dns64: false,
    };
    Facts {
        instance_types: types.map(|(name, arch)| (name.into(), kind(arch))).into(),
        vpcs: [(
            "vpc-12345678".into(),
            SharedVpc {
                cidr: "10.0.0.0/12".into(),
                internet_gateway: None,
                ipv6_cidrs: Vec::new(),
                egress_only_internet_gateway: None,
                subnets: Vec::new(),
            },
        )]
        .into(),
        subnets: [
            ("subnet-1".into(), subnet("us-test-1a", "10.10.0.0/24")),
            ("subnet-2".into(), subnet("us-test-1b", "10.11.0.0/24")),
            ("subnet-3".into(), subnet("us-test-1a", "10.12.0.0/24")),
        ]
        .into(),
        ..Facts::default()
    }
}

fn zone_options(zones: &[&str]) -> CreateOptions {
    CreateOptions {
        name: "dev.example.com".into(),
        state_store: "s3://state".into(),
        zones: owned_strings(zones),
        ..CreateOptions::default()
    }
}

fn owned_strings(values: &[&str]) -> Vec<String> {
    values.iter().map(|value| (*value).to_owned()).collect()
}

fn create_offline(options: &CreateOptions) -> NewCluster {
    let facts = Facts {
        stand_in: true,
        ..Facts::default()
    };
    create_cluster(options, &facts)
        .unwrap_or_else(|problems| panic!("{}", spec::read::render_problems(&problems)))
}

/// All objects as they are printed.
fn printed_objects(created: &NewCluster) -> String {
    let mut documents = vec![serde_json::to_value(&created.cluster).unwrap()];
    let groups = created.groups.iter();
    documents.extend(groups.map(|group| serde_json::to_value(group).unwrap()));
    to_yaml_documents(&documents).unwrap()
}

#[test]
fn one_zone() {
    insta::assert_snapshot!(printed_objects(&create_offline(&zone_options(&[
        "eu-west-1a"
    ]))));
}

#[test]
fn three_zones_private_with_bastion_and_a_zone_for_names() {
    let options = CreateOptions {
        control_plane_count: Some(3),
        node_count: Some(7),
        topology: Topology::Private,
        bastion: true,
        dns_zone: Some("example.com".into()),
        cloud_labels: "Owner=\"Jo, at work\",team=a".into(),
        node_security_groups: owned_strings(&["sg-1", "sg-2"]),
        node_volume_size: Some(200),
        control_plane_volume_type: Some("io2".into()),
        kubernetes_feature_gates: owned_strings(&["+On", "-Off"]),
        ..zone_options(&["eu-west-1a", "eu-west-1b", "eu-west-1c"])
    };
    insta::assert_snapshot!(printed_objects(&create_offline(&options)));
}

#[test]
fn further_ranges_hold_the_workers() {
    let options = CreateOptions {
        network_cidrs: owned_strings(&["10.0.0.0/16", "10.1.0.0/16", "10.2.0.0/16", "10.3.0.0/16"]),
        networking: Some("cni".into()),
        ..zone_options(&["eu-west-1a", "eu-west-1b"])
    };
    let created = create_offline(&options);
    let subnets = &created.cluster.spec.subnets;
    let ranges: Vec<_> = subnets
        .iter()
        .map(|subnet| format!("{} {}", subnet.name, subnet.cidr.as_deref().unwrap()))
        .collect();
    assert_eq!(
        ranges,
        [
            "eu-west-1a 10.0.0.0/17",
            "eu-west-1b 10.0.128.0/17",
            "eu-west-1a-1 10.1.0.0/16",
            "eu-west-1b-2 10.2.0.0/16",
            "eu-west-1a-3 10.3.0.0/16",
        ]
    );
    let of = |name| &find_group(&created, name).spec.subnets;
    assert_eq!(*of("control-plane-eu-west-1a"), ["eu-west-1a"]);
    assert_eq!(*of("nodes-eu-west-1a"), ["eu-west-1a-1", "eu-west-1a-3"]);
    assert_eq!(*of("nodes-eu-west-1b"), ["eu-west-1b-2"]);
}

fn find_group<'a>(created: &'a NewCluster, name: &str) -> &'a InstanceGroup {
    let group = created.groups.iter().find(|group| group.name() == name);
    group.unwrap_or_else(|| panic!("no group {name}"))
}

#[test]
fn subnets_of_the_users_are_taken_by_their_zones() {
    let options = CreateOptions {
        subnets: owned_strings(&["subnet-2", "subnet-1"]),
        utility_subnets: owned_strings(&["subnet-3"]),
        topology: Topology::Private,
        ..zone_options(&["us-test-1a", "us-test-1b"])
    };
    let created = create_cluster(&options, &old_region()).unwrap();
    let spec = &created.cluster.spec;
    assert_eq!(spec.network_id.as_deref(), Some("vpc-12345678"));
    assert_eq!(spec.network_cidr.as_deref(), Some("10.0.0.0/12"));
    let ids: Vec<_> = spec
        .subnets
        .iter()
        .map(|subnet| (subnet.name.as_str(), subnet.id.as_deref()))
        .collect();
    assert_eq!(
        ids,
        [
            ("us-test-1a", Some("subnet-1")),
            ("us-test-1b", Some("subnet-2")),
            ("utility-us-test-1a", Some("subnet-3")),
            ("utility-us-test-1b", None),
        ]
    );
    assert!(spec.subnets.iter().all(|subnet| subnet.cidr.is_some()));

    let twice = CreateOptions {
        subnets: owned_strings(&["subnet-1", "subnet-3", "subnet-9"]),
        topology: Topology::Public,
        ..options
    };
    let problems = create_cluster(&twice, &old_region()).unwrap_err();
    assert_eq!(
        problems.len(),
        2,
        "{}",
        spec::read::render_problems(&problems)
    );
}

#[test]
fn an_ipv6_cluster_takes_the_parts_of_a_vpc_that_no_subnet_has() {
    let taken = TakenRange {
        id: "subnet-9".into(),
        cidr: None,
        ipv6_cidr: Some("2001:db8:0:101::/64".into()),
        cluster: None,
    };
    let vpc = SharedVpc {
        cidr: "10.0.0.0/16".into(),
        internet_gateway: None,
        ipv6_cidrs: vec!["2001:db8:0:100::/56".into()],
        egress_only_internet_gateway: None,
        subnets: vec![taken],
    };
    let facts = Facts {
        stand_in: true,
        vpcs: [("vpc-1".into(), vpc)].into(),
        ..Facts::default()
    };
    let options = CreateOptions {
        ipv6: true,
        network_id: Some("vpc-1".into()),
        ..zone_options(&["eu-west-1a", "eu-west-1b", "eu-west-1c"])
    };
    let created = create_cluster(&options, &facts).unwrap();
    let parts = created.cluster.spec.subnets.iter();
    let parts = parts.map(|subnet| subnet.ipv6_cidr.clone().unwrap());
    assert_eq!(parts.collect::<Vec<_>>(), ["/64#0", "/64#2", "/64#3"]);
}

#[test]
fn what_is_set_on_the_way_counts_for_the_ranges() {
    let options = zone_options(&["eu-west-1a", "eu-west-1b"]);
    let created = create_cluster_with(&options, &old_region(), |cluster| {
        set::set_field(cluster, "spec.networkCIDR", "10.9.0.0/16")?;
        set::set_field(cluster, "spec.subnets[0].cidr", "10.9.0.0/20")
    });
    let created = created.unwrap();
    let subnets = created.cluster.spec.subnets.iter();
    let ranges: Vec<_> = subnets
        .map(|subnet| subnet.cidr.as_deref().unwrap())
        .collect();
    assert_eq!(ranges, ["10.9.0.0/20", "10.9.128.0/17"]);
    let refused = create_cluster_with(&options, &old_region(), |cluster| {
        set::set_field(cluster, "spec.netwrkCIDR", "10.9.0.0/16")
    });
    assert_eq!(refused.unwrap_err().len(), 1);
}

#[test]
fn the_api_has_a_load_balancer_unless_names_lead_to_public_machines() {
    let balanced = |dns, topology, asked| {
        let options = CreateOptions {
            dns,
            topology,
            api_load_balancer_type: asked,
            ..zone_options(&["eu-west-1a"])
        };
        let created = create_offline(&options);
        let api = created.cluster.spec.api.unwrap();
        assert_ne!(api.dns.is_some(), api.load_balancer.is_some());
        let balancer = api.load_balancer;
        balancer.map(|balancer| balancer.type_.unwrap())
    };
    let (public, internal) = (LoadBalancerType::Public, LoadBalancerType::Internal);
    let names = Some(DnsType::Public);
    assert_eq!(balanced(None, Topology::Public, None), Some(public));
    assert_eq!(balanced(names, Topology::Public, None), None);
    assert_eq!(balanced(names, Topology::Private, None), Some(public));
    let asked = Some(internal);
    assert_eq!(balanced(names, Topology::Public, asked), asked);
}

/// The policies of the listeners that end TLS.
fn tls_policies(created: &NewCluster) -> Vec<String> {
    let facts = Facts {
        stand_in: true,
        ..Facts::default()
    };
    let catalog = Catalog::embedded().unwrap();
    let expanded = expand(&created.cluster, &created.groups, &[], &facts, &catalog);
    let expanded =
        expanded.unwrap_or_else(|problems| panic!("{}", spec::read::render_problems(&problems)));
    let all = objects::desired_objects(&expanded.full, &BTreeMap::new(), Vec::new());
    let policy = |one: Cloud| match one {
        Cloud::LbListener(listener) if listener.protocol == "TLS" => listener.ssl_policy,
        _ => None,
    };
    all.into_iter().filter_map(policy).collect()
}

#[test]
fn a_new_cluster_with_a_certificate_takes_tls_1_2_and_1_3_alone_and_one_of_kops_keeps_its_policy() {
    let arn = "arn:aws:acm:eu-west-1:123456789012:certificate/1";
    let options = CreateOptions {
        api_ssl_certificate: Some(arn.into()),
        ..zone_options(&["eu-west-1a"])
    };
    let mut created = create_offline(&options);
    assert_eq!(
        tls_policies(&created),
        ["ELBSecurityPolicy-TLS13-1-2-2021-06"]
    );
    set::unset_field(&mut created.cluster, "spec.api.loadBalancer.sslPolicy").unwrap();
    assert_eq!(tls_policies(&created), ["ELBSecurityPolicy-2016-08"]);
}

#[test]
fn several_sizes_make_a_mixed_instances_policy_whose_types_are_asked_for() {
    let sizes = CreateOptions {
        node_sizes: owned_strings(&["m5.large", "m5.xlarge"]),
        ..zone_options(&["eu-west-1a"])
    };
    let created = create_offline(&sizes);
    let spec = &find_group(&created, "nodes-eu-west-1a").spec;
    assert_eq!(spec.machine_type.as_deref(), Some("m5.large"));
    let policy = spec.mixed_instances_policy.as_ref().unwrap();
    assert_eq!(policy.instances, ["m5.large", "m5.xlarge"]);
    let asked = spec::expand::wanted_facts(&created.cluster, &created.groups);
    assert!(asked.machine_types.contains("m5.xlarge"));
}

#[test]
fn machine_types_and_images_fit_each_other() {
    let arm = CreateOptions {
        node_sizes: owned_strings(&["m6g.xlarge"]),
        ..zone_options(&["us-test-1a"])
    };
    let created = create_cluster(&arm, &old_region()).unwrap();
    let of = |name| {
        let spec = &find_group(&created, name).spec;
        let image = spec.image.as_deref().unwrap();
        (spec.machine_type.clone().unwrap(), image.contains("arm64"))
    };
    assert_eq!(of("nodes-us-test-1a"), ("m6g.xlarge".into(), true));
    assert_eq!(of("control-plane-us-test-1a"), ("m3.medium".into(), false));

    let none = CreateOptions {
        image: Some("own/arm64-image".into()),
        ..zone_options(&["us-test-1a"])
    };
    let problems = create_cluster(&none, &old_region()).unwrap_err();
    assert!(problems[0].message.contains("arm64"), "{problems:?}");
}

#[test]
fn every_problem_is_said_at_once_under_its_flag() {
    let wrong = CreateOptions {
        name: String::new(),
        state_store: "s3://state".into(),
        control_plane_zones: owned_strings(&["eu-west-1a", "eu-west-1b", "eu-west-1c"]),
        control_plane_count: Some(1),
        bastion: true,
        networking: Some("kopeio".into()),
        cloud_labels: "Owner".into(),
        network_cidrs: owned_strings(&["ten"]),
        kubernetes_version: Some("1.99.0".into()),
        authorization: Authorization::AlwaysAllow,
        ..CreateOptions::default()
    };
    let problems = create_cluster(&wrong, &Facts::default()).unwrap_err();
    let flags: Vec<&str> = problems
        .iter()
        .map(|problem| problem.path.as_str())
        .collect();
    assert_eq!(
        flags,
        [
            "NAME",
            "--zones",
            "--control-plane-count",
            "--bastion",
            "--cloud-labels",
            "--kubernetes-version",
            "--networking",
            "--network-cidr",
        ]
    );
    assert!(problems.iter().all(|problem| problem.hint.is_some()));
}

/// As in kOps: cilium replaces kube-proxy, calico has its defaults.
#[test]
fn a_network_plugin_is_written_as_kops_writes_it() {
    for (name, networking, proxy) in [
        ("calico", json!({"calico": {}}), None),
        (
            "cilium",
            json!({"cilium": {"enableNodePort": true}}),
            Some(false),
        ),
        (
            "cilium-eni",
            json!({"cilium": {"enableNodePort": true, "ipam": "eni"}}),
            Some(false),
        ),
    ] {
        let options = CreateOptions {
            networking: Some(name.into()),
            ..zone_options(&["us-test-1a"])
        };
        let spec = create_offline(&options).cluster.spec;
        assert_eq!(serde_json::to_value(&spec.networking).unwrap(), networking);
        assert_eq!(spec.kube_proxy.and_then(|one| one.enabled), proxy, "{name}");
    }
}

/// A private topology is the default of `--ipv6`: what is advised has to work there too.
#[test]
fn in_the_place_of_kubenet_plugins_are_named_that_do_ipv6() {
    let options = CreateOptions {
        networking: Some("kubenet".into()),
        ipv6: true,
        topology: Topology::Private,
        ..zone_options(&["us-test-1a"])
    };
    let facts = Facts {
        stand_in: true,
        ..Facts::default()
    };
    let problems = create_cluster(&options, &facts).unwrap_err();
    let hints: Vec<_> = problems.iter().map(|one| one.hint.as_deref()).collect();
    assert_eq!(hints, [Some("use cilium or calico")]);
}

#[test]
fn a_zone_that_the_account_does_not_have_is_named_with_those_that_it_has() {
    let facts = Facts {
        account: "123456789012".to_owned(),
        zones: owned_strings(&["us-east-1a", "us-east-1b"]),
        stand_in: true,
        ..Facts::default()
    };
    let of = |zones: &[&str]| create_cluster(&zone_options(zones), &facts).map(|_| ());
    assert!(of(&["us-east-1a"]).is_ok());
    let said = spec::read::render_problems(&of(&["us-east-1a", "us-east-1z"]).unwrap_err());
    assert!(said.contains("--zones: us-east-1z is no zone"), "{said}");
    assert!(said.contains("there are us-east-1a, us-east-1b"), "{said}");
}

#[test]
fn what_is_created_is_valid() {
    for topology in [Topology::Public, Topology::Private] {
        for zones in [
            &["eu-west-1a"][..],
            &["eu-west-1a", "eu-west-1b", "eu-west-1c"],
        ] {
            let options = CreateOptions {
                topology,
                bastion: topology == Topology::Private,
                control_plane_count: Some(zones.len()),
                ..zone_options(zones)
            };
            let created = create_offline(&options);
            let input = spec::validate::ClusterInput {
                cluster: &created.cluster,
                instance_groups: &created.groups,
                ssh_keys: &[],
            };
            let problems = spec::validate::validate(&input);
            assert!(
                problems.is_empty(),
                "{}",
                spec::read::render_problems(&problems)
            );
            let kinds = created
                .cluster
                .spec
                .subnets
                .iter()
                .map(|subnet| subnet.type_);
            let utility = kinds
                .filter(|kind| *kind == Some(SubnetType::Utility))
                .count();
            assert_eq!(utility > 0, topology == Topology::Private);
        }
    }
}

/// The spec stays kOps': fields that it has too, which pass all rules, and an API server that starts with them.
#[test]
fn an_audit_log_is_a_policy_file_and_flags_of_the_api_server() {
    let options = CreateOptions {
        audit_log: true,
        ..zone_options(&["eu-west-1a"])
    };
    let text = printed_objects(&create_offline(&options));
    let documents = spec::read::read_documents("created", &text).unwrap();
    let problems = spec::validate::validate_documents(&documents);
    assert!(
        !problems.iter().any(spec::read::Problem::is_error),
        "{problems:?}"
    );

    let created = create_offline(&options);
    let api = created.cluster.spec.kube_api_server.as_ref().unwrap();
    let kept = (
        api.audit_log_max_age,
        api.audit_log_max_backups,
        api.audit_log_max_size,
    );
    assert_eq!(kept, (Some(30), Some(10), Some(100)));
    let [policy] = &created.cluster.spec.file_assets[..] else {
        panic!("{:?}", created.cluster.spec.file_assets);
    };
    assert_eq!(policy.path, api.audit_policy_file);
    let rules: Value = serde_saphyr::from_str(&policy.content).unwrap();
    let health = json!(["/healthz*", "/livez*", "/readyz*"]);
    assert_eq!(
        rules["rules"],
        json!([{"level": "None", "nonResourceURLs": health}, {"level": "Metadata"}])
    );

    let plain = create_offline(&zone_options(&["eu-west-1a"]));
    assert!(plain.cluster.spec.kube_api_server.is_none());
    assert!(plain.cluster.spec.file_assets.is_empty());
}
