//! A lab is killed with -9 at a random moment, from its first step to hosts that run their user data: `lab down` removes all that it
//! made and nothing else. `KCTL_LAB_KILLS` sets the number of moments (10), `KCTL_LAB_SEED` repeats them.

mod driver;
mod machine;
mod tree;

use anyhow::{Context, Result, ensure};
use driver::{DRIVER, LAB};
use lab::lab_paths::LabPaths;
use lab::ledger::{self, LedgerEntry};
use lab::process::Process;
use lab::scenario::{self, Lab, Settings, number_from_environment, random_fraction};
use rustix::process::Signal;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// What late children of what was killed would still do.
const LATE: Duration = Duration::from_millis(500);

/// How long a program may take to see that its input has ended, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);

#[test]
#[ignore = "four minutes, alone in its process: make soak"]
fn nothing_outlives_a_lab_that_was_killed() -> Result<()> {
    if scenario::is_skipped("nothing_outlives_a_lab_that_was_killed") {
        return Ok(());
    }
    // Whoever loses its parent becomes this process's, and is seen.
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    let kills = number_from_environment("KCTL_LAB_KILLS")?.unwrap_or(10);
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?.subsec_nanos();
    let seed = number_from_environment("KCTL_LAB_SEED")?.unwrap_or(now.into());
    eprintln!("KCTL_LAB_SEED={seed} KCTL_LAB_KILLS={kills}");
    let bystander = Lab::start_lab(&Settings {
        hosts: 0,
        ..Settings::new("t-bystander", env!("CARGO_BIN_EXE_lab"))
    })?;
    let before = MachineTraces::read_now()?;
    // The last moment is when all is done; it says how long that takes.
    let whole = run(&before, &Moment::Done)?;
    let mut reached = BTreeSet::from([whole.made]);
    for kill in 0..kills {
        // One in each part of the way; in turn of the time and of what is made, most of which is made within moments.
        let part = (f64::from(u32::try_from(kill)?) + random_fraction(seed, kill))
            / f64::from(u32::try_from(kills)?);
        let moment = if kill % 2 == 0 {
            Moment::After(whole.after.mul_f64(part))
        } else {
            let entries = f64::from(u32::try_from(whole.made)?) * part;
            Moment::Made(entries, Duration::from_millis(100).mul_f64(part))
        };
        reached.insert(run(&before, &moment)?.made);
    }
    ensure!(
        reached.len() > 1,
        "all were killed at the same moment: {reached:?}"
    );
    bystander.take_down()
}

/// When a lab is killed.
enum Moment {
    After(Duration),
    /// When more than so many entries stand in the ledger, and a little later.
    Made(f64, Duration),
    Done,
}

/// A run that was killed.
struct Killed {
    after: Duration,
    /// How much stood in its ledger.
    made: usize,
}

/// One lab: begun, killed, taken down; the machine is as before.
fn run(before: &MachineTraces, moment: &Moment) -> Result<Killed> {
    let place = LabPaths::from_name(LAB)?;
    let mut driver = driver::start_driver()?;
    let begun = Instant::now();
    match moment {
        Moment::After(time) => sleep(*time),
        Moment::Made(entries, later) => {
            let few = || -> Result<bool> {
                let made = ledger::read_entries(&place)?.len();
                Ok(f64::from(u32::try_from(made)?) <= *entries)
            };
            while few()? && driver.try_wait()?.is_none() {
                sleep(Duration::from_millis(1));
            }
            sleep(*later);
        }
        Moment::Done => driver::wait_for_hosts(&mut driver)?,
    }
    let after = begun.elapsed();
    kill_driver(&mut driver)?;
    let made = ledger::read_entries(&place).unwrap_or_default();
    eprint!(
        "killed after {:5.1} s: {}",
        after.as_secs_f64(),
        count_kinds(&made)
    );
    let begun = Instant::now();
    let down = Command::new(env!("CARGO_BIN_EXE_lab"))
        .args(["--name", LAB, "down"])
        .stdin(Stdio::null())
        .output()?;
    eprintln!("; down in {:.1} s", begun.elapsed().as_secs_f64());
    ensure!(
        down.status.success(),
        "lab down: {}",
        String::from_utf8_lossy(&down.stderr)
    );
    sleep(LATE);
    // What reads from who was killed ends with it, once it comes to reading.
    let end = Instant::now() + PATIENCE;
    let mut now = MachineTraces::read_now()?;
    while now != *before && Instant::now() < end {
        sleep(Duration::from_millis(50));
        now = MachineTraces::read_now()?;
    }
    ensure!(now == *before, "before: {before:#?}\nnow: {now:#?}");
    Ok(Killed {
        after,
        made: made.len(),
    })
}

