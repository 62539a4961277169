//! Measures CPU time and memory of a first boot, compared with curl, sha256sum and tar on the same files. With a release build:
//! `KCTL_NODEUP=FILE cargo test -p nodeup --test figures -- --ignored --nocapture`.
#![cfg(test)]

mod support;

use std::fs;
use std::process::{Child, Command};
use std::thread::sleep;
use std::time::Duration;
use support::bootstrap::{FakeEndpoint, mint_authority};
use support::test_instance::TestInstance;

/// Size of each of seven downloads, together about as much as a worker needs.
const PROGRAM: usize = 40 << 20;

#[test]
#[ignore = "a measurement"]
fn measure_boot() {
    let authority = mint_authority();
    let mut instance = TestInstance::worker_with(&authority, &[], PROGRAM);
    let endpoint = FakeEndpoint::start(authority, &instance.stored.text, Vec::new(), None);
    instance.boot.bootstrap_servers = vec![endpoint.url()];
    instance.write_boot();

    let start = cpu_of_children();
    let first = peak_memory_kb(instance.start_nodeup(&[]));
    let after_first = cpu_of_children();
    let second = peak_memory_kb(instance.start_nodeup(&[]));
    let after_second = cpu_of_children();
    install_with_tools(&instance);
    let after_hand = cpu_of_children();
    println!(
        "first boot {:.2} s CPU, {first} kB at most; second {:.2} s CPU, {second} kB; by hand {:.2} s CPU",
        after_first - start,
        after_second - after_first,
        after_hand - after_second
    );
    assert_eq!(endpoint.boot_reports()[1].changes, 0);
    assert!(first < 25_000 && second < 25_000, "nodeup's memory");
}

/// Peak resident memory of a run, kB.
fn peak_memory_kb(mut nodeup: Child) -> u64 {
    let status = format!("/proc/{}/status", nodeup.id());
    let mut most = 0;
    while nodeup.try_wait().unwrap().is_none() {
        let text = fs::read_to_string(&status).unwrap_or_default();
        let peak = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let peak = peak.and_then(|peak| peak.trim_end_matches("kB").trim().parse().ok());
        most = most.max(peak.unwrap_or_default());
        sleep(Duration::from_millis(5));
    }
    assert!(nodeup.wait().unwrap().success());
    most
}

/// CPU seconds of all children that have ended.
fn cpu_of_children() -> f64 {
    let text = fs::read_to_string("/proc/self/stat").unwrap();
    let (_, fields) = text.rsplit_once(')').unwrap();
    let ticks = fields.split_whitespace().skip(13).take(2);
    ticks
        .map(|ticks| ticks.parse::<f64>().unwrap())
        .sum::<f64>()
        / 100.0
}

/// Does the same downloads, checksums and unpacking with standard tools.
fn install_with_tools(instance: &TestInstance) {
    let folder = instance.folder.path().join("by-hand");
    fs::create_dir(&folder).unwrap();
    for asset in &instance.config.assets {
        let (name, url) = (&asset.name, &asset.urls[0]);
        let archive = matches!(name.as_str(), "containerd" | "cni-plugins" | "crictl");
        let unpack = if archive { "tar -xzf" } else { "install" };
        let to = if archive { "-C ." } else { "installed" };
        let sum = asset.sha256.as_ref().unwrap();
        let script = format!(
            "curl -sf {url} | tee {name} | sha256sum | grep -q {sum} && {unpack} {name} {to}"
        );
        let shell = Command::new("sh")
            .arg("-c")
            .arg(script)
            .current_dir(&folder)
            .status();
        assert!(shell.unwrap().success(), "{name}");
    }
}
