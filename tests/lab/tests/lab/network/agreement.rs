//! Compares security groups and routes with an independent evaluator of AWS' rules: for random worlds, the kernel must treat real
//! packets as the evaluator says.

use super::bench::Bench;
use super::worlds::{new_group, new_instance, new_rule, new_subnet, new_table, parse_address};
use ipnet::Ipv4Net;
use lab::aws_state::{AwsState, Rule, SecurityGroup, Vpc};
use lab::network::topology::Topology;
use lab::network::{TargetHealth, ruleset};
use lab::scenario::is_skipped;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, TestRng, TestRunner};
use std::collections::BTreeSet;
use std::net::UdpSocket;
use std::time::Duration;

const HOSTS: [&str; 4] = [
    "i-0000000000000e001",
    "i-0000000000000e002",
    "i-0000000000000e003",
    "i-0000000000000e004",
];
const GROUPS: [&str; 3] = ["sg-1", "sg-2", "sg-3"];
const PORTS: [u16; 3] = [1000, 2000, 3000];
const ADDRESSES: [&str; 4] = ["10.1.1.11", "10.1.1.12", "10.1.2.13", "10.2.1.14"];

/// A UDP packet from one host to another's private address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Packet {
    from: usize,
    to: usize,
    port: u16,
}

fn all_packets() -> Vec<Packet> {
    let pairs = (0..4).flat_map(|from| {
        (0..4)
            .filter(move |to| *to != from)
            .map(move |to| (from, to))
    });
    pairs
        .flat_map(|(from, to)| PORTS.map(|port| Packet { from, to, port }))
        .collect()
}

/// What AWS says: same VPC, the sender's groups let it out, the receiver's let it in.
fn is_allowed(world: &AwsState, packet: Packet) -> bool {
    let (from, to) = (&world.instances[packet.from], &world.instances[packet.to]);
    let allowed = |groups: &[String], ingress: bool, peer: &lab::aws_state::Instance| {
        let rules = |group: &SecurityGroup| {
            if ingress {
                group.ingress.clone()
            } else {
                group.egress.clone()
            }
        };
        let of_host = world
            .security_groups
            .iter()
            .filter(|group| groups.contains(&group.id));
        of_host
            .flat_map(rules)
            .any(|rule| rule_fits_port(&rule, packet.port) && rule_names_peer(&rule, peer))
    };
    from.vpc == to.vpc
        && allowed(&from.security_groups, false, to)
        && allowed(&to.security_groups, true, from)
}

fn rule_fits_port(rule: &Rule, port: u16) -> bool {
    let within = rule
        .from
        .is_none_or(|from| from == -1 || i32::from(port) >= from)
        && rule.to.is_none_or(|to| to == -1 || i32::from(port) <= to);
    match rule.protocol.as_str() {
        "-1" => true,
        "udp" | "17" => within,
        _ => false,
    }
}

fn rule_names_peer(rule: &Rule, peer: &lab::aws_state::Instance) -> bool {
    let in_range = rule
        .cidr
        .as_ref()
        .and_then(|cidr| cidr.parse::<Ipv4Net>().ok())
        .is_some_and(|range| range.contains(&peer.address));
    in_range
        || rule
            .group
            .as_ref()
            .is_some_and(|group| peer.security_groups.contains(group))
}

fn a_rule() -> impl Strategy<Value = Rule> {
    let protocol = prop_oneof![
        Just("-1"),
        Just("udp"),
        Just("17"),
        Just("tcp"),
        Just("icmp"),
        Just("4")
    ];
    let ports = prop_oneof![
        Just(None),
        Just(Some((1000, 1000))),
        Just(Some((1500, 2500))),
        Just(Some((0, 65535))),
        Just(Some((-1, -1)))
    ];
    let ranges = [
        "0.0.0.0/0",
        "10.1.0.0/16",
        "10.1.1.0/24",
        "10.1.1.12/32",
        "10.1.2.13/32",
        "192.168.0.0/16",
        "::/0",
    ];
    let peer = prop_oneof![
        proptest::sample::select(GROUPS.to_vec()),
        proptest::sample::select(ranges.to_vec())
    ];
    (protocol, ports, peer).prop_map(|(protocol, ports, peer)| new_rule(protocol, ports, peer))
}

fn a_group(id: &'static str) -> impl Strategy<Value = SecurityGroup> {
    let rules = || proptest::collection::vec(a_rule(), 0..5);
    let egress = prop_oneof![Just(super::worlds::allow_all_egress()), rules()];
    (rules(), egress).prop_map(move |(ingress, egress)| new_group(id, "vpc-1", ingress, egress))
}

fn a_world() -> impl Strategy<Value = AwsState> {
    let groups = GROUPS.map(a_group);
    let members =
        proptest::collection::vec(proptest::sample::subsequence(GROUPS.to_vec(), 1..=3), 4);
    (groups, members).prop_map(|(groups, members)| world_with_groups(groups.into(), &members))
}

