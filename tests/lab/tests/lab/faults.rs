//! Faults in a cluster of three control planes and two workers, while a client writes to its API. A run executes the faults that it
//! draws in the order of [`FAULTS`]: each leaves the cluster in a state that the later ones can start from.

pub mod crashes;
mod cut_off;
pub mod full;
pub mod kills;
pub mod lost_data;
mod members;
pub mod quorum_lost;
mod quota;
pub mod reboots;
mod refusals;
pub mod replaced;
mod unrolled;

use super::pods;
use anyhow::{Context, Result, ensure};
use lab::scenario::{Lab, Writers, number_from_environment, random_fraction};
use serde_json::json;
use std::io::{Write, stderr};
use std::time::{SystemTime, UNIX_EPOCH};

pub struct Fault {
    pub name: &'static str,
    /// Estimated duration on two busy cores.
    seconds: u32,
    pub happen: fn(&mut Lab, &Writers) -> Result<()>,
}

/// Upper limit for the sum of the estimates in one run. Creating the cluster takes four minutes more.
const SECONDS: u32 = 200;

const fn new_fault(
    name: &'static str,
    seconds: u32,
    happen: fn(&mut Lab, &Writers) -> Result<()>,
) -> Fault {
    Fault {
        name,
        seconds,
        happen,
    }
}

/// The last one leaves a cluster that is not healthy if the lab machine lacks CAP_SYS_RESOURCE.
const FAULTS: [Fault; 20] = [
    new_fault("worker-reboots", 55, |lab, _| reboots::reboot_worker(lab)),
    new_fault("flag-changes", 110, |lab, _| unrolled::change_flag(lab)),
    new_fault("nodeup-killed", 90, |lab, _| kills::kill_nodeup(lab)),
    new_fault("port-closed", 30, |lab, _| refusals::close_port(lab)),
    new_fault("nodeup-exchanged", 25, |lab, _| {
        refusals::exchange_nodeup(lab)
    }),
    new_fault("node-config-missing", 20, |lab, _| {
        refusals::delete_node_config(lab)
    }),
    new_fault("image-broken", 100, |lab, _| {
        refusals::break_image(lab)?;
        pods::run_pods_again(lab)
    }),
    new_fault("members-edited", 10, |lab, _| members::edit_members(lab)),
    new_fault("volume-doubled", 5, |lab, _| members::copy_volume(lab)),
    new_fault("all-crash", 55, |lab, writers| {
        crashes::crash_all(lab, writers, &json!([]))
    }),
    new_fault("all-crash-without-ec2", 100, |lab, writers| {
        crashes::crash_all(lab, writers, &crashes::fail_ec2_calls())
    }),
    new_fault("one-cut-off", 110, cut_off::cut_off_one),
    new_fault("one-replaced", 100, replaced::terminate_one),
    new_fault("ended-by-groups", 130, replaced::end_by_groups),
    new_fault("each-replaced", 200, replaced::terminate_each),
    new_fault("at-quota", 65, quota::reach_quota),
    new_fault("log-lost", 90, lost_data::remove_log),
    new_fault("volume-lost", 150, lost_data::delete_volume),
    new_fault("quorum-lost", 200, quorum_lost::lose_two),
    new_fault("volumes-full", 170, full::fill_volumes),
];

/// The faults that `KCTL_LAB_FAULTS` names, separated by commas, or `all`. If it is not set, the seed draws them. Prints both.
pub fn choose_faults() -> Result<Vec<&'static Fault>> {
    let (seed, named) = (read_seed()?, read_named());
    let faults = match named.as_str() {
        "" => draw_faults(seed),
        "all" => FAULTS.iter().collect(),
        names => find_faults(names)?,
    };
    let names: Vec<&str> = faults.iter().map(|fault| fault.name).collect();
    // Not by eprintln!, which the test harness captures when the test passes.
    let names = names.join(",");
    writeln!(stderr(), "KCTL_LAB_SEED={seed} KCTL_LAB_FAULTS={names}")
        .context("printing the faults")?;
    Ok(faults)
}

