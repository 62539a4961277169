//! The machine as a lab can change it, for the law that nothing of a lab is left.

use lab::process::Process;
use lab::{cgroup, mounts};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

/// Everything of one kind, by kind, sorted.
pub type Traces = BTreeMap<&'static str, Vec<String>>;

/// What the machine has of all that labs make; `lab` is in the names of what belongs to one.
pub fn read_lab_traces(lab: &str) -> Traces {
    let mut traces = BTreeMap::from([
        ("namespaces", list_entries("/run/netns")),
        (
            "mounts",
            mounts::read_mounts("self")
                .unwrap()
                .iter()
                .map(|mount| mount.point.display().to_string())
                .collect(),
        ),
        (
            "loop devices",
            output_lines(
                "losetup",
                &["--list", "--noheadings", "--output", "NAME,BACK-FILE"],
            ),
        ),
        (
            "links",
            output_lines("ip", &["-o", "link"])
                .iter()
                .map(|line| line.split(':').nth(1).unwrap().to_owned())
                .collect(),
        ),
        ("volatile", list_entries("/run/kctl-lab")),
        ("disks", list_entries("/var/lib/kctl-lab")),
        ("processes", lab_processes(lab)),
    ]);
    let mut groups = Vec::new();
    for hierarchy in cgroup::list_hierarchies().unwrap() {
        let labs = hierarchy.root.join("kctl-lab");
        groups.extend(
            list_entries(&labs)
                .iter()
                .map(|name| format!("{}/{name}", labs.display())),
        );
    }
    traces.insert("cgroups", groups);
    for found in traces.values_mut() {
        // Other labs and other programs come and go: what carries the lab's name does not.
        found.retain(|name| name.contains(lab));
        found.sort();
    }
    traces
}

/// All that is not any lab's, and does not change by itself.
pub fn read_other_traces() -> Traces {
    let of = |path: &str| {
        fs::read_to_string(path)
            .unwrap()
            .lines()
            .map(str::to_owned)
            .collect()
    };
    BTreeMap::from([
        ("host name", of("/proc/sys/kernel/hostname")),
        (
            "memory settings",
            [
                of("/proc/sys/vm/overcommit_memory"),
                of("/proc/sys/kernel/panic"),
            ]
            .concat(),
        ),
        ("addresses", output_lines("ip", &["-o", "-4", "addr"])),
        ("routes", output_lines("ip", &["route"])),
        ("filters", output_lines("nft", &["list", "tables"])),
    ])
}

fn list_entries(path: impl AsRef<Path>) -> Vec<String> {
    let Ok(entries) = fs::read_dir(path) else {
        return Vec::new();
    };
    entries
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect()
}

fn output_lines(program: &str, arguments: &[&str]) -> Vec<String> {
    let output = Command::new(program).args(arguments).output().unwrap();
    String::from_utf8_lossy(&output.stdout)
        .lines()
        .map(str::to_owned)
        .collect()
}

/// Those in a cgroup of the lab, or with its name among their arguments; not what has ended and waits for its parent, which
/// may be this program.
fn lab_processes(lab: &str) -> Vec<String> {
    let mut found = Vec::new();
    for pid in list_entries("/proc")
        .iter()
        .filter(|name| name.parse::<u32>().is_ok())
    {
        let arguments = fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let groups = fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default();
        let marked = arguments.contains(&format!("kctl-lab/{lab}"))
            || arguments.contains(&format!("kctl-{lab}"));
        let runs = Process::from_pid(pid.parse().unwrap())
            .is_ok_and(|process| process.is_alive().unwrap());
        if !runs {
            continue;
        }
        if marked || groups.contains(&format!("kctl-lab/{lab}")) {
            found.push(format!("{pid} of {lab}: {}", arguments.replace('\0', " ")));
        }
    }
    found
}
