//! Network load balancers: by health and zone, by public address, with groups, and what happens to connections.

use super::bench::{Bench, PATIENCE, echoes, line, says};
use super::worlds::{
    A, B, BALANCER_A, BALANCER_C, BALANCER_PUBLIC, C, D, balanced, group, out, rule,
};
use lab::network::{Health, health, names, ruleset, topology::Topology};
use lab::scenario::skipped;
use lab::world::World;
use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::Arc;
use tokio::sync::watch;

fn verdicts(of: &[(&str, &str)]) -> Health {
    let by_target = of
        .iter()
        .map(|(target, state)| (format!("{target}:8080"), (*state).to_owned()));
    [("tg-api".to_owned(), by_target.collect())].into()
}

fn bench(name: &str, world: World) -> Bench {
    let bench = Bench::new(name, world);
    bench.serve(A, "0.0.0.0:8080", "a");
    bench.serve(C, "0.0.0.0:8080", "c");
    bench
}

fn answers(bench: &Bench, to: &str) -> BTreeSet<String> {
    (0..24)
        .map(|_| bench.ask(B, to).split(' ').next().unwrap().to_owned())
        .collect()
}

fn words(of: &[&str]) -> BTreeSet<String> {
    of.iter().map(|word| (*word).to_owned()).collect()
}

#[test]
fn a_balancer_chooses_by_zone_and_health() {
    if skipped("a_balancer_chooses_by_zone_and_health") {
        return;
    }
    let mut bench = bench("net-balance", balanced());
    let (zone_a, zone_b) = (format!("{BALANCER_A}:443"), format!("{BALANCER_C}:443"));
    bench.apply(&verdicts(&[(A, "healthy"), (C, "healthy")]));
    assert_eq!(answers(&bench, &zone_a), words(&["a"]));
    assert_eq!(answers(&bench, &zone_b), words(&["c"]));
    bench.world.load_balancers[0].cross_zone = true;
    bench.apply(&verdicts(&[(A, "healthy"), (C, "healthy")]));
    assert_eq!(answers(&bench, &zone_a), words(&["a", "c"]));
    bench.apply(&verdicts(&[(A, "unhealthy"), (C, "healthy")]));
    assert_eq!(answers(&bench, &zone_a), words(&["c"]));
    // With none healthy it fails open.
    bench.apply(&verdicts(&[(A, "unhealthy"), (C, "unhealthy")]));
    assert_eq!(answers(&bench, &zone_a), words(&["a", "c"]));
    bench.change(|world| world.target_groups[0].targets.clear());
    bench.dropped(B, &zone_a);
    // A port without a listener.
    bench.dropped(B, &format!("{BALANCER_A}:80"));
}

#[test]
fn the_client_keeps_its_address_unless_told_otherwise() {
    if skipped("the_client_keeps_its_address_unless_told_otherwise") {
        return;
    }
    let mut bench = bench("net-client", balanced());
    let to = format!("{BALANCER_A}:443");
    assert_eq!(bench.ask(B, &to), says("a", "10.1.1.12"));
    // With the client's address a target that asks itself through the balancer gets no answer, as on AWS.
    bench.dropped(A, &to);
    bench.change(|world| world.target_groups[0].preserve_client_ip = false);
    assert_eq!(bench.ask(B, &to), says("a", BALANCER_A));
    assert_eq!(bench.ask(A, &to), says("a", BALANCER_A));
}

#[test]
fn an_internet_facing_balancer_is_reached_from_outside() {
    if skipped("an_internet_facing_balancer_is_reached_from_outside") {
        return;
    }
    let mut bench = bench("net-facing", balanced());
    let to = format!("{BALANCER_PUBLIC}:443");
    // The targets see clients from outside, and know them by range only.
    bench.dropped("operator", &to);
    bench.change(|world| {
        world.security_groups[0]
            .ingress
            .push(rule("tcp", Some((8080, 8080)), "0.0.0.0/0"));
    });
    assert_eq!(
        bench.ask("operator", &to),
        says("a", &names::OPERATOR.to_string())
    );
    assert_eq!(bench.ask(D, &to), says("a", "54.10.0.14"));
    assert_eq!(bench.ask(C, &to), says("a", "54.10.0.200"));
    bench.dropped("operator", &format!("{BALANCER_A}:443"));
    bench.dropped(D, &format!("{BALANCER_A}:443"));
    bench.change(|world| world.load_balancers[0].scheme = "internal".into());
    bench.dropped("operator", &to);
}

