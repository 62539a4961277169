//! Routes of pods and of the internet: a packet passes where AWS lets it, and nowhere else.

use super::bench::{Bench, says};
use super::worlds::{A, B, C, D, rule, world};
use lab::scenario::skipped;

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
