//! Properties of the builders for every spec.

mod edges;
mod held_load_balancers;
mod own_tags;
mod ownership;
mod settle;
pub mod spec;

use crate::objects::desired_objects;
use crate::{
    Calico, DnsKind, Encapsulated, Encapsulation, FullSpec, SourceDestinationCheck, Typha, WarmPool,
};
use cloud::{Cloud, RouteTarget};
use engine::{Ref, Resource};
use node::config::{Networking, Role};
use std::collections::{BTreeMap, BTreeSet};

fn desired_of(full: &FullSpec) -> Vec<Cloud> {
    desired_objects(full, &BTreeMap::new(), Vec::new())
}

/// Its objects are compared with kOps' own: `model/spec/tests/all/kops`.
const IPV6: &str = "ipv6";

fn every_shape() -> Vec<(&'static str, FullSpec)> {
    vec![
        ("minimal", spec::minimal_spec()),
        ("ha", spec::ha_spec()),
        ("private", spec::private_spec()),
        ("shared", spec::shared_vpc_spec()),
        (IPV6, spec::ipv6_spec()),
    ]
}

#[test]
fn every_id_is_there_once() {
    for (shape, full) in every_shape() {
        let all = desired_of(&full);
        let ids: BTreeSet<String> = all.iter().map(|one| one.id().to_string()).collect();
        assert_eq!(ids.len(), all.len(), "{shape}");
    }
}

#[test]
fn every_reference_leads_to_an_object() {
    for (shape, full) in every_shape() {
        let all = desired_of(&full);
        let ids: BTreeSet<_> = all.iter().map(Resource::id).collect();
        for one in &all {
            for needed in one.needs() {
                assert!(
                    ids.contains(&needed),
                    "{shape}: {} needs {needed}",
                    one.id()
                );
            }
        }
    }
}

#[test]
fn aws_sees_no_security_group_rule_twice() {
    let mut full = spec::ha_spec();
    for group in &mut full.groups {
        group.security_group_override = Some("sg-of-all-machines".into());
    }
    let rules: Vec<_> = desired_of(&full)
        .into_iter()
        .filter_map(|one| match one {
            Cloud::SecurityGroupRule(rule) => Some(rule.rule_key()),
            _ => None,
        })
        .collect();
    let distinct: BTreeSet<_> = rules.iter().collect();
    assert_eq!(distinct.len(), rules.len());
}

#[test]
fn a_warm_pool_follows_its_hook_and_counts_in_the_metrics() {
    let mut full = spec::minimal_spec();
    full.groups[1].warm_pool = Some(WarmPool {
        min_size: 1,
        max_size: Some(4),
        hook_seconds: Some(600),
        images: Vec::new(),
    });
    let before = desired_of(&spec::minimal_spec());
    let all = desired_of(&full);
    let new = all.iter().filter(|one| !before.contains(one));
    insta::assert_json_snapshot!(new.collect::<Vec<_>>());
    full.groups[1].warm_pool.as_mut().unwrap().hook_seconds = None;
    let hooks = |all: &[Cloud]| {
        let hook = |one: &&Cloud| matches!(one, Cloud::AutoscalingLifecycleHook(_));
        all.iter().filter(hook).count()
    };
    assert_eq!(hooks(&desired_of(&full)), hooks(&before));
}

#[test]
fn a_group_with_the_users_profile_needs_no_role() {
    let mut full = spec::minimal_spec();
    full.groups[1].iam_profile = Some("of-the-user".into());
    assert_eq!(full.groups[1].role, Role::Node);
    let roles: Vec<_> = desired_of(&full)
        .into_iter()
        .filter(|one| one.id().kind() == "iam_role")
        .map(|one| one.id().name().to_owned())
        .collect();
    assert_eq!(roles, ["masters.minimal.example.com"]);
}