#[test]
fn a_balancers_groups_stand_before_its_targets() {
    if skipped("a_balancers_groups_stand_before_its_targets") {
        return;
    }
    let mut world = balanced();
    world.load_balancers[0].security_groups = vec!["sg-balancer".into()];
    let ingress = vec![
        rule("tcp", Some((443, 443)), "10.1.1.12/32"),
        rule("tcp", Some((443, 443)), "54.10.0.14/32"),
    ];
    world
        .security_groups
        .push(group("sg-balancer", "vpc-1", ingress, out()));
    // Targets let in what comes by way of the balancer, whoever the client is, and nothing else.
    world.security_groups[0].ingress = vec![rule("tcp", Some((8080, 8080)), "sg-balancer")];
    let mut bench = bench("net-nlb-sg", world);
    let (to, public) = (
        format!("{BALANCER_A}:443"),
        format!("{BALANCER_PUBLIC}:443"),
    );
    assert_eq!(bench.ask(B, &to), says("a", "10.1.1.12"));
    assert_eq!(bench.ask(D, &public), says("a", "54.10.0.14"));
    bench.dropped("operator", &public);
    bench.dropped(C, &to);
    bench.dropped(B, "10.1.1.11:8080");
    bench.change(|world| {
        world.security_groups[3].ingress = vec![rule("tcp", Some((443, 443)), "sg-client")];
    });
    assert_eq!(bench.ask(B, &to), says("a", "10.1.1.12"));
    bench.dropped(D, &public);
    bench.change(|world| world.security_groups[3].egress.clear());
    bench.dropped(B, &to);
}

#[test]
fn connections_drain_with_a_target_and_are_reset_without() {
    if skipped("connections_drain_with_a_target_and_are_reset_without") {
        return;
    }
    let mut bench = bench("net-drain", balanced());
    bench.world.load_balancers[0].cross_zone = true;
    bench.apply(&verdicts(&[(A, "healthy"), (C, "unhealthy")]));
    let to = format!("{BALANCER_A}:443");
    let mut stream = bench.connect(B, &to, PATIENCE).unwrap();
    assert_eq!(line(&mut stream).unwrap(), says("a", "10.1.1.12"));
    bench.world.target_groups[0].targets[0].state = "draining".into();
    bench.apply(&verdicts(&[(C, "healthy")]));
    echoes(&mut stream).unwrap();
    assert_eq!(answers(&bench, &to), words(&["c"]));
    bench.world.target_groups[0].targets.remove(0);
    bench.apply(&verdicts(&[(C, "healthy")]));
    let error = echoes(&mut stream).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset, "{error}");
}

#[test]
fn checks_find_out_which_targets_answer() {
    if skipped("checks_find_out_which_targets_answer") {
        return;
    }
    let mut bench = Bench::new("net-checks", balanced());
    bench.serve(A, "0.0.0.0:8080", "a");
    let (worlds, world) = watch::channel(Arc::new(bench.world.clone()));
    let (sender, mut received) = watch::channel(Health::new());
    let place = bench.place.clone();
    let checks = std::thread::spawn(move || health::check(&place, world, &sender, 20.0));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let mut until = |wanted: &Health| {
        let wait = received.wait_for(|health| health == wanted);
        let found = runtime.block_on(async {
            tokio::time::timeout(PATIENCE, wait)
                .await
                .map(|found| found.unwrap().clone())
        });
        found.unwrap_or_else(|_| panic!("never {wanted:?}, but {:?}", received.borrow()));
    };
    until(&verdicts(&[(A, "healthy"), (C, "unhealthy")]));
    bench.serve(C, "0.0.0.0:8080", "c");
    until(&verdicts(&[(A, "healthy"), (C, "healthy")]));
    // Checks pass the target's groups as any packet does.
    bench.change(|world| world.security_groups[0].ingress.clear());
    until(&verdicts(&[(A, "unhealthy"), (C, "unhealthy")]));
    bench.change(|world| {
        world.security_groups[0].ingress = vec![rule("tcp", Some((8080, 8080)), "10.1.1.100/32")];
    });
    until(&verdicts(&[(A, "healthy"), (C, "unhealthy")]));
    bench.world.target_groups[0].targets.remove(0);
    worlds.send(Arc::new(bench.world.clone())).unwrap();
    until(&verdicts(&[(C, "unhealthy")]));
    drop(worlds);
    checks.join().unwrap().unwrap();
}

