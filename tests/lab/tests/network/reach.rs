//! Security groups, routes, gateways, what is always there, and that nothing is left.

use super::bench::{Bench, says};
use super::worlds::{A, B, C, D, address, rule, world};
use lab::network::netns;
use lab::scenario::skipped;
use socket2::{Domain, Protocol, Socket, Type};
use std::collections::BTreeSet;
use std::io::Read;
use std::net::SocketAddrV4;
use std::process::Command;
use std::time::Duration;

#[test]
fn a_security_group_decides_who_reaches_a_host() {
    if skipped("a_security_group_decides_who_reaches_a_host") {
        return;
    }
    let mut bench = Bench::new("net-groups", world());
    bench.serve(A, "0.0.0.0:8080", "a");
    bench.serve(A, "0.0.0.0:8081", "a");
    bench.serve(A, "0.0.0.0:9095", "a");
    // A peer group's member, from the port on; across zones a range; members of one group among themselves.
    assert_eq!(bench.ask(B, "10.1.1.11:8080"), says("a", "10.1.1.12"));
    assert_eq!(bench.ask(B, "10.1.1.11:9095"), says("a", "10.1.1.12"));
    assert_eq!(bench.ask(C, "10.1.1.11:8081"), says("a", "10.1.2.13"));
    // A port that nobody opened is silent, whether something listens or not; one that is open and unused refuses.
    bench.dropped(B, "10.1.1.11:8081");
    bench.dropped(B, "10.1.1.11:22");
    let refused = bench.connect(B, "10.1.1.11:9099", super::bench::PATIENCE);
    assert_eq!(
        refused.unwrap_err().kind(),
        std::io::ErrorKind::ConnectionRefused
    );
    // What a host may send is its own groups' matter.
    bench.change(|world| {
        world.security_groups[1].egress = vec![rule("tcp", Some((8080, 8080)), "10.1.1.11/32")];
    });
    assert_eq!(bench.ask(B, "10.1.1.11:8080"), says("a", "10.1.1.12"));
    bench.dropped(B, "10.1.1.11:9095");
    // A connection outlives the rule that let it in; a new one does not get in.
    let mut held = bench
        .connect(B, "10.1.1.11:8080", super::bench::PATIENCE)
        .unwrap();
    super::bench::line(&mut held).unwrap();
    bench.change(|world| world.security_groups[0].ingress.clear());
    bench.dropped(B, "10.1.1.11:8080");
    super::bench::echoes(&mut held).unwrap();
}

#[test]
fn a_world_applied_twice_changes_nothing() {
    if skipped("a_world_applied_twice_changes_nothing") {
        return;
    }
    let mut bench = Bench::new("net-twice", super::worlds::balanced());
    let again = bench.apply(&lab::network::Health::new());
    assert_eq!(again, lab::network::Applied::default());
    // Neither does a daemon that takes over from one that died: routes are as they should be.
    bench.attach(A);
    bench.router = lab::network::Router::up(&bench.place, &bench.ledger).unwrap();
    let taken_over = bench.apply(&lab::network::Health::new());
    assert_eq!(taken_over.routing, Vec::<String>::new());
}

#[test]
fn hosts_come_and_go() {
    if skipped("hosts_come_and_go") {
        return;
    }
    let mut bench = Bench::new("net-come", world());
    bench.detach(A);
    assert!(!netns::exists(&bench.netns(A)));
    bench.change(|world| world.instances[0].state = lab::world::InstanceState::Terminated);
    // Another machine gets the address, as an Auto Scaling group's next one may.
    let next = "i-00000000000000a99";
    bench.change(|world| {
        let mut instance = world.instances[0].clone();
        instance.id = next.into();
        instance.mac = "02:0e:00:00:00:99".into();
        instance.state = lab::world::InstanceState::Pending;
        world.instances.push(instance);
    });
    bench.attach(next);
    // Before the router knows of it nothing passes, and nothing is wrong.
    bench.dropped(B, "10.1.1.11:8080");
    bench.apply(&lab::network::Health::new());
    bench.serve(next, "0.0.0.0:8080", "next");
    assert_eq!(bench.ask(B, "10.1.1.11:8080"), says("next", "10.1.1.12"));
    // A router that was lost and made again: its hosts are attached anew, with what they had.
    netns::delete(&bench.place.router_netns()).unwrap();
    bench.router = lab::network::Router::up(&bench.place, &bench.ledger).unwrap();
    for host in [B, next] {
        bench.attach(host);
    }
    bench.apply(&lab::network::Health::new());
    assert_eq!(bench.ask(B, "10.1.1.11:8080"), says("next", "10.1.1.12"));
}

