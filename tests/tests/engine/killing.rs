//! `kill -9` at any call: the next run finishes the job, and nothing is there twice or left behind.

use crate::strategies::run;
use model::cloud::Cloud;
use model::engine::{Clock, Options};
use std::time::Duration;
use tests::sim::{Converged, End, Faults, Kill, SimCloud, State, Truth, converge, history};

/// Runs until everything is as wanted, at most.
const RUNS: usize = 60;

#[derive(Debug, Default)]
struct Figures {
    points: usize,
    runs: usize,
    kills: usize,
    failed_runs: usize,
    steps: usize,
    made_twice: usize,
    twins_removed: usize,
    not_converged: usize,
    duplicated: usize,
    leaked: usize,
    foreign_touched: usize,
}

impl Figures {
    fn add(&mut self, (took, wrong): &(Converged, Option<Truth>)) {
        self.not_converged += usize::from(wrong.is_some());
        self.runs += took.runs;
        self.kills += took.kills;
        self.failed_runs += took.failed;
        self.steps += took.steps;
        self.twins_removed += took.doubles;
        if let Some(truth) = wrong {
            self.duplicated += truth.duplicated.len();
            self.leaked += truth.leaked.len();
            self.foreign_touched += truth.touched.len();
        }
    }

    /// Nothing may be wrong at any end.
    fn check(&self, what: &str) {
        println!("{what}: {self:?}");
        assert_eq!(
            (self.not_converged, self.duplicated, self.leaked),
            (0, 0, 0),
            "{what}"
        );
    }
}

fn lagging() -> Faults {
    Faults {
        lag: Duration::from_secs(8),
        latency: Duration::from_millis(200),
        slow: Duration::from_mins(1),
        not_yet: 30,
        ..Faults::default()
    }
}

/// The cloud before each wanted state of the history, that state, and how many calls the way there takes.
fn undisturbed(faults: &Faults) -> Vec<(State, Duration, Vec<Cloud>, u64)> {
    let cloud = SimCloud::new(7, faults.clone(), State::beside_others(), Duration::ZERO);
    let mut ways = Vec::new();
    for (name, desired) in history() {
        let (before, at) = (cloud.state.borrow().clone(), cloud.clock.now());
        let End::Ran(_, report) = run(&cloud, &desired) else {
            panic!("{name} was killed")
        };
        assert!(report.is_complete(), "{name}: {:?}", report.failed);
        ways.push((before, at, desired, cloud.calls.get()));
        cloud.clock.pass(Duration::from_mins(1));
    }
    ways
}

#[test]
fn a_kill_at_every_call_before_and_after_its_effect_leaves_nothing_behind() {
    let mut figures = Figures::default();
    for (before, at, desired, calls) in undisturbed(&lagging()) {
        for call in 1..=calls {
            for after in [false, true] {
                let faults = Faults {
                    kill: Some(Kill { call, after }),
                    ..lagging()
                };
                let cloud = SimCloud::new(call, faults, before.clone(), at);
                let made_twice = cloud.state.borrow().made_twice;
                if matches!(run(&cloud, &desired), End::Killed) {
                    figures.kills += 1;
                }
                cloud.faults.borrow_mut().kill = None;
                figures.points += 1;
                figures.add(&converge(&cloud, &desired, Options::default(), RUNS));
                figures.made_twice += cloud.state.borrow().made_twice - made_twice;
            }
        }
    }
    assert!(figures.kills * 10 > figures.points * 9, "{figures:?}");
    assert_eq!(figures.made_twice, 0);
    figures.check("a kill at every call");
}

/// `KCTL_SIM_SEEDS`, or so many.
fn seeds(default: u64) -> u64 {
    let set = std::env::var("KCTL_SIM_SEEDS").ok();
    set.and_then(|text| text.parse().ok()).unwrap_or(default)
}

fn chaos() -> Faults {
    Faults {
        throttled: 15,
        unknown: 8,
        killed: 2,
        ..lagging()
    }
}

/// Lives one cluster's life under these faults; one spec in five first meets a missing permission or a quota.
fn live(seed: u64, faults: Faults, figures: &mut Figures) {
    let cloud = SimCloud::new(seed, faults, State::beside_others(), Duration::ZERO);
    for (_, desired) in history() {
        figures.points += 1;
        if cloud.rng().percent(20) {
            let kinds = [
                "vpc",
                "subnet",
                "launch_template",
                "nat_gateway",
                "iam_role",
            ];
            let kind = kinds[usize::try_from(cloud.rng().next() % 5).unwrap()];
            if cloud.rng().percent(50) {
                cloud.faults.borrow_mut().denied = Some(kind);
            } else {
                cloud.faults.borrow_mut().quota = Some((kind, 1));
            }
            // Does not get there.
            let _ = run(&cloud, &desired);
            cloud.faults.borrow_mut().denied = None;
            cloud.faults.borrow_mut().quota = None;
        }
        let end = converge(&cloud, &desired, Options::default(), RUNS);
        if let (_, Some(truth)) = &end {
            println!("seed {seed}: {truth:?}");
        }
        figures.add(&end);
    }
    figures.made_twice += cloud.state.borrow().made_twice;
}

#[test]
fn all_faults_at_once_and_it_still_converges() {
    let mut figures = Figures::default();
    let seeds = seeds(300);
    for seed in 1..=seeds {
        live(seed, chaos(), &mut figures);
    }
    assert!(figures.kills > 0, "{figures:?}");
    assert_eq!(figures.made_twice, 0, "reads had settled");
    figures.check(&format!("{seeds} seeds with all faults"));
}

#[test]
fn what_reads_show_later_than_the_wait_is_made_twice_found_and_removed() {
    let mut figures = Figures::default();
    for seed in 1..=60 {
        let lag = Duration::from_secs(25);
        assert!(lag > Options::default().settle);
        live(seed, Faults { lag, ..chaos() }, &mut figures);
    }
    assert!(
        figures.made_twice > 0 && figures.twins_removed > 0,
        "{figures:?}"
    );
    figures.check("reads later than the wait");
}