#[test]
fn checks_ask_over_http_and_https() {
    if skipped("checks_ask_over_http_and_https") {
        return;
    }
    let mut world = balanced();
    let check = &mut world.target_groups[0].health_check;
    (check.protocol, check.port, check.path) = ("HTTP".into(), 8090, Some("/healthz".into()));
    world.security_groups[0]
        .ingress
        .push(rule("tcp", Some((8090, 8091)), "10.1.0.0/16"));
    let mut bench = Bench::new("net-http", world);
    answer(&bench, A, "200 OK");
    answer(&bench, C, "500 No");
    let verdict = |bench: &Bench| {
        let subjects = health::subjects(&bench.world).unwrap();
        let probe = |subject: health::Subject| {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            let work = async {
                tokio::time::timeout(PATIENCE, health::probe(&subject))
                    .await
                    .unwrap()
            };
            runtime.block_on(work).is_ok()
        };
        lab::network::netns::inside(&bench.place.router_netns(), || {
            subjects.into_iter().map(probe).collect::<Vec<_>>()
        })
        .unwrap()
    };
    assert_eq!(verdict(&bench), [true, false]);
    // Whoever signed the target's certificate: here nobody.
    bench.world.target_groups[0].health_check.protocol = "HTTPS".into();
    bench.world.target_groups[0].health_check.port = 8091;
    bench.world.target_groups[0].health_check.path = None;
    let keys = bench.place.run().join("key.pem");
    let make = "openssl req -x509 -newkey rsa:2048 -nodes -subj /CN=nobody -keyout $0 -out $0.crt && cat $0.crt >> $0";
    assert!(
        bench
            .run(A, &["sh", "-c", make, keys.to_str().unwrap()])
            .status
            .success()
    );
    let server = std::process::Command::new("ip")
        .args([
            "netns",
            "exec",
            &bench.netns(A),
            "openssl",
            "s_server",
            "-quiet",
            "-www",
            "-accept",
            "8091",
            "-cert",
        ])
        .arg(&keys)
        .spawn();
    let mut server = server.unwrap();
    let deadline = std::time::Instant::now() + PATIENCE;
    while bench.connect(C, "10.1.1.11:8091", PATIENCE).is_err()
        && std::time::Instant::now() < deadline
    {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let found = verdict(&bench);
    server.kill().unwrap();
    server.wait().unwrap();
    assert_eq!(found, [true, false]);
}

/// Answers each request for `/healthz` with a status.
fn answer(bench: &Bench, who: &str, status: &'static str) {
    let listener =
        lab::network::netns::inside(&bench.netns(who), || TcpListener::bind("0.0.0.0:8090"))
            .unwrap()
            .unwrap();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let asked = line(&mut stream).unwrap_or_default();
            let status = if asked.starts_with("GET /healthz HTTP/1.1") {
                status
            } else {
                "404 Not Found"
            };
            let reply =
                format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
            drop(stream.write_all(reply.as_bytes()));
            // Reads to the end: a reset would take the answer away.
            drop(stream.read_to_end(&mut Vec::new()));
        }
    });
}

#[test]
fn checks_count_before_they_judge() {
    let check = balanced().target_groups[0].health_check.clone();
    let after = |results: &[bool]| {
        results
            .iter()
            .fold(health::Streak::default(), |streak, pass| {
                streak.after(*pass, &check)
            })
            .healthy
    };
    assert_eq!(after(&[]), None);
    assert_eq!(after(&[true]), Some(true));
    assert_eq!(after(&[false]), Some(false));
    assert_eq!(after(&[true, false]), Some(true));
    assert_eq!(after(&[true, false, false]), Some(false));
    assert_eq!(after(&[true, false, true, false]), Some(true));
    assert_eq!(after(&[false, true]), Some(false));
    assert_eq!(after(&[false, true, true]), Some(true));
}

#[test]
fn the_ruleset_of_a_small_world_reads_as_expected() {
    let world = balanced();
    let topology = Topology::of(&world).unwrap();
    insta::assert_snapshot!(ruleset::ruleset(&topology, &verdicts(&[(A, "healthy")])));
}
