//! Three control planes survive faults of machines, disks, networks and AWS that a seed draws, some of them in pairs: no acknowledged
//! write is lost, and all members of etcd come back by themselves. docs/lab/scenarios.md says how to run many.

pub mod back;
pub mod disks;
mod kinds;
mod losses;
mod schedule;
mod supervised;
mod table;
mod unsynced;

use super::cluster::{self, Network};
use super::faults::{crashes, read_seed};
use super::{PATIENCE, birth, etcd, start_lab};
use anyhow::{Context, Result, ensure};
use back::members_are_back;
use kinds::{KINDS, Kind};
use lab::scenario::{
    Lab, PUBLIC, Writers, longest_gap, number_from_environment, random_fraction, unix_time,
};
use schedule::{Chance, Due, run_due};
use serde_json::Value;
use std::collections::BTreeMap;
use std::thread::sleep;
use std::time::{Duration, Instant};
use table::{Line, Table};

/// Faults of one run, if `KCTL_LAB_COUNT` says nothing else.
const COUNT: usize = 200;

/// After so many faults the history is judged, and another begins, so that neither memory nor time grows with the run.
const JUDGED: usize = 20;

/// Limit for a fault and all that follows, of which five minutes may be without AWS.
const LIMIT: Duration = Duration::from_mins(30);

/// Time between two looks at all members.
const PAUSE: Duration = Duration::from_millis(500);

/// How many of all faults are followed by a second one, which happens up to so many seconds into the recovery.
const PAIRS: f64 = 0.3;
const INTO_RECOVERY: f64 = 20.0;

/// Seconds for which EC2 or S3 are away.
const AWAY: u64 = 300;

#[test]
#[ignore = "hours: make soak"]
fn etcd_survives_faults() -> Result<()> {
    let seed = read_seed()?;
    let number = |name: &str, otherwise| -> Result<usize> {
        let number = number_from_environment(name)?.map(usize::try_from);
        Ok(number.transpose()?.unwrap_or(otherwise))
    };
    let first = number("KCTL_LAB_FIRST", 0)?;
    let count = number("KCTL_LAB_COUNT", COUNT)?;
    let seconds = number_from_environment("KCTL_LAB_SECONDS")?.unwrap_or(u64::MAX);
    let away = number_from_environment("KCTL_LAB_AWAY")?.unwrap_or(AWAY);
    let named = named_kinds()?;
    let mut table = Table::open(seed)?;
    let Some(mut lab) = start_lab("etcd_survives_faults", "t-faults", 5)? else {
        return Ok(());
    };
    let begun = Instant::now();
    lab.run_step("kctl makes a cluster", make_cluster)?;
    let mut sitting = Sitting::default();
    let mut next = first;
    while next < first + count && begun.elapsed().as_secs() < seconds {
        if sitting.writers.is_none() {
            sitting.begin(&mut lab, next)?;
        }
        let pair = match &named {
            Some(kinds) => (kinds[(next - first) % kinds.len()], None),
            None => draw_pair(seed, next),
        };
        let writers = sitting.writers.as_ref().context("writers")?;
        let chance = Chance::new(seed, next, away);
        let line = lab.run_step(&format!("fault {next}: {}", name_pair(pair)), |lab| {
            run_fault(lab, writers, next, pair, chance)
        })?;
        table.add(&line)?;
        next += 1;
        if (next - first).is_multiple_of(JUDGED) {
            sitting.end(&mut lab)?;
        }
    }
    sitting.end(&mut lab)?;
    eprintln!("KCTL_LAB_SEED={seed} KCTL_LAB_FIRST={next} goes on");
    eprintln!("{}", table.describe()?);
    lab.take_down()
}

/// Faults that are over soon, `count` different ones that the seed draws, for a cluster that others use afterwards.
pub fn run_quick(lab: &mut Lab, writers: &Writers, count: usize) -> Result<()> {
    let seed = read_seed()?;
    let quick: Vec<&Kind> = KINDS.iter().filter(|kind| kind.quick).collect();
    for (kind, number) in shuffle(quick, seed).into_iter().take(count).zip(0..) {
        let chance = Chance::new(seed, number, 20);
        lab.run_step(kind.name, |lab| {
            let line = run_fault(lab, writers, number, (kind, None), chance)?;
            eprintln!("       {line}");
            Ok(())
        })?;
    }
    Ok(())
}

/// Three control planes and a worker, healthy.
pub fn make_cluster(lab: &mut Lab) -> Result<()> {
    let words = birth::cluster_words("none", Network::Flannel);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    cluster::create_cluster_of(lab, "1", &words)?;
    lab.wait_until("all members are there", PATIENCE, members_are_back)?;
    etcd::expect_reported(lab)
}

/// A kind, and one that happens while the cluster recovers from it.
type Pair = (&'static Kind, Option<&'static Kind>);

fn name_pair((first, second): Pair) -> String {
    let second = second.map(|second| format!(", then {}", second.name));
    format!("{}{}", first.name, second.unwrap_or_default())
}

/// Every kind once, in an order that the seed draws, then every kind again.
fn draw_pair(seed: u64, number: usize) -> Pair {
    let round = (number / KINDS.len()) as u64;
    let order = shuffle(KINDS.iter().collect(), seed.wrapping_add(round));
    let mut chance = Chance::new(!seed, number, 0);
    let seconds = KINDS.iter().filter(|kind| kind.second);
    let second = chance.choose(seconds.collect(), 1).pop();
    let second = second.filter(|_| chance.between(0.0, 1.0) < PAIRS);
    (order[number % KINDS.len()], second)
}