#[test]
fn other_protocols_go_by_name_and_number() {
    if skipped("other_protocols_go_by_name_and_number") {
        return;
    }
    let mut world = world();
    world.security_groups[0].ingress = vec![
        rule("4", None, "sg-client"),
        rule("icmp", Some((8, -1)), "sg-client"),
    ];
    let bench = Bench::new("net-protocol", world);
    let arrives = |protocol: i32, payload: &[u8]| {
        let open = |who: &str| {
            netns::inside(&bench.netns(who), || {
                Socket::new(Domain::IPV4, Type::RAW, Some(Protocol::from(protocol))).unwrap()
            })
            .unwrap()
        };
        let (mut receiver, sender) = (open(A), open(B));
        receiver
            .set_read_timeout(Some(Duration::from_millis(500)))
            .unwrap();
        sender
            .send_to(payload, &SocketAddrV4::new(address("10.1.1.11"), 0).into())
            .unwrap();
        let mut buffer = [0; 64];
        // The header of 20 bytes comes along.
        receiver
            .read(&mut buffer)
            .is_ok_and(|length| buffer[20..length] == *payload)
    };
    assert!(arrives(4, b"ip in ip"), "protocol 4 is allowed by number");
    assert!(!arrives(47, b"gre"), "no rule names protocol 47");
    assert!(
        arrives(1, &[8, 0, 0xf7, 0xff, 0, 0, 0, 0]),
        "an echo request is allowed by type"
    );
    assert!(
        !arrives(1, &[13, 0, 0xf2, 0xff, 0, 0, 0, 0]),
        "a timestamp request is not"
    );
}

#[test]
fn pods_are_reached_by_the_route_to_their_host() {
    if skipped("pods_are_reached_by_the_route_to_their_host") {
        return;
    }
    let mut bench = Bench::new("net-pods", world());
    for (host, pod) in [(A, "100.96.1.5/24"), (C, "100.96.3.5/24")] {
        assert!(
            bench
                .run(host, &["ip", "address", "add", pod, "dev", "lo"])
                .status
                .success()
        );
    }
    bench.serve(A, "100.96.1.5:8081", "pod of a");
    let from_pod = |bench: &Bench| {
        let command = "import socket; s = socket.create_connection(('100.96.1.5', 8081), 0.7, ('100.96.3.5', 0)); print(s.recv(99).decode(), end='')";
        bench.run(C, &["/usr/bin/python3", "-c", command])
    };
    let said =
        |output: &std::process::Output| String::from_utf8_lossy(&output.stdout).trim().to_owned();
    // A route alone is not enough: hosts that check sources and destinations drop what is not theirs.
    let routes = |world: &mut lab::world::World| {
        for table in &mut world.route_tables[..2] {
            for (destination, host) in [("100.96.1.0/24", A), ("100.96.3.0/24", C)] {
                let instance = Some(host.to_owned());
                table.routes.push(lab::world::Route {
                    destination: destination.into(),
                    target: host.into(),
                    instance,
                    blackhole: false,
                });
            }
        }
    };
    bench.change(routes);
    bench.dropped(C, "100.96.1.5:8081");
    bench.change(|world| world.instances[0].source_dest_check = false);
    assert_eq!(
        bench.ask(C, "100.96.1.5:8081"),
        says("pod of a", "10.1.2.13")
    );
    assert_eq!(
        said(&from_pod(&bench)),
        "",
        "a checked host's pods cannot speak under their own address"
    );
    bench.change(|world| world.instances[2].source_dest_check = false);
    // Groups know the sender by its interface, so a pod is let in as its host is.
    assert_eq!(said(&from_pod(&bench)), says("pod of a", "100.96.3.5"));
    // A host that is not in the group is not, though the route is there.
    bench.dropped(B, "100.96.1.5:8081");
    // A route whose instance is gone is a black hole.
    bench.change(|world| {
        world.route_tables[1]
            .routes
            .iter_mut()
            .for_each(|route| route.blackhole |= route.target == A);
    });
    bench.dropped(C, "100.96.1.5:8081");
}

