//! Laws of [`super`]: what is found is what somebody who tries every packet finds.

use super::*;
use proptest::prelude::*;
use std::net::{IpAddr, Ipv4Addr};

/// The other side: eight addresses.
const OTHER: &str = "10.0.1.0/29";
const PORTS: Traffic = Traffic {
    protocol: "udp",
    from: 1,
    to: 8,
};

fn given(id: &str) -> Ref {
    Ref::Given(id.to_owned())
}

fn interfaces(group: &str, subnet: &str, range: &str) -> End {
    End::Interfaces(Interfaces {
        what: group.to_owned(),
        groups: vec![given(group)],
        places: vec![Place {
            subnet: given(subnet),
            range: range.parse().ok(),
        }],
    })
}

fn edge() -> Edge {
    Edge {
        from: interfaces("sg-1", "subnet-1", "10.0.0.0/29"),
        to: interfaces("sg-2", "subnet-2", OTHER),
        traffic: PORTS,
        why: "of a test",
        is_of_hosts: false,
        is_vague: false,
    }
}

fn addresses() -> impl Iterator<Item = IpAddr> {
    (0..8).map(|last| Ipv4Addr::new(10, 0, 1, last).into())
}

/// A range in and around the other side's.
fn some_range() -> impl Strategy<Value = IpNet> {
    let lengths = prop_oneof![Just(0_u8), Just(16), 27..=32_u8];
    (0..16_u8, lengths).prop_map(|(last, length)| {
        let net = Ipv4Net::new(Ipv4Addr::new(10, 0, 1, last), length).unwrap();
        IpNet::V4(net.trunc())
    })
}

fn some_ports() -> impl Strategy<Value = (i32, i32)> {
    (0..=9_i32, 0..=4_i32).prop_map(|(from, more)| (from, from + more))
}

fn some_entries() -> impl Strategy<Value = Vec<AclEntry>> {
    let protocol = prop_oneof![Just("-1"), Just("17"), Just("6")];
    let entry = (
        any::<bool>(),
        any::<bool>(),
        protocol,
        some_range(),
        prop::option::of(some_ports()),
    );
    prop::collection::vec(entry, 0..6).prop_map(|entries| {
        let numbered = (100..).zip(entries);
        numbered
            .map(
                |(number, (is_egress, is_allow, protocol, range, ports))| AclEntry {
                    number,
                    is_egress,
                    is_allow,
                    protocol: protocol.to_owned(),
                    range,
                    from: ports.map(|ports| ports.0),
                    to: ports.map(|ports| ports.1),
                },
            )
            .collect()
    })
}

/// Whether an ACL lets this packet of UDP leave.
fn lets_out(entries: &[AclEntry], address: IpAddr, port: i32) -> bool {
    let fits = |entry: &&AclEntry| {
        let ports = entry.from.zip(entry.to).filter(|_| entry.protocol == "17");
        entry.is_egress
            && ["-1", "17"].contains(&entry.protocol.as_str())
            && entry.range.contains(&address)
            && ports.is_none_or(|(from, to)| (from..=to).contains(&port))
    };
    entries
        .iter()
        .find(fits)
        .is_some_and(|entry| entry.is_allow)
}

fn some_rules() -> impl Strategy<Value = Vec<SecurityGroupRule>> {
    let protocol = prop_oneof![Just("-1"), Just("udp"), Just("tcp")];
    let source = prop_oneof![
        some_range().prop_map(|range| RuleSource::CidrIpv4(range.to_string())),
        Just(RuleSource::ReferencedGroupId(given("sg-3"))),
        Just(RuleSource::PrefixListId("pl-1".to_owned())),
    ];
    let rule = (any::<bool>(), protocol, some_ports(), source);
    let rule = rule.prop_map(|(is_egress, protocol, ports, source)| SecurityGroupRule {
        name: String::new(),
        group_id: given("sg-1"),
        is_egress,
        ip_protocol: protocol.to_owned(),
        from_port: ports.0,
        to_port: ports.1,
        source,
    });
    prop::collection::vec(rule, 0..6)
}

