//! Logs what keeps names from being published: each problem once, for as long as it lasts. It is the objects' fault and not the control
//! plane's, which stays healthy.

use node::report::Status;
use protokube_role::lock::lock_ignoring_poison;
use protokube_role::log::Log;
use std::collections::BTreeSet;
use std::sync::Mutex;

/// Limit of lines in one round: whoever may write objects can cause any number.
const MAX_LINES: usize = 20;

/// The problems of the last round.
#[derive(Debug)]
pub struct ProblemLog {
    log: Log,
    stage: &'static str,
    last: Mutex<BTreeSet<String>>,
}

impl ProblemLog {
    pub fn new(log: Log, stage: &'static str) -> Self {
        Self {
            log,
            stage,
            last: Mutex::default(),
        }
    }

    /// Logs those of all current problems that are new.
    pub(super) fn report(&self, current: BTreeSet<String>) {
        let mut last = lock_ignoring_poison(&self.last);
        let new: Vec<&String> = current.difference(&last).collect();
        for line in new.iter().take(MAX_LINES) {
            self.write(line);
        }
        if new.len() > MAX_LINES {
            self.write(&format!("{} more names", new.len() - MAX_LINES));
        }
        *last = current;
    }

    fn write(&self, detail: &str) {
        self.log
            .write_stage(self.stage, Status::Failed, None, detail);
    }
}
