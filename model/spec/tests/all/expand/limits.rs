//! What AWS or the cluster's network would refuse later is refused here: ranges that overlap, tags and policies that are too large,
//! zones of one name.

use super::{new_cluster, offline_facts, try_expand, zone_names};
use cloud::facts::{Facts, HostedZone, SharedVpc, TakenRange};
use spec::api::{Cluster, DnsType, InstanceGroup};
use spec::create::CreateOptions;

fn small_cluster() -> (Cluster, Vec<InstanceGroup>) {
    new_cluster(CreateOptions {
        zones: zone_names(&["a"]),
        ..CreateOptions::default()
    })
}

/// Path and message of every error.
fn errors(cluster: &Cluster, groups: &[InstanceGroup], facts: &Facts) -> Vec<(String, String)> {
    let problems = try_expand(cluster, groups, facts).err().unwrap_or_default();
    let errors = problems.into_iter().filter(|problem| {
        assert!(problem.hint.is_some(), "{problem:?}");
        problem.is_error()
    });
    errors
        .map(|problem| (problem.path, problem.message))
        .collect()
}

/// One cluster, one change of its ranges, and the field that is told; none: it is fine.
#[test]
fn ranges_that_overlap_are_refused() {
    const PODS: &str = "spec.podCIDR";
    const SERVICES: &str = "spec.serviceClusterIPRange";
    const HOME: &str = "spec.nonMasqueradeCIDR";
    const VPC: &str = "spec.networkCIDR";
    const MORE: &str = "spec.additionalNetworkCIDRs[0]";
    const DNS: &str = "spec.kubeDNS.serverIP";
    for (sets, told) in [
        (vec![], None),
        // The VPC is 172.20.0.0/16 where the spec names none.
        (vec![(HOME, "172.16.0.0/12")], Some(VPC)),
        (vec![(HOME, "172.20.128.0/17")], Some(VPC)),
        (vec![(HOME, "10.0.0.0/8"), (VPC, "10.1.0.0/16")], Some(VPC)),
        (vec![(HOME, "10.0.0.0/8")], None),
        // Instances in 100.64.0.0/10, where pods and services are by default.
        (vec![(VPC, "100.64.0.0/16")], Some(VPC)),
        (vec![(MORE, "100.100.0.0/16")], Some(MORE)),
        (vec![(MORE, "100.100.0.0/16"), (HOME, "10.0.0.0/8")], None),
        (
            vec![(HOME, "10.0.0.0/8"), (MORE, "10.9.0.0/16")],
            Some(MORE),
        ),
        (vec![(SERVICES, "100.96.0.0/11")], Some(PODS)),
        (vec![(PODS, "100.64.0.0/12")], Some(PODS)),
        (vec![(PODS, "10.0.0.0/16")], Some(PODS)),
        (vec![(SERVICES, "10.0.0.0/16")], Some(SERVICES)),
        (vec![(PODS, "fd00::/64")], Some(PODS)),
        (vec![(SERVICES, "fd00::/108")], Some(SERVICES)),
        (
            vec![
                (HOME, "::/0"),
                (PODS, "100.96.0.0/11"),
                (SERVICES, "100.64.0.0/13"),
            ],
            Some(PODS),
        ),
        (vec![(DNS, "100.72.0.10")], Some(DNS)),
        (vec![(DNS, "10.0.0.10")], Some(DNS)),
        (vec![(DNS, "100.64.0.1")], Some(DNS)),
        (vec![(DNS, "100.64.0.53")], None),
    ] {
        let (mut cluster, groups) = small_cluster();
        let spec = &mut cluster.spec;
        for (field, value) in &sets {
            let value = Some((*value).to_owned());
            match *field {
                PODS => spec.pod_cidr = value,
                SERVICES => spec.service_cluster_ip_range = value,
                HOME => {
                    for (number, subnet) in spec.subnets.iter_mut().enumerate() {
                        subnet.ipv6_cidr = Some(format!("/64#{number:x}"));
                    }
                    spec.non_masquerade_cidr = value;
                }
                VPC => {
                    spec.network_cidr = value;
                    spec.subnets
                        .iter_mut()
                        .for_each(|subnet| subnet.cidr = None);
                }
                MORE => spec.additional_network_cidrs = value.into_iter().collect(),
                _ => spec.kube_dns.get_or_insert_default().server_ip = value,
            }
        }
        let found = errors(&cluster, &groups, &offline_facts());
        let paths: Vec<&str> = found.iter().map(|(path, _)| path.as_str()).collect();
        match told {
            None => assert_eq!(found, [], "{sets:?}"),
            Some(told) => assert!(paths.contains(&told), "{sets:?}: {found:?}"),
        }
    }
}

