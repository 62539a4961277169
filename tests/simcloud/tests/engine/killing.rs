//! `kill -9` at any call: the next run finishes the job, and nothing is there twice or left behind.

use crate::strategies::run;
use cloud::Cloud;
use engine::{Clock, Options, Resource};
use simcloud::{
    ConvergeResult, Faults, Kill, RunEnd, SimCloud, State, StateDifference, cluster_history,
    run_until_converged,
};
use std::time::Duration;

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
    asks: usize,
    not_converged: usize,
    duplicated: usize,
    leaked: usize,
    foreign_touched: usize,
    endangered: usize,
}

impl Figures {
    fn add_run(&mut self, (took, wrong): &(ConvergeResult, Option<StateDifference>)) {
        self.asks += usize::from(took.asks);
        self.not_converged += usize::from(wrong.is_some() && !took.asks);
        self.runs += took.runs;
        self.kills += took.kills;
        self.failed_runs += took.failed;
        self.steps += took.steps;
        self.twins_removed += took.doubles;
        if let Some(truth) = wrong.as_ref().filter(|_| !took.asks) {
            self.duplicated += truth.duplicated.len();
            self.leaked += truth.leaked.len();
            self.foreign_touched += truth.touched.len();
        }
        self.endangered += wrong.as_ref().map_or(0, |truth| truth.endangered.len());
    }

    fn add_all(&mut self, other: &Self) {
        self.points += other.points;
        self.runs += other.runs;
        self.kills += other.kills;
        self.failed_runs += other.failed_runs;
        self.steps += other.steps;
        self.made_twice += other.made_twice;
        self.twins_removed += other.twins_removed;
        self.asks += other.asks;
        self.not_converged += other.not_converged;
        self.duplicated += other.duplicated;
        self.leaked += other.leaked;
        self.foreign_touched += other.foreign_touched;
        self.endangered += other.endangered;
    }

    /// Nothing may be wrong at any end.
    fn assert_clean(&self, what: &str) {
        println!("{what}: {self:?}");
        let wrong = [
            self.not_converged,
            self.duplicated,
            self.leaked,
            self.foreign_touched,
            self.endangered,
        ];
        assert_eq!(wrong, [0; 5], "{what}");
    }
}

fn lagging_faults() -> Faults {
    Faults {
        lag: Duration::from_secs(8),
        flicker: Duration::from_secs(4),
        latency: Duration::from_millis(200),
        slow: Duration::from_mins(1),
        not_yet: 30,
        ..Faults::default()
    }
}

/// The cloud before each wanted state of the history, that state, and how many calls the way there takes.
fn run_undisturbed(faults: &Faults) -> Vec<(State, Duration, Vec<Cloud>, u64)> {
    let cloud = SimCloud::new(7, faults.clone(), State::beside_others(), Duration::ZERO);
    let mut ways = Vec::new();
    for (name, desired) in cluster_history() {
        let (before, at) = (cloud.state.borrow().clone(), cloud.clock.now());
        let RunEnd::Ran(_, report) = run(&cloud, &desired) else {
            panic!("{name} was killed")
        };
        assert!(report.is_complete(), "{name}: {:?}", report.failed);
        ways.push((before, at, desired, cloud.calls.get()));
        cloud.clock.pass_time(Duration::from_mins(1));
    }
    ways
}

#[test]
fn a_kill_at_every_call_before_and_after_its_effect_leaves_nothing_behind() {
    let mut figures = Figures::default();
    for (before, at, desired, calls) in run_undisturbed(&lagging_faults()) {
        for call in 1..=calls {
            for after in [false, true] {
                let faults = Faults {
                    kill: Some(Kill { call, after }),
                    ..lagging_faults()
                };
                let cloud = SimCloud::new(call, faults, before.clone(), at);
                let made_twice = cloud.state.borrow().made_twice;
                if matches!(run(&cloud, &desired), RunEnd::Killed) {
                    figures.kills += 1;
                }
                cloud.faults.borrow_mut().kill = None;
                figures.points += 1;
                figures.add_run(&run_until_converged(
                    &cloud,
                    &desired,
                    Options::default(),
                    RUNS,
                ));
                figures.made_twice += cloud.state.borrow().made_twice - made_twice;
            }
        }
    }
    assert!(figures.kills * 10 > figures.points * 9, "{figures:?}");
    assert_eq!(figures.made_twice, 0);
    figures.assert_clean("a kill at every call");
}