/// calico that encapsulates these packets.
fn calico(encapsulation: Encapsulation) -> Calico {
    Calico {
        image: "node".into(),
        plugin_image: "cni".into(),
        controllers_image: "kube-controllers".into(),
        typha_image: "typha".into(),
        encapsulation,
        ipv6_vxlan: Encapsulated::Never,
        mtu: 0,
        allow_ip_forwarding: false,
        pool: "100.96.0.0/11".into(),
        ipv4_detection: "first-found".into(),
        ipv6_detection: "none".into(),
        settings: Vec::new(),
        source_destination_check: SourceDestinationCheck::Disable,
        bpf: false,
        wireguard: false,
        cpu_request: "250m".into(),
        metrics_port: None,
        typha: None,
    }
}

#[test]
fn nodes_reach_of_calico_on_control_planes_what_its_mode_needs() {
    let mut full = spec::minimal_spec();
    full.pods.networking = Networking::Calico;
    let ports = [
        ("4", -1),
        ("tcp", 179),
        ("udp", 4789),
        ("udp", 51_820),
        ("tcp", 5473),
    ];
    let mut reached = |calico: Calico| {
        full.addons.calico = Some(calico);
        let ssh = nodes_reach(&full, "tcp", 22);
        assert!(
            ![2380, 2381, 4001, 4002]
                .map(|port| nodes_reach(&full, "tcp", port))
                .contains(&true)
        );
        (
            ssh,
            ports.map(|(protocol, port)| nodes_reach(&full, protocol, port)),
        )
    };
    let ipip = calico(Encapsulation::Ipip(Encapsulated::Always));
    let vxlan = calico(Encapsulation::Vxlan(Encapsulated::Always));
    assert_eq!(
        reached(ipip.clone()),
        (false, [true, true, false, false, false])
    );
    assert_eq!(
        reached(vxlan.clone()),
        (false, [false, false, true, false, false])
    );
    let more = Calico {
        bpf: true,
        wireguard: true,
        typha: Some(Typha {
            replicas: 1,
            metrics: false,
            metrics_port: 9093,
        }),
        ..ipip
    };
    assert_eq!(reached(more), (false, [true; 5]));
    // Packets of pods within a subnet are for any port.
    for (encapsulation, ip_in_ip) in [
        (Encapsulation::Ipip(Encapsulated::CrossSubnet), true),
        (Encapsulation::Ipip(Encapsulated::Never), false),
        (Encapsulation::Vxlan(Encapsulated::CrossSubnet), false),
        (Encapsulation::Vxlan(Encapsulated::Never), false),
    ] {
        let open = (true, [ip_in_ip, true, true, true, true]);
        assert_eq!(reached(calico(encapsulation)), open, "{encapsulation:?}");
    }
}

#[test]
fn nodes_reach_metrics_of_calico_on_control_planes_where_they_are_served() {
    let mut full = spec::minimal_spec();
    full.pods.networking = Networking::Calico;
    let mut reached = |metrics: bool| {
        full.addons.calico = Some(Calico {
            metrics_port: metrics.then_some(9091),
            typha: Some(Typha {
                replicas: 1,
                metrics,
                metrics_port: 9093,
            }),
            ..calico(Encapsulation::Ipip(Encapsulated::Always))
        });
        [9091, 9093].map(|port| nodes_reach(&full, "tcp", port))
    };
    assert_eq!(reached(true), [true; 2]);
    assert_eq!(reached(false), [false; 2]);
}

/// Whether nodes may reach that port of control planes.
fn nodes_reach(full: &FullSpec, protocol: &str, port: i32) -> bool {
    let [nodes, masters] = ["nodes", "masters"].map(|role| format!("{role}.{}", full.name));
    desired_of(full).iter().any(|one| match one {
        Cloud::SecurityGroupRule(rule) => {
            let name = &rule.name;
            name.starts_with(&format!("from-{nodes}-ingress-"))
                && name.ends_with(&masters)
                && rule.ip_protocol == protocol
                && (rule.from_port..=rule.to_port).contains(&port)
        }
        _ => false,
    })
}

