//! Kubernetes' conformance tests in a scenario: once, or again and again while something else happens.

use super::Lab;
use crate::conformance::{Conformance, Results};
use anyhow::{Result, bail};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{JoinHandle, spawn};

/// A thread that repeats conformance tests until [`Self::end`].
#[derive(Debug)]
pub struct ConformanceRuns {
    over: Arc<AtomicBool>,
    runner: JoinHandle<Result<Vec<Results>>>,
}

impl Lab {
    /// Runs conformance tests against the cluster of the lab. Tests that failed are results, not an error.
    pub fn run_conformance(&self, tests: &Conformance) -> Result<Results> {
        tests.run_tests(&self.place, &self.up)
    }

    /// Begins to run the tests, and runs them again whenever they ended. The results of each run are in a folder of its own, 1, 2, 3,
    /// below the output.
    pub fn start_conformance(&self, tests: Conformance) -> ConformanceRuns {
        let over = Arc::new(AtomicBool::new(false));
        let (place, up, end) = (self.place.clone(), self.up.clone(), over.clone());
        let runner = spawn(move || {
            let mut all = Vec::new();
            while all.is_empty() || !end.load(Ordering::Relaxed) {
                let output = tests.output.join((all.len() + 1).to_string());
                let one = Conformance {
                    output,
                    ..tests.clone()
                };
                all.push(one.run_tests(&place, &up)?);
            }
            Ok(all)
        });
        ConformanceRuns { over, runner }
    }
}

impl ConformanceRuns {
    /// Waits for the end of the last run and returns all results, at least one.
    pub fn end(self) -> Result<Vec<Results>> {
        self.over.store(true, Ordering::Relaxed);
        let Ok(all) = self.runner.join() else {
            bail!("the thread that runs conformance tests panicked")
        };
        all
    }
}