#[test]
fn the_internet_is_reached_by_a_route_and_a_public_address() {
    if skipped("the_internet_is_reached_by_a_route_and_a_public_address") {
        return;
    }
    let mut bench = Bench::new("net-internet", world());
    bench.serve("operator", "198.18.0.1:443", "front");
    // By the internet gateway under its own public address, by NAT under the gateway's.
    assert_eq!(bench.ask(A, "198.18.0.1:443"), says("front", "54.10.0.11"));
    assert_eq!(bench.ask(C, "198.18.0.1:443"), says("front", "54.10.0.200"));
    // Without a public address an internet gateway does not help.
    bench.dropped(B, "198.18.0.1:443");
    // An address that nobody has.
    bench.dropped(A, "198.51.100.1:443");
    bench.dropped(A, "54.99.99.99:443");
    bench.change(|world| {
        world.security_groups[0].egress = vec![rule("tcp", Some((80, 80)), "0.0.0.0/0")];
    });
    bench.dropped(A, "198.18.0.1:443");
    bench.change(|world| world.security_groups[0].egress = super::worlds::out());
    bench.change(|world| world.nat_gateways[0].state = "deleting".into());
    bench.dropped(C, "198.18.0.1:443");
    bench.change(|world| world.internet_gateways[0].vpc = None);
    bench.dropped(A, "198.18.0.1:443");
    bench.change(|world| {
        world.route_tables[2]
            .routes
            .retain(|route| route.target == "local");
    });
    bench.dropped(D, "198.18.0.1:443");
}

#[test]
fn the_operator_reaches_public_addresses_only() {
    if skipped("the_operator_reaches_public_addresses_only") {
        return;
    }
    let mut bench = Bench::new("net-operator", world());
    bench.serve(D, "0.0.0.0:8080", "d");
    bench.serve(B, "0.0.0.0:8080", "b");
    assert_eq!(
        bench.ask("operator", "54.10.0.14:8080"),
        says("d", "198.18.0.10")
    );
    bench.dropped("operator", "54.10.0.14:8081");
    bench.dropped("operator", "10.2.1.14:8080");
    bench.dropped("operator", "10.1.1.12:8080");
    bench.change(|world| {
        world.route_tables[2]
            .routes
            .retain(|route| route.target == "local");
    });
    bench.dropped("operator", "54.10.0.14:8080");
}

#[test]
fn vpcs_are_apart_but_for_public_addresses() {
    if skipped("vpcs_are_apart_but_for_public_addresses") {
        return;
    }
    let bench = Bench::new("net-apart", world());
    bench.serve(D, "0.0.0.0:8080", "d");
    bench.dropped(A, "10.2.1.14:8080");
    bench.dropped(B, "10.2.1.14:8080");
    // As from anywhere: by both gateways, under the public address.
    assert_eq!(bench.ask(A, "54.10.0.14:8080"), says("d", "54.10.0.11"));
    assert_eq!(bench.ask(C, "54.10.0.14:8080"), says("d", "54.10.0.200"));
    bench.dropped(B, "54.10.0.14:8080");
}

