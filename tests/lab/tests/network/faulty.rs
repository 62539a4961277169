//! Faults: applied, seen, healed.

use super::bench::{Bench, PATIENCE, echoes, line, says};
use super::worlds::{A, B, BALANCER_A, C, balanced};
use clap::Parser;
use lab::network::commands;
use lab::network::faults::{self, Partition, relay};
use lab::scenario::skipped;
use std::time::{Duration, Instant};

fn bench(name: &str) -> Bench {
    let bench = Bench::new(name, balanced());
    bench.serve(A, "0.0.0.0:8080", "a");
    bench.serve(C, "0.0.0.0:8080", "c");
    bench.serve("operator", "169.254.169.254:80", "metadata");
    bench
}

#[test]
fn a_partition_cuts_and_heals() {
    if skipped("a_partition_cuts_and_heals") {
        return;
    }
    let mut bench = bench("net-cut");
    let mut held = bench.connect(B, "10.1.1.11:8080", PATIENCE).unwrap();
    line(&mut held).unwrap();
    held.set_read_timeout(Some(Duration::from_millis(500)))
        .unwrap();
    faults::partition(&bench.place, &Partition::Host(A.into())).unwrap();
    assert!(commands::network(&bench.place).unwrap().contains("cut off"));
    bench.dropped(B, "10.1.1.11:8080");
    echoes(&mut held).unwrap_err();
    // What the hypervisor itself answers stays.
    assert_eq!(
        bench.ask(A, "169.254.169.254:80"),
        says("metadata", "10.1.1.11")
    );
    // A change of the world does not heal it.
    bench.change(|world| world.serial += 1);
    bench.change(|world| world.security_groups[0].ingress.truncate(1));
    bench.dropped(B, "10.1.1.11:8080");
    faults::heal(&bench.place, Some(A)).unwrap();
    assert!(!commands::network(&bench.place).unwrap().contains("cut off"));
    assert_eq!(bench.ask(B, "10.1.1.11:8080"), says("a", "10.1.1.12"));
}

#[test]
fn a_pair_is_cut_and_others_are_not() {
    if skipped("a_pair_is_cut_and_others_are_not") {
        return;
    }
    let bench = bench("net-pair");
    faults::partition(&bench.place, &Partition::Pair(B.into(), A.into())).unwrap();
    bench.dropped(B, "10.1.1.11:8080");
    assert_eq!(bench.ask(C, "10.1.1.11:8080"), says("a", "10.1.2.13"));
    assert_eq!(bench.ask(B, "10.1.2.13:8080"), says("c", "10.1.1.12"));
    bench.dropped(B, &format!("{BALANCER_A}:443"));
    faults::heal(&bench.place, None).unwrap();
    assert_eq!(bench.ask(B, "10.1.1.11:8080"), says("a", "10.1.1.12"));
}

#[test]
fn a_host_is_cut_off_from_balancers_only() {
    if skipped("a_host_is_cut_off_from_balancers_only") {
        return;
    }
    let bench = bench("net-nolb");
    let to = format!("{BALANCER_A}:443");
    assert_eq!(bench.ask(B, &to), says("a", "10.1.1.12"));
    faults::partition(&bench.place, &Partition::FromBalancers(A.into())).unwrap();
    bench.dropped(B, &to);
    assert_eq!(bench.ask(B, "10.1.1.11:8080"), says("a", "10.1.1.12"));
}

#[derive(clap::Parser)]
struct Line {
    #[command(flatten)]
    arguments: commands::PartitionArguments,
}

#[test]
fn the_command_names_hosts_as_people_do() {
    if skipped("the_command_names_hosts_as_people_do") {
        return;
    }
    let bench = bench("net-command");
    let lab = |words: &[&str]| {
        let line = Line::try_parse_from([&["partition"], words].concat())
            .map_err(|error| error.to_string())?;
        commands::partition(&bench.place, &line.arguments).map_err(|error| error.to_string())
    };
    let shown = lab(&["10.1.1.11", "--from", B]).unwrap();
    assert!(shown.contains(&format!("cut off from {B}")), "{shown}");
    bench.dropped(B, "10.1.1.11:8080");
    let shown = lab(&["i-00000000000000c03.ec2.internal", "--loss", "20"]).unwrap();
    assert!(shown.contains("loss 20.0 %"), "{shown}");
    let shown = lab(&["--heal", A]).unwrap();
    assert!(
        !shown.contains("cut off") && shown.contains("loss"),
        "{shown}"
    );
    assert_eq!(bench.ask(B, "10.1.1.11:8080"), says("a", "10.1.1.12"));
    assert!(!lab(&["--heal"]).unwrap().contains("loss"));
    assert!(lab(&["i-unknown"]).unwrap_err().contains("lab network"));
    assert!(lab(&[]).is_err());
    assert!(lab(&[A, "--heal", "--loss", "5"]).is_err());
}

#[test]
fn packets_are_lost_and_late() {
    if skipped("packets_are_lost_and_late") {
        return;
    }
    let bench = bench("net-late");
    faults::loss(&bench.place, A, 1000).unwrap();
    bench.dropped(B, "10.1.1.11:8080");
    faults::loss(&bench.place, A, 0).unwrap();
    assert!(matches!(
        faults::delay(&bench.place, A, Duration::from_millis(200)),
        Err(lab::network::Error::NoRelay)
    ));
    let place = bench.place.clone();
    let (stop, stopped) = tokio::sync::oneshot::channel();
    let carrier = std::thread::spawn(move || relay::run(&place, stopped));
    let set = || faults::delay(&bench.place, A, Duration::from_millis(200));
    let deadline = Instant::now() + PATIENCE;
    while let Err(error) = set() {
        assert!(Instant::now() < deadline, "{error}");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(
        commands::network(&bench.place)
            .unwrap()
            .contains("delay 200 ms")
    );
    std::thread::sleep(Duration::from_millis(300));
    let mut stream = bench.connect(B, "10.1.1.11:8080", PATIENCE).unwrap();
    line(&mut stream).unwrap();
    let begun = Instant::now();
    echoes(&mut stream).unwrap();
    // At least as long as asked; how much longer is the machine's matter.
    assert!(
        begun.elapsed() >= Duration::from_millis(190),
        "{:?}",
        begun.elapsed()
    );
    faults::heal(&bench.place, None).unwrap();
    echoes(&mut stream).unwrap();
    drop(stop);
    carrier.join().unwrap().unwrap();
    assert_eq!(bench.ask(B, "10.1.1.11:8080"), says("a", "10.1.1.12"));
}
