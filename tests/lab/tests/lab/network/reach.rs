//! Routes of pods and of the internet: a packet passes where AWS lets it, and nowhere else.

use super::bench::{Bench, expected_answer};
use super::worlds::{A, B, C, D, new_rule, two_vpc_world};
use lab::scenario::is_skipped;

#[test]
fn pods_are_reached_by_the_route_to_their_host() {
    if is_skipped("pods_are_reached_by_the_route_to_their_host") {
        return;
    }
    let mut bench = Bench::new("net-pods", two_vpc_world());
    for (host, pod) in [(A, "100.96.1.5/24"), (C, "100.96.3.5/24")] {
        assert!(
            bench
                .run(host, &["ip", "address", "add", pod, "dev", "lo"])
                .status
                .success()
        );
    }
    bench.serve_word(A, "100.96.1.5:8081", "pod of a");
    let from_pod = |bench: &Bench| {
        let command = "import socket; s = socket.create_connection(('100.96.1.5', 8081), 0.7, ('100.96.3.5', 0)); print(s.recv(99).decode(), end='')";
        bench.run(C, &["/usr/bin/python3", "-c", command])
    };
    let said =
        |output: &std::process::Output| String::from_utf8_lossy(&output.stdout).trim().to_owned();
    // A route alone is not enough: hosts that check sources and destinations drop what is not theirs.
    let routes = |world: &mut lab::aws_state::AwsState| {
        for table in &mut world.route_tables[..2] {
            for (destination, host) in [("100.96.1.0/24", A), ("100.96.3.0/24", C)] {
                let instance = Some(host.to_owned());
                table.routes.push(lab::aws_state::Route {
                    destination: destination.into(),
                    target: host.into(),
                    instance,
                    blackhole: false,
                });
            }
        }
    };
    bench.change_world(routes);
    bench.assert_dropped(C, "100.96.1.5:8081");
    bench.change_world(|world| world.instances[0].source_dest_check = false);
    assert_eq!(
        bench.ask_server(C, "100.96.1.5:8081"),
        expected_answer("pod of a", "10.1.2.13")
    );
    assert_eq!(
        said(&from_pod(&bench)),
        "",
        "a checked host's pods cannot speak under their own address"
    );
    bench.change_world(|world| world.instances[2].source_dest_check = false);
    // Groups know the sender by its interface, so a pod is let in as its host is.
    assert_eq!(
        said(&from_pod(&bench)),
        expected_answer("pod of a", "100.96.3.5")
    );
    // A host that is not in the group is not, though the route is there.
    bench.assert_dropped(B, "100.96.1.5:8081");
    // A route whose instance is gone is a black hole.
    bench.change_world(|world| {
        world.route_tables[1]
            .routes
            .iter_mut()
            .for_each(|route| route.blackhole |= route.target == A);
    });
    bench.assert_dropped(C, "100.96.1.5:8081");
}

#[test]
fn the_internet_is_reached_by_a_route_and_a_public_address() {
    if is_skipped("the_internet_is_reached_by_a_route_and_a_public_address") {
        return;
    }
    let mut bench = Bench::new("net-internet", two_vpc_world());
    bench.serve_word("operator", "198.18.0.1:443", "front");
    // By the internet gateway under its own public address, by NAT under the gateway's.
    assert_eq!(
        bench.ask_server(A, "198.18.0.1:443"),
        expected_answer("front", "54.10.0.11")
    );
    assert_eq!(
        bench.ask_server(C, "198.18.0.1:443"),
        expected_answer("front", "54.10.0.200")
    );
    // Without a public address an internet gateway does not help.
    bench.assert_dropped(B, "198.18.0.1:443");
    // An address that nobody has.
    bench.assert_dropped(A, "198.51.100.1:443");
    bench.assert_dropped(A, "54.99.99.99:443");
    bench.change_world(|world| {
        world.security_groups[0].egress = vec![new_rule("tcp", Some((80, 80)), "0.0.0.0/0")];
    });
    bench.assert_dropped(A, "198.18.0.1:443");
    bench.change_world(|world| world.security_groups[0].egress = super::worlds::allow_all_egress());
    bench.change_world(|world| world.nat_gateways[0].state = "deleting".into());
    bench.assert_dropped(C, "198.18.0.1:443");
    bench.change_world(|world| world.internet_gateways[0].vpc = None);
    bench.assert_dropped(A, "198.18.0.1:443");
    bench.change_world(|world| {
        world.route_tables[2]
            .routes
            .retain(|route| route.target == "local");
    });
    bench.assert_dropped(D, "198.18.0.1:443");
}