#[test]
fn nodes_reach_of_control_planes_what_they_need() {
    let needed = [
        ("tcp", 443),
        ("tcp", 3988),
        ("tcp", 10250),
        ("tcp", 30_000),
        ("udp", 32_767),
    ];
    let needless = [22, 2379, 2380, 3990, 4001, 10_257, 10_259];
    let mut full = spec::minimal_spec();
    for (backend, port) in [("vxlan", 8472), ("udp", 8285)] {
        full.pods.networking = Networking::Flannel(backend.into());
        for (protocol, port) in needed.into_iter().chain([("udp", port)]) {
            assert!(nodes_reach(&full, protocol, port), "{backend} {port}");
        }
        for port in needless {
            assert!(!nodes_reach(&full, "tcp", port), "{backend} {port}");
        }
        assert!(!nodes_reach(&full, "udp", 53));
    }
    let cilium_in_vpc = Networking::Cilium {
        digest: String::new(),
        in_vpc: true,
    };
    // BGP, and the packets of pods in packets of their nodes.
    for (networking, packed) in [
        (Networking::KubeRouter, true),
        (Networking::Kindnet, false),
        (Networking::AmazonVpc, false),
        (cilium_in_vpc, false),
    ] {
        full.pods.networking = networking;
        assert!(nodes_reach(&full, "tcp", 179) && !nodes_reach(&full, "tcp", 2380));
        assert_eq!(nodes_reach(&full, "4", -1), packed);
    }
    // What a network of the user's needs, nobody knows: kOps' rules.
    full.pods.networking = Networking::Cni;
    let open = |port: &i32| nodes_reach(&full, "tcp", *port);
    assert!([179, 4240].iter().all(open) && ![2380, 2381, 4001, 4002].iter().any(open));
}

#[test]
fn subnets_with_ipv6_reach_both_families() {
    let all = desired_of(&spec::ipv6_spec());
    let routes: BTreeMap<String, String> = all
        .iter()
        .filter_map(|one| match one {
            Cloud::Route(route) => Some((route.name.clone(), format!("{:?}", route.target))),
            _ => None,
        })
        .collect();
    for (name, target) in [
        (
            "route-private-us-test-1a-::/0",
            "egress_only_internet_gateway",
        ),
        ("route-private-us-test-1a-64:ff9b::/96", "nat_gateway"),
        ("route-private-us-test-1a-0.0.0.0/0", "nat_gateway"),
        ("route-public-us-test-1b-64:ff9b::/96", "nat_gateway"),
        ("route-public-us-test-1b-::/0", "internet_gateway"),
        ("route-::/0", "internet_gateway"),
    ] {
        let found = routes
            .get(name)
            .unwrap_or_else(|| panic!("no {name}: {routes:#?}"));
        let only = target != "internet_gateway" || !found.contains("egress_only");
        assert!(found.contains(target) && only, "{name}: {found}");
    }
    let alone: Vec<_> = all
        .iter()
        .filter_map(|one| match one {
            Cloud::Subnet(subnet) if subnet.cidr_block.is_none() => Some(subnet),
            _ => None,
        })
        .collect();
    let [subnet] = alone[..] else {
        panic!("{alone:?}")
    };
    assert!(subnet.enable_dns64 && subnet.assign_ipv6_address_on_creation);
    let mut full = spec::ipv6_spec();
    full.network.shared_vpc = Some("vpc-1".into());
    full.network.shared_internet_gateway = Some("igw-1".into());
    full.network.shared_egress_only_internet_gateway = Some("eigw-1".into());
    let kinds: BTreeSet<String> = desired_of(&full)
        .iter()
        .map(|one| one.id().kind().to_owned())
        .collect();
    assert!(
        !kinds.contains("egress_only_internet_gateway"),
        "the user's"
    );
}

