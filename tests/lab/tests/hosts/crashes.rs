//! A maker of hosts killed with -9 at any moment: what it made is found and removed.

use crate::double::{Double, instance};
use crate::life::{Lab, spec};
use crate::machine;
use lab::host::{self, VolumeSpec};
use lab::ledger::Ledger;
use lab::place::Place;
use lab::teardown;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

/// Which lab the maker makes; the maker is this test program called again.
const MAKER: &str = "KCTL_LAB_TEST_MAKER";

/// How long makers live, in milliseconds: from the first step to a host that boots with a volume.
const LIVES: [u64; 12] = [3, 40, 90, 150, 220, 300, 400, 520, 700, 1000, 1600, 4000];

#[test]
#[ignore = "needs root, and a machine that may mount"]
fn nothing_outlives_a_maker_that_was_killed() {
    let bystander = Lab::named("bystander");
    let before = machine::traces("bystander");
    let mut made = Vec::new();
    for life in LIVES {
        let lab = Lab::named("crashes");
        drop(lab.ledger);
        let mut maker = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "crashes::maker", "--ignored"])
            .env(MAKER, lab.place.name())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        sleep(Duration::from_millis(life));
        maker.kill().unwrap();
        maker.wait().unwrap();
        made.push(
            machine::traces("crashes")
                .values()
                .map(Vec::len)
                .sum::<usize>(),
        );
        teardown::down(&lab.place).unwrap();
        // What a late child would still make.
        sleep(Duration::from_millis(300));
        let left = machine::traces("crashes");
        assert!(
            left.values().all(Vec::is_empty),
            "left by a maker killed after {life} ms: {left:?}"
        );
    }
    assert!(
        made.iter().max() > made.iter().min(),
        "all makers came equally far: {made:?}"
    );
    assert_eq!(
        machine::traces("bystander"),
        before,
        "another lab was touched"
    );
    bystander.down();
}

/// Not a test of its own: what is killed above.
#[test]
#[ignore = "the maker that another test kills"]
fn maker() {
    let Ok(name) = std::env::var(MAKER) else {
        return;
    };
    let place = Place::named(&name).unwrap();
    let ledger = Ledger::begin(&place).unwrap();
    let image = host::Image::ready(&host::cache().unwrap()).unwrap();
    let lower = image.with_layer(&place, &ledger, None).unwrap();
    let double = Double {
        place: &place,
        ledger: &ledger,
    };
    double.up();
    for number in 11..=14 {
        double.attach(number, "#!/bin/sh\n");
        host::boot(&place, &ledger, &lower, &spec(number)).unwrap();
        let volume = VolumeSpec {
            id: format!("vol-{number:017x}"),
            size: 1,
            device: "/dev/xvdu".to_owned(),
        };
        host::attach_volume(&place, &ledger, &instance(number), &volume).unwrap();
    }
    sleep(Duration::from_mins(1));
}