fn world_with_groups(
    security_groups: Vec<SecurityGroup>,
    members: &[Vec<&'static str>],
) -> AwsState {
    let subnets = vec![
        new_subnet("subnet-1a", "vpc-1", "us-test-1a", "10.1.1.0/24", "rtb-1"),
        new_subnet("subnet-1b", "vpc-1", "us-test-1b", "10.1.2.0/24", "rtb-1"),
        new_subnet("subnet-2a", "vpc-2", "us-test-1a", "10.2.1.0/24", "rtb-2"),
    ];
    let at = [0, 0, 1, 2].map(|index: usize| subnets[index].clone());
    let hosts = HOSTS.iter().zip(ADDRESSES).zip(at.iter().zip(members));
    AwsState {
        region: "us-test-1".into(),
        vpcs: vec![
            Vpc::new_open("vpc-1", "10.1.0.0/16"),
            Vpc::new_open("vpc-2", "10.2.0.0/16"),
        ],
        route_tables: vec![
            new_table("rtb-1", "vpc-1", &[("10.1.0.0/16", "local")]),
            new_table("rtb-2", "vpc-2", &[("10.2.0.0/16", "local")]),
        ],
        instances: hosts
            .map(|((id, at), (subnet, groups))| new_instance(id, subnet, at, groups))
            .collect(),
        security_groups,
        subnets,
        ..AwsState::default()
    }
}

/// One UDP socket per host and port, and one that sends.
struct Hosts {
    receivers: Vec<Vec<UdpSocket>>,
    netns: Vec<String>,
}

/// Sends every packet under a serial number and returns those that arrived: waits for the expected ones as long as a busy
/// machine needs, then for others once more.
fn send_packets(hosts: &Hosts, serial: u32, expected: &BTreeSet<Packet>) -> BTreeSet<Packet> {
    for packet in all_packets() {
        // A new source port each time: no connection of the world before is reused.
        let sender = lab::network::netns::run_inside(&hosts.netns[packet.from], || {
            UdpSocket::bind("0.0.0.0:0")
        })
        .unwrap()
        .unwrap();
        let to = (parse_address(ADDRESSES[packet.to]), packet.port);
        let mut bytes = serial.to_be_bytes().to_vec();
        bytes.push(u8::try_from(packet.from).unwrap());
        sender.send_to(&bytes, to).unwrap();
    }
    let mut arrived = BTreeSet::new();
    for _ in 0..200 {
        std::thread::sleep(Duration::from_millis(20));
        collect_packets(hosts, serial, &mut arrived);
        if arrived.is_superset(expected) {
            break;
        }
    }
    std::thread::sleep(Duration::from_millis(20));
    collect_packets(hosts, serial, &mut arrived);
    arrived
}

fn collect_packets(hosts: &Hosts, serial: u32, arrived: &mut BTreeSet<Packet>) {
    for (to, sockets) in hosts.receivers.iter().enumerate() {
        for (socket, port) in sockets.iter().zip(PORTS) {
            let mut buffer = [0; 16];
            while let Ok(5) = socket.recv(&mut buffer) {
                assert_eq!(
                    buffer[..4],
                    serial.to_be_bytes(),
                    "a packet of another world"
                );
                arrived.insert(Packet {
                    from: buffer[4].into(),
                    to,
                    port,
                });
            }
        }
    }
}

#[test]
fn the_kernel_decides_as_aws_says() {
    if is_skipped("the_kernel_decides_as_aws_says") {
        return;
    }
    let mut runner = TestRunner::new_with_rng(
        Config::default(),
        TestRng::deterministic_rng(proptest::test_runner::RngAlgorithm::ChaCha),
    );
    let mut bench = Bench::new("net-agree", world_with_groups(vec![], &vec![vec![]; 4]));
    let netns: Vec<_> = HOSTS.iter().map(|host| bench.netns_of(host)).collect();
    let open = |host: &&str| {
        PORTS.map(|port| {
            let socket = bench.bind_udp(host, &format!("0.0.0.0:{port}"));
            socket.set_nonblocking(true).unwrap();
            socket
        })
    };
    let hosts = Hosts {
        receivers: HOSTS.iter().map(|host| open(host).into()).collect(),
        netns,
    };
    let (mut passed, mut stopped) = (0, 0);
    for serial in 0..60 {
        bench.world = a_world().new_tree(&mut runner).unwrap().current();
        bench.apply_world(&TargetHealth::new());
        let expected: BTreeSet<_> = all_packets()
            .into_iter()
            .filter(|packet| is_allowed(&bench.world, *packet))
            .collect();
        let found = send_packets(&hosts, serial, &expected);
        passed += expected.len();
        stopped += all_packets().len() - expected.len();
        assert_eq!(
            found, expected,
            "world {serial}: {:#?}",
            bench.world.security_groups
        );
    }
    // The worlds are neither all open nor all closed.
    assert!(
        passed > 100 && stopped > 100,
        "{passed} passed, {stopped} stopped"
    );
    println!("{passed} packets passed and {stopped} were stopped, as the evaluator said");
}

proptest! {
    // A world that fails is printed; these tests have no folder for regressions.
    #![proptest_config(Config { failure_persistence: None, ..Config::default() })]

    #[test]
    fn a_ruleset_follows_from_the_world_and_not_from_its_order(mut world in a_world()) {
        let text = |world: &AwsState| ruleset::router_ruleset(&Topology::from_world(world).unwrap(), &TargetHealth::new());
        let before = text(&world);
        world.instances.reverse();
        world.route_tables.reverse();
        prop_assert_eq!(&before, &text(&world));
        // Every host has a chain for each way, and each ends by dropping.
        for host in &Topology::from_world(&world).unwrap().hosts {
            for way in ["ingress", "egress"] {
                let head = format!("chain {way}_{} {{", host.link);
                let body = before.split(&head).nth(1).and_then(|rest| rest.split('}').next()).unwrap();
                prop_assert!(body.trim_end().ends_with("drop"));
            }
        }
    }
}