#[test]
fn a_load_balancer_has_ipv6_where_all_of_its_subnets_have() {
    let mut full = spec::ipv6_spec();
    let families = |full: &FullSpec| -> BTreeSet<String> {
        let all = desired_of(full);
        let balancers = all.iter().filter_map(|one| match one {
            Cloud::Lb(balancer) => Some(balancer.ip_address_type.clone()),
            _ => None,
        });
        balancers.collect()
    };
    assert_eq!(families(&full), BTreeSet::from(["dualstack".to_owned()]));
    let balancer = full.api.load_balancer.as_ref().expect("a balancer");
    let first = balancer.subnets[0].name.clone();
    let mut subnets = full.network.subnets.iter_mut();
    let first = subnets.find(|subnet| subnet.name == first);
    first.expect("its subnet").ipv6_cidr = None;
    assert_eq!(families(&full), BTreeSet::from(["ipv4".to_owned()]));
}

#[test]
fn samples_are_as_reviewed() {
    for (shape, full) in every_shape()
        .into_iter()
        .filter(|(shape, _)| *shape != IPV6)
    {
        insta::assert_json_snapshot!(shape, cloud::render::cloud_json(&desired_of(&full)));
    }
}

/// Everything that a user can add to a private cluster's way in and out.
#[test]
fn the_users_own_ways_out_are_taken() {
    let to = |egress: &str| {
        let mut full = spec::private_spec();
        full.network.subnets[0].egress = Some(egress.into());
        desired_of(&full)
    };
    let way_out = |all: &[Cloud]| {
        let mut routes = all.iter().filter_map(|one| match one {
            Cloud::Route(route) if route.name.starts_with("route-private-") => Some(route),
            _ => None,
        });
        routes.next().map(|route| route.target.clone())
    };
    let count =
        |all: &[Cloud], kind: &str| all.iter().filter(|one| one.id().kind() == kind).count();
    let given = |id: &str| Ref::Given(id.into());
    for (id, target) in [
        ("nat-1", RouteTarget::NatGatewayId(given("nat-1"))),
        ("i-1", RouteTarget::InstanceId(given("i-1"))),
        ("tgw-1", RouteTarget::TransitGatewayId(given("tgw-1"))),
    ] {
        let all = to(id);
        assert_eq!(way_out(&all), Some(target));
        assert_eq!(
            (count(&all, "nat_gateway"), count(&all, "eip")),
            (0, 0),
            "{id}"
        );
        assert_eq!(count(&all, "vpc_endpoint"), 0, "{id}");
    }
    let all = to("eipalloc-1");
    assert_eq!((count(&all, "nat_gateway"), count(&all, "eip")), (1, 0));
    // Policies of the user's buckets may go by that address.
    assert_eq!(count(&all, "vpc_endpoint"), 0);
    assert_eq!(count(&desired_of(&spec::private_spec()), "vpc_endpoint"), 1);
    let all = to("External");
    assert_eq!(way_out(&all), None);
    assert_eq!(
        (count(&all, "nat_gateway"), count(&all, "route_table")),
        (0, 1)
    );
}

#[test]
fn nothing_of_the_users_is_ours() {
    let mut full = spec::shared_vpc_spec();
    for subnet in &mut full.network.subnets {
        subnet.shared = Some(format!("subnet-of-{}", subnet.name));
    }
    let kinds: BTreeSet<String> = desired_of(&full)
        .iter()
        .map(|one| one.id().kind().to_owned())
        .collect();
    for kind in [
        "vpc",
        "subnet",
        "route_table",
        "route",
        "internet_gateway",
        "vpc_dhcp_options",
        "vpc_endpoint",
    ] {
        assert!(!kinds.contains(kind), "{kind}");
    }
}

/// Each etcd cluster may have a bucket of its own.
#[test]
fn control_planes_reach_the_backup_store_that_the_spec_names_and_nothing_beside_it() {
    let mut full = spec::minimal_spec();
    full.etcd[0].backups.store = "s3://elsewhere/main/".into();
    let policies = desired_of(&full).into_iter().filter_map(|one| match one {
        Cloud::IamRolePolicy(policy) => Some(policy.policy_document.to_string()),
        _ => None,
    });
    let policies: String = policies.collect();
    for granted in [
        "s3:::elsewhere/main/*",
        "s3:::elsewhere\"",
        "/backups/etcd/events/*",
    ] {
        assert!(policies.contains(granted), "{granted}: {policies}");
    }
    assert!(!policies.contains("/backups/etcd/main/*"), "{policies}");
    assert!(!policies.contains("s3:::elsewhere/*"), "{policies}");
}

