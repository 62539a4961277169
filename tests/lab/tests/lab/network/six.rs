//! IPv6: hosts and their pods reach what groups, routes and balancers let them, and the internet by NAT64.

use super::bench::{Bench, expected_answer};
use super::worlds::{A, B, C, allow_all_egress, new_rule, two_vpc_world};
use lab::aws_state::{
    AwsState, BalancerAddress, HealthCheck, InternetGateway, Listener, LoadBalancer, Target,
    TargetGroup,
};
use lab::scenario::is_skipped;

const AT_A: &str = "2001:db8:1:1::a";
const AT_B: &str = "2001:db8:1:1::b";
const AT_C: &str = "2001:db8:1:2::c";
const BALANCER: &str = "2001:db8:1:1::100";
const FRONT: &str = "[64:ff9b::c612:1]:443";

/// The world of [`two_vpc_world`] with IPv6 in the first VPC: `c` has no IPv4 there, and pods.
fn world_with_ipv6() -> AwsState {
    let mut world = two_vpc_world();
    world.vpcs[0].cidrs.push("2001:db8:1::/56".into());
    for (instance, address) in world.instances.iter_mut().zip([AT_A, AT_B, AT_C]) {
        instance.ipv6_addresses = vec![address.parse().unwrap()];
    }
    world.instances[2].address = "169.254.0.2".parse().unwrap();
    world.instances[2].ipv6_prefixes = vec!["2001:db8:1:2:1::/80".parse().unwrap()];
    world.subnets[1].cidr = None;
    world.egress_only_gateways = vec![InternetGateway {
        id: "eigw-1".into(),
        vpc: Some("vpc-1".into()),
    }];
    for (table, routes) in [
        (0, vec![("2001:db8:1::/56", "local"), ("::/0", "igw-1")]),
        (
            1,
            vec![
                ("2001:db8:1::/56", "local"),
                ("64:ff9b::/96", "nat-1"),
                ("::/0", "eigw-1"),
            ],
        ),
    ] {
        let routes = super::worlds::new_table("", "", &routes).routes;
        world.route_tables[table].routes.extend(routes);
    }
    let mut egress = allow_all_egress();
    egress.push(new_rule("-1", None, "::/0"));
    for group in &mut world.security_groups {
        group.egress.clone_from(&egress);
    }
    world
}

fn with_balancer(world: &mut AwsState) {
    let arn = "arn:aws:elasticloadbalancing:us-test-1:1:loadbalancer/net/api/1";
    world.load_balancers = vec![LoadBalancer {
        arn: arn.into(),
        dns_name: "api.elb.us-test-1.amazonaws.com".into(),
        scheme: "internet-facing".into(),
        state: "active".into(),
        vpc: "vpc-1".into(),
        cross_zone: true,
        security_groups: vec!["sg-client".into()],
        addresses: vec![BalancerAddress {
            zone: "us-test-1a".into(),
            subnet: "subnet-1a".into(),
            address: "10.1.1.100".parse().unwrap(),
            public_address: Some("54.10.0.100".parse().unwrap()),
            ipv6_address: Some(BALANCER.parse().unwrap()),
        }],
        listeners: vec![Listener {
            protocol: "TCP".into(),
            port: 443,
            target_group: "tg".into(),
        }],
    }];
    world.target_groups = vec![TargetGroup {
        arn: "tg".into(),
        protocol: "TCP".into(),
        port: 8080,
        health_check: HealthCheck {
            protocol: "TCP".into(),
            port: 8080,
            path: None,
            interval: 10,
            timeout: 10,
            healthy_threshold: 2,
            unhealthy_threshold: 2,
        },
        preserve_client_ip: true,
        targets: vec![Target {
            instance: A.into(),
            port: 8080,
            state: "healthy".into(),
        }],
    }];
    world.security_groups[1].ingress = vec![new_rule("tcp", Some((443, 443)), "::/0")];
}