#[test]
fn a_subnet_where_another_is_in_the_users_vpc_is_refused() {
    let (mut cluster, groups) = new_cluster(CreateOptions {
        zones: zone_names(&["a"]),
        network_id: Some("vpc-1".into()),
        ..CreateOptions::default()
    });
    for subnet in &mut cluster.spec.subnets {
        subnet.cidr = Some("172.20.32.0/19".into());
    }
    let facts = |cidr: &str, owner: Option<&str>| Facts {
        vpcs: [(
            "vpc-1".to_owned(),
            SharedVpc {
                cidr: "172.20.0.0/16".into(),
                internet_gateway: Some("igw-1".into()),
                ipv6_cidrs: Vec::new(),
                egress_only_internet_gateway: None,
                subnets: vec![TakenRange {
                    id: "subnet-9".into(),
                    cidr: Some(cidr.into()),
                    ipv6_cidr: None,
                    cluster: owner.map(str::to_owned),
                }],
            },
        )]
        .into(),
        ..offline_facts()
    };
    for (cidr, owner, told) in [
        ("172.20.40.0/24", None, true),
        ("172.20.32.0/19", None, true),
        ("172.20.0.0/17", Some("other.example.com"), true),
        ("172.20.64.0/19", None, false),
        ("172.20.32.0/19", Some("dev.example.com"), false),
    ] {
        let found = errors(&cluster, &groups, &facts(cidr, owner));
        if told {
            let (path, message) = &found[0];
            assert_eq!(path, "spec.subnets[0].cidr");
            assert!(message.contains("subnet-9"), "{message}");
        } else {
            assert_eq!(found, [], "{cidr}");
        }
    }
    // Of its IPv6 range too.
    cluster.spec.subnets[0].ipv6_cidr = Some("/64#1".into());
    let mut facts = facts("172.20.64.0/19", None);
    let vpc = facts.vpcs.get_mut("vpc-1").unwrap();
    vpc.ipv6_cidrs = vec!["2001:db8:0:100::/56".into()];
    assert_eq!(errors(&cluster, &groups, &facts), []);
    let vpc = facts.vpcs.get_mut("vpc-1").unwrap();
    vpc.subnets[0].ipv6_cidr = Some("2001:db8:0:101::/64".into());
    let found = errors(&cluster, &groups, &facts);
    assert_eq!(found[0].0, "spec.subnets[0].ipv6CIDR");
}

#[test]
fn tags_that_aws_would_refuse_are_told() {
    let long = format!("{}.example.com/name", "a".repeat(70));
    for (labels, said) in [
        (vec![(long.as_str(), "x")], Some("whose key has 1")),
        (vec![("example.com/short", "x")], None),
    ] {
        let (cluster, mut groups) = small_cluster();
        groups[1].spec.node_labels = labels
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        let found = errors(&cluster, &groups, &offline_facts());
        match said {
            None => assert_eq!(found, []),
            Some(said) => {
                assert_eq!(found.len(), 1, "{found:?}");
                assert!(found[0].1.contains(said), "{found:?}");
            }
        }
    }
    let (cluster, mut groups) = small_cluster();
    groups[1].spec.node_labels = (0..60)
        .map(|at| (format!("label-{at}"), "x".to_owned()))
        .collect();
    let found = errors(&cluster, &groups, &offline_facts());
    assert!(
        found[0].1.contains("tags, of which AWS takes 50"),
        "{found:?}"
    );
}

/// IAM counts all inline policies of a role together, without white space: those of kctl and those of the user.
#[test]
fn policies_of_a_role_that_are_too_large_together_are_told() {
    let statements = |actions: usize, space: &str| {
        let actions: Vec<String> = (0..actions)
            .map(|at| format!("\"s3:Get{at:04}\""))
            .collect();
        let actions = actions.join(&format!(",{space}"));
        format!("[{{\"Effect\": \"Allow\", \"Action\": [{actions}], \"Resource\": [\"*\"]}}]")
    };
    for (role, actions, space, told) in [
        ("master", 400, "", true),
        ("master", 100, "          ", false),
        ("node", 400, "", false),
        ("node", 800, "", true),
        ("bastion", 800, "", false),
    ] {
        let (mut cluster, groups) = small_cluster();
        let policies = &mut cluster.spec.additional_policies;
        policies.insert(role.to_owned(), statements(actions, space));
        let found = errors(&cluster, &groups, &offline_facts());
        if told {
            assert_eq!(found.len(), 1, "{role}: {found:?}");
            let (path, message) = &found[0];
            assert_eq!(path, &format!("spec.additionalPolicies.{role}"));
            assert!(message.contains("AWS takes 10240"), "{message}");
        } else {
            assert_eq!(found, [], "{role}");
        }
    }
}

#[test]
fn two_zones_of_one_name_are_told_until_the_spec_names_one() {
    let zone = |id: &str| HostedZone {
        id: id.into(),
        name: "example.com".into(),
        private: false,
    };
    let facts = Facts {
        hosted_zones: vec![zone("Z1"), zone("Z2")],
        ..offline_facts()
    };
    for (named, told) in [
        (None, true),
        (Some("example.com"), true),
        (Some("Z1"), false),
        (Some("/hostedzone/Z2"), false),
    ] {
        let (mut cluster, groups) = new_cluster(CreateOptions {
            zones: zone_names(&["a"]),
            dns: Some(DnsType::Public),
            ..CreateOptions::default()
        });
        cluster.spec.dns_zone = named.map(str::to_owned);
        let found = errors(&cluster, &groups, &facts);
        assert_eq!(!found.is_empty(), told, "{named:?}: {found:?}");
        if told {
            assert!(found[0].1.contains("Z1, Z2"), "{found:?}");
        }
    }
}