#[test]
fn a_store_in_a_directory_grants_nothing_in_s3() {
    let mut full = spec::minimal_spec();
    full.state.bucket = None;
    for etcd in &mut full.etcd {
        etcd.backups.store = "file:///backups".into();
    }
    full.iam.allow_container_registry = false;
    for one in desired_of(&full) {
        if let Cloud::IamRolePolicy(policy) = one {
            assert_eq!(policy.policy_name, "masters.minimal.example.com");
            assert!(!policy.policy_document.to_string().contains("s3:Get"));
        }
    }
}

#[test]
fn only_a_private_zone_is_associated_with_the_vpc_the_clusters_or_the_users() {
    let associations = |kind: DnsKind, shared: Option<&str>| -> Vec<Ref> {
        let mut full = spec::minimal_spec();
        full.dns.kind = kind;
        full.network.shared_vpc = shared.map(Into::into);
        let zone = full.dns.zone.clone().expect("a zone").id;
        let of = |one: Cloud| match one {
            Cloud::Route53ZoneAssociation(one) => {
                assert_eq!(
                    (one.hosted_zone_id, one.vpc_region.as_str()),
                    (zone.clone(), "us-test-1")
                );
                Some(one.vpc_id)
            }
            _ => None,
        };
        desired_of(&full).into_iter().filter_map(of).collect()
    };
    let own = Ref::own(&engine::Id::new("vpc", "minimal.example.com"));
    assert_eq!(associations(DnsKind::Private, None), [own]);
    assert_eq!(
        associations(DnsKind::Private, Some("vpc-1")),
        [Ref::Given("vpc-1".into())]
    );
    assert_eq!(associations(DnsKind::Public, None), []);
}

/// A rule that the policy does not name could not send: nobody would be told.
#[test]
fn exactly_the_clusters_own_rules_may_send_to_its_queue() {
    for (shape, mut full) in every_shape() {
        for rebalance in [
            node::config::Rebalance::Ignore,
            node::config::Rebalance::Drain,
        ] {
            let Some(termination) = &mut full.node_termination else {
                continue;
            };
            termination.rebalance = rebalance;
            let all = desired_of(&full);
            let rules: BTreeSet<String> = all
                .iter()
                .filter_map(|one| match one {
                    Cloud::CloudwatchEventRule(rule) => Some(rule.name.clone()),
                    _ => None,
                })
                .map(|name| {
                    let place = &full.placement;
                    let (partition, account) = (&place.partition, &place.account);
                    format!(
                        "arn:{partition}:events:{}:{account}:rule/{name}",
                        place.region
                    )
                })
                .collect();
            let queue = all.iter().find_map(|one| match one {
                Cloud::SqsQueue(queue) => Some(queue),
                _ => None,
            });
            let [allow, deny] = queue.unwrap().policy["Statement"]
                .as_array()
                .unwrap()
                .as_slice()
            else {
                panic!("{shape}: two statements");
            };
            let senders = allow["Condition"]["ArnEquals"]["aws:SourceArn"].as_array();
            let senders: BTreeSet<String> = senders
                .unwrap()
                .iter()
                .map(|arn| arn.as_str().unwrap().to_owned())
                .collect();
            assert_eq!(senders, rules, "{shape}");
            assert_eq!(allow["Principal"]["Service"], "events.amazonaws.com");
            assert_eq!(
                (&deny["Effect"], &deny["Principal"]),
                (&"Deny".into(), &"*".into())
            );
            assert_eq!(
                deny["Condition"]["Bool"]["aws:PrincipalIsAWSService"],
                "false"
            );
            assert_eq!(allow["Action"], deny["Action"]);
        }
    }
}