proptest! {
    #[test]
    fn an_acl_blocks_an_edge_if_it_drops_any_of_its_packets(entries in some_entries()) {
        let acl = NetworkAcl {
            id: "acl-1".to_owned(),
            subnets: vec![given("subnet-1")],
            entries: entries.clone(),
        };
        let dropped = addresses().any(|address| {
            (PORTS.from..=PORTS.to).any(|port| !lets_out(&entries, address, port))
        });
        let found = edge().blocking_entries(&[acl]);
        prop_assert_eq!(!found.is_empty(), dropped, "{:?}", found);
    }

    /// A rule has all of a subnet or does not count: rules that have it in parts are nobody's.
    #[test]
    fn rules_let_an_edge_pass_if_each_port_has_one_for_the_whole_subnet(rules in some_rules()) {
        let other: IpNet = OTHER.parse().unwrap();
        let lets = |port: i32| rules.iter().any(|rule| {
            let ports = rule.ip_protocol == "-1"
                || (rule.ip_protocol == "udp" && (rule.from_port..=rule.to_port).contains(&port));
            let range = match &rule.source {
                RuleSource::CidrIpv4(range) => range.parse::<IpNet>().unwrap().contains(&other),
                _ => false,
            };
            rule.is_egress && ports && range
        });
        let passes = (PORTS.from..=PORTS.to).all(lets);
        let missing = edge().missing_rules(&rules);
        let at_sender = missing.iter().any(|rule| rule.is_egress);
        prop_assert_eq!(!at_sender, passes);
        // No rule is of the receiver's group.
        prop_assert!(missing.iter().any(|rule| !rule.is_egress && rule.group == given("sg-2")));
    }
}

#[test]
fn a_subnet_whose_acl_cannot_be_seen_is_named() {
    let mut acl = open_but_for(entry(90, true, true, "-1", "0.0.0.0/0"));
    let edge = edge();
    assert!(edge.unseen_subnets(std::slice::from_ref(&acl)).is_empty());
    acl.subnets.pop();
    let unseen: Vec<&Ref> = edge.unseen_subnets(&[acl]).into_iter().collect();
    assert_eq!(unseen, [&given("subnet-2")]);
}

fn entry(number: i32, is_egress: bool, is_allow: bool, protocol: &str, range: &str) -> AclEntry {
    AclEntry {
        number,
        is_egress,
        is_allow,
        protocol: protocol.to_owned(),
        range: range.parse().unwrap(),
        from: None,
        to: None,
    }
}

/// The ACL of both subnets: everything, but for one entry.
fn open_but_for(more: AclEntry) -> NetworkAcl {
    NetworkAcl {
        id: "acl-1".to_owned(),
        subnets: vec![given("subnet-1"), given("subnet-2")],
        entries: vec![
            entry(100, true, true, "-1", "0.0.0.0/0"),
            entry(100, false, true, "-1", "0.0.0.0/0"),
            more,
        ],
    }
}

#[test]
fn replies_of_tcp_have_to_pass_too() {
    let tcp = Edge {
        traffic: Traffic {
            protocol: "tcp",
            from: 443,
            to: 443,
        },
        ..edge()
    };
    let of_hosts = Edge {
        is_of_hosts: true,
        ..tcp.clone()
    };
    let denied = |edge: &Edge, from: i32| -> Vec<String> {
        let mut entry = entry(90, false, false, "6", "10.0.1.0/24");
        (entry.from, entry.to) = (Some(from), Some(65535));
        let found = edge.blocking_entries(&[open_but_for(entry)]);
        found.iter().map(ToString::to_string).collect()
    };
    assert_eq!(
        denied(&tcp, 61000),
        ["entry 90 of acl-1 (subnet-1) denies ingress tcp 1024-65535 from 10.0.1.0/29"]
    );
    assert_eq!(
        denied(&of_hosts, 60999),
        ["entry 90 of acl-1 (subnet-1) denies ingress tcp 32768-60999 from 10.0.1.0/29"]
    );
    assert!(denied(&of_hosts, 61000).is_empty());
    // UDP has none.
    assert!(denied(&edge(), 1024).is_empty());
}

#[test]
fn what_a_prefix_list_or_a_vague_edge_leaves_open_is_not_certain() {
    let rule = |protocol: &str| SecurityGroupRule {
        name: String::new(),
        group_id: given("sg-1"),
        is_egress: true,
        ip_protocol: protocol.to_owned(),
        from_port: 1,
        to_port: 8,
        source: RuleSource::PrefixListId("pl-1".to_owned()),
    };
    let at_sender = |edge: &Edge, rules: &[SecurityGroupRule]| -> Vec<bool> {
        let missing = edge.missing_rules(rules).into_iter();
        let missing = missing.filter(|one| one.is_egress);
        missing.map(|one| one.is_certain).collect()
    };
    assert_eq!(at_sender(&edge(), &[rule("udp")]), [false]);
    assert_eq!(at_sender(&edge(), &[rule("tcp")]), [true]);
    let vague = Edge {
        is_vague: true,
        ..edge()
    };
    assert_eq!(at_sender(&vague, &[]), [false]);
}