#[test]
fn metadata_and_names_need_no_rule() {
    if skipped("metadata_and_names_need_no_rule") {
        return;
    }
    let mut bench = Bench::new("net-always", world());
    bench.serve("operator", "169.254.169.254:80", "metadata");
    let dns = bench.udp("operator", "10.1.0.2:53");
    bench.change(|world| {
        world
            .security_groups
            .iter_mut()
            .for_each(|group| group.egress.clear());
    });
    for (host, own) in [
        (A, "10.1.1.11"),
        (B, "10.1.1.12"),
        (C, "10.1.2.13"),
        (D, "10.2.1.14"),
    ] {
        assert_eq!(bench.ask(host, "169.254.169.254:80"), says("metadata", own));
    }
    for (host, own) in [(A, "10.1.1.11"), (C, "10.1.2.13")] {
        let client = bench.udp(host, "0.0.0.0:0");
        client.send_to(b"name?", "10.1.0.2:53").unwrap();
        let mut buffer = [0; 16];
        let (length, from) = dns.recv_from(&mut buffer).unwrap();
        assert_eq!(
            (&buffer[..length], from.ip()),
            (&b"name?"[..], address(own).into())
        );
        dns.send_to(b"yes", from).unwrap();
        assert_eq!(client.recv_from(&mut buffer).unwrap().0, 3);
    }
    // Each VPC has its own resolver.
    let stranger = bench.udp(D, "0.0.0.0:0");
    stranger.send_to(b"name?", "10.1.0.2:53").unwrap();
    let near = bench.udp(A, "0.0.0.0:0");
    near.send_to(b"mine", "10.1.0.2:53").unwrap();
    let mut buffer = [0; 16];
    assert_eq!(
        dns.recv_from(&mut buffer).unwrap().0,
        4,
        "only the question from its own VPC arrives"
    );
}

#[test]
fn metadata_travels_as_far_as_the_instance_says() {
    if skipped("metadata_travels_as_far_as_the_instance_says") {
        return;
    }
    let mut bench = Bench::new("net-hops", world());
    bench.change(|world| world.instances[0].hop_limit = 1);
    let service = bench.udp("operator", "169.254.169.254:80");
    for (host, limit) in [(A, 1), (B, 2)] {
        let open = || Socket::new(Domain::IPV4, Type::RAW, Some(Protocol::UDP)).unwrap();
        let mut raw = netns::inside(&bench.netns(host), open).unwrap();
        let client = bench.udp(host, "0.0.0.0:0");
        client.send_to(b"?", "169.254.169.254:80").unwrap();
        let mut buffer = [0; 64];
        let (_, from) = service.recv_from(&mut buffer).unwrap();
        service.send_to(b"!", from).unwrap();
        client.recv(&mut buffer).unwrap();
        assert!(raw.read(&mut buffer).unwrap() > 20);
        assert_eq!(buffer[8], limit, "the answer's time to live");
    }
}

#[test]
fn a_host_cannot_speak_as_another() {
    if skipped("a_host_cannot_speak_as_another") {
        return;
    }
    let bench = Bench::new("net-spoof", world());
    assert!(
        bench
            .run(B, &["ip", "address", "add", "10.1.2.99/32", "dev", "lo"])
            .status
            .success()
    );
    let receiver = bench.udp(A, "0.0.0.0:9095");
    drop(
        bench
            .udp(B, "10.1.2.99:0")
            .send_to(b"forged", "10.1.1.11:9095"),
    );
    bench
        .udp(C, "0.0.0.0:0")
        .send_to(b"true", "10.1.1.11:9095")
        .unwrap();
    let mut buffer = [0; 16];
    let (length, from) = receiver.recv_from(&mut buffer).unwrap();
    assert_eq!(
        (&buffer[..length], from.ip()),
        (&b"true"[..], address("10.1.2.13").into())
    );
}

#[test]
fn all_is_gone_afterwards_and_the_machine_is_as_before() {
    if skipped("all_is_gone_afterwards_and_the_machine_is_as_before") {
        return;
    }
    let before = machine("net-gone");
    let bench = Bench::new("net-gone", world());
    let netns = bench.place.router_netns();
    assert!(netns::exists(&netns));
    drop(bench);
    assert!(!netns::exists(&netns));
    assert_eq!(machine("net-gone"), before);
}

/// What of the machine's own network could have changed; other labs' namespaces come and go meanwhile.
fn machine(lab: &str) -> BTreeSet<String> {
    let show = |program: &str, arguments: &[&str]| {
        let output = Command::new(program).args(arguments).output().unwrap();
        assert!(output.status.success(), "{program} {arguments:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let names = show("ip", &["netns", "list"]);
    let own = names
        .lines()
        .filter(|line| line.contains(lab))
        .map(str::to_owned);
    let all = [
        show("ip", &["-br", "link"]),
        show("ip", &["-4", "route", "show", "table", "all"]),
        show("ip", &["rule"]),
        show("nft", &["list", "tables"]),
        std::fs::read_to_string("/proc/sys/net/ipv4/ip_forward").unwrap(),
    ];
    all.into_iter().chain(own).collect()
}