fn shuffle(mut kinds: Vec<&'static Kind>, seed: u64) -> Vec<&'static Kind> {
    let lot = |kind: &&Kind| {
        let position = KINDS.iter().position(|one| one.name == kind.name);
        random_fraction(seed, position.unwrap_or_default() as u64)
    };
    kinds.sort_by(|one, other| lot(one).total_cmp(&lot(other)));
    kinds
}

/// The kinds that `KCTL_LAB_FAULTS` names, one after the other and again, instead of those that the seed draws.
fn named_kinds() -> Result<Option<Vec<&'static Kind>>> {
    let named = std::env::var("KCTL_LAB_FAULTS").unwrap_or_default();
    if named.is_empty() {
        return Ok(None);
    }
    let find = |name: &str| {
        let found = KINDS.iter().find(|kind| kind.name == name);
        found.with_context(|| {
            format!(
                "KCTL_LAB_FAULTS: no fault {name}; there are {:?}",
                KINDS.each_ref().map(|kind| kind.name)
            )
        })
    };
    named.split(',').map(find).collect::<Result<_>>().map(Some)
}

/// A fault happens at most 100 ms after an acknowledged write. Returns when all members are back, and writes go on.
fn run_fault(
    lab: &mut Lab,
    writers: &Writers,
    number: usize,
    (first, second): Pair,
    mut chance: Chance,
) -> Result<Line> {
    writers.goes_on(lab, PATIENCE)?;
    let begin = (first.prepare)(lab, &mut chance)?;
    let (begun, mut due) = writers.acknowledged_just_before(lab, || {
        let begun = unix_time()?;
        Ok((begun, begin(lab)?))
    })?;
    if let Some(second) = second {
        let over = due.iter().map(|one| one.after).fold(0.0, f64::max);
        let after = over + chance.between(0.0, INTO_RECOVERY);
        due.push(Due::new(after, move |lab| {
            (second.prepare)(lab, &mut chance.clone())?(lab)
        }));
    }
    lab.wait_until("all members are back", LIMIT, |lab| {
        let all = run_due(lab, begun, &mut due).and_then(|()| members_are_back(lab));
        if all.is_err() {
            // Looking costs the lab machine more than waiting.
            sleep(PAUSE);
        }
        all
    })?;
    let back = unix_time()? - begun;
    writers.goes_on(lab, PATIENCE)?;
    let until = unix_time()?;
    etcd::expect_reported(lab)?;
    Ok(Line {
        number,
        kind: first.name.to_owned(),
        second: second.map(|second| second.name.to_owned()),
        gap: longest_gap(&writers.read_attempts()?, PUBLIC, begun, until),
        back,
    })
}

/// One history after the other, each in a namespace of its own, whose final state has to stay.
#[derive(Default)]
struct Sitting {
    writers: Option<Writers>,
    namespace: String,
    finals: BTreeMap<String, BTreeMap<String, String>>,
}

impl Sitting {
    fn begin(&mut self, lab: &mut Lab, number: usize) -> Result<()> {
        self.namespace = format!("writes-{number}");
        let namespace = self.namespace.clone();
        let begun = lab.run_step("writes begin", |lab| lab.start_writers(&namespace))?;
        self.writers = Some(begun);
        Ok(())
    }

    /// Judges the history, if there is one, and looks for all that was there when those before it ended.
    fn end(&mut self, lab: &mut Lab) -> Result<()> {
        let Some(writers) = self.writers.take() else {
            return Ok(());
        };
        lab.run_step(
            "all that clients did and saw fits one order of writes",
            |lab| {
                crashes::check_history(lab, writers, &[0, 1, 2])?;
                for (namespace, before) in &self.finals {
                    let now = read_values(lab, namespace)?;
                    ensure!(now == *before, "{namespace}: {before:?} became {now:?}");
                }
                let now = read_values(lab, &self.namespace)?;
                ensure!(!now.is_empty(), "{} is empty", self.namespace);
                self.finals.insert(self.namespace.clone(), now);
                Ok(())
            },
        )
    }
}

/// What clients of a namespace wrote, by name.
fn read_values(lab: &Lab, namespace: &str) -> Result<BTreeMap<String, String>> {
    let all = lab.get_objects(&["configmaps", "--namespace", namespace])?;
    let items = all["items"].as_array().context("items")?;
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let value = |item: &Value| {
        Some((
            text(&item["metadata"]["name"])?,
            text(&item["data"]["value"])?,
        ))
    };
    Ok(items.iter().filter_map(value).collect())
}

#[test]
fn every_kind_is_drawn_as_often_as_any_other() {
    for seed in 0..20 {
        let mut counts = BTreeMap::new();
        let mut pairs = 0;
        for number in 0..COUNT {
            let (first, second) = draw_pair(seed, number);
            *counts.entry(first.name).or_insert(0) += 1;
            pairs += usize::from(second.is_some());
            assert!(second.is_none_or(|second| second.second));
        }
        assert_eq!(counts.len(), KINDS.len());
        let least = COUNT / KINDS.len();
        assert!(counts.values().all(|count| *count >= least), "{counts:?}");
        assert!((30..90).contains(&pairs), "{pairs}");
    }
}
