//! Faults: applied, seen, healed.

use super::bench::{Bench, PATIENCE, echoes, line, possible, says};
use super::worlds::{A, B, BALANCER_A, C, balanced};
use lab::network::faults::{self, Partition, relay};
use lab::network::{commands, netns};
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
    if !possible("a_partition_cuts_and_heals") {
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
    if !possible("a_pair_is_cut_and_others_are_not") {
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
    if !possible("a_host_is_cut_off_from_balancers_only") {
        return;
    }
    let bench = bench("net-nolb");
    let to = format!("{BALANCER_A}:443");
    assert_eq!(bench.ask(B, &to), says("a", "10.1.1.12"));
    faults::partition(&bench.place, &Partition::FromBalancers(A.into())).unwrap();
    bench.dropped(B, &to);
    assert_eq!(bench.ask(B, "10.1.1.11:8080"), says("a", "10.1.1.12"));
}

#[test]
fn packets_are_lost_and_late() {
    if !possible("packets_are_lost_and_late") {
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
    let (place, netns) = (bench.place.clone(), bench.place.router_netns());
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let carrier = std::thread::spawn(move || {
        netns::enter(&netns).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            tokio::select! { ended = relay::run(&place) => ended, _ = stopped => Ok(()) }
        })
    });
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