/// Daemon and simulator, in whatever they are; those that they began go on. Then who began them.
fn kill_driver(driver: &mut Child) -> Result<()> {
    let below = tree::descendants_of(driver.id())?;
    let makers = below.into_iter().filter(|pid| {
        let words = arguments_of(*pid);
        words.ends_with(" serve ") || words.contains(" -m simulator ")
    });
    let makers: Vec<Process> = makers
        .filter_map(|pid| Process::from_pid(pid).ok())
        .collect();
    driver.kill()?;
    for maker in makers {
        maker.signal(Signal::KILL)?;
    }
    driver.wait().context("waiting for the driver")?;
    Ok(())
}

/// Its arguments, each with a blank after it; none once it is gone.
fn arguments_of(pid: u32) -> String {
    let words = fs::read_to_string(format!("/proc/{pid}/cmdline"));
    words.unwrap_or_default().replace('\0', " ")
}

/// How many of each kind, as `3 netns, 2 mount`.
fn count_kinds(made: &[LedgerEntry]) -> String {
    let name = |one: &LedgerEntry| match one {
        LedgerEntry::Process(_) => "processes",
        LedgerEntry::Netns { .. } => "namespaces",
        LedgerEntry::Mount { .. } => "mounts",
        LedgerEntry::Loop { .. } => "loop devices",
        LedgerEntry::Cgroup { .. } => "cgroups",
        LedgerEntry::Directory { .. } => "directories",
    };
    let mut counts = BTreeMap::<&str, usize>::new();
    for one in made {
        *counts.entry(name(one)).or_default() += 1;
    }
    let words: Vec<String> = counts
        .iter()
        .map(|(name, count)| format!("{count} {name}"))
        .collect();
    if words.is_empty() {
        "nothing yet".to_owned()
    } else {
        words.join(", ")
    }
}

/// All that a lab could change.
#[derive(Debug, PartialEq)]
struct MachineTraces {
    /// Of the lab itself: nothing.
    lab: machine::Traces,
    /// Traces of another lab.
    other: machine::Traces,
    rest: machine::Traces,
    filters: String,
    links: BTreeSet<String>,
    /// Processes below this one.
    processes: BTreeMap<u32, String>,
}

impl MachineTraces {
    fn read_now() -> Result<Self> {
        tree::reap_orphans()?;
        // The other lab's daemon runs short programs all the time: what counts is there at two looks.
        let running = || -> Result<BTreeMap<u32, String>> {
            let pids = tree::descendants_of(std::process::id())?;
            Ok(pids
                .into_iter()
                .map(|pid| (pid, arguments_of(pid)))
                .collect())
        };
        let (mut other, mut processes) = (machine::read_lab_traces("t-bystander"), running()?);
        std::thread::sleep(Duration::from_millis(700));
        let (later, lasting) = (machine::read_lab_traces("t-bystander"), running()?);
        for (kind, traces) in &mut other {
            traces.retain(|trace| later.get(kind).is_some_and(|later| later.contains(trace)));
        }
        processes.retain(|pid, words| lasting.get(pid) == Some(words));
        let links = fs::read_dir("/sys/class/net")?;
        let links = links.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()));
        let filters = Command::new("nft").args(["list", "ruleset"]).output()?;
        Ok(Self {
            lab: machine::read_lab_traces(LAB),
            other,
            rest: machine::read_other_traces(),
            filters: String::from_utf8(filters.stdout)?,
            links: links.collect::<std::io::Result<_>>()?,
            processes,
        })
    }
}

/// Not a test of its own: the lab that is killed above.
#[test]
#[ignore = "the lab that another test kills"]
fn run_driver() -> Result<()> {
    if std::env::var_os(DRIVER).is_none() {
        return Ok(());
    }
    driver::drive_lab()
}