#[test]
fn strangers_that_an_acl_keeps_out_are_no_obstacle_and_everybody_is() {
    let outside = || Edge {
        to: End::Outside(RuleSource::parse_peer("0.0.0.0/0")),
        ..edge()
    };
    let world = |range: &str| {
        let denied = entry(90, true, false, "-1", range);
        outside().blocking_entries(&[open_but_for(denied)])
    };
    assert!(world("192.0.2.0/24").is_empty());
    assert_eq!(world("0.0.0.0/0").len(), 1);
    let some_alone = NetworkAcl {
        entries: vec![entry(100, true, true, "-1", "192.0.2.0/24")],
        ..open_but_for(entry(90, true, true, "-1", "192.0.2.0/24"))
    };
    assert!(outside().blocking_entries(&[some_alone]).is_empty());
}

fn table(subnet: &str, routes: &[(&str, &str)]) -> ObservedRouteTable {
    ObservedRouteTable {
        id: format!("rtb-{subnet}"),
        is_main: false,
        subnets: vec![given(subnet)],
        routes: routes
            .iter()
            .map(|(destination, target)| ObservedRoute {
                destination: (*destination).to_owned(),
                target: (*target).to_owned(),
                is_blackhole: target.ends_with("gone"),
            })
            .collect(),
    }
}

#[test]
fn packets_leave_a_subnet_by_the_way_of_its_kind_and_stay_in_the_vpc_otherwise() {
    let subnet = |name: &str, range: &str, is_public| RoutedSubnet {
        subnet: given(name),
        range: range.parse().ok(),
        is_public,
        is_routed: true,
    };
    let subnets = [
        subnet("public", "10.0.0.0/24", true),
        subnet("private", "10.0.1.0/24", false),
    ];
    let local = ("10.0.0.0/16", "local");
    let told = |public: &[(&str, &str)], private: &[(&str, &str)]| -> Vec<String> {
        let tables = [table("public", public), table("private", private)];
        let found = RouteProblem::find_all(&tables, &subnets);
        assert!(found.iter().all(RouteProblem::is_certain));
        found.iter().map(ToString::to_string).collect()
    };
    let (out, nat) = (("0.0.0.0/0", "igw-1"), ("0.0.0.0/0", "nat-1"));
    assert_eq!(told(&[local, out], &[local, nat]), Vec::<String>::new());
    assert_eq!(
        told(&[local, nat], &[local, out]),
        [
            "rtb-public sends 0.0.0.0/0 to nat-1: public addresses of this subnet work only through an internet gateway",
            "rtb-private sends 0.0.0.0/0 to igw-1: instances of a private subnet have no public address",
        ]
    );
    let diverted = ("10.0.1.128/25", "nat-1");
    assert_eq!(
        told(&[local, out, diverted], &[local, ("0.0.0.0/0", "nat-gone")]),
        [
            "rtb-public sends 10.0.1.128/25, in which the subnet private is, to nat-1",
            "the target of 0.0.0.0/0 in rtb-private, nat-gone, is gone",
        ]
    );
    assert_eq!(
        told(&[local, out], &[local]),
        ["rtb-private has no route to 0.0.0.0/0"]
    );
}

#[test]
fn what_packets_do_behind_routes_of_others_is_not_certain() {
    let certain = |is_public: bool, is_routed: bool, routes: &[(&str, &str)]| -> Vec<bool> {
        let subnet = RoutedSubnet {
            subnet: given("one"),
            range: "10.0.0.0/24".parse().ok(),
            is_public,
            is_routed,
        };
        let found = RouteProblem::find_all(&[table("one", routes)], &[subnet]);
        found.iter().map(RouteProblem::is_certain).collect()
    };
    let local = ("10.0.0.0/16", "local");
    // With endpoints of AWS' services and a proxy it works without a default route.
    assert_eq!(certain(false, false, &[local]), [false]);
    assert_eq!(certain(false, true, &[local]), [true]);
    // A firewall before the internet gateway passes packets with public addresses on.
    assert_eq!(
        certain(true, false, &[local, ("0.0.0.0/0", "vpce-1")]),
        [false]
    );
    assert_eq!(
        certain(true, false, &[local, ("0.0.0.0/0", "nat-1")]),
        [true]
    );
}