/// `KCTL_LAB_SEED`; if it is not set, the current time.
pub fn read_seed() -> Result<u64> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?;
    Ok(number_from_environment("KCTL_LAB_SEED")?.unwrap_or(now.as_secs()))
}

/// `KCTL_LAB_FAULTS`; empty if it is not set.
fn read_named() -> String {
    std::env::var("KCTL_LAB_FAULTS").unwrap_or_default()
}

/// What `make test` does beside the life of a cluster that every run has: a run has time for one of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// The faults of [`FAULTS`].
    Faults,
    /// An upgrade to another patch.
    Upgrade,
    /// The restore of one control plane from its backups.
    Restore,
}

/// Whether this run has the part that a test is; prints it if not. If `KCTL_LAB_FAULTS` names faults, it has all.
pub fn is_drawn(test: &str, part: Part) -> Result<bool> {
    let seed = read_seed()?;
    let drawn = !read_named().is_empty() || draw_part(seed) == part;
    if !drawn {
        let why = format!("KCTL_LAB_SEED={seed} does not draw it; KCTL_LAB_FAULTS=all runs it");
        writeln!(stderr(), "SKIPPED {test}: {why}").context("printing what is drawn")?;
    }
    Ok(drawn)
}

fn draw_part(seed: u64) -> Part {
    match random_fraction(seed, FAULTS.len() as u64) {
        ..0.33 => Part::Faults,
        0.33..0.67 => Part::Upgrade,
        _ => Part::Restore,
    }
}

/// Draws as many faults as fit into [`SECONDS`], in the order of the list; none if the seed draws another part.
fn draw_faults(seed: u64) -> Vec<&'static Fault> {
    if draw_part(seed) != Part::Faults {
        return Vec::new();
    }
    let mut lots: Vec<(f64, usize)> = (0..FAULTS.len())
        .zip(0_u64..)
        .map(|(fault, position)| (random_fraction(seed, position), fault))
        .collect();
    lots.sort_by(|one, other| one.0.total_cmp(&other.0));
    let mut left = SECONDS;
    let mut drawn = Vec::new();
    for (_, fault) in lots {
        if let Some(rest) = left.checked_sub(FAULTS[fault].seconds) {
            left = rest;
            drawn.push(fault);
        }
    }
    drawn.sort_unstable();
    drawn.into_iter().map(|fault| &FAULTS[fault]).collect()
}

/// Finds faults by name, in the order of the list.
fn find_faults(names: &str) -> Result<Vec<&'static Fault>> {
    let names: Vec<&str> = names.split(',').collect();
    let all = FAULTS.each_ref().map(|fault| fault.name);
    for name in &names {
        ensure!(
            all.contains(name),
            "KCTL_LAB_FAULTS: no fault {name}; there are {all:?}"
        );
    }
    let chosen = FAULTS.iter().filter(|fault| names.contains(&fault.name));
    Ok(chosen.collect())
}

#[test]
fn seeds_draw_every_fault_and_none_draws_more_than_fits() {
    let names = |faults: &[&Fault]| faults.iter().map(|fault| fault.name).collect::<Vec<_>>();
    let all = names(&FAULTS.each_ref());
    let mut seen = std::collections::BTreeSet::new();
    let parts: std::collections::BTreeSet<_> = (0..600).map(draw_part).collect();
    assert_eq!(parts.len(), 3);
    for seed in (0..600).filter(|seed| draw_part(*seed) == Part::Faults) {
        let drawn = draw_faults(seed);
        assert_eq!(names(&drawn), names(&draw_faults(seed)));
        assert_eq!(
            names(&drawn),
            names(&find_faults(&names(&drawn).join(",")).unwrap())
        );
        let seconds: u32 = drawn.iter().map(|fault| fault.seconds).sum();
        assert!(seconds <= SECONDS, "{seed}: {seconds}");
        // No other fault would have fit.
        let shortest = FAULTS
            .iter()
            .filter(|fault| !names(&drawn).contains(&fault.name));
        assert!(shortest.map(|fault| fault.seconds).min() > Some(SECONDS - seconds));
        seen.extend(names(&drawn));
    }
    assert_eq!(seen, all.iter().copied().collect());
    assert!(find_faults("all-crash,none-such").is_err());
}