/// The number in that variable, or this one.
fn number_from_environment(variable: &str, default: u64) -> u64 {
    let set = std::env::var(variable).ok();
    set.and_then(|text| text.parse().ok()).unwrap_or(default)
}

fn chaos_faults() -> Faults {
    Faults {
        throttled: 15,
        unknown: 8,
        killed: 2,
        ..lagging_faults()
    }
}

/// Somebody copies volumes: attached or not, while kctl does not run.
fn copy_volumes(cloud: &SimCloud) {
    let mut state = cloud.state.borrow_mut();
    let volume = |object: &&simcloud::Object| {
        object
            .current_body()
            .is_some_and(|body| body.resource.holds_data())
    };
    let volumes: Vec<String> = state
        .living_objects()
        .filter(volume)
        .map(|one| one.physical.clone())
        .collect();
    for physical in volumes {
        if cloud.random().is_within_percent(10) {
            let in_use = cloud.random().is_within_percent(50);
            state.copy_object(&physical, in_use, cloud.clock.now());
        }
    }
}

/// Lives one cluster's life under these faults; one spec in five first meets a missing permission or a quota. Before each,
/// somebody may have copied volumes of etcd.
fn live_one_life(seed: u64, faults: Faults, figures: &mut Figures) {
    let cloud = SimCloud::new(seed, faults, State::beside_others(), Duration::ZERO);
    for (_, desired) in cluster_history() {
        figures.points += 1;
        copy_volumes(&cloud);
        if cloud.random().is_within_percent(20) {
            let kinds = [
                "vpc",
                "subnet",
                "launch_template",
                "nat_gateway",
                "iam_role",
            ];
            let kind = kinds[usize::try_from(cloud.random().next_number() % 5).unwrap()];
            if cloud.random().is_within_percent(50) {
                cloud.faults.borrow_mut().denied = Some(kind);
            } else {
                cloud.faults.borrow_mut().quota = Some((kind, 1));
            }
            // Does not get there.
            let _ = run(&cloud, &desired);
            cloud.faults.borrow_mut().denied = None;
            cloud.faults.borrow_mut().quota = None;
        }
        let end = run_until_converged(&cloud, &desired, Options::default(), RUNS);
        if let (_, Some(truth)) = &end {
            println!("seed {seed}: {truth:?}");
        }
        figures.add_run(&end);
        if end.0.asks {
            break;
        }
    }
    let made_twice = cloud.state.borrow().made_twice;
    if made_twice > 0 {
        println!("seed {seed}: {made_twice} made twice");
    }
    figures.made_twice += made_twice;
}

/// The lives of all those seeds, on all processors; the figures do not depend on how many there are.
fn live_all(begin: u64, seeds: u64) -> Figures {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let some = |first: usize| {
        let mut figures = Figures::default();
        for seed in (begin..begin + seeds).skip(first).step_by(threads) {
            live_one_life(seed, chaos_faults(), &mut figures);
        }
        figures
    };
    std::thread::scope(|scope| {
        let all: Vec<_> = (0..threads)
            .map(|first| scope.spawn(move || some(first)))
            .collect();
        let mut figures = Figures::default();
        for one in all {
            figures.add_all(&one.join().unwrap());
        }
        figures
    })
}

#[test]
fn all_faults_at_once_and_it_still_converges() {
    // KCTL_SIM_FIRST=N KCTL_SIM_SEEDS=1 lives the life of one seed again.
    let seeds = number_from_environment("KCTL_SIM_SEEDS", 2000);
    let figures = live_all(number_from_environment("KCTL_SIM_FIRST", 1), seeds);
    assert_eq!(figures.asks, 0, "{figures:?}");
    assert!(figures.kills > 0, "{figures:?}");
    assert_eq!(figures.made_twice, 0, "reads had settled");
    figures.assert_clean(&format!("{seeds} seeds with all faults"));
}

#[test]
fn what_reads_show_later_than_the_wait_is_made_twice_found_and_removed_or_a_person_is_asked() {
    let mut figures = Figures::default();
    for seed in 1..=60 {
        let lag = Duration::from_secs(25);
        assert!(lag > Options::default().settle);
        live_one_life(
            seed,
            Faults {
                lag,
                ..chaos_faults()
            },
            &mut figures,
        );
    }
    assert!(
        figures.made_twice > 0 && figures.twins_removed > 0,
        "{figures:?}"
    );
    figures.assert_clean("reads later than the wait");
}