#[test]
fn ipv6_reaches_what_groups_and_routes_allow() {
    if is_skipped("ipv6_reaches_what_groups_and_routes_allow") {
        return;
    }
    let mut bench = Bench::new("net-six", world_with_ipv6());
    for (host, address) in [(A, AT_A), (C, AT_C)] {
        for port in [8080, 9090] {
            bench.serve_word(host, &format!("[{address}]:{port}"), "host");
        }
    }
    // By group, and not without: a range of IPv4 admits nobody here.
    assert_eq!(
        bench.ask_server(B, &format!("[{AT_C}]:8080")),
        expected_answer("host", AT_B)
    );
    bench.assert_dropped(B, &format!("[{AT_C}]:9090"));
    bench.change_world(|world| {
        let rule = new_rule("tcp", Some((9090, 9090)), "2001:db8:1:1::/64");
        world.security_groups[0].ingress.push(rule);
    });
    assert_eq!(
        bench.ask_server(B, &format!("[{AT_C}]:9090")),
        expected_answer("host", AT_B)
    );
    // Pods have addresses of the range that their host was given, and of no other.
    for pod in ["2001:db8:1:2:1::5/128", "2001:db8:1:2:2::5/128"] {
        let words = ["ip", "address", "add", pod, "dev", "lo", "nodad"];
        assert!(bench.run(C, &words).status.success());
    }
    bench.serve_word(C, "[2001:db8:1:2:1::5]:8080", "pod");
    assert_eq!(
        bench.ask_server(A, "[2001:db8:1:2:1::5]:8080"),
        expected_answer("pod", AT_A)
    );
    bench.assert_dropped(A, "[2001:db8:1:2:2::5]:8080");
    let from = |source: &str| {
        let command = format!(
            "import socket; s = socket.create_connection(('{AT_A}', 8080), 0.7, ('{source}', 0)); print(s.recv(99).decode(), end='')"
        );
        let output = bench.run(C, &["/usr/bin/python3", "-c", &command]);
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    };
    assert_eq!(
        from("2001:db8:1:2:1::5"),
        expected_answer("host", "2001:db8:1:2:1::5")
    );
    assert_eq!(from("2001:db8:1:2:2::5"), "", "an address of nobody");
}

#[test]
fn ipv6_reaches_the_internet_by_nat64_only_and_ec2s_services_always() {
    if is_skipped("ipv6_reaches_the_internet_by_nat64_only_and_ec2s_services_always") {
        return;
    }
    let mut bench = Bench::new("net-nat64", world_with_ipv6());
    bench.serve_word("operator", FRONT, "front");
    bench.serve_word("operator", "198.18.0.1:443", "front");
    bench.serve_word("operator", "[fd00:ec2::254]:80", "metadata");
    bench.serve_word("operator", "169.254.169.254:80", "metadata");
    // The table of `c` has the route, that of `b` has not; a link-local address leads to EC2's own services and nowhere else.
    assert_eq!(bench.ask_server(C, FRONT), expected_answer("front", AT_C));
    bench.assert_dropped(B, FRONT);
    assert!(
        bench
            .connect_to(C, "198.18.0.1:443", std::time::Duration::from_millis(700))
            .is_err()
    );
    for (host, address) in [(B, AT_B), (C, AT_C)] {
        assert_eq!(
            bench.ask_server(host, "[fd00:ec2::254]:80"),
            expected_answer("metadata", address)
        );
    }
    assert_eq!(
        bench.ask_server(C, "169.254.169.254:80"),
        expected_answer("metadata", "169.254.0.2")
    );
    bench.change_world(|world| world.nat_gateways[0].state = "deleting".into());
    bench.assert_dropped(C, FRONT);
}

#[test]
fn a_dual_stack_balancer_is_reached_from_both_sides() {
    if is_skipped("a_dual_stack_balancer_is_reached_from_both_sides") {
        return;
    }
    let mut world = world_with_ipv6();
    with_balancer(&mut world);
    let mut bench = Bench::new("net-nlb6", world);
    bench.serve_word(A, &format!("[{AT_A}]:8080"), "target");
    let at = format!("[{BALANCER}]:443");
    // `c` is in the VPC, the operator on the internet, and `a` is the target itself; all come from the balancer.
    for who in [C, "operator", A] {
        assert_eq!(
            bench.ask_server(who, &at),
            expected_answer("target", BALANCER),
            "{who}"
        );
    }
    bench.change_world(|world| world.security_groups[1].ingress.clear());
    bench.assert_dropped(C, &at);
    bench.assert_dropped("operator", &at);
}
