//! Hosts as EC2 instances are: configured by cloud-init from IMDSv2, with a disk that outlives crashes, volumes that outlive
//! them, and nothing left behind. As root, on a machine that can mount.

mod double;

use double::{Double, address, instance};
use lab::host::{self, HostSpec, Image, State};
use lab::ledger::Ledger;
use lab::place::Place;
use lab::teardown;
use std::time::{Duration, Instant};

const LIMIT: Duration = Duration::from_secs(120);

fn spec(number: u8) -> HostSpec {
    HostSpec {
        instance: instance(number),
        instance_type: "m6i.large".to_owned(),
    }
}

fn said(place: &Place, number: u8, script: &str) -> String {
    let output = host::exec_output(place, &instance(number), &["sh", "-c", script]).unwrap();
    assert!(
        output.status.success(),
        "{script}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

#[test]
#[ignore = "needs root"]
fn probe() {
    let place = Place::named("probe").unwrap();
    teardown::down(&place).unwrap();
    let ledger = Ledger::begin(&place).unwrap();
    let begin = Instant::now();
    let image = Image::ready(&host::cache().unwrap()).unwrap();
    eprintln!("image {:?}", begin.elapsed());
    let lower = image.with_layer(&place, &ledger, None).unwrap();
    let double = Double {
        place: &place,
        ledger: &ledger,
    };
    double.up();
    double.attach(
        11,
        "#!/bin/sh\necho ran at $(date) > /root/ran\necho console >/dev/console\n",
    );
    let begin = Instant::now();
    host::boot(&place, &ledger, &lower, &spec(11)).unwrap();
    host::wait(&place, &instance(11), &[State::Running], LIMIT).unwrap();
    eprintln!("systemd {:?}", begin.elapsed());
    while said(&place, 11, "cat /root/ran 2>/dev/null || true").is_empty() {
        assert!(begin.elapsed() < LIMIT);
        std::thread::sleep(Duration::from_millis(50));
    }
    eprintln!("user data {:?} {}", begin.elapsed(), address(11));
    drop(ledger);
}

#[test]
#[ignore = "clean"]
fn clean() {
    teardown::down(&Place::named("probe").unwrap()).unwrap();
}
